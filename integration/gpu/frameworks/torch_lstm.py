#!/usr/bin/env python3
"""Trains a language model of two LSTM layers on random tokens with PyTorch (cuDNN's recurrent kernels)."""
import report
from torch_setup import device, torch, train

nn, F = torch.nn, torch.nn.functional


class Model(nn.Module):
    def __init__(self, tokens, width, layers):
        super().__init__()
        self.token = nn.Embedding(tokens, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, tokens)

    def forward(self, ids):
        states, _ = self.lstm(self.token(ids))
        return self.head(states)


def main():
    options = report.arguments(__doc__)
    where = device()
    tokens, width, layers, length, rows = (32, 8, 1, 6, 2) if options.small else (10000, 1024, 2, 128, 64)
    model = Model(tokens, width, layers).to(where)

    def batch(iteration):
        ids = torch.randint(tokens, (rows, length + 1), generator=torch.Generator(device="cpu").manual_seed(iteration)).to(where)
        return ids[:, :-1], ids[:, 1:]

    def loss_of(net, ids, following):
        return F.cross_entropy(net(ids).reshape(-1, tokens), following.reshape(-1))

    train("torch_lstm", model, batch, loss_of, options)


if __name__ == "__main__":
    main()
