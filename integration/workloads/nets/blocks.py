"""Layers that are made of others: branches that meet, sums, and what is beside the way. The rules are in model.py."""
from layers import Layer
from network import FLOAT


class Concatenation(Layer):
    """Of channels. Backward copies each part's gradient out of the whole."""

    def __init__(self, network):
        super().__init__(network)
        self.parts = []

    def forward(self, parts):
        self.parts = parts
        channels, height = sum(part.shape[0] for part in parts), parts[0].shape[1]
        self.y = self.network.put_out_filled((channels, height), [part.block for part in parts])
        return self.y

    def backward(self):
        gradients = [self.recorder.malloc(FLOAT * self.network.batch * part.floats) for part in self.parts]
        self.recorder.kernel([self.y.gradient], gradients)
        self.network.spend(self.y)
        for part, gradient in zip(self.parts, gradients):
            self.network.give(part, gradient)


class Branches(Layer):
    """Chains of layers that all read the input; what they put out is concatenated."""

    def __init__(self, network, *branches):
        super().__init__(network)
        self.branches, self.together = branches, Concatenation(network)

    def forward(self, x):
        ends = [self.network.forward_through(branch, x) for branch in self.branches]
        y = self.together.forward(ends)
        for end in ends:
            self.network.free_unread(end)
        return y

    def backward(self):
        self.together.backward()
        for branch in reversed(self.branches):
            self.network.backward_through(branch)


class Residual(Layer):
    """Sum of a branch and the input (or a projection of it), through ReLU in place."""

    def __init__(self, network, branch, projection=(), relu=True):
        super().__init__(network)
        self.branch, self.projection, self.relu = branch, projection, relu
        self.left = self.right = None

    def forward(self, x):
        network = self.network
        self.x = x
        self.left, self.right = network.forward_through(self.branch, x), network.forward_through(self.projection, x)
        self.y = network.put_out_filled(self.left.shape, [self.left.block, self.right.block], flops=self.left.block.size / FLOAT)
        if self.relu:
            self.recorder.kernel([self.y.block], [self.y.block], self.y.block.size / FLOAT)
        network.free_unread(self.left)
        if self.projection:
            network.free_unread(self.right)
        if self.relu:
            network.hold(self.y)    # ReLU's gradient
        return self.y

    def backward(self):
        network, recorder, dy = self.network, self.recorder, self.y.gradient
        if self.relu:
            recorder.kernel([self.y.block, dy], [dy], dy.size / FLOAT)
            network.done(self.y)
        left = recorder.malloc(dy.size)
        recorder.kernel([dy], [left])
        network.give(self.left, left)
        network.backward_through(self.branch)
        self.y.gradient = None
        network.give(self.right, dy)    # to x itself: added, as the branch has given its part already
        network.backward_through(self.projection)


class Aside(Layer):
    """Layers beside the way, such as a classifier of what is known half way: the input goes on as it is."""

    def __init__(self, network, layers):
        super().__init__(network)
        self.layers = layers

    def forward(self, x):
        self.network.forward_through(self.layers, x)
        return x

    def backward(self):
        self.network.backward_through(self.layers)
