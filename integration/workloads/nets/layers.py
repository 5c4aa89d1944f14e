"""Layers of one input: what each computes, keeps for backward, and needs for a time. The rules are in model.py."""
from network import CHANNELS, FLOAT, WORKSPACE


class Layer:
    def __init__(self, network):
        self.network, self.recorder = network, network.recorder
        self.x = self.y = None

    def finish(self, dx, *gradients):
        """Backward's end: the input's gradient, if it is computed, is handed on; `gradients` of parameters are reduced; its blocks are not needed any more."""
        if dx:
            self.network.give(self.x, dx)
        for gradient in gradients:
            self.recorder.scratch(gradient.size)
        self.network.done(self.x)
        self.network.spend(self.y)


class Convolution(Layer):
    def __init__(self, network, inputs, outputs, kernel=3, stride=1, padding=None, bias=True):
        """`kernel`: its height and width, or one number for both; `padding`: None where only the stride makes the output smaller."""
        super().__init__(network)
        self.rows, self.columns = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        self.outputs, self.stride, self.padding = outputs, stride, padding
        self.weight = network.parameter(inputs * outputs * self.rows * self.columns)
        self.bias = network.parameter(outputs) if bias else None
        self.workspace = []
        if self.rows == self.columns == 3 and network.trains:
            self.workspace = [self.recorder.persistent(FLOAT * 16 * (-(-inputs // 32) * 32) * outputs + FLOAT)]

    def _flops(self, height):
        return 2 * self.network.batch * height ** 2 * self.weight.floats

    def _put_out_in_inference(self, shape, reads, flops):
        y, workspace = self.network.put_out(shape), self.recorder.malloc(WORKSPACE)
        self.recorder.kernel(reads, [workspace, y.block], flops)
        self.recorder.free(workspace)
        return y

    def forward(self, x):
        height = x.shape[1] // self.stride if self.padding is None else (x.shape[1] + 2 * self.padding - self.rows) // self.stride + 1
        self.x = x
        shape, reads = (self.outputs, height), [x.block, self.weight.weight]
        if self.network.trains:
            self.y = self.network.put_out_filled(shape, reads, self.workspace, self._flops(height))
        else:
            self.y = self._put_out_in_inference(shape, reads, self._flops(height))
        if self.bias:
            self.recorder.kernel([self.bias.weight, self.y.block], [self.y.block], self.y.block.size / FLOAT)
        self.network.hold(x)
        return self.y

    def backward(self):
        network, recorder, x, dy = self.network, self.recorder, self.x, self.y.gradient
        flops = self._flops(self.y.shape[1])
        # The images' gradient is not computed.
        dx = None if x.shape[0] == CHANNELS else recorder.malloc(x.block.size)
        gradients = network.parameter_gradients(self.weight, *([self.bias] if self.bias else []))
        if self.bias:
            recorder.kernel([dy], [gradients[1]], dy.size / FLOAT)
        recorder.kernel([dy, x.block], [*self.workspace, gradients[0]], flops)
        if dx:
            recorder.kernel([dy, self.weight.weight], [*self.workspace, dx], flops)
        self.finish(dx, *gradients)


class Normalisation(Layer):
    def __init__(self, network, channels):
        super().__init__(network)
        self.scale, self.shift = network.parameter(channels), network.parameter(channels)
        self.running = [self.recorder.persistent(FLOAT * channels) for _ in range(2)]
        self.saved = [self.recorder.persistent(FLOAT * channels) for _ in range(2)] if network.trains else []

    def forward(self, x):
        self.x = x
        reads, flops = [x.block, self.scale.weight, self.shift.weight], 8 * x.block.size / FLOAT
        if self.network.trains:
            self.y = self.network.put_out_filled(x.shape, reads, self.saved, flops, updates=self.running)
        else:
            self.y = self.network.put_out_filled(x.shape, [*reads, *self.running], flops=flops)
        self.network.hold(x)
        return self.y

    def backward(self):
        network, recorder, x, dy = self.network, self.recorder, self.x, self.y.gradient
        dx = recorder.malloc(x.block.size)
        d_scale, d_shift = network.parameter_gradients(self.scale, self.shift)
        recorder.kernel([dy, x.block, self.scale.weight, *self.saved], [dx, d_scale, d_shift], 10 * dy.size / FLOAT)
        self.finish(dx, d_scale, d_shift)


class LocalNormalisation(Layer):
    """Response normalisation across channels: beside its output it keeps the divisors, which are as many. Backward reads all."""

    NEIGHBOURS = 5

    def __init__(self, network):
        super().__init__(network)
        self.divisors = None

    def forward(self, x):
        self.x = x
        self.divisors = self.recorder.malloc(x.block.size)
        self.recorder.kernel([x.block], [self.divisors], 2 * self.NEIGHBOURS * x.block.size / FLOAT)
        self.y = self.network.put_out_filled(x.shape, [x.block, self.divisors], flops=20 * x.block.size / FLOAT)
        if not self.network.trains:
            self.recorder.free(self.divisors)
        self.network.hold(x, self.y)
        return self.y

    def backward(self):
        dx = self.recorder.malloc(self.x.block.size)
        self.recorder.kernel([self.x.block, self.y.block, self.divisors, self.y.gradient], [dx], (2 * self.NEIGHBOURS + 20) * dx.size / FLOAT)
        self.network.give(self.x, dx)
        self.recorder.free(self.divisors)
        self.network.done(self.x, self.y)
        self.network.spend(self.y)


class Relu(Layer):
    """Backward reads the input."""

    def forward(self, x):
        self.x, self.y = x, self.network.put_out_filled(x.shape, [x.block], flops=x.block.size / FLOAT)
        self.network.hold(x)
        return self.y

    def backward(self):
        dx = self.recorder.malloc(self.x.block.size)
        self.recorder.kernel([self.x.block, self.y.gradient], [dx], dx.size / FLOAT)
        self.network.give(self.x, dx)
        self.network.done(self.x)
        self.network.spend(self.y)


class Tanh(Layer):
    """Backward reads the output."""

    def forward(self, x):
        self.x, self.y = x, self.network.put_out_filled(x.shape, [x.block], flops=20 * x.block.size / FLOAT)
        self.network.hold(self.y)
        return self.y

    def backward(self):
        dx = self.recorder.malloc(self.y.block.size)
        self.recorder.kernel([self.y.block, self.y.gradient], [dx], 3 * dx.size / FLOAT)
        self.network.give(self.x, dx)
        self.network.done(self.y)
        self.network.spend(self.y)


class Dropout(Layer):
    """Keeps which were dropped, as floats by which output and gradient are multiplied. In inference it does nothing."""

    def __init__(self, network):
        super().__init__(network)
        self.kept = None

    def forward(self, x):
        if not self.network.trains:
            return x
        self.x, self.kept = x, self.recorder.malloc(x.block.size)
        self.recorder.kernel([], [self.kept], 10 * x.block.size / FLOAT)    # drawn
        self.y = self.network.put_out_filled(x.shape, [x.block, self.kept], flops=x.block.size / FLOAT)
        return self.y

    def backward(self):
        dx = self.recorder.malloc(self.kept.size)
        self.recorder.kernel([self.kept, self.y.gradient], [dx], dx.size / FLOAT)
        self.network.give(self.x, dx)
        self.recorder.free(self.kept)
        self.network.spend(self.y)


class Pooling(Layer):
    """Backward of a maximum compares input and output; that of an average reads neither."""

    def __init__(self, network, size, maximum, stride=None, padding=0, partial=False):
        """`stride`: None, as the size. `partial`: the last window of a row may reach beyond it."""
        super().__init__(network)
        self.size, self.maximum, self.stride = size, maximum, stride or size
        self.padding, self.partial = padding, partial

    def _height(self, height):
        beyond = height + 2 * self.padding - self.size
        return (-(-beyond // self.stride) if self.partial else beyond // self.stride) + 1

    def _flops(self):
        return self.network.batch * self.x.shape[0] * self._height(self.x.shape[1]) ** 2 * self.size ** 2

    def forward(self, x):
        self.x = x
        self.y = self.network.put_out_filled((x.shape[0], self._height(x.shape[1])), [x.block], flops=self._flops())
        if self.maximum:
            self.network.hold(x, self.y)
        return self.y

    def backward(self):
        dx = self.recorder.malloc(FLOAT * self.network.batch * self.x.floats)
        seen = [self.x.block, self.y.block] if self.maximum else []
        self.recorder.kernel([*seen, self.y.gradient], [dx], self._flops())
        self.network.give(self.x, dx)
        if self.maximum:
            self.network.done(self.x, self.y)
        self.network.spend(self.y)


class Linear(Layer):
    """Of an input of several times its size, each part for itself: the words of a sentence."""

    def __init__(self, network, inputs, outputs):
        super().__init__(network)
        self.inputs, self.outputs = inputs, outputs
        self.weight, self.bias = network.parameter(inputs * outputs), network.parameter(outputs)

    def _parts(self):
        return self.x.floats // self.inputs

    def _flops(self):
        return 2 * self.network.batch * self._parts() * self.weight.floats

    def forward(self, x):
        self.x = x
        self.y = self.network.put_out_filled((self._parts() * self.outputs, 1), [x.block, self.weight.weight, self.bias.weight],
                                             flops=self._flops())
        self.network.hold(x)
        return self.y

    def backward(self):
        network, recorder, x, dy = self.network, self.recorder, self.x, self.y.gradient
        dx = recorder.malloc(x.block.size)
        dw, db = network.parameter_gradients(self.weight, self.bias)
        recorder.kernel([dy], [db], dy.size / FLOAT)
        recorder.kernel([dy, x.block], [dw], self._flops())
        recorder.kernel([dy, self.weight.weight], [dx], self._flops())
        self.finish(dx, dw, db)


class Loss(Layer):
    """Softmax and cross entropy with the network's labels."""

    def __init__(self, network):
        super().__init__(network)
        if network.trains and network.labels is None:
            network.labels = self.recorder.persistent(FLOAT * network.batch)

    def forward(self, x):
        network, recorder = self.network, self.recorder
        self.x, self.y = x, network.put_out_filled(x.shape, [x.block], flops=24 * x.block.size / FLOAT)
        network.hold(x, self.y)
        loss = recorder.malloc(network.labels.size)
        recorder.kernel([self.y.block, network.labels], [loss])
        recorder.kernel([loss], [])
        recorder.free(loss)
        return self.y

    def backward(self):
        dx = self.recorder.malloc(self.x.block.size)
        self.recorder.kernel([self.y.block, self.network.labels], [dx], dx.size / FLOAT)
        self.network.give(self.x, dx)
        self.network.done(self.x, self.y)
