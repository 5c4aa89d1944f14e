"""ResNet-18 or -50 (--depth) on random images."""
import torch
import torch.nn.functional as F
from torch import nn

from training import arguments, run, train

a = arguments(batch=16, depth=18, size=64, smallest=0, classes=100, layout="first")
COUNTS, WIDER = {18: ((2, 2, 2, 2), 1), 50: ((3, 4, 6, 3), 4)}[a.depth]


def convolution(inputs, outputs, size, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs))


class Block(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * WIDER
        self.steps = nn.ModuleList([convolution(inputs, width, 3, stride), convolution(width, width, 3)] if WIDER == 1 else [
            convolution(inputs, width, 1), convolution(width, width, 3, stride), convolution(width, outputs, 1)])
        self.beside = nn.Identity() if stride == 1 and inputs == outputs else convolution(inputs, outputs, 1, stride)

    def forward(self, x):
        y = x
        for step in self.steps[:-1]:
            y = F.relu(step(y), inplace=True)
        return F.relu(self.steps[-1](y) + self.beside(x), inplace=True)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        blocks, inputs = [], 64
        for stage, count in enumerate(COUNTS):
            for i in range(count):
                blocks.append(Block(inputs, 64 << stage, 2 if stage and not i else 1))
                inputs = (64 << stage) * WIDER
        self.blocks, self.head = nn.ModuleList(blocks), nn.Linear(inputs, a.classes)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = run(block, a, x)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def make(rows):
    size = int(torch.randint(a.smallest // 8, a.size // 8 + 1, ())) * 8 if a.smallest else a.size
    images = torch.randn(rows, 3, size, size)
    return images.contiguous(memory_format=LAYOUT), torch.randint(0, a.classes, (rows,))


LAYOUT = torch.channels_last if a.layout == "last" else torch.contiguous_format
model = ResNet().cuda().to(memory_format=LAYOUT)
train(model, make, lambda m, images, labels: F.cross_entropy(m(images), labels), a)
