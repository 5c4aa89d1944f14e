"""Arrays that live for a step: kernels on two streams, events, page-locked memory. usage: arrays.py [STEPS] [ELEMENTS]"""
import hashlib
import sys

import numpy as np
from numba import cuda

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 10
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 20


@cuda.jit
def add(to, a, b):
    i = cuda.grid(1)
    if i < to.size:
        to[i] = a[i] + b[i]


@cuda.jit
def scale(to, factor):
    for i in range(cuda.grid(1), to.size, cuda.gridsize(1)):
        to[i] *= factor


copied, computed = hashlib.sha256(), hashlib.sha256()
first, second = cuda.stream(), cuda.stream()
done = cuda.event(timing=False)
host = cuda.pinned_array(COUNT, dtype=np.float32)
kept = cuda.to_device(np.zeros(COUNT, dtype=np.float32))
for step in range(STEPS):
    host[:] = np.arange(COUNT) % 1000 + step
    a = cuda.to_device(host, stream=first)
    b = cuda.device_array_like(a)
    b.copy_to_device(a, stream=first)
    done.record(first)
    done.wait(second)
    to = cuda.device_array(COUNT, dtype=np.float32)
    add[(COUNT + 255) // 256, 256, second](to, a, b)
    scale[256, 256, second](to, np.float32(0.5))
    add[(COUNT + 255) // 256, 256, second](kept, kept, to)
    back = b[: COUNT // 2].copy_to_host(stream=second)
    second.synchronize()
    copied.update(back.tobytes())
    computed.update(to.copy_to_host().tobytes())
last = np.empty_like(host)
with cuda.pinned(last):
    kept.copy_to_host(last)
computed.update(last.tobytes())
print("copied", copied.hexdigest()[:16])
print("computed", computed.hexdigest()[:16])
