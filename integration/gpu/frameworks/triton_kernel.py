#!/usr/bin/env python3
"""Fits a line by gradient descent with kernels of its own, compiled by Triton at run time; PyTorch only holds the memory."""
import report
from torch_setup import checksum, device, facts, memory, torch

try:
    import triton
    import triton.language as tl
except ImportError as error:
    report.missing(f"Triton: {error}")

BLOCK = 1024


@triton.jit
def residuals(x, y, weights, out, count, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < count
    value = tl.load(weights) * tl.load(x + at, mask=inside) + tl.load(weights + 1) - tl.load(y + at, mask=inside)
    tl.store(out + at, value, mask=inside)


@triton.jit
def squares(values, partial, count, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(values + at, mask=at < count, other=0.0)
    tl.store(partial + tl.program_id(0), tl.sum(value * value, axis=0))


class Line:
    """So that it can be asked for its parameters like a model."""

    def __init__(self, where):
        self.weights = torch.zeros(2, device=where)

    def parameters(self):
        return [self.weights]


def main():
    options = report.arguments(__doc__)
    where = device()
    count = 1 << 12 if options.small else 1 << 24
    source = torch.Generator(device="cpu").manual_seed(1)
    x = torch.randn(count, generator=source).to(where)
    y = 3 * x - 1
    line = Line(where)
    programs = (count + BLOCK - 1) // BLOCK
    loop = report.Loop("triton_kernel", options, triton=triton.__version__, **facts())

    def step(_):
        # Fresh memory in each step, as training has it.
        error, partial = torch.empty(count, device=where), torch.empty(programs, device=where)
        residuals[(programs,)](x, y, line.weights, error, count, block=BLOCK)
        squares[(programs,)](error, partial, count, block=BLOCK)
        gradient = torch.stack([(error * x).sum(), error.sum()]) * (2.0 / count)
        line.weights.sub_(0.1 * gradient)
        return (partial.sum() / count).item()

    loop.run(step, memory, lambda: checksum(line))


if __name__ == "__main__":
    main()
