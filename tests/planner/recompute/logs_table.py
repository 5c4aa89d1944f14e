#!/usr/bin/env python3
"""Plans of `memoptctl plan FILE --recompute` by all strategies, and whether the judge of these tests, which shares no code with it, accepts them:

  logs_table.py MEMOPTCTL [--limits 70,50,40] [--seconds 1] [--strategies A,B] [--swap MACHINE] [--places] [--episodes N] FILE...

One line for each file and limit: what each strategy's plan adds by the judge, percent of the iteration; -: no plan. Behind it how many were
accepted. Exit code 1 if one was not, or if it adds something else than was printed.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import recompute_judge

STRATEGIES = ("memopt", "dtr", "dtr:eq", "dtr:local", "dtr:lru", "dtr:size", "dtr:msps", "chen:sqrt", "chen:budget", "chen:recursive",
              "chen:drop-cheap")


def planned(options, log, limit, strategy, out):
    """Nanoseconds that are added, and of an iteration; None: no plan. Exits where it is not accepted."""
    more = ["--swap", "--machine", options.swap] if options.swap else ["--no-bound"]
    if options.places:
        more.append("--places")
    if strategy.startswith("memopt"):
        more += ["--time-budget", options.seconds]
    elif strategy.startswith("dqn") and options.episodes:
        more += ["--episodes", options.episodes]
    done = subprocess.run([options.memoptctl, "plan", log, "--recompute", "--limit", f"{limit}%", "--strategy", strategy, "--json", out, *more],
                          capture_output=True, text=True, check=False)
    if done.returncode == 3:
        return None
    if done.returncode != 0:
        sys.exit(f"logs_table: {log}, {limit} %, {strategy}: {done.stderr.strip()}")
    with open(out, encoding="utf-8") as file:
        plan = json.load(file)
    try:
        judged = recompute_judge.judge(plan)
    except recompute_judge.Invalid as why:
        sys.exit(f"logs_table: {log}, {limit} %, {strategy}: does not hold: {why}")
    printed = float(re.search(r"(?m)^added time +([\d.]+) ms", done.stdout).group(1))
    if abs(printed - judged["added_ns"] / 1e6) > 0.001:
        sys.exit(f"logs_table: {log}, {limit} %, {strategy}: {printed} ms were printed, {judged['added_ns'] / 1e6} ms are added")
    return 100 * judged["added_ns"] / plan["period"] if plan["period"] else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("memoptctl")
    parser.add_argument("--limits", default="70,50,40", help="percent of the peak load")
    parser.add_argument("--seconds", default="1", help="of each search of memopt's own")
    parser.add_argument("--strategies", default=",".join(STRATEGIES), help="all but checkmate, which takes minutes")
    parser.add_argument("--swap", metavar="MACHINE", help="swap as well: gtx1080ti, a100-40g, h200, or rates, as plan --machine takes them")
    parser.add_argument("--places", action="store_true", help="a layout within the limit, not the load alone")
    parser.add_argument("--episodes", metavar="N", help="of dqn and dqn:transfer, in place of their own times")
    parser.add_argument("logs", nargs="+", metavar="FILE")
    options = parser.parse_args()
    strategies = options.strategies.split(",")
    print(f"{'':24}{'limit':>6}" + "".join(f"{name:>16}" for name in strategies), flush=True)
    accepted = cases = 0
    with tempfile.TemporaryDirectory() as folder:
        for log in options.logs:
            for limit in options.limits.split(","):
                print(f"{os.path.basename(log)[:23]:24}{limit + ' %':>6}", end="", flush=True)
                for strategy in strategies:
                    added = planned(options, log, limit, strategy, os.path.join(folder, "plan.json"))
                    cases += 1
                    accepted += added is not None
                    print(f"{'-' if added is None else f'{added:.2f}':>16}", end="", flush=True)
                print()
    print(f"plans that were found, all accepted: {accepted} of {cases}")


if __name__ == "__main__":
    main()
