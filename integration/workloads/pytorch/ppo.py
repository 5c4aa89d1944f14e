"""Proximal policy optimisation on made-up frames: a rollout without gradients, then several updates by its mini-batches."""
import torch
import torch.nn.functional as F
from torch import nn

from training import arguments, finish, optimizer_of

a = arguments(batch=256, environments=64, length=16, epochs=2, actions=6)
body = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
                     nn.Flatten(), nn.Linear(3136, 512), nn.ReLU()).cuda()
policy, value = nn.Linear(512, a.actions).cuda(), nn.Linear(512, 1).cuda()
parameters = [*body.parameters(), *policy.parameters(), *value.parameters()]
optimizer = optimizer_of(parameters, a)


def judge(frames, actions):
    seen = body(frames)
    chances = F.log_softmax(policy(seen), -1)
    return chances.gather(1, actions[:, None])[:, 0], value(seen)[:, 0], -(chances.exp() * chances).sum(-1).mean()


@torch.no_grad()
def rollout():
    shape = (a.length, a.environments)
    frames = torch.zeros(*shape, 4, 84, 84, device="cuda")
    actions = torch.zeros(shape, dtype=torch.long, device="cuda")
    chances, values, rewards = (torch.zeros(shape, device="cuda") for _ in range(3))
    for t in range(a.length):
        frames[t] = torch.rand(a.environments, 4, 84, 84).cuda()
        actions[t] = torch.randint(0, a.actions, (a.environments,)).cuda()
        chances[t], values[t], _ = judge(frames[t], actions[t])
        rewards[t] = torch.rand(a.environments).cuda()
    advantages, last = torch.zeros(shape, device="cuda"), 0
    for t in reversed(range(a.length)):
        following = values[t + 1] if t + 1 < a.length else torch.zeros(a.environments, device="cuda")
        last = rewards[t] + 0.99 * following - values[t] + 0.99 * 0.95 * last
        advantages[t] = last
    return [tensor.flatten(0, 1) for tensor in (frames, actions, chances, advantages, advantages + values)]


for _ in range(a.steps):
    seen = rollout()
    for _ in range(a.epochs):
        order = torch.randperm(a.length * a.environments).cuda()
        for some in order.split(a.batch):
            frames, actions, before, advantages, returns = (tensor[some] for tensor in seen)
            now, values, entropy = judge(frames, actions)
            ratio = (now - before).exp()
            gain = torch.min(advantages * ratio, advantages * ratio.clamp(0.8, 1.2)).mean()
            loss = 0.5 * F.mse_loss(values, returns) - gain - 0.01 * entropy
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
finish()
