#!/usr/bin/env python3
"""Trains a perceptron with one hidden layer on random data with CuPy, forward and backward by hand.

GPU_KIT_CUPY_POOL=off takes CuPy's pool away, so that each array is an allocation of its own.
"""
import hashlib
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import report  # noqa: E402

try:
    import cupy
except ImportError as error:
    report.missing(f"CuPy: {error}")


def statistics_of(pool):
    return {"used": int(pool.used_bytes()), "total": int(pool.total_bytes())}


def main():
    options = report.arguments(__doc__)
    try:
        devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        report.missing(f"CuPy finds no CUDA device: {error}")
    if not devices:
        report.missing("CuPy finds no CUDA device")
    pool = cupy.get_default_memory_pool()
    pooled = os.environ.get("GPU_KIT_CUPY_POOL") != "off"
    if not pooled:
        cupy.cuda.set_allocator(None)
    inputs, hidden, outputs, rows = (8, 16, 4, 4) if options.small else (1024, 8192, 256, 8192)
    random = cupy.random.RandomState(1998)

    def normal(*shape, scale=1.0):
        return (random.standard_normal(shape, dtype=cupy.float32) * scale).astype(cupy.float32)

    w1, w2 = normal(inputs, hidden, scale=(2 / inputs) ** 0.5), normal(hidden, outputs, scale=(2 / hidden) ** 0.5)
    x, y = normal(rows, inputs), normal(rows, outputs)
    loop = report.Loop("cupy_mlp", options, framework=f"cupy {cupy.__version__}", allocator="pool" if pooled else "none")

    def step(_):
        h = cupy.maximum(x @ w1, 0)
        error = h @ w2 - y
        slope = error * (2.0 / rows)
        back = (slope @ w2.T) * (h > 0)
        w2[...] -= 1e-2 * (h.T @ slope)
        w1[...] -= 1e-2 * (x.T @ back)
        return float((error * error).mean())

    def checksum():
        digest = hashlib.sha256()
        for array in (w1, w2):
            digest.update(cupy.asnumpy(array).tobytes())
        return digest.hexdigest()[:16]

    loop.run(step, lambda: statistics_of(pool), checksum)


if __name__ == "__main__":
    main()
