"""Denoising diffusion with a small U-shaped network, and a running mean of its weights."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

from training import arguments, batches, finish, optimizer_of

a = arguments(batch=16, width=64, size=32)
STEPS = 1000


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(8, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1))
        self.of_time = nn.Linear(2 * a.width, outputs)
        self.second = nn.Sequential(nn.GroupNorm(8, outputs), nn.SiLU(), nn.Dropout(0.1), nn.Conv2d(outputs, outputs, 3, padding=1))
        self.beside = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        return self.second(self.first(x) + self.of_time(time)[:, :, None, None]) + self.beside(x)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        w = a.width
        self.time = nn.Sequential(nn.Linear(1, 2 * w), nn.SiLU(), nn.Linear(2 * w, 2 * w))
        self.head, self.tail = nn.Conv2d(3, w, 3, padding=1), nn.Conv2d(w, 3, 3, padding=1)
        self.down = nn.ModuleList([Block(w, w), Block(w, 2 * w), Block(2 * w, 4 * w)])
        self.middle = Block(4 * w, 4 * w)
        self.up = nn.ModuleList([Block(8 * w, 2 * w), Block(4 * w, w), Block(2 * w, w)])

    def forward(self, x, time):
        time, x, kept = self.time(time[:, None]), self.head(x), []
        for block in self.down:
            kept.append(block(x, time))
            x = F.avg_pool2d(kept[-1], 2)
        x = self.middle(x, time)
        for block in self.up:
            x = block(torch.cat([F.interpolate(x, scale_factor=2), kept.pop()], 1), time)
        return self.tail(x)


model = Denoiser().cuda()
mean = copy.deepcopy(model).requires_grad_(False)
optimizer = optimizer_of(model.parameters(), a)
left = torch.cumprod(1 - torch.linspace(1e-4, 0.02, STEPS), 0).cuda()
for _, (images, when) in zip(range(a.steps), batches(lambda n: [torch.randn(n, 3, a.size, a.size), torch.randint(0, STEPS, (n,))], a)):
    noise, part = torch.randn_like(images), left[when][:, None, None, None]
    loss = F.mse_loss(model(part.sqrt() * images + (1 - part).sqrt() * noise, when / STEPS), noise)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        torch._foreach_lerp_(list(mean.parameters()), list(model.parameters()), 0.001)
finish()
