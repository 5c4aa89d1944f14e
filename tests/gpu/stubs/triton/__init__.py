"""Stands in for Triton: kernels are never run."""
import stub

stub.imported("triton")
__version__ = "0.stub"


class _Kernel:
    def __init__(self, function):
        self.name = function.__name__

    def __getitem__(self, grid):
        assert all(size > 0 for size in grid)
        return stub.makes("triton." + self.name)


jit = _Kernel
