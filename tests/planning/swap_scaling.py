#!/usr/bin/env python3
"""Prints what a swap plan takes and gives for made-up iterations of growing size (tests/planner/swap/command/layered_iteration.py).

usage: swap_scaling.py [--layers N,...] [--time-budget S] [--plot OUT.svg]

First plan: the whole process with the smallest budget, 0.05 s: reading, a greedy choice, a layout, checks. Better plan: with
--time-budget. Memory: the largest resident size of that process. TEST_BUILD names the build folder (default: build/release of this
checkout)."""
import argparse
import math
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
    parser.add_argument("--plot", metavar="OUT.svg", help="draw time and memory over operations")
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


def marks(highest):
    """Round numbers from 0 on, at most six, the last at least `highest`."""
    step = 10 ** math.floor(math.log10(highest / 5))
    step = next(step * factor for factor in (1, 2, 5, 10, 20) if step * factor * 5 >= highest)
    return [step * k for k in range(math.ceil(highest / step) + 1)]


def drawing(rows):
    """Two charts over the number of operations: seconds, MiB."""
    width, height, left, top, gap = 720, 300, 64, 40, 90
    across = marks(max(row["operations"] for row in rows))
    charts = (("first plan: seconds of the whole process", [("first_seconds", "#d1495b")]),
              ("MiB: memory of the planner", [("memory", "#00798c")]))
    parts = []
    for number_of_chart, (title, lines) in enumerate(charts):
        y0 = top + number_of_chart * (height + gap)
        up = marks(max(row[name] for row in rows for name, _ in lines))
        parts.append(f'<text x="{left}" y="{y0 - 12}" font-weight="bold">{title}</text>')
        for value in up:
            y = y0 + height * (1 - value / up[-1])
            parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" stroke="#8884"/>'
                         f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>')
        for value in across:
            parts.append(f'<text x="{left + width * value / across[-1]:.1f}" y="{y0 + height + 18}" text-anchor="middle">{value:,.0f}</text>')
        parts.append(f'<text x="{left + width / 2}" y="{y0 + height + 38}" text-anchor="middle">operations of an iteration</text>')
        for name, colour in lines:
            points = [(left + width * row["operations"] / across[-1], y0 + height * (1 - row[name] / up[-1])) for row in rows]
            parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>')
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + left + 40}" height="{2 * (height + gap) + 20}" font-family="sans-serif" '
            'font-size="13" fill="#888">\n' + "\n".join(parts) + "\n</svg>\n")


def main():
    options = parse()
    print(HEADER, flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for layers in options.layers:
            row = measure(layers, options.time_budget, folder)
            rows.append(row)
            print(f"{row['operations']:10} {row['blocks']:9} {row['without']:9.1f} {row['first']:8.1f} {row['first_seconds']:7.2f} {row['better']:7.1f} "
                  f"{row['better'] / row['without']:7.3f} {row['seconds']:7.2f} {row['memory']:10.0f}", flush=True)
    if options.plot:
        with open(options.plot, "w", encoding="utf-8") as file:
            file.write(drawing(rows))


if __name__ == "__main__":
    main()
