"""Networks on ImageNet (three channels, a thousand classes).

- `bottlenecks`: a stem of 64 7 x 7 filters with stride 2 and max pooling; four stages of bottleneck blocks (1 x 1, 3 x 3, 1 x 1 with four
  times the channels), the first of each with a projection. That is the network of Chen et al.'s "Training Deep Nets with Sublinear Memory
  Cost" (2016; dmlc/mxnet-memonger, example_resnet.py, with stages of 3, 24, 36 and 3 blocks: 200 layers), but for ReLU, which is behind the
  sum here. They made it deeper stage by stage; how far for a thousand layers is not said. Ours has five times as many blocks in each stage:
  992 layers.
- `alexnet`: Krizhevsky et al. (2012) in one column, as in Chainer's example: all filters of a layer see all channels. In the
  paper's two columns those of convolutions 2, 4 and 5 see half of them: 60.97 million parameters, 1.41 million fewer.
- `googlenet`: Szegedy et al. (2015), as in Caffe's and Chainer's examples: without batch normalisation, 5 x 5 filters where the paper has them,
  and both auxiliary classifiers in training; in inference none.
"""
from blocks import Aside, Branches
from cifar import residual
from layers import Convolution, Dropout, Linear, LocalNormalisation, Loss, Normalisation, Pooling, Relu
from network import CHANNELS

CLASSES = 1000
# 1 x 1; 3 x 3 after a reduction to so many channels; 5 x 5, likewise; 1 x 1 after pooling. In "4a" and "4d" a classifier ends.
INCEPTIONS = {"3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64),
              "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64), "4c": (128, 128, 256, 24, 64, 64),
              "4d": (112, 144, 288, 32, 64, 64), "4e": (256, 160, 320, 32, 128, 128),
              "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128)}


def bottlenecks(network, blocks):
    yield from (Convolution(network, CHANNELS, 64, 7, 2), Normalisation(network, 64), Relu(network), Pooling(network, 2, maximum=True))
    channels, height = 64, 224 // 4
    for stage, count in enumerate(blocks):
        inner = 64 << stage
        for i in range(count):
            stride = 2 if stage > 0 and i == 0 else 1
            yield residual(network, channels, [(1, inner, 1), (3, inner, stride), (1, 4 * inner, 1)], projected=i == 0)
            channels, height = 4 * inner, height // stride
    yield Pooling(network, height, maximum=False)
    yield from (Linear(network, channels, CLASSES), Loss(network))


def _rectified(network, inputs, outputs, kernel, stride=1, padding=None):
    return [Convolution(network, inputs, outputs, kernel, stride, padding), Relu(network)]


def alexnet(network):
    """Of images of 227 x 227."""
    yield from _rectified(network, CHANNELS, 96, 11, stride=4, padding=0)
    yield from (LocalNormalisation(network), Pooling(network, 3, maximum=True, stride=2))
    yield from _rectified(network, 96, 256, 5)
    yield from (LocalNormalisation(network), Pooling(network, 3, maximum=True, stride=2))
    for inputs, outputs in (256, 384), (384, 384), (384, 256):
        yield from _rectified(network, inputs, outputs, 3)
    yield Pooling(network, 3, maximum=True, stride=2)
    for inputs in 256 * 6 ** 2, 4096:
        yield from (Linear(network, inputs, 4096), Relu(network), Dropout(network))
    yield from (Linear(network, 4096, CLASSES), Loss(network))


def _inception(network, inputs, widths):
    plain, reduced_3, outputs_3, reduced_5, outputs_5, pooled = widths
    return Branches(network, _rectified(network, inputs, plain, 1),
                    _rectified(network, inputs, reduced_3, 1) + _rectified(network, reduced_3, outputs_3, 3),
                    _rectified(network, inputs, reduced_5, 1) + _rectified(network, reduced_5, outputs_5, 5),
                    [Pooling(network, 3, maximum=True, stride=1, padding=1)] + _rectified(network, inputs, pooled, 1))


def _auxiliary(network, channels):
    """A classifier of 14 x 14."""
    return Aside(network, [Pooling(network, 5, maximum=False, stride=3), *_rectified(network, channels, 128, 1), Linear(network, 128 * 4 ** 2, 1024), Relu(network),
                           Linear(network, 1024, CLASSES), Loss(network)])


def googlenet(network):
    """Of images of 224 x 224."""
    def halved():
        return Pooling(network, 3, maximum=True, stride=2, partial=True)
    yield from (*_rectified(network, CHANNELS, 64, 7, stride=2, padding=3), halved(), LocalNormalisation(network))
    yield from (*_rectified(network, 64, 64, 1), *_rectified(network, 64, 192, 3), LocalNormalisation(network), halved())
    channels = 192
    for name, widths in INCEPTIONS.items():
        yield _inception(network, channels, widths)
        channels = widths[0] + widths[2] + widths[4] + widths[5]
        if name in ("3b", "4e"):
            yield halved()
        if name in ("4a", "4d") and network.trains:
            yield _auxiliary(network, channels)
    yield from (Pooling(network, 7, maximum=False), Dropout(network), Linear(network, channels, CLASSES), Loss(network))
