#!/usr/bin/env python3
"""Prints, as a table in Markdown, what a step of a program costs that keeps to a limit by swapping, on the simulated device.

usage: limit_steps.py --steps N --limits L,... [--device NAME] -- COMMAND ...

The program is run under memopt without a limit, and with each limit (930M, 60MiB, 75%): without a planner, so that all swaps are made
on demand, and with one beside it. Time: virtual, of the whole run, start and end included, divided by N. Expected: what the plan that went
live last says of an iteration; an iteration need not be a step. Held: the most that memopt held at any time of the run with a planner, by
its last line. --wait: with a planner that is waited for (MEMOPT_SYNC_PLAN=1). TEST_BUILD names the build folder (default: build/release
of this checkout; of another one, to compare). Exit code 1: a run failed, or what it printed last differs from the run without a limit."""
import argparse
import json
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

PLAN = re.compile(r"swaps an iteration of ([\d.]+) ms, to which they are expected to add ([\d.]+)")
LAST = re.compile(r"^memopt: limit [^:]*: ([\d.]+ \w+) held at most;[^\n]*", re.MULTILINE)
MADE = re.compile(r"; (\d+) swaps as planned, (\d+) not")
LIVE = re.compile(r"^memopt: plan live at iteration (\d+)", re.MULTILINE)


def run(options, limit=None, **more):
    """(ms a step, standard error, last line)"""
    environment = {**os.environ, "MEMOPT_LOG": "info", **more}
    with tempfile.NamedTemporaryFile("r") as report:
        limited = ["--limit", limit] if limit else []
        done = subprocess.run([runs.MEMOPTCTL, "run", "--sim", options.device, *limited, "--", *options.command], text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, env={**environment, "CUDASIM_REPORT": report.name})
        if done.returncode != 0:
            sys.exit(f"limit_steps: {options.command[0]}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        lines = done.stdout.strip().splitlines()
        return json.load(report)["host_end_ns"] / 1e6 / options.steps, done.stderr, lines[-1] if lines else ""


def row(options, limit, roomy):
    demand, _, last = run(options, limit, **runs.WITHOUT_A_PLANNER)
    waits = {"MEMOPT_SYNC_PLAN": "1"} if options.wait else {}
    planned, errors, last_planned = run(options, limit, MEMOPT_PLANNER_NAME=runs.PLANNER_NAME, **waits)
    said, made, live, plans = LAST.search(errors), MADE.search(errors), LIVE.search(errors), PLAN.findall(errors)
    held = said.group(1) if said else "-"
    passed = " (passed)" if said and "passed by" in said.group(0) else ""
    expected = f"{sum(map(float, plans[-1])):.2f}" if plans else "-"
    print(f"| {limit} | {held}{passed} | {roomy[0]:.2f} | {demand:.2f} | {planned:.2f} | {expected} | {live.group(1) if live else '-'} | "
          f"{made.group(1) + ' / ' + made.group(2) if made else '-'} |", flush=True)
    return {last, last_planned} == {roomy[2]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, required=True, metavar="N")
    parser.add_argument("--limits", required=True, metavar="L,...")
    parser.add_argument("--device", default="a100-40g", metavar="NAME")
    parser.add_argument("--wait", action="store_true")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps: expected a number above 0")
    print("| limit | held | ms a step without a limit | on demand | planned | expected of an iteration | plan live at iteration | "
          "swaps as planned / not |\n|---|---:|---:|---:|---:|---:|---:|---:|")
    roomy = run(options, MEMOPT_PLANNER_NAME=runs.PLANNER_NAME)
    same = [row(options, limit, roomy) for limit in options.limits.split(",")]
    if not all(same):
        sys.exit("limit_steps: the program printed something else than without a limit")


if __name__ == "__main__":
    main()
