#!/usr/bin/env python3
"""Prints what allocating and freeing costs a program that has very many small live blocks, on the simulated driver alone and under memopt.

usage: many_blocks.py [--counts N,...] [--bytes N] [--rounds N]

Nanoseconds of the program's own thread (tests/planning/programs/many_blocks.cpp) per allocation, per free and allocation of a random block, and
per free in that order; in the last columns host memory per block, by which the process grew. TEST_BUILD names the build folder (default:
build/release of this checkout)."""
import argparse
import os
import re
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("TEST_SOURCE", SOURCE)
os.environ.setdefault("TEST_BUILD", os.path.join(SOURCE, "build", "release"))
sys.path.insert(0, os.path.join(SOURCE, "tests", "tools"))

import runs  # noqa: E402 (it reads the environment)

PROGRAM = os.path.join(runs.BUILD, "tests", "many_blocks")
COUNTS = "20000,200000,1000000"
WIDTH = 27
HEADER = f"""\
{'':17}{'allocation':^{WIDTH}}{'free and allocation':^{WIDTH}}{'free':^{WIDTH}}{'host bytes':^16}
 blocks  freed   {'  native  memopt   ratio   ' * 3} native memopt"""


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", default=COUNTS, metavar="N,...", help=f"live blocks (default {COUNTS})")
    parser.add_argument("--bytes", type=int, default=1, metavar="N", help="of each block (default 1)")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="the fastest of so many counts (default 1)")
    options = parser.parse_args()
    try:
        options.counts = [int(text) for text in options.counts.split(",")]
    except ValueError:
        options.counts = []
    if not options.counts or min(options.counts) < 2:
        parser.error("--counts: expected numbers above 1, separated by commas")
    if options.bytes < 1 or options.rounds < 1:
        parser.error("--bytes, --rounds: expected a number above 0")
    return options


def measure(count, options, planned):
    """Times by order, and host bytes per block."""
    run = runs.Run([PROGRAM, count, "--bytes", options.bytes, "--rounds", options.rounds], planned=planned, MEMOPT_SYNC_PLAN=None)
    if run.code != 0:
        sys.exit(run.output + run.errors)
    times = {order: [float(text) for text in numbers.split()]
             for order, numbers in re.findall(r"^(in order|reverse|random): (.*)$", run.output, re.MULTILINE)}
    return times, float(re.search(r"^host: (.*)$", run.output, re.MULTILINE).group(1))


def main():
    options = parse()
    print(HEADER)
    for count in options.counts:
        native, native_host = measure(count, options, planned=False)
        planned, host = measure(count, options, planned=True)
        for order in native:
            cells = "".join(f"{before:8.0f}{after:8.0f}{after / before:8.2f}   " for before, after in zip(native[order], planned[order]))
            hosts = f"{native_host:7.0f}{host:7.0f}" if order == "in order" else ""
            print(f"{count:7}  {order:8}{cells}{hosts}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
