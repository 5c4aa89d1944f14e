"""A transformer of Llama's kind: RMSNorm, rotary positions, SwiGLU, grouped queries."""
import torch
import torch.nn.functional as F
from torch import nn

from training import arguments, run, train

a = arguments(batch=8, layers=6, width=512, heads=8, groups=2, length=256, words=4096)
SIZE = a.width // a.heads


def rotate(x, cosine, sine):
    even, odd = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-odd, even), dim=-1) * sine


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_mlp = nn.RMSNorm(a.width), nn.RMSNorm(a.width)
        self.q, self.out = nn.Linear(a.width, a.width, bias=False), nn.Linear(a.width, a.width, bias=False)
        self.kv = nn.Linear(a.width, 2 * a.groups * SIZE, bias=False)
        self.gate, self.up = (nn.Linear(a.width, 3 * a.width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * a.width, a.width, bias=False)

    def forward(self, x, cosine, sine):
        n, t, _ = x.shape
        h = self.before_attention(x)
        q = rotate(self.q(h).view(n, t, a.heads, SIZE).transpose(1, 2), cosine, sine)
        k, v = self.kv(h).view(n, t, 2, a.groups, SIZE).permute(2, 0, 3, 1, 4)
        k, v = (y.repeat_interleave(a.heads // a.groups, dim=1) for y in (rotate(k, cosine, sine), v))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(n, t, a.width))
        h = self.before_mlp(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.blocks = nn.Embedding(a.words, a.width), nn.ModuleList(Block() for _ in range(a.layers))
        self.norm, self.head = nn.RMSNorm(a.width), nn.Linear(a.width, a.words, bias=False)
        angles = torch.outer(torch.arange(a.length), 10000 ** (-torch.arange(0, SIZE, 2) / SIZE)).repeat(1, 2)
        self.register_buffer("cosine", angles.cos()), self.register_buffer("sine", angles.sin())

    def forward(self, text):
        x = self.words(text)
        for block in self.blocks:
            x = run(block, a, x, self.cosine, self.sine)
        return self.head(self.norm(x))


def loss_of(model, text):
    return F.cross_entropy(model(text[:, :-1].contiguous().view(-1, a.length)).flatten(0, 1), text[:, 1:].flatten())


train(Transformer().cuda(), lambda rows: [torch.randint(0, a.words, (rows, a.length + 1))], loss_of, a)
