#!/usr/bin/env python3
"""Prints what memopt holds before there is a plan, beside a caching allocator with the rules of the large frameworks' ones
(integration/cudasim/pool) and the driver's own allocation, on the simulated device.

usage: bootstrap_table.py [--planned] [--streams N] [--iterations N] [TRACE]...

Each program's allocations and frees are played (tests/planning/programs/allocations.cpp) natively, over the caching allocator, and under
memopt without a planner. Held: the most that the process held of the device. Calls: of the driver, to allocate, free, make, map and
unmap. Waits: times that the host waited for the device, of which the program itself has one an iteration and stream. Without a TRACE: four
networks of integration/workloads, and the traces of ../shared that are there. TEST_BUILD names the build folder (default: build/release of
this checkout). Exit code 1: memopt held more than 1.05 times the caching allocator's bytes and 4 MiB.

With --planned: with a planner. Most: held at any time, the switch to the plan included; steady: in the last third of the run. Exit code 1:
no plan went live, or more than 1.02 times the peak load and 4 MiB was held in the steady state."""
import argparse
import gzip
import os
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("TEST_SOURCE", SOURCE)
os.environ.setdefault("TEST_BUILD", os.path.join(SOURCE, "build", "release"))
sys.path.insert(0, os.path.join(SOURCE, "tests", "tools"))

import runs  # noqa: E402 (it reads the environment)

MIB = 1 << 20
PROGRAM = os.path.join(runs.BUILD, "tests", "allocations")
POOL = os.path.join(runs.SIMULATOR, "lib", "libcaching_pool.so")
NETS = ("vgg11", "vgg16", "resnet18", "resnet50")
TRACES = ("traces/blockInfo_Alex_316.text", "traces/blockInfo_VGG_315.text", "traces/blockInfo_resnet_315.text",
          "traces/vec_block_fresh_vgg.csv", "frameworks/medium_256_training.trace.gz")
# The driver's calls that make, map and give back memory.
CALLS = ("cuMemAlloc_v2", "cuMemFree_v2")
# How much more than the caching allocator memopt may hold: a part, and chunks that are begun.
MOST = 1.05
PLANNED_MOST = 1.02
SPARE = 4 * MIB


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="of operations, as integration/workloads/replay reads them")
    parser.add_argument("--streams", type=int, default=1, metavar="N", help="over which the work on blocks is spread (default 1)")
    parser.add_argument("--iterations", type=int, metavar="N", help="(default 8, with --planned 40)")
    parser.add_argument("--planned", action="store_true", help="what is held under a plan")
    options = parser.parse_args()
    if options.iterations is None:
        options.iterations = 40 if options.planned else 8
    if options.streams < 1 or options.iterations < 1:
        parser.error("--streams, --iterations: expected a number above 0")
    return options


def measure(trace, options, **environment):
    """Bytes held, calls of the driver and waits; and the program's peak load."""
    run = runs.Run([PROGRAM, trace, "--iterations", options.iterations, "--streams", options.streams], planned=False,
                   CUDASIM_DEVICE="h200", CUDASIM_POISON="off", **environment)
    if run.code != 0:
        sys.exit(run.output + run.errors)
    counters = run.report["counters"]
    calls = counters["vmm_calls"] + sum(run.report["calls"].get(call, 0) for call in CALLS)
    numbers = dict(line.split() for line in run.output.splitlines())
    return counters["bytes_held_peak"], calls, counters["host_synchronizations"], int(numbers["peak_load"])


def compare(trace, options):
    native = measure(trace, options)
    pool = measure(trace, options, LD_PRELOAD=runs.PREFIX + POOL)
    memopt = measure(trace, options, LD_PRELOAD=runs.PREFIX + runs.SHIM, MEMOPT_PLANNER="/bin/false",
                     MEMOPT_PLANNER_NAME=runs.PLANNER_NAME)
    return native, pool, memopt


def traces_of(options, folder):
    if options.traces:
        return options.traces
    found = []
    for name in NETS:
        path = os.path.join(folder, name)
        subprocess.run([sys.executable, runs.NETS, name, "-o", path], check=True)
        found.append(path)
    return found + [path for path in (os.path.join(runs.SHARED, name) for name in TRACES) if os.path.exists(path)]


def unpacked(path, folder):
    if not path.endswith(".gz"):
        return path
    plain = os.path.join(folder, os.path.basename(path)[:-len(".gz")])
    with gzip.open(path) as packed, open(plain, "wb") as file:
        file.write(packed.read())
    return plain


def table(options, out=sys.stdout):
    """The worst of all: by how many bytes memopt held more than it may."""
    worst = None
    print(f"{'':28}{'peak':>7}{'held, MiB':^30}{'calls of the driver':^24}{'waits':^20}\n"
          f"{'':28}{'load':>7}{'native':>8}{'pool':>7}{'memopt':>8}{'ratio':>7}{'native':>8}{'pool':>8}{'memopt':>8}"
          f"{'native':>8}{'pool':>6}{'memopt':>8}", file=out)
    with tempfile.TemporaryDirectory() as folder:
        for trace in traces_of(options, folder):
            native, pool, memopt = compare(unpacked(trace, folder), options)
            more = memopt[0] - (MOST * pool[0] + SPARE)
            worst = more if worst is None else max(worst, more)
            print(f"{os.path.basename(trace)[:27]:28}{native[3] // MIB:7}{native[0] // MIB:8}{pool[0] // MIB:7}{memopt[0] // MIB:8}"
                  f"{memopt[0] / pool[0]:7.3f}{native[1]:8}{pool[1]:8}{memopt[1]:8}{native[2]:8}{pool[2]:6}{memopt[2]:8}", file=out,
                  flush=True)
    return worst


def planned_table(options, out=sys.stdout):
    """Is everything as it should be?"""
    right = True
    print(f"{'held, MiB':28}{'peak load':>10}{'pool':>8}{'most':>8}{'steady':>8}{'steady/load':>13}{'plan live at':>14}", file=out)
    with tempfile.TemporaryDirectory() as folder:
        for trace in traces_of(options, folder):
            path = unpacked(trace, folder)
            pool = measure(path, options, LD_PRELOAD=runs.PREFIX + POOL)
            run = runs.Run([PROGRAM, path, "--iterations", options.iterations, "--streams", options.streams],
                           CUDASIM_DEVICE="h200", CUDASIM_POISON="off")
            if run.code != 0:
                sys.exit(run.output + run.errors)
            steady = run.steady_footprint
            right = right and run.live_at is not None and steady <= PLANNED_MOST * pool[3] + SPARE
            print(f"{os.path.basename(trace)[:27]:28}{pool[3] // MIB:10}{pool[0] // MIB:8}{run.report['counters']['bytes_held_peak'] // MIB:8}"
                  f"{steady // MIB:8}{steady / pool[3]:13.3f}{run.live_at or 'never':>14}", file=out, flush=True)
    return right


def main():
    options = parse()
    right = planned_table(options) if options.planned else table(options) <= 0
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
