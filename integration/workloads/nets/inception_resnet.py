"""Inception-ResNet-v2 (Szegedy et al. 2016) on images of 299 x 299, as in TensorFlow's models and timm's: a convolution has no bias where batch
normalisation follows, and the one that widens a block's branches again has one."""
from blocks import Branches, Residual
from layers import Convolution, Dropout, Linear, Loss, Normalisation, Pooling, Relu
from network import CHANNELS

CLASSES = 1000


def _unit(network, inputs, outputs, kernel, stride=1, padding=None):
    return [Convolution(network, inputs, outputs, kernel, stride, padding, bias=False), Normalisation(network, outputs), Relu(network)]


def _chain(network, inputs, *units):
    """Units, each (outputs, kernel) or (outputs, kernel, stride, padding)."""
    layers = []
    for outputs, *rest in units:
        layers += _unit(network, inputs, outputs, *rest)
        inputs = outputs
    return layers


def _blocks(network, count, channels, branches, last_is_linear=False):
    """`branches`: units of each. The widened sum of what they put out is scaled as it is added."""
    together = sum(units[-1][0] for units in branches)
    for i in range(count):
        chains = [_chain(network, channels, *units) for units in branches]
        yield Residual(network, [Branches(network, *chains), Convolution(network, together, channels, 1)], relu=not (last_is_linear and i + 1 == count))


def inception_resnet_v2(network):
    valid, smaller = (1, 0), (2, 0)    # stride and padding
    yield from _chain(network, CHANNELS, (32, 3, *smaller), (32, 3, *valid), (64, 3))
    yield Pooling(network, 3, maximum=True, stride=2)
    yield from _chain(network, 64, (80, 1), (192, 3, *valid))
    yield Pooling(network, 3, maximum=True, stride=2)
    yield Branches(network, _chain(network, 192, (96, 1)), _chain(network, 192, (48, 1), (64, 5)), _chain(network, 192, (64, 1), (96, 3), (96, 3)),
                   [Pooling(network, 3, maximum=False, stride=1, padding=1), *_chain(network, 192, (64, 1))])
    yield from _blocks(network, 10, 320, [[(32, 1)], [(32, 1), (32, 3)], [(32, 1), (48, 3), (64, 3)]])
    yield Branches(network, _chain(network, 320, (384, 3, *smaller)), _chain(network, 320, (256, 1), (256, 3), (384, 3, *smaller)),
                   [Pooling(network, 3, maximum=True, stride=2)])
    yield from _blocks(network, 20, 1088, [[(192, 1)], [(128, 1), (160, (1, 7)), (192, (7, 1))]])
    yield Branches(network, _chain(network, 1088, (256, 1), (384, 3, *smaller)), _chain(network, 1088, (256, 1), (288, 3, *smaller)),
                   _chain(network, 1088, (256, 1), (288, 3), (320, 3, *smaller)), [Pooling(network, 3, maximum=True, stride=2)])
    yield from _blocks(network, 10, 2080, [[(192, 1)], [(192, 1), (224, (1, 3)), (256, (3, 1))]], last_is_linear=True)
    yield from _chain(network, 2080, (1536, 1))
    yield from (Pooling(network, 8, maximum=False), Dropout(network), Linear(network, 1536, CLASSES), Loss(network))
