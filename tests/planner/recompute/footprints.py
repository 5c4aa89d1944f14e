#!/usr/bin/env python3
"""The least footprint that is left where at most so much time is added, as a table in Markdown:

  footprints.py MEMOPTCTL [--added 0,1,5,10,20,30] [--limits 95,90,...,10] [--refine 2] [--seconds 5] [--patience 10] [--jobs 1] [--swap MACHINE]
                [--keep FOLDER] [--shared FOLDER] [--wide] [--assume reads|writes] INSTANCE...
  footprints.py MEMOPTCTL [OPTION]... --all

INSTANCE is a file that `memoptctl plan --recompute` takes, or of these one by name: dtr:NAME, a log for DTR's simulator (dtr/NAME.log.gz of the shared
folder; default: MEMOPT_SHARED); g10:NAME, a kernel table of G10's (its g10/NAME); nets:NAME@BATCH, a network of nets.py. --all: every log and table
there is, and the networks below. It is compared within limits, percent of its peak load, and of all plans of a strategy
that add at most so many percent to the iteration the one with the least footprint counts (its own, not its limit): memopt's with so many
seconds for each limit, and that of the published strategy that needs least, with its name. Who does nothing needs the peak load, and adds
nothing; "none": no published strategy needs less. Between two limits there may be a better plan: for each row, so many times, all are asked
again at half way between what memopt needs and the next limit below, and within what the published strategy needs, if that is less (--refine). With --swap ours swap as well, by copies of MACHINE; what is
published computes again only. --keep: the comparisons stay in FOLDER, as NAME-footprints.json; such a file is an instance, of which
nothing is asked again. --assume: of recordings and text traces,
as plan takes it. --wide: a row for each instance, with memopt's part of the peak load, and behind it the published one's.

Limits are asked from wide to narrow. A strategy that adds several times as much as any row allows, or, of a published one, for which the patience (seconds) is at an end,
is not asked within less: some policies of DTR compute the same again and again there, for minutes. --jobs: instances at a time, each with its own search.
"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

NETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "integration", "workloads", "nets", "nets.py")
# Batches: Zhang et al.'s of CIFAR-10, Chen et al.'s of 992 layers; of the others what a GPU of 16 GiB has room for.
NETWORKS = ("vgg11@100", "vgg13@100", "vgg16@100", "vgg19@100", "resnet18@100", "resnet34@100", "resnet50@100", "resnet101@100", "alexnet@128", "googlenet@128",
            "inception-resnet-v2@64", "seq2seq@64", "resnet992-imagenet@32")
TOO_MUCH = 3  # times the most that a row allows
HEADS = ("instance", "peak load, MiB", "added, at most", "memopt, MiB", "of the peak", "published, MiB", "of the peak", "by")
MIB = 1 << 20
KEPT = "-footprints.json"


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
    parser.add_argument("--patience", type=float, default=10, metavar="SECONDS", help="with a published strategy within one limit (default 10)")
    parser.add_argument("--jobs", type=int, choices=range(1, 65), default=1, metavar="N", help="instances at a time (default 1)")
    parser.add_argument("--keep", metavar="FOLDER", help="where the comparisons stay")
    parser.add_argument("--shared", metavar="FOLDER", default=os.environ.get("MEMOPT_SHARED"), help="with published logs (dtr/) and tables (g10/)")
    parser.add_argument("--wide", action="store_true", help="a row for each instance")
    parser.add_argument("--assume", choices=("reads", "writes"), help="of recordings and text traces")
    parser.add_argument("--all", action="store_true", help="all instances that have a name")
    parser.add_argument("instances", nargs="*", metavar="INSTANCE")
    options = parser.parse_intermixed_args()
    if options.all == bool(options.instances):
        parser.error("expected instances, or --all")
    return options


def all_instances(shared):
    """Names; says what is not there."""
    found = []
    for kind, ending in ("dtr", ".log.gz"), ("g10", ""):
        folder = os.path.join(shared or "", kind)
        names = [f"{kind}:{name.removesuffix(ending)}" for name in sorted(os.listdir(folder)) if name.endswith(ending) and (ending or os.path.isdir(os.path.join(folder, name)))] \
            if shared and os.path.isdir(folder) else []
        if not names:
            print(f"footprints.py: there is nothing published in {folder if shared else 'MEMOPT_SHARED, which is not set'}: left out", file=sys.stderr)
        found += names
    return found + ["nets:" + name for name in NETWORKS]


def path_of(instance, shared, folder):
    """Where it is; a network is written to the folder. Exits where there is no such instance."""
    kind, _, name = instance.partition(":")
    if kind in ("dtr", "g10") and name:
        if not shared:
            sys.exit(f"footprints.py: {instance}: --shared or MEMOPT_SHARED names the folder that it is in")
        path = os.path.join(shared, kind, name + ".log.gz") if kind == "dtr" else os.path.join(shared, kind, name, "kernels.config.gz")
        if not os.path.exists(path):
            sys.exit(f"footprints.py: {instance}: there is no {path}")
        return path
    if kind == "nets" and name:
        network = re.fullmatch(r"([a-z0-9-]+)@([0-9]+)", name)
        if not network:
            sys.exit(f"footprints.py: {instance}: expected nets:NAME@BATCH")
        path = os.path.join(folder, name + ".json")
        done = subprocess.run([sys.executable, NETS, network[1], "--batch", network[2], "--launches", "-o", path], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"footprints.py: {instance}: {done.stderr.strip().splitlines()[-1]}")
        return path
    return instance


def named(path):
    """Of an instance; G10's tables all have the same name, in a folder with theirs."""
    kind, _, name = path.partition(":")
    if kind in ("dtr", "g10", "nets") and name:
        return name
    base = os.path.basename(path).removesuffix(KEPT)
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


def wide_row(name, table, added):
    peak, cells = table["peak_load"], [name, f"{table['peak_load'] / MIB:.0f}"]
    for percent in added:
        ours, theirs = (least(table, names, percent) for names in (["memopt"], published(table)))
        cells.append(" / ".join(f"{100 * (found[0] if found else peak) / peak:.1f}" for found in (ours, theirs)))
    return cells


class Comparison:
    """What is found of one instance, limit by limit; like what `--compare` writes, but null where nothing was asked."""

    def __init__(self, options, path, out):
        self._options, self._path, self._out = options, path, out
        self._least_asked = {}  # by strategy: bytes, within which it is not asked any more
        self.table = self._ask("100%", None)
        (row,) = self.table["limits"]
        self._published = [name for name in row["plans"] if not is_ours(name)]

    def rows(self, limits):
        """Of these limits, as text, wide ones first."""
        return {"limits": [self._row(limit) for limit in sorted(limits, key=self._bytes, reverse=True)]}

    def _bytes(self, limit):
        return int(float(limit[:-1]) / 100 * self.table["peak_load"]) if limit.endswith("%") else int(limit)

    def _row(self, limit):
        size = self._bytes(limit)
        asked = [name for name in ["memopt", *self._published] if size > self._least_asked.get(name, -1)]
        found = {"limit": size, "plans": dict.fromkeys(["memopt", *self._published])}
        groups = [[name] for name in asked[:1] if name == "memopt"] + [[name for name in asked if name != "memopt"]]
        while groups:
            group = groups.pop()
            table = self._ask(limit, group) if group else None
            if table:
                found["limit"] = table["limits"][0]["limit"]
                found["plans"].update(table["limits"][0]["plans"])
            elif len(group) > 1:  # one of them takes long: each by itself
                groups += [[name] for name in group]
        for name in asked:
            plan = found["plans"][name]
            if plan is None or plan["added_ns"] > TOO_MUCH * max(self._options.added) / 100 * self.table["period_ns"]:
                self._least_asked[name] = max(size, self._least_asked.get(name, -1))
        return found

    def _ask(self, limit, strategies):
        """A comparison of these, or of all by default; None where patience was at an end."""
        options = self._options
        more, patience = ["--strategies", ",".join(strategies)] if strategies else [], None
        if strategies and "memopt" not in strategies:
            patience = options.patience
        else:
            more += ["--time-budget", options.seconds]
            more += ["--swap", "--machine", options.swap] if options.swap else []
        more += ["--assume", options.assume] if options.assume else []
        if "--swap" not in more:
            more.append("--no-bound")
        try:
            done = subprocess.run([options.memoptctl, "plan", self._path, "--recompute", "--compare", "--limits", limit, "--json", self._out, *more], capture_output=True,
                                  text=True, check=False, timeout=patience)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0:
            sys.exit(f"footprints.py: {self._path}: {done.stderr.strip()}")
        with open(self._out, encoding="utf-8") as file:
            return json.load(file)


def lines(options, name, table):
    rows = [wide_row(name, table, options.added)] if options.wide else rows_of(name, table, options.added)
    return ["| " + " | ".join(row) + " |" for row in rows]


def rows_of_instance(options, instance):
    """Text, a line for each row."""
    name = named(instance)
    if instance.endswith(KEPT):
        with open(instance, encoding="utf-8") as file:
            return lines(options, name, json.load(file))
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(options, path_of(instance, options.shared, folder), os.path.join(folder, "comparison.json"))
        table = comparison.table
        table["limits"] += comparison.rows([f"{limit:g}%" for limit in options.limits])["limits"]
        refined(table, options.added, options.refine, comparison.rows)
        if options.keep:
            with open(os.path.join(options.keep, name + KEPT), "w", encoding="utf-8") as file:
                json.dump(table, file)
        return lines(options, name, table)


def main():
    options = parse()
    instances = all_instances(options.shared) if options.all else options.instances
    names = [named(instance) for instance in instances]
    for name in names:
        if names.count(name) > 1 and options.keep:
            sys.exit(f"footprints.py: --keep: several files are called {name}")
    heads, last = (["instance", "peak load, MiB", *(f"{percent:g} %" for percent in options.added)], "---:|") if options.wide else (HEADS, "---|")
    print("| " + " | ".join(heads) + " |\n|---|" + "---:|" * (len(heads) - 2) + last, flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as workers:
        found = [workers.submit(rows_of_instance, options, instance) for instance in instances]
        try:
            for rows in found:
                print("\n".join(rows.result()), flush=True)
        except BaseException:
            workers.shutdown(wait=False, cancel_futures=True)
            raise


if __name__ == "__main__":
    main()
