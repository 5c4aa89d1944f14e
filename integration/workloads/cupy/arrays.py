"""Arrays that live for a step, in CuPy. usage: arrays.py [STEPS] [--pool on|off|async] [--graph] [--elements N]"""
import argparse
import hashlib

import cupy
import numpy

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("steps", nargs="?", type=int, default=10)
parser.add_argument("--pool", choices=["on", "off", "async"], default="on")
parser.add_argument("--graph", action="store_true")
parser.add_argument("--elements", type=int, default=1 << 20)
options = parser.parse_args()
if options.pool == "off":
    cupy.cuda.set_allocator(None)
if options.pool == "async":
    cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)

saxpy = cupy.RawKernel(r"""extern "C" __global__ void saxpy(float* y, const float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}""", "saxpy")
root = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = sqrtf(x * x + y * y)", "root")
copied, computed = hashlib.sha256(), hashlib.sha256()
count = options.elements
memory = cupy.cuda.alloc_pinned_memory(4 * count)
host = numpy.frombuffer(memory, numpy.float32, count)
stream, done = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event(disable_timing=True)
x, y = cupy.zeros(count, cupy.float32), cupy.zeros(count, cupy.float32)
cupy.cuda.Device().synchronize()


def step():
    saxpy(((count + 255) // 256,), (256,), (y, x, numpy.float32(2), numpy.int32(count)))
    cupy.add(y, x, out=y)


graph = None
for i in range(options.steps):
    host[:] = numpy.arange(count) % 1000 + i
    with stream:
        x.set(host)
        if options.graph and i > 0:
            if graph is None:
                stream.begin_capture()
                step()
                graph = stream.end_capture()
            graph.launch(stream)
        else:
            step()
        length = root(x, y)
        total, most = length.sum(), (length * 2 + 1).max()
        kept = x.copy()
        done.record()
    done.synchronize()
    copied.update(kept.get(stream).tobytes())
    for part in (y, length, total, most):
        computed.update(part.get(stream).tobytes())
print("copied", copied.hexdigest()[:16])
print("computed", computed.hexdigest()[:16])
