"""VGG and ResNet on CIFAR-10 (3 x 32 x 32, ten classes), as Zhang et al. (2019) have them: see model.py."""
from blocks import Residual
from layers import Convolution, Linear, Loss, Normalisation, Pooling, Relu
from network import CHANNELS

HEIGHT, CLASSES = 32, 10


def residual(network, inputs, convolutions, projected):
    """A block of convolutions, each with kernel, channels and stride; ReLU between, none before the sum."""
    branch = []
    channels, height_over = inputs, 1
    for i, (kernel, outputs, stride) in enumerate(convolutions):
        branch += [Convolution(network, channels, outputs, kernel, stride), Normalisation(network, outputs)]
        if i + 1 < len(convolutions):
            branch.append(Relu(network))
        channels, height_over = outputs, height_over * stride
    projection = [Convolution(network, inputs, channels, 1, height_over), Normalisation(network, channels)] if projected else []
    return Residual(network, branch, projection)


def vgg(network, stages):
    """`stages`: how many convolutions each has."""
    channels, height = CHANNELS, HEIGHT
    for stage, convolutions in enumerate(stages):
        outputs = min(64 << stage, 512)
        for _ in range(convolutions):
            yield from (Convolution(network, channels, outputs), Normalisation(network, outputs), Relu(network))
            channels = outputs
        yield Pooling(network, 2, maximum=True)
        height //= 2
    yield from (Linear(network, channels * height ** 2, 512), Normalisation(network, 512), Relu(network))
    yield from (Linear(network, 512, CLASSES), Loss(network))


def resnet(network, convolutions, blocks):
    """`convolutions` of a block; `blocks` of each stage."""
    yield from (Convolution(network, CHANNELS, 64), Normalisation(network, 64), Relu(network))
    channels, height = 64, HEIGHT
    for stage, count in enumerate(blocks):
        outputs = 64 << stage
        for i in range(count):
            stride = 2 if stage >= 2 and i == 0 else 1
            shapes = [(3, outputs, stride if i == 0 else 1) for i in range(convolutions)]
            yield residual(network, channels, shapes, projected=stride > 1)
            channels, height = outputs, height // stride
    yield Pooling(network, height, maximum=False)
    yield from (Linear(network, channels, CLASSES), Loss(network))
