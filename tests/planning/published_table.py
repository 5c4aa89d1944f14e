#!/usr/bin/env python3
"""Prints, beside the published table of eight networks (Zhang et al. 2019, Table I), what their generated traces come to: natively, over
a caching pool, and under memopt, on the simulated device. Usage: published_table.py [NETWORK]...; TEST_BUILD names the build folder
(default: build/release of this checkout).

Footprint and virtual time are the simulated driver's counts, of two iterations after the twelfth: all are alike by then. The pool is a model, by the same rules as
the caching pool of tools/quickstart, fed with the trace's mallocs and frees. Virtual time does not contain memopt's own code, which takes
about as long per allocation as agent_planned_benchmark says."""
import bisect
import os
import sys

os.environ.setdefault("TEST_SOURCE", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
os.environ.setdefault("TEST_BUILD", os.path.join(os.environ["TEST_SOURCE"], "build", "release"))
sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "tools"))
from runs import WORKLOADS, PlanningCase, Run  # noqa: E402

MIB = 1 << 20
# Peak load in MiB, SmartPool's ratio, CnMem's ratio.
PUBLISHED = {"vgg11": (389, 1.013, 1.169), "vgg13": (509, 1.016, 1.115), "vgg16": (647, 1.012, 1.113), "vgg19": (785, 1.011, 1.072),
             "resnet18": (1452, 1.003, 1.033), "resnet34": (2824, 1.001, 1.028), "resnet50": (4418, 1.003, 1.030),
             "resnet101": (8367, 1.0005, 1.028)}


class Pool:
    """Segments cut into blocks, best fit, neighbours merged, nothing given back."""

    def __init__(self):
        self.held, self.free, self.blocks = 0, [], {}  # free: sorted (size, segment, offset)

    @staticmethod
    def segment_size(size):
        if size <= MIB:
            return 2 * MIB
        return 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB

    def malloc(self, name, size):
        size = -(-size // 512) * 512
        small = size <= MIB
        for index in range(bisect.bisect_left(self.free, (size,)), len(self.free)):
            found, segment, offset = self.free[index]
            if (segment[1] == "small") == small:
                del self.free[index]
                break
        else:
            found, offset = self.segment_size(size), 0
            segment = (self.held, "small" if small else "large")
            self.held += found
        if found - size >= (512 if small else MIB):
            bisect.insort(self.free, (found - size, segment, offset + size))
            found = size
        self.blocks[name] = (found, segment, offset)

    def drop(self, name):
        size, segment, offset = self.blocks.pop(name)
        for other in [entry for entry in self.free if entry[1] == segment and entry[2] in (offset + size, offset - entry[0])]:
            self.free.remove(other)
            size, offset = size + other[0], min(offset, other[2])
        bisect.insort(self.free, (size, segment, offset))


def pooled(trace):
    """Largest sum of live bytes, and bytes held by the pool."""
    pool, live, peak, sizes = Pool(), 0, 0, {}
    with open(trace, encoding="ascii") as file:
        lines = [line.split() for line in file]
    # A block that is used before any Malloc names it was there from the start.
    known, first = set(), {}
    for operation, pointer, *rest in lines:
        if operation == "Malloc":
            known.add(pointer)
        elif operation in ("Read", "Mutable", "Free") and pointer not in known and rest and int(rest[0]) > 0:
            first.setdefault(pointer, rest[0])
            known.add(pointer)
    for operation, pointer, size, *_ in [["Malloc", pointer, size] for pointer, size in first.items()] + lines:
        if operation == "Malloc":
            sizes[pointer] = int(size)
            live += int(size)
            peak = max(peak, live)
            pool.malloc(pointer, int(size))
        elif operation == "Free" and pointer in sizes:
            live -= sizes.pop(pointer)
            pool.drop(pointer)
    return peak, pool.held


def measure(trace, planned):
    run = Run([os.path.join(WORKLOADS, "replay"), trace, "--iterations", 14, "--warm-up", 12], numbers=True, planned=planned, timeout=7200,
              CUDASIM_DEVICE="h200", CUDASIM_POISON="off", CUDASIM_CHECK="off")
    if run.code != 0:
        sys.exit(f"{trace}: {run.output}{run.errors}")
    return run


def main():
    names = sys.argv[1:] or list(PUBLISHED)
    for name in names:
        if name not in PUBLISHED:
            sys.exit(f"published_table: unknown network '{name}'; known: {' '.join(PUBLISHED)}")
    PlanningCase.setUpClass()
    print("             peak load (MiB)      footprint / peak load                           time per iteration")
    print("             published  here      SmartPool  CnMem   pool here  memopt  (plan)    native/memopt   live at")
    for name in names:
        trace = PlanningCase().net(name)
        its_peak, held = pooled(trace)
        ours, native = measure(trace, True), measure(trace, False)
        peak = ours.numbers["peak_load"]
        published, smart_pool, cnmem = PUBLISHED[name]
        slab = ours.plan_bytes
        print(f"{name:12} {published:9} {peak / MIB:7.1f}   {smart_pool:9.4f}  {cnmem:6.3f}  {held / its_peak:9.4f}  "
              f"{ours.numbers['footprint_after_warm_up'] / peak:6.4f}  {slab / peak if slab else 0:6.4f}  "
              f"{native.numbers['per_iteration']['virtual_ns'] / ours.numbers['per_iteration']['virtual_ns']:14.2f}  "
              f"{ours.live_at or 'never':>8}", flush=True)
    PlanningCase.doClassCleanups()


if __name__ == "__main__":
    main()
