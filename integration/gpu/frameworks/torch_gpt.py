#!/usr/bin/env python3
"""Trains a decoder-only transformer of 124 M parameters (GPT-2's smallest shape) on random tokens with PyTorch.

Attention is written out as products and a softmax: the fused kernels' gradients are not deterministic everywhere.
"""
import report
from torch_setup import device, through, torch, train

nn, F = torch.nn, torch.nn.functional


class Block(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads, self.each, self.length, self.width = heads, width // heads, length, width
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x, mask):
        q, k, v = (part.reshape(-1, self.length, self.heads, self.each).transpose(1, 2)
                   for part in self.query_key_value(x).split(self.width, dim=2))
        weights = F.softmax((q @ k.transpose(2, 3)) * self.each ** -0.5 + mask, dim=3)
        return self.out((weights @ v).transpose(1, 2).reshape(-1, self.length, self.width))

    def forward(self, x, mask):
        x = x + self.attend(self.norm1(x), mask)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, tokens, width, heads, layers, length):
        super().__init__()
        self.token, self.place = nn.Embedding(tokens, width), nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.ModuleList([Block(width, heads, length) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, tokens, bias=False)
        nn.init.normal_(self.token.weight, std=0.02)
        self.head.weight = self.token.weight
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1), persistent=False)

    def forward(self, ids):
        x = self.token(ids) + self.place
        for block in self.blocks:
            x = through(block, x, self.mask)
        return self.head(self.norm(x))


def main():
    options = report.arguments(__doc__)
    where = device()
    tokens, width, heads, layers, length, rows = (64, 16, 2, 2, 8, 2) if options.small else (50257, 768, 12, 12, 512, 8)
    model = Gpt(tokens, width, heads, layers, length).to(where)

    def batch(iteration):
        ids = torch.randint(tokens, (rows, length + 1), generator=torch.Generator(device="cpu").manual_seed(iteration)).to(where)
        return ids[:, :-1], ids[:, 1:]

    def loss_of(net, ids, following):
        return F.cross_entropy(net(ids).reshape(-1, tokens), following.reshape(-1))

    train("torch_gpt", model, batch, loss_of, options, rate=3e-4)


if __name__ == "__main__":
    main()
