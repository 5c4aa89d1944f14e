"""A network in training, or in inference: its parameters, its layers, and what layers have in common. The rules are in model.py."""
CHANNELS = 3    # of images
FLOAT = 4
WORKSPACE = 8 << 20    # bytes for a convolution in inference


class Activation:
    """What a layer put out; freed when the last layer that reads it in backward is done. `shape`: channels, height (= width)."""

    def __init__(self, block, shape):
        self.block, self.shape = block, shape
        self.readers = 0
        self.gradient = None

    @property
    def floats(self):
        """Of one image."""
        return self.shape[0] * self.shape[1] ** 2


class Parameter:
    def __init__(self, recorder, floats, trains):
        self.floats = floats
        blocks = [recorder.persistent(FLOAT * floats) for _ in range(3 if trains else 1)]
        self.weight, self.momentum, self.gradient = blocks if trains else (*blocks, None, None)
        self.new_gradient = None


class Network:
    """Layers have forward(x), which gives an Activation, and backward(), which takes the gradient of what was given and gives that of x.
    In inference nothing is kept for backward, which there is none of: an activation is freed as soon as the next one is there."""

    def __init__(self, recorder, batch, trains=True):
        self.recorder, self.batch, self.trains = recorder, batch, trains
        self.parameters = []
        self.layers = []
        self.images = None    # in training, there all the time
        self.labels = None
        self._image = None

    def take_images(self, height):
        """Of three channels, and labels."""
        self._image = (CHANNELS, height)
        if self.trains:
            self.images = Activation(self.recorder.persistent(FLOAT * self.batch * CHANNELS * height ** 2), self._image)
            self.hold(self.images)    # for good

    def parameter(self, floats):
        self.parameters.append(Parameter(self.recorder, floats, self.trains))
        return self.parameters[-1]

    def put_out(self, shape):
        return Activation(self.recorder.malloc(FLOAT * self.batch * shape[0] * shape[1] ** 2), shape)

    def put_out_filled(self, shape, reads, also_written=(), flops=0, updates=()):
        """`updates` are changed by what is written to `also_written`."""
        y = self.put_out(shape)
        self.recorder.kernel(reads, [*also_written, y.block], flops, updates, also_written)
        self.scratch(y.block.size)
        return y

    def scratch(self, size):
        if self.trains:
            self.recorder.scratch(size)

    def hold(self, *activations):
        """For backward."""
        if self.trains:
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

    def forward_through(self, layers, x):
        """What the last of the layers puts out. What was put out between and nothing reads again is freed; `x` is the caller's."""
        given = x
        for layer in layers:
            y = layer.forward(x)
            if x is not given and x is not y:
                self.free_unread(x)
            x = y
        return x

    @staticmethod
    def backward_through(layers):
        for layer in reversed(layers):
            layer.backward()

    def _forward(self, x):
        for layer in self.layers:
            y = layer.forward(x)
            if y is not x:
                self.free_unread(x)
            x = y
            self.recorder.layer(x.block)
        return x

    def run_batch(self):
        """Forward and backward of the next batch, and the gradients of all parameters."""
        self.recorder.kernel([], [self.images.block, self.labels])    # the next ones are copied in
        self._forward(self.images)
        self.backward_through(self.layers)

    def step(self, batches=1):
        """One update; with several batches the gradients are added up."""
        recorder = self.recorder
        for batch in range(batches):
            self.run_batch()
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

    def infer(self):
        """Forward alone, of images and labels that are freed with the rest; the host reads the result."""
        recorder = self.recorder
        x, self.labels = self.put_out(self._image), recorder.malloc(FLOAT * self.batch)
        recorder.kernel([], [x.block, self.labels])
        x = self._forward(x)
        recorder.kernel([x.block], [])
        self.free_unread(x)
        recorder.free(self.labels)
