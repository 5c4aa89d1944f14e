"""A graph network on sampled neighbourhoods: each batch has other numbers of nodes and edges."""
import torch
import torch.nn.functional as F
from torch import nn

from training import arguments, train

a = arguments(batch=1024, layers=3, width=256, features=128, nodes=12, edges=3, classes=40)


class GraphNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [a.features] + [a.width] * (a.layers - 1) + [a.classes]
        self.layers = nn.ModuleList(nn.Linear(2 * here, after) for here, after in zip(widths, widths[1:]))

    def forward(self, nodes, edges):
        for i, layer in enumerate(self.layers):
            neighbours = torch.zeros_like(nodes).index_add_(0, edges[1], nodes[edges[0]])
            nodes = layer(torch.cat([nodes, neighbours], 1))
            if i < a.layers - 1:
                nodes = F.dropout(F.relu(nodes), 0.5, self.training)
        return nodes


def by_chance(mean):
    return mean + int(torch.randint(-mean // 8, mean // 8, ()))


def make(rows):
    nodes = by_chance(rows * a.nodes)
    edges = torch.randint(0, nodes, (2, by_chance(nodes * a.edges)))
    return torch.randn(nodes, a.features), edges, torch.randint(0, a.classes, (rows,))


def loss_of(model, nodes, edges, labels):
    return F.cross_entropy(model(nodes, edges)[: len(labels)], labels)


train(GraphNetwork().cuda(), make, loss_of, a)
