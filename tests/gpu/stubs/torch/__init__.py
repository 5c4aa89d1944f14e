"""Stands in for PyTorch: the control flow of the scripts, no arithmetic."""
import contextlib
import os
import types

import stub

stub.imported("torch")
from torch import nn, utils  # noqa: E402, F401

__version__ = "0.stub"
int32, int64, float32 = "int32", "int64", "float32"
Tensor = stub.Array
zeros, full, randn, randint, empty, stack, manual_seed, use_deterministic_algorithms = (
    stub.makes("torch." + name) for name in ("zeros", "full", "randn", "randint", "empty", "stack", "manual_seed", "use_deterministic_algorithms"))


def device(kind, index=0):
    return f"{kind}:{index}"


class Generator:
    def __init__(self, device="cpu"):
        self.device = device

    def manual_seed(self, seed):
        stub.note(f"seed {seed}")
        return self


class _AdamW:
    def __init__(self, parameters, lr):
        self.parameters = list(parameters)
        assert self.parameters and lr > 0

    def zero_grad(self, set_to_none):
        stub.note("zero_grad")

    def step(self):
        stub.note("step")


optim = types.SimpleNamespace(AdamW=_AdamW)


@contextlib.contextmanager
def _save_on_cpu(pin_memory):
    assert pin_memory
    stub.note("torch.save_on_cpu")
    yield


autograd = types.SimpleNamespace(graph=types.SimpleNamespace(save_on_cpu=_save_on_cpu))
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(deterministic=False, benchmark=True))


def _allocator():
    settings = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    return "cudaMallocAsync" if "backend:cudaMallocAsync" in settings else "native"


cuda = types.SimpleNamespace(is_available=lambda: os.environ.get("STUB_NO_DEVICE") != "1", get_allocator_backend=_allocator,
                             max_memory_allocated=lambda: 100, max_memory_reserved=lambda: 200, memory_allocated=lambda: 10,
                             memory_reserved=lambda: 20)
