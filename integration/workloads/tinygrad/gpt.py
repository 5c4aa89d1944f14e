"""A small GPT that learns to continue sequences. usage: gpt.py [STEPS] [LAYERS] [WIDTH]"""
import hashlib
import sys

import numpy as np
from tinygrad import Tensor, TinyJit, nn
from tinygrad.helpers import Context

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 6
LAYERS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
WIDTH = int(sys.argv[3]) if len(sys.argv) > 3 else 64
WORDS, LENGTH, BATCH, HEADS = 128, 32, 8, 4


class Layer:
    def __init__(self):
        self.attention, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def __call__(self, x):
        q, k, v = [part.reshape(BATCH, -1, HEADS, WIDTH // HEADS).transpose(1, 2) for part in self.attention(self.before(x)).chunk(3, dim=-1)]
        x = x + self.out(q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(BATCH, -1, WIDTH))
        return x + self.down(self.up(self.between(x)).gelu())


class Model:
    def __init__(self):
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = [Layer() for _ in range(LAYERS)]
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def __call__(self, text):
        x = self.words(text) + self.places(Tensor.arange(text.shape[1]).reshape(1, -1))
        return self.head(self.norm(x.sequential(self.layers)))


Tensor.manual_seed(7)
random, model = np.random.default_rng(7), Model()
optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=1e-3)


@TinyJit
def step(text, following):
    optimizer.zero_grad()
    loss = model(text).sparse_categorical_crossentropy(following).backward()
    optimizer.step()
    return loss.realize()


copied, computed = hashlib.sha256(), hashlib.sha256()
with Context(TRAINING=1):
    for _ in range(STEPS):
        batch = random.integers(0, WORDS, (BATCH, LENGTH + 1), dtype=np.int32)
        text, following = [Tensor(np.ascontiguousarray(part)).contiguous().realize() for part in (batch[:, :-1], batch[:, 1:])]
        computed.update(step(text, following).numpy().tobytes())
        copied.update(text.numpy().tobytes())
print("copied", copied.hexdigest()[:16])
print("computed", computed.hexdigest()[:16])
