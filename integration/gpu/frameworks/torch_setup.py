"""PyTorch, set so that it repeats bit by bit; for the scripts that train with it.

GPU_KIT_OFFER: what PyTorch offers against a full device, used here. `save_on_cpu`: what the backward pass needs is kept in host memory;
`checkpointing`: it is computed again, block by block."""
import contextlib
import os

# Read when cuBLAS makes its handles: two workspaces of a fixed size, or sums may come in another order.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import report  # noqa: E402

try:
    import torch
except ImportError as error:
    report.missing(f"PyTorch: {error}")


OFFER = os.environ.get("GPU_KIT_OFFER", "")
if OFFER not in ("", "save_on_cpu", "checkpointing"):
    raise SystemExit(f"GPU_KIT_OFFER: expected save_on_cpu or checkpointing, not '{OFFER}'")


def through(block, *inputs):
    """What the block makes of the inputs."""
    if OFFER == "checkpointing":
        from torch.utils.checkpoint import checkpoint
        return checkpoint(block, *inputs, use_reentrant=False)
    return block(*inputs)


def kept():
    return torch.autograd.graph.save_on_cpu(pin_memory=True) if OFFER == "save_on_cpu" else contextlib.nullcontext()


def device():
    if not torch.cuda.is_available():
        report.missing("PyTorch finds no CUDA device")
    torch.manual_seed(1998)
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Otherwise all memory that is not written at once is filled, which no training does.
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    return torch.device("cuda", 0)


def facts():
    return {"framework": f"torch {torch.__version__}", "allocator": torch.cuda.get_allocator_backend()}


def memory():
    return {"allocated_peak": torch.cuda.max_memory_allocated(), "reserved_peak": torch.cuda.max_memory_reserved(),
            "allocated": torch.cuda.memory_allocated(), "reserved": torch.cuda.memory_reserved()}


def checksum(model):
    """Over the bits of all parameters; integer sums have no order."""
    total = 0
    for parameter in model.parameters():
        total += int(parameter.detach().view(torch.int32).to(torch.int64).sum().item())
    return f"{total & (1 << 64) - 1:016x}"


def train(name, model, batch, loss_of, options, rate=1e-3):
    """`batch(iteration)` makes the inputs; the same for the same iteration, whatever ran before."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    loop = report.Loop(name, options, parameters=int(parameters), **facts())

    def step(iteration):
        optimizer.zero_grad(set_to_none=True)
        with kept():
            loss = loss_of(model, *batch(iteration))
        loss.backward()
        optimizer.step()
        return loss.item()

    loop.run(step, memory, lambda: checksum(model))
