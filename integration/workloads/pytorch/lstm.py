"""A language model of LSTMs; the state goes from one batch to the next without its gradient."""
import torch
import torch.nn.functional as F
from torch import nn

from training import arguments, train

a = arguments(batch=32, layers=2, width=512, length=64, words=8192, cell="LSTM")


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.drop = nn.Embedding(a.words, a.width), nn.Dropout(0.2)
        self.cells = getattr(nn, a.cell)(a.width, a.width, a.layers, dropout=0.2, batch_first=True)
        self.head, self.state = nn.Linear(a.width, a.words), None

    def forward(self, text):
        if self.state is not None and self.state[0].shape[-2] != len(text):
            self.state = None
        x, state = self.cells(self.drop(self.words(text)), self.state)
        self.state = tuple(s.detach() for s in state) if a.cell == "LSTM" else state.detach()
        return self.head(self.drop(x))


def make(rows):
    text = torch.randint(0, a.words, (rows, a.length + 1))
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


def loss_of(model, text, following):
    return F.cross_entropy(model(text).flatten(0, 1), following.flatten())


train(LanguageModel().cuda(), make, loss_of, a)
