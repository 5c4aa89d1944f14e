"""A generative adversarial network of convolutions (DCGAN): two networks, two optimizers."""
import torch
import torch.nn.functional as F
from torch import nn

from training import arguments, autocast, batches, finish, optimizer_of

a = arguments(batch=64, width=64, latent=100)


def up(inputs, outputs, stride=2, padding=1):
    return [nn.ConvTranspose2d(inputs, outputs, 4, stride, padding, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(True)]


def down(inputs, outputs):
    return [nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.2, inplace=True)]


w = a.width
generator = nn.Sequential(*up(a.latent, 4 * w, 1, 0), *up(4 * w, 2 * w), *up(2 * w, w),
                          nn.ConvTranspose2d(w, 3, 4, 2, 1), nn.Tanh()).cuda()
critic = nn.Sequential(nn.Conv2d(3, w, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True), *down(w, 2 * w), *down(2 * w, 4 * w),
                       nn.Conv2d(4 * w, 1, 4)).cuda()
of_generator, of_critic = optimizer_of(generator.parameters(), a), optimizer_of(critic.parameters(), a)
data = batches(lambda rows: [torch.rand(rows, 3, 32, 32) * 2 - 1, torch.randn(rows, a.latent, 1, 1)], a)


def loss(images, real):
    judged = critic(images).flatten()
    return F.binary_cross_entropy_with_logits(judged.float(), torch.full_like(judged, real, dtype=torch.float))


for _ in range(a.steps):
    images, noise = next(data)
    with autocast(a):
        made = generator(noise)
        of_real, of_made = loss(images, 1.0), loss(made.detach(), 0.0)
    of_critic.zero_grad(set_to_none=True)
    (of_real + of_made).backward()
    of_critic.step()
    with autocast(a):
        fooled = loss(made, 1.0)
    of_generator.zero_grad(set_to_none=True)
    fooled.backward()
    of_generator.step()
finish()
