#!/usr/bin/env python3
"""The least footprint that is left where at most so much time is added, as a table in Markdown:

  footprints.py MEMOPTCTL [--added 0,1,5,10,20,30] [--limits 95,90,...,10] [--refine 2] [--seconds 5] [--swap MACHINE] [--keep FOLDER] FILE...

FILE is what `memoptctl plan --recompute` takes. It is compared within limits, percent of its peak load, and of all plans of a strategy
that add at most so many percent to the iteration the one with the least footprint counts (its own, not its limit): memopt's with so many
seconds for each limit, and that of the published strategy that needs least, with its name. Who does nothing needs the peak load, and adds
nothing; "none": no published strategy needs less. Between two limits there may be a better plan: for each row, so many times, all are asked
again at half way between what memopt needs and the next limit below, and within what the published strategy needs, if that is less (--refine). With --swap ours swap as well, by copies of MACHINE; what is
published computes again only. --keep: the comparisons stay in FOLDER, as NAME-footprints.json.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HEADS = ("instance", "peak load, MiB", "added, at most", "memopt, MiB", "of the peak", "published, MiB", "of the peak", "by")
MIB = 1 << 20


def percents(text):
    values = [float(part) for part in text.split(",")]
    if not all(0 <= value <= 1e6 for value in values):
        raise argparse.ArgumentTypeError(f"{text}: expected percents, none below 0")
    return values


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("memoptctl")
    parser.add_argument("--added", type=percents, default="0,1,5,10,20,30", metavar="PERCENT,...", help="of the iteration's time")
    parser.add_argument("--limits", type=percents, default=",".join(str(part) for part in range(95, 5, -5)), metavar="PERCENT,...", help="of the peak load")
    parser.add_argument("--refine", type=int, choices=range(10), default=2, metavar="TIMES", help="halve what lies between two limits so many times (default 2)")
    parser.add_argument("--seconds", default="5", help="of each search of memopt's own")
    parser.add_argument("--swap", metavar="MACHINE", help="swap as well: gtx1080ti, a100-40g, h200, or rates, as plan --machine takes them")
    parser.add_argument("--keep", metavar="FOLDER", help="where the comparisons stay")
    parser.add_argument("files", nargs="+", metavar="FILE")
    return parser.parse_args()


def named(path):
    """Of an instance; G10's tables all have the same name, in a folder with theirs."""
    base = os.path.basename(path)
    return os.path.basename(os.path.dirname(os.path.abspath(path))) if base.startswith("kernels.config") else base.split(".")[0]


def is_ours(strategy):
    return strategy == "memopt" or strategy.startswith("memopt:")


def compared(memoptctl, path, out, limits, seconds, *more):
    """What `plan --recompute --compare` writes. `limits` are as it takes them. Exits where it fails."""
    done = subprocess.run([memoptctl, "plan", path, "--recompute", "--compare", "--limits", ",".join(limits), "--time-budget", str(seconds),
                           "--json", out, *more], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {path}: {done.stderr.strip()}")
    with open(out, encoding="utf-8") as file:
        return json.load(file)


def least(table, strategies, percent):
    """(footprint, strategy) of the least footprint of plans of these that add at most so much; None: all need the peak load."""
    best = None
    for row in table["limits"]:
        for strategy in sorted(strategies):
            plan = row["plans"].get(strategy)
            if plan is None or plan["added_ns"] > percent / 100 * table["period_ns"] or plan["footprint"] >= table["peak_load"]:
                continue
            found = (plan["footprint"], plan["added_ns"], strategy)
            best = found if best is None else min(best, found)
    return best and (best[0], best[2])


def published(table):
    return sorted({strategy for row in table["limits"] for strategy in row["plans"] if not is_ours(strategy)})


def between(table, added):
    """Limits, in bytes, within which memopt may need less at these percents."""
    asked = {row["limit"] for row in table["limits"]}
    found = set()
    for percent in added:
        ours, theirs = (least(table, names, percent) for names in (["memopt"], published(table)))
        enough = ours[0] if ours else table["peak_load"]
        if theirs and theirs[0] < enough:
            found.add(theirs[0])
        below = max((limit for limit in asked if limit < enough), default=0)
        if enough - below > table["peak_load"] // 1000:
            found.add((enough + below) // 2)
    return sorted(found - asked)


def refined(table, added, times, compare):
    """The comparison, with `compare`'s rows of more limits (bytes, as text)."""
    for _ in range(times):
        limits = between(table, added)
        if not limits:
            break
        table["limits"] += compare([str(limit) for limit in limits])["limits"]
    return table


def rows_of(name, table, added):
    """Cells, as text."""
    peak = table["peak_load"]
    for percent in added:
        cells = [name, f"{peak / MIB:.2f}", f"{percent:g} %"]
        ours, theirs = (least(table, names, percent) for names in (["memopt"], published(table)))
        for found in (ours, theirs):
            footprint = found[0] if found else peak
            cells += [f"{footprint / MIB:.2f}", f"{100 * footprint / peak:.1f} %"]
        yield [*cells, theirs[1] if theirs else "none"]


def main():
    options = parse()
    limits = [f"{limit:g}%" for limit in options.limits]
    more = ("--swap", "--machine", options.swap) if options.swap else ()
    print("| " + " | ".join(HEADS) + " |\n|---|" + "---:|" * (len(HEADS) - 2) + "---|", flush=True)
    names = [named(path) for path in options.files]
    with tempfile.TemporaryDirectory() as folder:
        for path in options.files:
            name = named(path)
            if names.count(name) > 1 and options.keep:
                sys.exit(f"footprints.py: --keep: several files are called {name}")
            out = os.path.join(options.keep or folder, name + "-footprints.json")

            def compare(within, path=path, out=out):
                return compared(options.memoptctl, path, out, within, options.seconds, *more)
            table = refined(compare(limits), options.added, options.refine, compare)
            with open(out, "w", encoding="utf-8") as file:
                json.dump(table, file)
            for row in rows_of(name, table, options.added):
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
