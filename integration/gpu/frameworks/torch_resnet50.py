#!/usr/bin/env python3
"""Trains ResNet-50 on random images with PyTorch.

The network is written out here, so that it is the same wherever it runs. The pooling behind the stem takes the mean instead of the maximum, whose
gradient PyTorch does not compute deterministically.
"""
import report
from torch_setup import device, through, torch, train

nn, F = torch.nn, torch.nn.functional


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.shortcut = nn.Identity()
        if stride != 1 or channels != 4 * width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(self.norm3(self.conv3(y)) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, depths, width, classes):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        blocks, channels = [], width
        for stage, depth in enumerate(depths):
            for index in range(depth):
                blocks.append(Bottleneck(channels, width << stage, 2 if stage and not index else 1))
                channels = 4 * (width << stage)
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(channels, classes)

    def forward(self, x):
        x = F.avg_pool2d(F.relu(self.norm(self.stem(x))), 3, 2, 1)
        for block in self.blocks:
            x = through(block, x)
        return self.head(x.mean((2, 3)))


def main():
    options = report.arguments(__doc__)
    where = device()
    depths, width, images, pixels, classes = ((1, 1), 8, 4, 32, 10) if options.small else ((3, 4, 6, 3), 64, 64, 224, 1000)
    model = ResNet(depths, width, classes).to(where)

    def batch(iteration):
        source = torch.Generator(device="cpu").manual_seed(iteration)
        return (torch.randn(images, 3, pixels, pixels, generator=source).to(where),
                torch.randint(classes, (images,), generator=source).to(where))

    train("torch_resnet50", model, batch, lambda net, x, y: F.cross_entropy(net(x), y), options)


if __name__ == "__main__":
    main()
