"""A U-Net that segments random images: what the way down leaves is joined to the way up."""
import torch
import torch.nn.functional as F
from torch import nn

from training import arguments, run, train

a = arguments(batch=4, width=32, levels=4, size=128, classes=4)


def pair(inputs, outputs):
    layers = []
    for i in (inputs, outputs):
        layers += [nn.Conv2d(i, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [a.width << level for level in range(a.levels + 1)]
        self.down = nn.ModuleList(pair(i, o) for i, o in zip([3, *widths[:-2]], widths[:-1]))
        self.bottom = pair(widths[-2], widths[-1])
        self.widen = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.up = nn.ModuleList(pair(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(a.width, a.classes, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            kept.append(run(block, a, x))
            x = F.max_pool2d(kept[-1], 2)
        x = run(self.bottom, a, x)
        for widen, block in zip(self.widen, self.up):
            x = run(block, a, torch.cat((kept.pop(), widen(x)), dim=1))
        return self.head(x)


def make(rows):
    return torch.randn(rows, 3, a.size, a.size), torch.randint(0, a.classes, (rows, a.size, a.size))


train(UNet().cuda(), make, lambda model, images, masks: F.cross_entropy(model(images), masks), a)
