#!/usr/bin/env python3
"""Prints what many threads that allocate, copy and free at once cost, on the simulated driver alone and under memopt.

usage: contention.py [--threads N,...] [--rounds N] [--repeat N]

Seconds of `order_cases threads` (tests/planning/programs/order_cases.cpp: each thread on a stream of its own, two blocks a round), the least of several runs
that take turns, and the ratios. The processors' seconds say more than the clock's on a busy machine. TEST_BUILD names the build folder
(default: build/release of this checkout)."""
import argparse
import os
import resource
import sys
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("TEST_SOURCE", SOURCE)
os.environ.setdefault("TEST_BUILD", os.path.join(SOURCE, "build", "release"))
sys.path.insert(0, os.path.join(SOURCE, "tests", "tools"))

import runs  # noqa: E402 (it reads the environment)

MODES = {"native": {"planned": False}, "memopt": {"planned": True}, "MEMOPT_PLAN=0": {"planned": True, "MEMOPT_PLAN": "0"}}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="10,100,200", metavar="N,...", help="(default 10,100,200)")
    parser.add_argument("--rounds", type=int, default=1000, metavar="N", help="of each thread (default 1000)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each (default 3)")
    options = parser.parse_args()
    try:
        options.threads = [int(text) for text in options.threads.split(",")]
    except ValueError:
        options.threads = []
    if not options.threads or min(options.threads + [options.rounds, options.repeat]) < 1:
        parser.error("expected numbers above 0")
    return options


def measure(threads, rounds, settings):
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run = runs.Run([runs.ORDER, "threads", threads, rounds], MEMOPT_SYNC_PLAN=None, CUDASIM_CHECK="off", **settings)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.code != 0 or run.output != "wrong words: 0\n":
        sys.exit(run.output + run.errors)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    options = parse()
    print(f"{'threads':>7}  {'':13} {'s':>8} {'ratio':>7} {'s of processors':>16} {'ratio':>7}")
    for threads in options.threads:
        best = {mode: (float("inf"), float("inf")) for mode in MODES}
        for _ in range(options.repeat):
            for mode, settings in MODES.items():
                best[mode] = tuple(map(min, best[mode], measure(threads, options.rounds, settings)))
        for mode, times in best.items():
            ratios = [one / native for one, native in zip(times, best["native"])]
            print(f"{threads:7}  {mode:13} {times[0]:8.2f} {ratios[0]:7.2f} {times[1]:16.2f} {ratios[1]:7.2f}", flush=True)


if __name__ == "__main__":
    main()
