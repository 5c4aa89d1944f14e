"""A convolutional network on images of the size of MNIST's. usage: convnet.py [STEPS] [BATCH]"""
import hashlib
import sys

import numpy as np
from tinygrad import Tensor, TinyJit, nn
from tinygrad.helpers import Context

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 6
BATCH = int(sys.argv[2]) if len(sys.argv) > 2 else 32


class Net:
    def __init__(self):
        self.first, self.second = nn.Conv2d(1, 16, 5), nn.Conv2d(16, 32, 5)
        self.last = nn.Linear(32 * 4 * 4, 10)

    def __call__(self, x):
        x = self.first(x).relu().max_pool2d()
        x = self.second(x).relu().max_pool2d()
        return self.last(x.flatten(1))


Tensor.manual_seed(7)
random = np.random.default_rng(7)
net = Net()
optimizer = nn.optim.Adam(nn.state.get_parameters(net))


@TinyJit
def step(images, digits):
    optimizer.zero_grad()
    loss = net(images).sparse_categorical_crossentropy(digits).backward()
    optimizer.step()
    return loss.realize()


copied, computed = hashlib.sha256(), hashlib.sha256()
with Context(TRAINING=1):
    for _ in range(STEPS):
        images = Tensor(random.random((BATCH, 1, 28, 28), dtype=np.float32)).contiguous().realize()
        digits = Tensor(random.integers(0, 10, BATCH, dtype=np.int32)).contiguous().realize()
        loss = step(images, digits)
        copied.update(images.numpy().tobytes())
        computed.update(loss.numpy().tobytes())
for weights in nn.state.get_parameters(net):
    computed.update(weights.numpy().tobytes())
print("copied", copied.hexdigest()[:16])
print("computed", computed.hexdigest()[:16])
