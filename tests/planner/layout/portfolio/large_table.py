#!/usr/bin/env python3
"""What memoptctl solve makes of large problems in little time: prints a table.

usage: large_table.py MEMOPTCTL [TRACE...]

Random: so many buffers of up to 1 MiB, begins and ends at random; short ones live for up to 584 of the times. Epochs: the iteration that `memoptctl plan TRACE` finds, twenty times, and
something behind the last one; beside it the iteration alone. Seconds are of the solver, with two threads."""
import csv
import io
import json
import os
import random
import subprocess
import sys
import tempfile

STEPS = 20
SECONDS = {"random": (0.01, 1, 10), "step": (0.5,), "epoch": (0.1, 0.5, 2)}


def random_lifetimes(count, most=None, seed=1):
    source = random.Random(seed)
    lines = ["id,lower,upper,size"]
    for number in range(count):
        lower, upper = sorted((source.randrange(2 * count), source.randrange(2 * count)))
        if most:
            upper = lower + source.randrange(most)
        lines.append(f"{number},{lower},{upper + 1},{source.randrange(1, 1 << 20)}")
    return "\n".join(lines) + "\n"


def epoch_of(step, steps=STEPS):
    """A step's layout problem (CSV) again and again; what is needed over its end lives on in the next one."""
    rows = list(csv.DictReader(io.StringIO(step)))
    length = max(int(row["upper"]) for row in rows)
    end = steps * length + 2
    lines = ["id,lower,upper,size,gaps"]

    def add(size, lower, upper, gap=""):
        lines.append(f"{len(lines)},{lower},{upper},{size},{gap}")

    for row in rows:
        lower, upper, size = int(row["lower"]), int(row["upper"]), row["size"]
        gaps = [tuple(map(int, gap.split("-"))) for gap in (row.get("gaps") or "").split()]
        if not gaps and (lower, upper) == (0, length):
            add(size, 0, end)
        elif not gaps:
            for k in range(steps):
                add(size, lower + k * length, upper + k * length)
        else:
            until, again = gaps[0][0], gaps[-1][1]
            add(size, 0, end, f"{until}-{again + (steps - 1) * length}")
            for k in range(steps - 1):
                add(size, again + k * length, until + (k + 1) * length)
    add(3 << 20, end - 2, end - 1)
    return "\n".join(lines) + "\n"


def solve(memoptctl, path, seconds):
    done = subprocess.run([memoptctl, "solve", path, "--json", "--time-limit", str(seconds), "--threads", "2"], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    memoptctl, traces = os.path.abspath(sys.argv[1]), sys.argv[2:]
    print("| problem | buffers | s asked for | height / load | by | s |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "problem.csv")

        def row(name, kind, text):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            for seconds in SECONDS[kind]:
                found = solve(memoptctl, path, seconds)
                print(f"| {name} | {found['buffers']:,} | {seconds} | {found['ratio']:.6f} | {found['by']} | {found['seconds']:.2f} |", flush=True)

        for count in (100_000, 1_000_000):
            row("random lifetimes", "random", random_lifetimes(count))
            row("short random lifetimes", "random", random_lifetimes(count, 584))
        for trace in traces:
            subprocess.run([memoptctl, "plan", trace, "--buffers", path], check=True, stdout=subprocess.DEVNULL)
            with open(path, encoding="utf-8") as file:
                step = file.read()
            name = os.path.basename(trace).split(".")[0]
            row(name, "step", step)
            row(f"{name}, {STEPS} times", "epoch", epoch_of(step))


if __name__ == "__main__":
    main()
