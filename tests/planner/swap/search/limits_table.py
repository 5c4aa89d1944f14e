#!/usr/bin/env python3
"""What `memoptctl plan` adds to an iteration within limits from wide to narrow, by several seeds and times:

  limits_table.py MEMOPTCTL [--limits 90,80,...] [--times 1,4 | --attempts 64,256] [--seeds 1,2] [--remap-times none,0,74] TRACE[@MACHINE]...

One line for each trace, time or number of attempts, seed and time of mapping a chunk anew: MiB at no added time; then milliseconds added, or (N) where no plan was
found: the least limit that is named, in MiB. Behind it how many pairs of limits are the wrong way round: the wider one has no plan, or one
that adds more (by seconds, 2 % and 0.05 ms are nothing; by attempts there may be none, and the exit code is 1 if there are).
"""
import argparse
import itertools
import os
import re
import subprocess
import sys

LIMITS = "90,80,70,60,55,50,45,40,37.5,35,30"


def numbers(text):
    return text.split(",")


def added(command):
    """Milliseconds; or None, and the least limit that is named, in MiB."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return float(re.search(r"^added time +([\d.]+) ms", done.stdout, re.MULTILINE).group(1)), None
    named = re.search(r"the least feasible limit it reaches is .* \((\d+) bytes\)", done.stderr)
    if done.returncode != 3 or not named:
        sys.exit(f"limits_table: {' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return None, int(named.group(1)) / 2**20


def footprint(command):
    """MiB, at no added time."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"limits_table: {' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return float(re.search(r"^footprint +([\d.]+) MiB", done.stdout, re.MULTILINE).group(1))


def wrong_way_round(cells, exactly=False):
    """Of added times by limit, the widest first; None: no plan."""
    return sum(1 for i, wide in enumerate(cells) for narrow in cells[i + 1:]
               if narrow is not None and (wide is None or wide > (narrow if exactly else 1.02 * narrow + 0.05)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("memoptctl")
    parser.add_argument("--limits", type=numbers, default=numbers(LIMITS), help="percent of the peak load, the widest first")
    how_long = parser.add_mutually_exclusive_group()
    how_long.add_argument("--times", type=numbers, default=["1"], help="seconds of each search")
    how_long.add_argument("--attempts", type=numbers, default=[], help="of each search, instead of seconds")
    parser.add_argument("--seeds", type=numbers, default=["1", "2"])
    parser.add_argument("--remap-times", type=numbers, default=["none"], help="microseconds for each chunk; none: all return to where they were")
    parser.add_argument("traces", nargs="+", metavar="TRACE[@MACHINE]")
    options = parser.parse_args()
    counted = bool(options.attempts)
    print(f"{'':28}{'N' if counted else 's':>5}{'seed':>5}{'remap':>6}{'MiB':>9}" + "".join(f"{limit + ' %':>9}" for limit in options.limits) + "  wrong")
    total = 0
    for trace in options.traces:
        path, _, machine = trace.partition("@")
        name = os.path.basename(path)[:18] + ("@" + machine[:8] if machine else "")
        for budget, seed, remap in itertools.product(options.attempts or options.times, options.seeds, options.remap_times):
            print(f"{name:28}{budget:>5}{seed:>5}{remap:>6}", end="", flush=True)
            plan = [options.memoptctl, "plan", path, "--no-bound", "--attempts" if counted else "--time-budget", budget, "--seed", seed,
                    *(["--machine", machine] if machine else []), *(["--remap-time", remap] if remap != "none" else [])]
            print(f"{footprint(plan):>9.1f}", end="", flush=True)
            cells = []
            for limit in options.limits:
                time, named = added([*plan, "--limit", limit + "%", "--objective", "time"])
                cells.append(time)
                print(f"{f'({named:.1f})' if time is None else f'{time:.2f}':>9}", end="", flush=True)
            wrong = wrong_way_round(cells, exactly=counted)
            total += wrong
            print(f"{wrong:>7}", flush=True)
    print(f"pairs of limits the wrong way round: {total}")
    return 1 if counted and total != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
