"""A vision transformer on random images."""
import torch
import torch.nn.functional as F
from torch import nn

from training import arguments, run, train

a = arguments(batch=32, layers=6, width=192, heads=3, patch=8, size=64, classes=100)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.attention = nn.MultiheadAttention(a.width, a.heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(a.width, 4 * a.width), nn.GELU(), nn.Linear(4 * a.width, a.width))

    def forward(self, x):
        h = self.before_attention(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.before_mlp(x))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, a.width, a.patch, a.patch)
        self.token = nn.Parameter(torch.zeros(1, 1, a.width))
        self.places = nn.Parameter(torch.zeros(1, (a.size // a.patch) ** 2 + 1, a.width))
        self.blocks = nn.ModuleList(Block() for _ in range(a.layers))
        self.norm, self.head = nn.LayerNorm(a.width), nn.Linear(a.width, a.classes)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(len(x), -1, -1), x), dim=1) + self.places
        for block in self.blocks:
            x = run(block, a, x)
        return self.head(self.norm(x)[:, 0])


def make(rows):
    return torch.randn(rows, 3, a.size, a.size), torch.randint(0, a.classes, (rows,))


train(VisionTransformer().cuda(), make, lambda model, images, labels: F.cross_entropy(model(images), labels), a)
