"""Training steps of networks as a framework without a memory plan runs them: VGG and ResNet on CIFAR-10 (3 x 32 x 32, ten classes), networks on
ImageNet (imagenet.py, inception_resnet.py), and translation (seq2seq.py).

The rules, the same for every network:

- VGG: convolution, batch normalisation, ReLU for each of the stage's layers, then max pooling; a linear layer of 512 with
  normalisation and ReLU, one of 10. ResNet: a stem of 64 channels, stages of 64, 128 (both at 32 x 32), 256 and 512 channels;
  blocks of two 3 x 3 convolutions (18, 34) or three of them (50, 101; no bottleneck); 1 x 1 projection where the stride is 2,
  elsewhere the shortcut is the identity, with channels that are missing taken as zero; average pooling, a linear layer of 10.
- Kept from forward to backward: what each convolution, normalisation and ReLU puts out. In a residual block the last
  normalisation's output dies at the sum, which goes through ReLU in place; ReLU's gradient is taken from what it kept.
- Freed as soon as nothing reads it any more: an activation after the gradient of the layer that read it, a gradient of an
  activation after the layer that put the activation out.
- Branches are computed one after the other, and what they put out is copied into one block; their gradients are copied out of its gradient, all at once.
- There all the time: images, labels, weights, momentum, and for each 3 x 3 convolution a workspace of its filters transformed for
  4 x 4 tiles (Winograd): 16 floats for each pair of channels, input channels rounded up to 32, and one word. Normalisation
  also has running and saved statistics.
- Gradients of parameters are allocated by backward, and live until those of the next step replace them (after backward,
  before the update), so they cross the iteration's boundary, and a peak in backward holds those of two steps.
- Each layer's forward takes a scratch block of the size of its output and each gradient one of its own size, freed directly
  after.
- As launches: each kernel is one. Normalisation changes its running statistics by a launch of its own, so that the one that makes
  its output changes nothing in place; a trace has one kernel for both.
- Time is the roofline of a device, by default a GTX 1080 Ti; an allocation or a free takes the host 10 us on any.

In inference there are weights and running statistics all the time. Images and labels are copied into blocks of their own; a layer's input is freed as
soon as its output is there, no layer takes scratch, and a convolution has a workspace of 8 MiB for as long as it runs, as Chainer gives cuDNN. Dropout
and auxiliary classifiers are left out. So AlexNet and GoogLeNet need, of one image and in units of 512 bytes, exactly what Sekiyama et al. (2018) printed.
"""
import functools

import cifar
import imagenet
import seq2seq
from inception_resnet import inception_resnet_v2
from network import Network
from recorder import GTX_1080_TI, LaunchRecorder, Recorder


def _of_images(height, layers, *shape):
    """How such a network is made: a function of recorder, batch and whether it trains."""
    def made(recorder, batch, trains=True):
        network = Network(recorder, batch, trains)
        network.take_images(height)
        network.layers.extend(layers(network, *shape))
        return network
    return made


_vgg = functools.partial(_of_images, cifar.HEIGHT, cifar.vgg)
_resnet = functools.partial(_of_images, cifar.HEIGHT, cifar.resnet)
_bottlenecks = functools.partial(_of_images, 224, imagenet.bottlenecks)

NETWORKS = {
    "vgg11": _vgg((1, 1, 2, 2, 2)), "vgg13": _vgg((2, 2, 2, 2, 2)), "vgg16": _vgg((2, 2, 3, 3, 3)), "vgg19": _vgg((2, 2, 4, 4, 4)),
    "resnet18": _resnet(2, (2, 2, 2, 2)), "resnet34": _resnet(2, (3, 4, 6, 3)),
    "resnet50": _resnet(3, (3, 4, 6, 3)), "resnet101": _resnet(3, (3, 4, 23, 3)),
    "resnet50-imagenet": _bottlenecks((3, 4, 6, 3)), "resnet200-imagenet": _bottlenecks((3, 24, 36, 3)),
    "resnet992-imagenet": _bottlenecks((15, 120, 180, 15)),
    "alexnet": _of_images(227, imagenet.alexnet), "googlenet": _of_images(224, imagenet.googlenet),
    "inception-resnet-v2": _of_images(299, inception_resnet_v2), "seq2seq": seq2seq.Seq2seq,
}
SENTENCES = ("seq2seq",)    # the others have images


def trace(name, batch, iterations, device=GTX_1080_TI, batches=1, **how):
    """Operations of so many training steps: (verb, pointer, size, nanoseconds). `how`: trains=False, of images: inference; length=N, of sentences."""
    recorder = Recorder(device)
    network = NETWORKS[name](recorder, batch, **how)
    for _ in range(iterations):
        _step(network, batches)
    return recorder.operations


def iteration(name, batch, device=GTX_1080_TI, batches=1, **how):
    """A steady training step as memopt-plan-2 with launches (docs/formats/plan-json.md). `how`: as above."""
    recorder = LaunchRecorder(device)
    network = NETWORKS[name](recorder, batch, **how)
    for _ in range(2):    # gradients of the first live on into the second
        recorder.begin_step()
        _step(network, batches)
    return recorder.iteration(name)


def _step(network, batches):
    if network.trains:
        network.step(batches)
    else:
        network.infer()


def parameters(name, trains=True):
    """How many floats are learned; statistics of normalisation are not among them."""
    how = {} if trains else {"trains": False}
    return sum(parameter.floats for parameter in NETWORKS[name](Recorder(), 1, **how).parameters)


def peak_load(operations):
    """Largest sum of live blocks; what is used before it was allocated was there before."""
    born, before = set(), {}
    for verb, pointer, size, _ in operations:
        if verb == "Malloc":
            born.add(pointer)
        elif pointer not in born:
            before[pointer] = size
    load = peak = sum(before.values())
    for verb, _, size, _ in operations:
        if verb == "Malloc":
            load += size
            peak = max(peak, load)
        elif verb == "Free":
            load -= size
    return peak
