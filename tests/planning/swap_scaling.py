#!/usr/bin/env python3
"""Prints what a swap plan takes and gives for made-up iterations of growing size (tests/planner/swap/command/layered_iteration.py).

usage: swap_scaling.py [--layers N,...] [--time-budget S]

First plan: the whole process with the smallest budget, 0.05 s: reading, a greedy choice, a layout, checks. Better plan: with
--time-budget. Memory: the largest resident size of that process. TEST_BUILD names the build folder (default: build/release of this
checkout)."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GENERATOR = os.path.join(SOURCE, "tests", "planner", "swap", "command", "layered_iteration.py")
MEMOPTCTL = os.path.join(os.environ.get("TEST_BUILD", os.path.join(SOURCE, "build", "release")), "bin", "memoptctl")
LAYERS = "12,25,50,100,200,400,800,1250"
HEADER = """\
                        without     first plan            better plan
operations    blocks       MiB      MiB       s     MiB   of it       s     MiB memory"""


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", default=LAYERS, metavar="N,...", help=f"40 operations and 10 blocks each (default {LAYERS})")
    parser.add_argument("--time-budget", default="4", metavar="S", help="seconds of search for the better plan (default 4)")
    options = parser.parse_args()
    try:
        options.layers = [int(text) for text in options.layers.split(",")]
    except ValueError:
        options.layers = []
    if not options.layers or min(options.layers) < 1:
        parser.error("--layers: expected numbers above 0, separated by commas")
    return options


def run(*arguments):
    """Output, seconds, MiB of memory."""
    begin = time.monotonic()
    process = subprocess.Popen([MEMOPTCTL, "plan", *arguments, "--no-bound"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        output, errors = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {output}{errors}")
    return output, time.monotonic() - begin, usage.ru_maxrss / 1024


def number(pattern, output):
    return float(re.search(pattern, output, re.MULTILINE).group(1))


def measure(layers, budget, folder):
    path = os.path.join(folder, "iteration.json")
    subprocess.run([sys.executable, GENERATOR, str(layers), path], check=True)
    footprint = r"^footprint +([\d.]+) MiB"
    unswapped, _, _ = run(path, "--strategy", "none")
    first, first_seconds, _ = run(path, "--time-budget", "0.05")
    better, seconds, memory = run(path, "--time-budget", budget)
    return {"operations": 40 * layers - 1, "blocks": 10 * layers, "without": number(footprint, unswapped), "first": number(footprint, first),
            "first_seconds": first_seconds, "better": number(footprint, better), "seconds": seconds, "memory": memory}


def main():
    options = parse()
    print(HEADER, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for layers in options.layers:
            row = measure(layers, options.time_budget, folder)
            print(f"{row['operations']:10} {row['blocks']:9} {row['without']:9.1f} {row['first']:8.1f} {row['first_seconds']:7.2f} {row['better']:7.1f} "
                  f"{row['better'] / row['without']:7.3f} {row['seconds']:7.2f} {row['memory']:10.0f}", flush=True)


if __name__ == "__main__":
    main()
