#!/usr/bin/env python3
"""Prints, as a table in Markdown, what G10's two iterations take within 40 GiB by plans of ours, beside what was published for them.

usage: g10_table.py --build FOLDER [--shared FOLDER] [--time-budget S] [--bound-time S] [--limit SIZE]

The iterations are G10's own tables (platformxlab/G10, MICRO 2023: kernel times of an A100), FOLDER/g10 of MEMOPT_SHARED, made iterations by
its tools/from_g10.py. Copies go at 15.754 GB/s each way, G10's host link. Ours swap to host memory alone; G10's simulation has an SSD
behind it, which takes what host memory does not. memopt: S seconds of search (60). AutoSwap: the best of its four scores. UVM, our model:
uvm_model.py. The bound is below all plans, "-" where S seconds (600) are not enough for it. Exit code 1: something is missing."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import uvm_model  # noqa: E402 (it is in this room)

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("MEMOPT_SHARED") or os.path.join(os.path.dirname(SOURCE), "shared")
# Seconds an iteration with 40 GB of device memory, in G10's own simulation.
PUBLISHED = {"BERT-256": {"UVM": 19.65, "FlashNeuron": 10.22, "DeepUM": 9.16, "G10": 7.31},
             "ViT-1280": {"UVM": 24.60, "DeepUM": 7.56, "G10": 5.54}}
AUTOSWAP = ("autoswap:doa", "autoswap:aoa", "autoswap:wdoa", "autoswap:swdoa")
HEADS = ["", "no limit", "peak load, GiB", "UVM, published", "FlashNeuron, published", "DeepUM, published", "G10, published", "UVM, our model",
         "AutoSwap", "memopt", "bound"]


def seconds(nanoseconds):
    return f"{nanoseconds / 1e9:.2f}" if nanoseconds is not None else "-"


def row_of(name, options, folder):
    shared, limit = options.shared, options.limit
    iteration = os.path.join(folder, name + ".json")
    subprocess.run([sys.executable, os.path.join(shared, "tools", "from_g10.py"), os.path.join(shared, "g10", name), "-o", iteration],
                   check=True, stdout=subprocess.DEVNULL)
    compared = os.path.join(folder, name + ".compared.json")
    subprocess.run([os.path.join(options.build, "bin", "memoptctl"), "plan", iteration, "--compare", "--limits", str(limit),
                    "--strategies", ",".join(("memopt", *AUTOSWAP)), "--time-budget", str(options.time_budget),
                    "--bound-time", str(options.bound_time), "--json", compared], check=True, stdout=subprocess.DEVNULL)
    with open(compared, encoding="utf-8") as file:
        found = json.load(file)
    problem = uvm_model.read(iteration)
    rates = problem["machine"]
    stalled = uvm_model.stall_ns(problem, limit, rates["out_bytes_per_ns"], rates["in_bytes_per_ns"], uvm_model.FAULT_US * 1e3)
    at_limit = found["limits"][0]
    period = found["period_ns"]
    added = {each["strategy"]: each.get("added_ns") for each in at_limit["plans"]}
    ours = added.get("memopt")
    auto = [added[each] for each in AUTOSWAP if added.get(each) is not None]
    published = PUBLISHED[name]
    return [name, seconds(period), f"{found['peak_load'] / (1 << 30):.1f}", *(f"{published[which]:.2f}" if which in published else "-"
                                                                            for which in ("UVM", "FlashNeuron", "DeepUM", "G10")),
            seconds(period + stalled[0]) if stalled else "-", seconds(period + min(auto)) if auto else "-",
            seconds(period + ours) if ours is not None else "-",
            seconds(period + at_limit["least_added_ns_bound"]) if at_limit.get("least_added_ns_bound") is not None else "-"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--shared", default=SHARED)
    parser.add_argument("--time-budget", type=uvm_model.above_zero, default=60)
    parser.add_argument("--bound-time", type=uvm_model.above_zero, default=600)
    parser.add_argument("--limit", type=uvm_model.size_of, default=40 << 30)
    arguments = parser.parse_args()
    for needed in (os.path.join(arguments.shared, "g10"), os.path.join(arguments.shared, "tools", "from_g10.py")):
        if not os.path.exists(needed):
            print(f"g10_table.py: {needed}: not there; --shared or MEMOPT_SHARED says where", file=sys.stderr)
            return 1
    print("| " + " | ".join(HEADS) + " |\n|---|" + "---:|" * (len(HEADS) - 1))
    with tempfile.TemporaryDirectory() as folder:
        for name in PUBLISHED:
            print("| " + " | ".join(row_of(name, arguments, folder)) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
