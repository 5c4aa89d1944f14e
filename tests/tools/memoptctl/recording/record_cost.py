#!/usr/bin/env python3
"""What `memoptctl record` costs a program on the simulated device: a row of wall time, virtual time and bytes.

usage: record_cost.py MEMOPTCTL [--times N] -- PROGRAM [ARGUMENT...]

The program is run N times (default: 5), in turn natively (`run --native`), under memopt with its planner (`run`), and recorded. Wall times are the
medians; virtual time is the host's clock at the end, as the simulated driver reports it. Bytes an operation: the file's, of all records in it. Exit code 1:
a run failed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import simulated  # noqa: E402


def run(command, folder):
    """Wall seconds and virtual milliseconds."""
    report = os.path.join(folder, "report")
    begin = time.monotonic()
    done = subprocess.run(command, env=simulated.clean_environment() | {"CUDASIM_REPORT": report}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    wall = time.monotonic() - begin
    if done.returncode != 0:
        sys.exit(f"record_cost.py: {' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    with open(report, encoding="utf-8") as file:
        return wall, json.load(file)["host_end_ns"] / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("memoptctl")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recording = os.path.join(folder, "recording")
        sim = ["--sim", "a100-40g"]
        ways = {"natively": ["run", *sim, "--native"], "under memopt": ["run", *sim], "recorded": ["record", "--force", "-o", recording, *sim]}
        found = {way: [] for way in ways}
        for _ in range(options.times):
            for way, words in ways.items():
                found[way].append(run([options.memoptctl, *words, "--", *options.program], folder))
        size = os.path.getsize(recording)
        shown = json.loads(subprocess.run([options.memoptctl, "show", "--json", recording], check=True, capture_output=True, text=True).stdout)
    native = [statistics.median(values) for values in zip(*found["natively"], strict=True)]
    print("| run | wall, s | to natively | virtual, ms | to natively |\n|---|---:|---:|---:|---:|")
    for way, runs in found.items():
        wall, virtual = (statistics.median(values) for values in zip(*runs, strict=True))
        print(f"| {way} | {wall:.3f} | {wall / native[0]:.3f} | {virtual:.3f} | {virtual / native[1]:.3f} |")
    print(f"\n{shown['records']} records in {size} bytes: {size / shown['records']:.1f} bytes each")


if __name__ == "__main__":
    main()
