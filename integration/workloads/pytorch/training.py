"""What the programs beside this one share: their arguments, and a training loop."""
import argparse
import contextlib
import random

import torch
from torch.utils.checkpoint import checkpoint


def arguments(batch, **more):
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", type=int, nargs="?", default=15)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--optimizer", choices=["sgd", "adam", "adamw"], default="adamw")
    parser.add_argument("--kernels", choices=["foreach", "fused", "single"], default="foreach", help="of the optimizer")
    parser.add_argument("--autocast", choices=["off", "bfloat16", "float16"], default="off")
    parser.add_argument("--accumulate", type=int, default=1, help="batches of a step")
    parser.add_argument("--accumulate-least", type=int, default=0, metavar="N", help="from so many up to those of --accumulate, by chance")
    parser.add_argument("--checkpointing", action="store_true", help="recompute activations")
    parser.add_argument("--leave-out", type=float, default=0.0, metavar="PART", help="of the blocks, by chance (stochastic depth)")
    parser.add_argument("--evaluate-every", type=int, default=0, metavar="STEPS")
    parser.add_argument("--save-every", type=int, default=0, metavar="STEPS", help="copy the state to the host")
    parser.add_argument("--epoch", type=int, default=0, metavar="STEPS", help="the last batch of so many is smaller")
    parser.add_argument("--side-stream", action="store_true", help="copy batches from pinned memory, one ahead")
    parser.add_argument("--graph", action="store_true", help="capture a step into a CUDA graph, and replay it")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="processes that make batches (DataLoader)")
    for name, default in more.items():
        parser.add_argument("--" + name, type=type(default), default=default)
    torch.manual_seed(0)
    random.seed(0)
    return parser.parse_args()


def optimizer_of(parameters, a, capturable=False):
    kind = {"foreach": {"foreach": True}, "fused": {"fused": True}, "single": {"foreach": False}}[a.kernels]
    if a.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, **kind)
    return {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[a.optimizer](parameters, lr=1e-3, capturable=capturable, **kind)


def autocast(a):
    on = a.autocast != "off"
    return torch.autocast("cuda", getattr(torch, a.autocast)) if on else contextlib.nullcontext()


def run(block, a, *inputs):
    """A block of a network, recomputed in the backward pass or left out if the arguments say so."""
    if a.leave_out and torch.is_grad_enabled() and random.random() < a.leave_out:
        return inputs[0]
    return checkpoint(block, *inputs, use_reentrant=False) if a.checkpointing and torch.is_grad_enabled() else block(*inputs)


class Made(torch.utils.data.IterableDataset):
    def __init__(self, make, rows):
        self.make, self.rows = make, rows

    def __iter__(self):
        while True:
            yield self.make(self.rows)


def batches(make, a):
    """Batches on the device: made on the host, copied as they are needed or one ahead on another stream."""
    if a.workers:
        loader = torch.utils.data.DataLoader(Made(make, a.batch), batch_size=None, num_workers=a.workers, pin_memory=True)
        for batch in loader:
            yield [tensor.cuda(non_blocking=True) for tensor in batch]
    copies = torch.cuda.Stream() if a.side_stream else None

    def fetch(i):
        rows = a.batch // 2 if a.epoch and i % (a.epoch * a.accumulate) == a.epoch * a.accumulate - 1 else a.batch
        if not copies:
            return [t.cuda() for t in make(rows)]
        pinned = [t.pin_memory() for t in make(rows)]
        with torch.cuda.stream(copies):
            return [t.cuda(non_blocking=True) for t in pinned]

    i, following = 0, fetch(0)
    while True:
        current = following
        if copies:
            torch.cuda.current_stream().wait_stream(copies)
            for tensor in current:
                tensor.record_stream(torch.cuda.current_stream())
        i += 1
        following = fetch(i) if copies else None
        yield current
        following = following or fetch(i)


def train(model, make, loss_of, a):
    """Trains `model` on what `make(rows)` gives; `loss_of(model, *batch)`."""
    if a.graph:
        return replay(model, make, loss_of, a)
    optimizer, data = optimizer_of(model.parameters(), a), batches(make, a)
    scaler = torch.amp.GradScaler("cuda", enabled=a.autocast == "float16")
    for step in range(1, a.steps + 1):
        several = random.randint(a.accumulate_least, a.accumulate) if a.accumulate_least else a.accumulate
        for _ in range(several):
            with autocast(a):
                loss = loss_of(model, *next(data)) / several
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        if a.evaluate_every and step % a.evaluate_every == 0:
            model.eval()
            with torch.no_grad(), autocast(a):
                for _ in range(4):
                    loss_of(model, *next(data))
            model.train()
        if a.save_every and step % a.save_every == 0:
            kept = {name: value.cpu() for name, value in model.state_dict().items()}  # noqa: F841
    finish()


def replay(model, make, loss_of, a):
    """Behind three steps one is captured, and replayed with each further batch."""
    optimizer, batch = optimizer_of(model.parameters(), a, capturable=True), [tensor.cuda() for tensor in make(a.batch)]

    def step():
        optimizer.zero_grad(set_to_none=True)
        with autocast(a):
            loss = loss_of(model, *batch)
        loss.backward()
        optimizer.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        step()
    for _ in range(3, a.steps):
        for held, made in zip(batch, make(a.batch)):
            held.copy_(made)
        graph.replay()
    finish()


def finish():
    torch.cuda.synchronize()
    mib = [x() / 2**20 for x in (torch.cuda.memory_allocated, torch.cuda.max_memory_allocated, torch.cuda.max_memory_reserved)]
    print("MiB allocated %.1f, at peak %.1f, reserved at peak %.1f" % tuple(mib))
