"""A decoder-only transformer with learned positions (GPT-2's shape, smaller) on random text."""
import torch
import torch.nn.functional as F
from torch import nn

from training import arguments, run, train

a = arguments(batch=16, layers=6, width=512, heads=8, length=256, words=4096)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.qkv, self.out = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width)
        self.up, self.down = nn.Linear(a.width, 4 * a.width), nn.Linear(4 * a.width, a.width)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = self.qkv(self.before_attention(x)).view(n, t, 3, a.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(n, t, a.width))
        return x + self.down(F.gelu(self.up(self.before_mlp(x))))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(a.words, a.width), nn.Parameter(torch.zeros(a.length, a.width))
        self.blocks = nn.ModuleList(Block() for _ in range(a.layers))
        self.norm, self.head = nn.LayerNorm(a.width), nn.Linear(a.width, a.words, bias=False)

    def forward(self, text):
        x = self.words(text) + self.places
        for block in self.blocks:
            x = run(block, a, x)
        return self.head(self.norm(x))


def make(rows):
    text = torch.randint(0, a.words, (rows, a.length + 1))
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


def loss_of(model, text, following):
    return F.cross_entropy(model(text).flatten(0, 1), following.flatten())


train(Transformer().cuda(), make, loss_of, a)
