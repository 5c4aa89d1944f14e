#!/usr/bin/env python3
"""What PyTorch's programs cost below their peak load, on the simulated device: prints a table, and writes it as a page.

The programs are those of tests/data/recordings/recordings.txt, run as frameworks_table.py runs them. Each runs natively with
cudaMallocAsync, which tells its peak load, then under memopt by the same route with a limit of a part of that: without a planner, so that
all swaps are made on demand, and with one that is waited for; and, in shorter runs in which launches read and rewrite 64 bytes of each 4 KiB that they name,
for its contents, in the nominal order and under adversaries. What a run has shown is kept in the build folder, so that a table
that was interrupted goes on. TEST_BUILD names the build folder (default: build/release of this checkout). Exit code 1: a program has
failed, has passed its limit, or its contents were not equal."""
import argparse
import concurrent.futures
import os
import re
import sys

import figures
import frameworks_table
import page
import program_runs

HELD = re.compile(r"^memopt: limit [^:]*: ([\d.]+) (MiB|GiB) held at most;[^\n]*", re.MULTILINE)
MADE = re.compile(r"; (\d+) swaps as planned, (\d+) not")
EXPECTED = re.compile(r"(\d+) swaps an iteration of ([\d.]+) ms, to which they are expected to add ([\d.]+)")
LIVE = re.compile(r"^memopt: plan live at iteration (\d+)", re.MULTILINE)
LEAST = re.compile(r"no swaps were found that keep to [\d.]+ MiB; the least so far is ([\d.]+) MiB")
NEEDED = re.compile(r"no swaps can keep to [\d.]+ MiB: one operation uses ([\d.]+) MiB, beside ([\d.]+) MiB that stay")
ROUTE = "async"
NATIVE = "driver"


def parse(known):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=parts_of, default=[75, 50], metavar="P,...", help="of the peak load, in percent (default 75,50)")
    parser.add_argument("--seeds", type=lambda text: text.split(","), default=["none", "1"], metavar="S,...",
                        help="orders for contents: none, or an adversary's number (default none,1)")
    return frameworks_table.parse_common(parser, known, steps=40, contents_steps=12, kept="limits-table")


def parts_of(text):
    parts = [int(part) if part.isdigit() else 0 for part in text.split(",")]
    if not all(0 < part < 100 for part in parts):
        raise argparse.ArgumentTypeError("expected numbers from 1 to 99")
    return parts


def limited(part, limit, options):
    """The runs with a limit."""
    ours = program_runs.by_route(ROUTE, False) | {"MEMOPT_LIMIT": str(limit), "MEMOPT_LOG": "info"}
    alone = ours | {"MEMOPT_PLANNER": "/bin/false", "MEMOPT_SYNC_PLAN": "0"}
    made = [program_runs.Configuration(f"{part}-{what}", options.steps, environment | program_runs.WITHOUT_BYTES, memopt=True, decisions="decisions")
            for what, environment in (("demand", alone), ("planned", ours))]
    for seed in options.seeds if not options.no_contents else []:
        order = {} if seed == "none" else {"CUDASIM_SEED": seed}
        made.append(program_runs.Configuration(f"{part}-contents-{seed}", options.contents_steps, ours | program_runs.WITH_BYTES | order,
                                               memopt=True, decisions=program_runs.AGREED))
    return made


def run_program(runner, program, options, progress):
    """All results of a program, by configuration, and its limits by part."""
    decided = max(options.steps, options.contents_steps)
    native = [*program_runs.deciding(decided), *(c for c in program_runs.measuring(options.steps) if c.name == NATIVE)]
    if not options.no_contents:
        native.append(program_runs.comparing(options.contents_steps, "none")[0])
    results = frameworks_table.run_in_turn(runner, program, native, progress, options.from_kept)
    if "failed" in results[NATIVE]:
        return results, {}
    load = figures.Measured(results[NATIVE], options.steps).load
    limits = {part: load * part // 100 for part in options.parts}
    configurations = [limited(part, limit, options) for part, limit in limits.items()]
    timed = [one for each in configurations for one in each[:2]]
    results |= frameworks_table.run_in_turn(runner, program, timed, progress, options.from_kept)
    # Words that one of them does not find count in none of them, the native one included.
    compared = native[-1:] + [one for each in configurations for one in each[2:]] if not options.no_contents else []
    return results | frameworks_table.compare_in_turn(runner, program, compared, progress, options.from_kept), limits


class Row:
    """A program with a limit: what its runs have shown."""

    def __init__(self, name, part, limit, results, options):
        self.name, self.part, self.limit = name, part, limit
        wanted = [NATIVE, f"{part}-demand", f"{part}-planned"]
        self.failed = {which: results[which]["failed"] for which in wanted if "failed" in results[which]}
        self.native, self.demand, self.planned = (None if which in self.failed else figures.Measured(results[which], options.steps)
                                                  for which in wanted)
        errors = results[wanted[2]].get("stderr", "")
        held, made, expected, live = HELD.search(errors), MADE.search(errors), EXPECTED.findall(errors), LIVE.search(errors)
        self.held = held and float(held.group(1)) * (figures.MIB << (10 if held.group(2) == "GiB" else 0))
        self.passed = held is None or "passed by" in held.group(0)
        self.made = made and made.groups()
        self.expected = expected[-1] if expected else None
        self.live = live and int(live.group(1))
        least = LEAST.findall(errors)
        self.least = float(least[-1]) if least and not made else None
        needed = NEEDED.findall(errors)
        self.needed = sum(map(float, needed[-1])) if needed and not made else None
        self.contents = {}
        for seed in options.seeds if not options.no_contents else []:
            run = results[f"{part}-contents-{seed}"]
            self.contents[seed] = figures.difference(results["contents"], run)

    def cells(self):
        def ms(run):
            return f"{run.step_ns / 1e6:,.2f}" if run else "**failed**"
        equal = sum(1 for text in self.contents.values() if text == "equal")
        contents = f"{equal} of {len(self.contents)}" if equal == len(self.contents) else f"**{equal} of {len(self.contents)}**"
        load = figures.mib(self.native.load) if self.native else "-"
        held = "-" if not self.held else f"{figures.mib(self.held)}" if not self.passed else f"**{figures.mib(self.held)}, passed**"
        expected = f"{float(self.expected[1]):,.2f} + {float(self.expected[2]):,.2f}" if self.expected else "-"
        expected = f"none; {self.least:,.1f} MiB" if self.least else expected
        expected = f"none can; {self.needed:,.1f} MiB" if self.needed else expected
        made = f"{int(self.made[0]):,} / {int(self.made[1]):,}" if self.made else "-"
        return [self.name, f"{self.part} %", load, figures.mib(self.limit), held, ms(self.native), ms(self.demand), ms(self.planned), expected, made,
                contents if self.contents else "-"]

    def faults(self):
        found = [f"`{self.name}` at {self.part} %, {which}: {why}" for which, why in self.failed.items()]
        if self.planned and self.passed:
            why = ", where no plan can be within it" if self.needed else ", where no plan was found" if self.least else ""
            found.append(f"`{self.name}` at {self.part} %: the limit was passed{why}")
        wrong = {seed: text for seed, text in self.contents.items() if text != "equal"}
        return found + [f"`{self.name}` at {self.part} %, contents with seed {seed}: {text}" for seed, text in wrong.items()]


HEADS = ["", "limit", "peak load", "MiB", "held", "native", "on demand", "planned", "expected", "swaps as planned / not", "contents equal"]


def markdown(rows, options, versions, without_load):
    """`without_load`: why it is not known of some programs, by name."""
    faults = [f"`{name}`, natively: {why}" for name, why in without_load.items()] + [fault for row in rows for fault in row.faults()]
    # Where no plan was found all is on demand.
    gain = [row.demand.step_ns / row.planned.step_ns for row in rows if row.demand and row.planned and row.made]
    lines = ["# PyTorch's programs below their peak load", "",
             "Written by `tests/frameworks/limits_table.py`. **Simulated " + program_runs.DEVICE + "**: sizes and virtual times are the simulated driver's; "
             "nothing here was measured on a GPU. " + ", ".join(f"{name} {version}" for name, version in versions.items()) + ".", "",
             f"The programs of [frameworks.md](frameworks.md), {options.steps} steps each, by `cudaMallocAsync`, with `MEMOPT_LIMIT` at a part of the peak load. "
             "A step in ms, the mean of those of the second half: natively without a limit, with swaps on demand only, and with planned ones "
             "(`MEMOPT_SYNC_PLAN=1`). *Held* is what memopt held at most, in MiB. *Expected*: what the plan that went live last says of an iteration and of "
             "what its swaps add; where an iteration is several steps, of all of them; a step's idle time is not in it. Where no plan was found within the limit, "
             "what the best one needs that was found instead; a search for more time, or for another limit, may find less. *None can*: what one "
             "operation uses, beside what no plan swaps, is more than the limit. "
             f"Contents: {options.contents_steps} steps, in the orders {', '.join(options.seeds)}." if not options.no_contents else "", "",
             f"Where there is a plan, in {len(gain)} of {len(rows)} rows, a step is {min(gain):.2f} to {max(gain):.2f} times as fast as with swaps on demand." if gain else "", "",
             page.table(HEADS, [row.cells() for row in rows]), "", "## What went wrong", "",
             *([f"- {fault}" for fault in faults] or ["Nothing: all runs ended, kept to their limits, and had equal contents."]), ""]
    return "\n".join(lines), bool(faults)


def main():
    known = program_runs.programs(frameworks_table.LISTED)
    options = parse([program.name for program in known])
    chosen = [program for program in known if program.name in options.programs]
    build = os.environ.get("TEST_BUILD") or os.path.join(program_runs.ROOT, "build", "release")
    runner = program_runs.Runner(build, options.python, options.kept or os.path.join(build, "limits-table"), options.timeout)
    runs = 3 + (0 if options.no_contents else 1) + len(options.parts) * (2 + (0 if options.no_contents else len(options.seeds)))
    progress = frameworks_table.Progress(len(chosen) * runs)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(lambda program: run_program(runner, program, options, progress), chosen))
    rows = [Row(program.name, part, limit, results, options) for program, (results, limits) in zip(chosen, found) for part, limit in limits.items()]
    versions = page.versions_of(options.python, {program.name: results for program, (results, _) in zip(chosen, found)})
    without_load = {program.name: results[NATIVE]["failed"] for program, (results, limits) in zip(chosen, found) if not limits}
    text, faulty = markdown(rows, options, versions, without_load)
    print(text)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
