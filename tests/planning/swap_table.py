#!/usr/bin/env python3
"""Prints, beside the published table of eight networks (Zhang et al. 2019, Table II), what `memoptctl plan` makes of their generated
traces: the footprint of a plan with swaps that adds no time.

usage: swap_table.py [--time-budget S] [--bound-time S] [--no-bound] [--machines NAME,...] [NETWORK]...

For each machine (gtx1080ti, a100-40g, h200) the traces have that device's roofline times, and copies are as fast as there. Published loads
are before layout, ours are footprints: layout and chunks of 2 MiB included. MB are MiB, as the published trace says. TEST_BUILD names the
build folder (default: build/release of this checkout)."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NETS = os.path.join(SOURCE, "integration", "workloads", "nets", "nets.py")
MEMOPTCTL = os.path.join(os.environ.get("TEST_BUILD", os.path.join(SOURCE, "build", "release")), "bin", "memoptctl")
MACHINES = ("gtx1080ti", "a100-40g", "h200")
# Peak load, and load at which AutoSwap adds no time.
PUBLISHED = {"vgg11": (389, 284), "vgg13": (509, 360), "vgg16": (647, 447), "vgg19": (785, 561),
             "resnet18": (1452, 1152), "resnet34": (2824, 2124), "resnet50": (4418, 2906), "resnet101": (8367, 5658)}
HEADER = """\
{machine}
            published (MiB)              here (MiB)
            peak  no added time          peak  no added time          bound        of an iteration  planning"""


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help="default: all eight")
    parser.add_argument("--time-budget", default="10", metavar="S", help="seconds of search for each plan (default 10)")
    parser.add_argument("--bound-time", default="60", metavar="S", help="seconds for each lower bound (default 60)")
    parser.add_argument("--no-bound", action="store_true", help="leave out the lower bounds")
    parser.add_argument("--machines", default="gtx1080ti", metavar="NAME,...", help=f"of {', '.join(MACHINES)} (default gtx1080ti)")
    options = parser.parse_args()
    options.machines = options.machines.split(",")
    for given, known, what in ((options.networks, PUBLISHED, "network"), (options.machines, MACHINES, "machine")):
        for name in given:
            if name not in known:
                parser.error(f"unknown {what} '{name}'; known: {' '.join(known)}")
    return options


def planned(trace, machine, options):
    """Numbers of the plan: MiB, ms, seconds."""
    bound = ["--no-bound"] if options.no_bound else ["--bound-time", options.bound_time]
    done = subprocess.run([MEMOPTCTL, "plan", trace, "--objective", "footprint", "--machine", machine, "--time-budget", options.time_budget, *bound],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{trace}: {done.stdout}{done.stderr}")

    def number(pattern):
        found = re.search(pattern, done.stdout, re.MULTILINE)
        return float(found.group(1)) if found else None
    return {"footprint": number(r"^footprint +([\d.]+) MiB"), "bound": number(r"^footprint .*, bound ([\d.]+) MiB"),
            "added": number(r"^added time +([\d.]+) ms"), "period": number(r"an iteration of ([\d.]+) ms"),
            "peak": number(r"^peak load +([\d.]+) MiB"), "seconds": number(r"^planning time +([\d.]+) s")}


def less(part, whole):
    return f"{100 * (part / whole - 1):+.1f} %"


def main():
    options = parse()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for machine in options.machines:
            print(HEADER.format(machine=machine), flush=True)
            for name in options.networks or PUBLISHED:
                trace = os.path.join(folder, f"{name}-{machine}.trace")
                subprocess.run([sys.executable, NETS, name, "--device", machine, "-o", trace], check=True)
                ours = planned(trace, machine, options)
                peak, load = PUBLISHED[name]
                bound = f"{ours['bound']:8.1f}  {less(ours['bound'], ours['peak'])}" if ours["bound"] is not None else f"{'?':>8}  {'':7}"
                print(f"{name:10} {peak:5}  {load:5}  {less(load, peak)}     {ours['peak']:7.1f}  {ours['footprint']:7.1f}  "
                      f"{less(ours['footprint'], ours['peak'])}  {bound}  {ours['period']:9.2f} ms + {ours['added']:.3f}  {ours['seconds']:6.1f} s",
                      flush=True)
            print()
    print(f"{time.monotonic() - begin:.0f} s in all, {options.time_budget} s for each search")


if __name__ == "__main__":
    main()
