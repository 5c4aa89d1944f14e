"""An encoder of BERT's shape (smaller) that fills in masked words."""
import torch
import torch.nn.functional as F
from torch import nn

from training import arguments, run, train

a = arguments(batch=16, layers=4, width=256, heads=4, length=128, lengths=1, words=8192)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(a.words, a.width), nn.Embedding(a.length, a.width)
        self.segments, self.norm = nn.Embedding(2, a.width), nn.LayerNorm(a.width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(a.width, a.heads, 4 * a.width, activation="gelu", batch_first=True)
                                    for _ in range(a.layers))
        self.dense, self.last, self.head = nn.Linear(a.width, a.width), nn.LayerNorm(a.width), nn.Linear(a.width, a.words)

    def forward(self, text, segments, padding):
        places = torch.arange(text.shape[1], device=text.device)
        x = F.dropout(self.norm(self.words(text) + self.places(places) + self.segments(segments)), 0.1, self.training)
        for layer in self.layers:
            x = run(lambda y, at=layer: at(y, src_key_padding_mask=padding), a, x)
        return self.head(self.last(F.gelu(self.dense(x))))


def make(rows):
    # With --lengths texts are shorter by eighths, up to so many different ones.
    n = a.length - int(torch.randint(a.lengths, ())) * (a.length // 8)
    text, masked = torch.randint(4, a.words, (rows, n)), torch.rand(rows, n) < 0.15
    segments = (torch.arange(n) >= n // 2).long().expand(rows, -1).contiguous()
    padding = torch.arange(n).expand(rows, -1) >= torch.randint(n // 2, n, (rows, 1))
    return text.masked_fill(masked, 3), segments, padding, text.masked_fill(~masked, -100)


def loss_of(model, text, segments, padding, wanted):
    return F.cross_entropy(model(text, segments, padding).flatten(0, 1), wanted.flatten(), ignore_index=-100)


train(Encoder().cuda(), make, loss_of, a)
