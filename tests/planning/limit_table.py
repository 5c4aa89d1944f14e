#!/usr/bin/env python3
"""Prints, as a table in Markdown, what a limit costs that is kept by swapping, on the simulated device.

usage: limit_table.py [--parts P,...] [--device NAME] [--iterations N] [--batch N] [--times bytes|trace] [--think] [--on-demand]
       [TRACE]...

Each trace is replayed natively, under memopt without a limit, and with MEMOPT_LIMIT at each part (per cent) of its peak load: without a
planner, so that all swaps are made on demand, and with one. Footprint: the most that was held of the device at any time, by the driver's
count, in either run. Time: virtual, of an iteration in the second half of the run; kernels take their bytes, or the trace's time until its
next operation (--times trace). With --think the host takes that time as well, so that it is late where nothing is launched. Natively each
cudaFree waits for the device, under memopt none does. Expected: what the plan that was followed last says of an iteration, "-" where
there is none. UVM: what uvm_model.py adds for managed memory to an iteration without a
limit, on a device of the limit's size, with the simulated one's rates; no managed memory is used; "-" where the trace has no iteration or an
operation needs more. Without a TRACE: three networks of integration/workloads, and the traces of ../shared that are there. TEST_BUILD names
the build folder (default: build/release of this checkout). Exit code 1: something else was read than natively, or a limit was passed that is
not said to be passed."""
import argparse
import os
import re
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("TEST_SOURCE", SOURCE)
os.environ.setdefault("TEST_BUILD", os.path.join(SOURCE, "build", "release"))
sys.path.insert(0, os.path.join(SOURCE, "tests", "tools"))

import runs  # noqa: E402 (it reads the environment)
import uvm_model  # noqa: E402

MIB = 1 << 20
CHUNK = 2 * MIB
REPLAY = os.path.join(runs.WORKLOADS, "replay")
NETS = ("vgg11", "vgg16", "resnet18")
TRACES = ("blockInfo_Alex_316.text", "blockInfo_VGG_315.text", "vec_block_fresh_vgg.csv")
DEVICES = ("gtx1080ti", "a100-40g", "h200")
NO_ITERATION = 4  # memoptctl plan's exit code
# Said when a plan goes live.
PLAN = re.compile(r"(\d+) swaps an iteration of ([\d.]+) ms, to which they are expected to add ([\d.]+)")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="of operations, as integration/workloads/replay reads them")
    parser.add_argument("--parts", default="90,75,60,45", metavar="P,...", help="per cent of the peak load (default 90,75,60,45)")
    parser.add_argument("--device", default="a100-40g", choices=DEVICES, help="the simulated one (default a100-40g)")
    parser.add_argument("--iterations", type=int, default=8, metavar="N", help="(default 8)")
    parser.add_argument("--batch", type=int, default=100, metavar="N", help="of the networks that are generated (default 100)")
    parser.add_argument("--times", default="bytes", choices=("bytes", "trace"), help="of kernels (default bytes)")
    parser.add_argument("--think", action="store_true", help="the host takes the trace's time between operations")
    parser.add_argument("--on-demand", action="store_true", help="no run with a planner: a limit kept on demand alone")
    options = parser.parse_args()
    try:
        options.parts = [int(part) for part in options.parts.split(",")]
    except ValueError:
        parser.error("--parts: expected numbers with commas between them")
    if options.iterations < 1 or any(not 1 <= part <= 100 for part in options.parts):
        parser.error("--iterations, --parts: expected numbers above 0")
    return options


def traces_of(options, folder):
    if options.traces:
        return options.traces
    found = []
    for name in NETS:
        path = os.path.join(folder, name)
        subprocess.run([sys.executable, runs.NETS, name, "--batch", str(options.batch), "-o", path], check=True)
        found.append(path)
    return found + [path for path in (os.path.join(runs.SHARED, "traces", name) for name in TRACES) if os.path.exists(path)]


def replay(trace, options, limit=None, natively=False, on_demand=False):
    more = {"planned": False} if natively else {}
    if limit is not None:
        more |= {"MEMOPT_LIMIT": str(limit), "MEMOPT_LOG": "info"}
    if on_demand:
        more |= runs.WITHOUT_A_PLANNER
    command = [REPLAY, trace, "--iterations", options.iterations, "--times", options.times, *(["--think"] if options.think else [])]
    run = runs.Run(command, numbers=True, CUDASIM_DEVICE=options.device, CUDASIM_POISON="off", **more)
    if run.code != 0:
        sys.exit(f"{trace}: {run.output}{run.errors}")
    return run


def iteration_of(trace, options, folder):
    """Its operations, and the machine's rates; None: none is found."""
    path = os.path.join(folder, "iteration.json")
    plan = [runs.MEMOPTCTL, "plan", trace, "--strategy", "none", "--no-bound", "--machine", options.device, "--json", path]
    done = subprocess.run(plan, capture_output=True, text=True)
    if done.returncode == NO_ITERATION:
        return None
    if done.returncode != 0:
        sys.exit(f"{trace}: {done.stderr}")
    return uvm_model.read(path)


def by_uvm(iteration, limit):
    """Milliseconds that it takes longer; None: not known, or an operation needs more than all."""
    if iteration is None:
        return None
    machine = iteration["machine"]
    stalled = uvm_model.stall_ns(iteration, limit, machine["out_bytes_per_ns"], machine["in_bytes_per_ns"], uvm_model.FAULT_US * 1e3)
    return stalled and stalled[0] / 1e6


def table(options, out=sys.stdout):
    """Is everything as it should be?"""
    right = True
    print("| workload | limit (MiB) | of the peak load | footprint (MiB) | ms natively | ms under memopt | ms on demand | ms planned | "
          "expected | swaps | ms by UVM (model) |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|", file=out)
    with tempfile.TemporaryDirectory() as folder:
        for trace in traces_of(options, folder):
            native = replay(trace, options, natively=True)
            without = replay(trace, options)
            iteration = iteration_of(trace, options, folder)
            before = [run.numbers["per_iteration"]["virtual_ns"] / 1e6 for run in (native, without)]
            for part in options.parts:
                limit = native.numbers["peak_load"] * part // 100 // CHUNK * CHUNK
                kept = [replay(trace, options, limit, on_demand=True)] + ([] if options.on_demand else [replay(trace, options, limit)])
                held = max(run.report["counters"]["bytes_held_peak"] for run in kept)
                passed = any("; passed by" in run.errors for run in kept)
                right = right and all(run.last_line == native.last_line for run in kept) and (passed or held <= limit + CHUNK)
                after = [run.numbers["per_iteration"]["virtual_ns"] / 1e6 for run in kept]
                planned = "-" if options.on_demand else f"{after[1]:.2f}"
                plans = PLAN.findall(kept[-1].errors)
                expected, swaps = "-", "-"
                if plans:
                    swaps, period, added = plans[-1]
                    expected = f"{float(period) + float(added):.2f}"
                stalls = by_uvm(iteration, limit)
                uvm = "-" if stalls is None else f"{before[1] + stalls:.2f}"
                print(f"| {os.path.basename(trace)} | {limit // MIB} | {part} % | {held // MIB}{' (passed)' if passed else ''} | "
                      f"{before[0]:.2f} | {before[1]:.2f} | {after[0]:.2f} | {planned} | {expected} | {swaps} | {uvm} |",
                      file=out, flush=True)
    return right


def main():
    return 0 if table(parse()) else 1


if __name__ == "__main__":
    sys.exit(main())
