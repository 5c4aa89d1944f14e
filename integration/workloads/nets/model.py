"""Training steps of VGG and ResNet as a framework without a memory plan runs them, on CIFAR-10 (3 x 32 x 32, ten classes); deep
ResNets on ImageNet (3 x 224 x 224, a thousand classes).

The rules, the same for every network:

- VGG: convolution, batch normalisation, ReLU for each of the stage's layers, then max pooling; a linear layer of 512 with
  normalisation and ReLU, one of 10. ResNet: a stem of 64 channels, stages of 64, 128 (both at 32 x 32), 256 and 512 channels;
  blocks of two 3 x 3 convolutions (18, 34) or three of them (50, 101; no bottleneck); 1 x 1 projection where the stride is 2,
  elsewhere the shortcut is the identity, with channels that are missing taken as zero; average pooling, a linear layer of 10.
  On ImageNet: a stem of 64 7 x 7 filters with stride 2 and max pooling; four stages of bottleneck blocks (1 x 1, 3 x 3, 1 x 1 with
  four times the channels), the first of each with a projection. That is the network of Chen et al.'s "Training Deep Nets with
  Sublinear Memory Cost" (2016; dmlc/mxnet-memonger, example_resnet.py, with stages of 3, 24, 36 and 3 blocks: 200 layers), but for
  ReLU, which is behind the sum here. They made it deeper stage by stage; how far for a thousand layers is not said. Ours has five
  times as many blocks in each stage: 992 layers.
- Kept from forward to backward: what each convolution, normalisation and ReLU puts out. In a residual block the last
  normalisation's output dies at the sum, which goes through ReLU in place; ReLU's gradient is taken from what it kept.
- Freed as soon as nothing reads it any more: an activation after the gradient of the layer that read it, a gradient of an
  activation after the layer that put the activation out.
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
"""
from recorder import GTX_1080_TI, LaunchRecorder, Recorder

CHANNELS, HEIGHT, CLASSES = 3, 32, 10    # of the images
IMAGENET_HEIGHT, IMAGENET_CLASSES = 224, 1000
FLOAT = 4


def _vgg(*convolutions):
    return ("vgg", convolutions)


def _resnet(convolutions, *blocks):
    return ("resnet", convolutions, *blocks)


def _imagenet(*blocks):
    return ("imagenet", blocks)


NETWORKS = {
    "vgg11": _vgg(1, 1, 2, 2, 2), "vgg13": _vgg(2, 2, 2, 2, 2), "vgg16": _vgg(2, 2, 3, 3, 3), "vgg19": _vgg(2, 2, 4, 4, 4),
    "resnet18": _resnet(2, 2, 2, 2, 2), "resnet34": _resnet(2, 3, 4, 6, 3),
    "resnet50": _resnet(3, 3, 4, 6, 3), "resnet101": _resnet(3, 3, 4, 23, 3),
    "resnet50-imagenet": _imagenet(3, 4, 6, 3), "resnet200-imagenet": _imagenet(3, 24, 36, 3),
    "resnet992-imagenet": _imagenet(15, 120, 180, 15),
}


class Activation:
    """What a layer put out; freed when the last layer that reads it in backward is done. `shape`: channels, height (= width)."""

    def __init__(self, block, shape):
        self.block, self.shape = block, shape
        self.readers = 0
        self.gradient = None


class Parameter:
    def __init__(self, recorder, floats):
        self.floats = floats
        self.weight, self.momentum, self.gradient = (recorder.persistent(FLOAT * floats) for _ in range(3))
        self.new_gradient = None


class Training:
    """A network in training: its parameters, its layers in forward order, and what layers have in common."""

    def __init__(self, recorder, batch):
        self.recorder, self.batch = recorder, batch
        self.parameters = []
        self.layers = []

    def parameter(self, floats):
        self.parameters.append(Parameter(self.recorder, floats))
        return self.parameters[-1]

    def put_out(self, shape):
        return Activation(self.recorder.malloc(FLOAT * self.batch * shape[0] * shape[1] ** 2), shape)

    def put_out_filled(self, shape, reads, also_written=(), flops=0, updates=()):
        """`updates` are changed by what is written to `also_written`."""
        y = self.put_out(shape)
        self.recorder.kernel(reads, [*also_written, y.block], flops, updates, also_written)
        self.recorder.scratch(y.block.size)
        return y

    @staticmethod
    def hold(*activations):
        for activation in activations:
            activation.readers += 1

    def done(self, *activations):
        for activation in activations:
            activation.readers -= 1
            self.free_unread(activation)

    def free_unread(self, activation):
        if activation.readers == 0:
            self.recorder.free(activation.block)
            activation.block = None

    def give(self, activation, gradient):
        """A layer's contribution to the activation's gradient; a second one is added to the first."""
        self.recorder.scratch(gradient.size)
        if activation.gradient is None:
            activation.gradient = gradient
        else:
            self.recorder.kernel([gradient, activation.gradient], [activation.gradient], gradient.size / FLOAT)
            self.recorder.free(gradient)

    def spend(self, activation):
        """The activation's gradient is not needed any more."""
        self.recorder.free(activation.gradient)
        activation.gradient = None

    def parameter_gradients(self, *parameters):
        for parameter in parameters:
            parameter.new_gradient = self.recorder.malloc(FLOAT * parameter.floats)
        return [parameter.new_gradient for parameter in parameters]

    def step(self, images, batches=1):
        """One update; with several batches the gradients are added up."""
        recorder = self.recorder
        for batch in range(batches):
            recorder.kernel([], [images.block, self.layers[-1].labels])    # the next ones are copied in
            x = images
            for layer in self.layers:
                x = layer.forward(x)
                recorder.layer(x.block)
            for layer in reversed(self.layers):
                layer.backward()
            for parameter in reversed(self.parameters):
                if batch != 0:
                    recorder.kernel([parameter.gradient, parameter.new_gradient], [parameter.new_gradient], parameter.floats)
                recorder.free(parameter.gradient)
                recorder.scratch(FLOAT * parameter.floats)
                parameter.gradient, parameter.new_gradient = parameter.new_gradient, None
        for p in self.parameters:   # weight decay, momentum, step
            recorder.kernel([p.weight, p.gradient], [p.gradient], 2 * p.floats)
            recorder.kernel([p.gradient, p.momentum], [p.momentum], 2 * p.floats)
            recorder.kernel([p.momentum, p.weight], [p.weight], p.floats)


class Convolution:
    def __init__(self, training, inputs, outputs, kernel=3, stride=1):
        self.training, self.recorder = training, training.recorder
        self.outputs, self.stride = outputs, stride
        self.weight = training.parameter(inputs * outputs * kernel * kernel)
        self.bias = training.parameter(outputs)
        self.workspace = []
        if kernel == 3:
            self.workspace = [self.recorder.persistent(FLOAT * 16 * (-(-inputs // 32) * 32) * outputs + FLOAT)]
        self.x = self.y = None

    def _flops(self, height):
        return 2 * self.training.batch * height ** 2 * self.weight.floats

    def forward(self, x):
        height = x.shape[1] // self.stride
        self.x = x
        self.y = self.training.put_out_filled((self.outputs, height), [x.block, self.weight.weight], self.workspace,
                                              self._flops(height))
        self.recorder.kernel([self.bias.weight, self.y.block], [self.y.block], self.y.block.size / FLOAT)
        self.training.hold(x)
        return self.y

    def backward(self):
        training, recorder, x, dy = self.training, self.recorder, self.x, self.y.gradient
        flops = self._flops(self.y.shape[1])
        # Nobody wants the images' gradient.
        dx = None if x.shape[0] == CHANNELS else recorder.malloc(x.block.size)
        dw, db = training.parameter_gradients(self.weight, self.bias)
        recorder.kernel([dy], [db], dy.size / FLOAT)
        recorder.kernel([dy, x.block], [*self.workspace, dw], flops)
        if dx:
            recorder.kernel([dy, self.weight.weight], [*self.workspace, dx], flops)
            training.give(x, dx)
        recorder.scratch(dw.size)
        recorder.scratch(db.size)
        training.done(x)
        training.spend(self.y)


class Normalisation:
    def __init__(self, training, channels):
        self.training, self.recorder = training, training.recorder
        self.scale, self.shift = training.parameter(channels), training.parameter(channels)
        self.running = [self.recorder.persistent(FLOAT * channels) for _ in range(2)]
        self.saved = [self.recorder.persistent(FLOAT * channels) for _ in range(2)]
        self.x = self.y = None

    def forward(self, x):
        self.x = x
        self.y = self.training.put_out_filled(x.shape, [x.block, self.scale.weight, self.shift.weight],
                                              self.saved, 8 * x.block.size / FLOAT, updates=self.running)
        self.training.hold(x)
        return self.y

    def backward(self):
        training, recorder, x, dy = self.training, self.recorder, self.x, self.y.gradient
        dx = recorder.malloc(x.block.size)
        d_scale, d_shift = training.parameter_gradients(self.scale, self.shift)
        recorder.kernel([dy, x.block, self.scale.weight, *self.saved], [dx, d_scale, d_shift], 10 * dy.size / FLOAT)
        training.give(x, dx)
        recorder.scratch(d_scale.size)
        recorder.scratch(d_shift.size)
        training.done(x)
        training.spend(self.y)


class Relu:
    """Backward reads the input."""

    def __init__(self, training):
        self.training, self.recorder = training, training.recorder
        self.x = self.y = None

    def forward(self, x):
        self.x, self.y = x, self.training.put_out_filled(x.shape, [x.block], flops=x.block.size / FLOAT)
        self.training.hold(x)
        return self.y

    def backward(self):
        dx = self.recorder.malloc(self.x.block.size)
        self.recorder.kernel([self.x.block, self.y.gradient], [dx], dx.size / FLOAT)
        self.training.give(self.x, dx)
        self.training.done(self.x)
        self.training.spend(self.y)


class Pooling:
    """Backward of a maximum compares input and output; that of an average reads neither."""

    def __init__(self, training, size, maximum):
        self.training, self.recorder = training, training.recorder
        self.size, self.maximum = size, maximum
        self.x = self.y = None

    def forward(self, x):
        self.x = x
        self.y = self.training.put_out_filled((x.shape[0], x.shape[1] // self.size), [x.block], flops=x.block.size / FLOAT)
        if self.maximum:
            self.training.hold(x, self.y)
        return self.y

    def backward(self):
        dx = self.recorder.malloc(FLOAT * self.training.batch * self.x.shape[0] * self.x.shape[1] ** 2)
        seen = [self.x.block, self.y.block] if self.maximum else []
        self.recorder.kernel([*seen, self.y.gradient], [dx], dx.size / FLOAT)
        self.training.give(self.x, dx)
        if self.maximum:
            self.training.done(self.x, self.y)
        self.training.spend(self.y)


class Linear:
    def __init__(self, training, inputs, outputs):
        self.training, self.recorder = training, training.recorder
        self.outputs = outputs
        self.weight, self.bias = training.parameter(inputs * outputs), training.parameter(outputs)
        self.x = self.y = None

    def _flops(self):
        return 2 * self.training.batch * self.weight.floats

    def forward(self, x):
        self.x = x
        self.y = self.training.put_out_filled((self.outputs, 1), [x.block, self.weight.weight, self.bias.weight],
                                              flops=self._flops())
        self.training.hold(x)
        return self.y

    def backward(self):
        training, recorder, x, dy = self.training, self.recorder, self.x, self.y.gradient
        dx = recorder.malloc(x.block.size)
        dw, db = training.parameter_gradients(self.weight, self.bias)
        recorder.kernel([dy], [db], dy.size / FLOAT)
        recorder.kernel([dy, x.block], [dw], self._flops())
        recorder.kernel([dy, self.weight.weight], [dx], self._flops())
        training.give(x, dx)
        recorder.scratch(dw.size)
        recorder.scratch(db.size)
        training.done(x)
        training.spend(self.y)


class Residual:
    """Sum of a branch and its input (or a projection of it), through ReLU in place."""

    def __init__(self, training, inputs, convolutions, projected):
        """`convolutions`: kernel, channels and stride of each."""
        self.training, self.recorder = training, training.recorder
        self.branch = []
        channels, height_over = inputs, 1
        for i, (kernel, outputs, stride) in enumerate(convolutions):
            self.branch += [Convolution(training, channels, outputs, kernel, stride), Normalisation(training, outputs)]
            if i + 1 < len(convolutions):
                self.branch.append(Relu(training))
            channels, height_over = outputs, height_over * stride
        self.projection = []
        if projected:
            self.projection = [Convolution(training, inputs, channels, 1, height_over), Normalisation(training, channels)]
        self.x = self.left = self.right = self.y = None

    def forward(self, x):
        training = self.training
        self.x = self.left = self.right = x
        for layer in self.branch:
            self.left = layer.forward(self.left)
        for layer in self.projection:
            self.right = layer.forward(self.right)
        self.y = training.put_out_filled(self.left.shape, [self.left.block, self.right.block],
                                         flops=self.left.block.size / FLOAT)
        self.recorder.kernel([self.y.block], [self.y.block], self.y.block.size / FLOAT)
        training.free_unread(self.left)
        if self.projection:
            training.free_unread(self.right)
        training.hold(self.y)    # ReLU's gradient
        return self.y

    def backward(self):
        training, recorder, dy = self.training, self.recorder, self.y.gradient
        recorder.kernel([self.y.block, dy], [dy], dy.size / FLOAT)
        training.done(self.y)
        left = recorder.malloc(dy.size)
        recorder.kernel([dy], [left])
        training.give(self.left, left)
        for layer in reversed(self.branch):
            layer.backward()
        self.y.gradient = None
        training.give(self.right, dy)    # to x itself: added, as the branch has given its part already
        for layer in reversed(self.projection):
            layer.backward()


class Loss:
    """Softmax and cross entropy."""

    def __init__(self, training):
        self.training, self.recorder = training, training.recorder
        self.labels = self.recorder.persistent(FLOAT * training.batch)
        self.x = self.y = None

    def forward(self, x):
        self.x = x
        self.y = self.training.put_out_filled(x.shape, [x.block], flops=24 * x.block.size / FLOAT)
        self.training.hold(x, self.y)
        loss = self.recorder.malloc(FLOAT * self.training.batch)
        self.recorder.kernel([self.y.block, self.labels], [loss])
        self.recorder.kernel([loss], [])
        self.recorder.free(loss)
        return self.y

    def backward(self):
        dx = self.recorder.malloc(self.x.block.size)
        self.recorder.kernel([self.y.block, self.labels], [dx], dx.size / FLOAT)
        self.training.give(self.x, dx)
        self.training.done(self.x, self.y)


def _vgg_layers(training, stages):
    channels, height = CHANNELS, HEIGHT
    for stage, convolutions in enumerate(stages):
        outputs = min(64 << stage, 512)
        for _ in range(convolutions):
            yield from (Convolution(training, channels, outputs), Normalisation(training, outputs), Relu(training))
            channels = outputs
        yield Pooling(training, 2, maximum=True)
        height //= 2
    yield from (Linear(training, channels * height ** 2, 512), Normalisation(training, 512), Relu(training))
    yield from (Linear(training, 512, CLASSES), Loss(training))


def _resnet_layers(training, convolutions, blocks):
    yield from (Convolution(training, CHANNELS, 64), Normalisation(training, 64), Relu(training))
    channels, height = 64, HEIGHT
    for stage, count in enumerate(blocks):
        outputs = 64 << stage
        for i in range(count):
            stride = 2 if stage >= 2 and i == 0 else 1
            shapes = [(3, outputs, stride if i == 0 else 1) for i in range(convolutions)]
            yield Residual(training, channels, shapes, projected=stride > 1)
            channels, height = outputs, height // stride
    yield Pooling(training, height, maximum=False)
    yield from (Linear(training, channels, CLASSES), Loss(training))


def _imagenet_layers(training, blocks):
    yield from (Convolution(training, CHANNELS, 64, 7, 2), Normalisation(training, 64), Relu(training), Pooling(training, 2, maximum=True))
    channels, height = 64, IMAGENET_HEIGHT // 4
    for stage, count in enumerate(blocks):
        inner = 64 << stage
        for i in range(count):
            stride = 2 if stage > 0 and i == 0 else 1
            yield Residual(training, channels, [(1, inner, 1), (3, inner, stride), (1, 4 * inner, 1)], projected=i == 0)
            channels, height = 4 * inner, height // stride
    yield Pooling(training, height, maximum=False)
    yield from (Linear(training, channels, IMAGENET_CLASSES), Loss(training))


def _network(recorder, name, batch):
    """Its training, and the images."""
    family, *shape = NETWORKS[name]
    training = Training(recorder, batch)
    height = IMAGENET_HEIGHT if family == "imagenet" else HEIGHT
    images = Activation(recorder.persistent(FLOAT * batch * CHANNELS * height ** 2), (CHANNELS, height))
    training.hold(images)    # for good
    if family == "vgg":
        training.layers.extend(_vgg_layers(training, *shape))
    elif family == "resnet":
        training.layers.extend(_resnet_layers(training, shape[0], shape[1:]))
    else:
        training.layers.extend(_imagenet_layers(training, *shape))
    return training, images


def training_trace(name, batch, iterations, device=GTX_1080_TI, batches=1):
    """Operations of so many training steps: (verb, pointer, size, nanoseconds)."""
    recorder = Recorder(device)
    training, images = _network(recorder, name, batch)
    for _ in range(iterations):
        training.step(images, batches)
    return recorder.operations


def training_iteration(name, batch, device=GTX_1080_TI, batches=1):
    """A steady training step as memopt-plan-2 with launches (docs/formats/plan-json.md)."""
    recorder = LaunchRecorder(device)
    training, images = _network(recorder, name, batch)
    for _ in range(2):    # gradients of the first live on into the second
        recorder.begin_step()
        training.step(images, batches)
    return recorder.iteration(name)


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
