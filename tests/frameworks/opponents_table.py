#!/usr/bin/env python3
"""What PyTorch itself offers against a full device, beside memopt with as much memory, on the simulated device: prints a table, and
writes it as a page.

Each program runs natively with the caching allocator: as it is; with torch.autograd.graph.save_on_cpu(pin_memory=True) around it; and with
activation checkpointing, which it has a switch for. What each of the two holds is the limit of a run of the unchanged program under memopt
(cudaMallocAsync, MEMOPT_SYNC_PLAN=1). TEST_BUILD names the build folder (default: build/release of this checkout). Exit code 1: a program
has failed, or memopt has passed its limit."""
import argparse
import concurrent.futures
import os
import sys

import figures
import frameworks_table
import limits_table
import page
import program_runs

SAVE_ON_CPU = os.path.join(os.path.dirname(os.path.abspath(__file__)), "save_on_cpu.py")
PROGRAMS = {"gpt": "gpt.py", "llama": "llama.py", "bert": "bert.py", "vit": "vit.py", "unet": "unet.py", "resnet50": "resnet.py --depth 50"}
OFFERS = ("save_on_cpu", "checkpointing")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", nargs="+", choices=sorted(PROGRAMS), default=list(PROGRAMS), metavar="NAME")
    parser.add_argument("--python", default=os.path.join(program_runs.ROOT, "build", "frameworks", "bin", "python"))
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=900, metavar="SECONDS")
    parser.add_argument("--kept", metavar="FOLDER", help="where runs are kept (default: in the build folder)")
    parser.add_argument("--output", metavar="FILE")
    return parser.parse_args()


def variants(name):
    """The program as it is, and what PyTorch offers."""
    file, *arguments = PROGRAMS[name].split()
    return {"native": program_runs.Program(name, file, arguments),
            "save_on_cpu": program_runs.Program(f"{name}-save_on_cpu", SAVE_ON_CPU, [os.path.join(program_runs.PROGRAMS, file), *arguments]),
            "checkpointing": program_runs.Program(f"{name}-checkpointing", file, [*arguments, "--checkpointing"])}


def measured(runner, program, configuration, steps):
    """The run's figures, or why there are none; and its result. How long launches take is by the blocks that they name with cudaMallocAsync:
    those of the caching allocator are large pieces."""
    for first in program_runs.deciding(steps):
        decided = runner.kept(program, first) or runner.run(program, first)
        if "failed" in decided:
            return decided["failed"], decided
    result = runner.kept(program, configuration) or runner.run(program, configuration)
    if "failed" in result:
        return result["failed"], result
    try:
        return figures.Measured(result, steps), result
    except ValueError as fault:
        return str(fault), result


class Row:
    """What is offered, and memopt in as much memory."""

    def __init__(self, name, offer, native, offered, memopt, errors):
        self.name, self.offer, self.native, self.offered, self.memopt = name, offer, native, offered, memopt
        held = limits_table.HELD.search(errors)
        made = limits_table.MADE.search(errors)
        self.passed = "passed by" in held.group(0) if held else False
        self.made = f"{int(made.group(1)):,} / {int(made.group(2)):,}" if made else "-"

    def cells(self):
        def ms(run):
            return "**failed**" if isinstance(run, str) else f"{run.step_ns / 1e6:,.2f}"

        def mib(run):
            return "-" if isinstance(run, str) else figures.mib(run.steady)
        return [self.name, self.offer, mib(self.native), ms(self.native), mib(self.offered), ms(self.offered),
                "-" if self.memopt is None else mib(self.memopt) if not self.passed else f"**{mib(self.memopt)}, passed**",
                "-" if self.memopt is None else ms(self.memopt), self.made]

    def faults(self):
        found = [f"`{self.name}`, {which}: {run}" for which, run in
                 (("natively", self.native), (self.offer, self.offered), ("memopt", self.memopt)) if isinstance(run, str)]
        return found + ([f"`{self.name}`, in as much as {self.offer}: the limit was passed"] if self.passed else [])


def rows_of(runner, name, steps):
    native_run = program_runs.Configuration("pool", steps, program_runs.WITHOUT_BYTES, decisions="decisions")
    programs = variants(name)
    native, _ = measured(runner, programs["native"], native_run, steps)
    rows = []
    for offer in OFFERS:
        offered, _ = measured(runner, programs[offer], native_run, steps)
        memopt, errors = None, ""
        if not isinstance(offered, str):
            limited = program_runs.by_route("async", False) | {"MEMOPT_LIMIT": str(offered.steady), "MEMOPT_LOG": "info"}
            configuration = program_runs.Configuration(f"like-{offer}", steps, limited | program_runs.WITHOUT_BYTES, memopt=True, decisions="decisions")
            memopt, result = measured(runner, programs["native"], configuration, steps)
            errors = result.get("stderr", "")
        rows.append(Row(name, offer, native, offered, memopt, errors))
        print(f"{name} {offer}: done", flush=True)
    return rows


HEADS = ["", "", "native: held", "ms", "PyTorch's offer: held", "ms", "memopt: held", "ms", "swaps as planned / not"]


def markdown(rows, options):
    faults = [fault for row in rows for fault in row.faults()]
    return "\n".join([
        "# What PyTorch offers against a full device, and memopt", "",
        "Written by `tests/frameworks/opponents_table.py`. **Simulated " + program_runs.DEVICE + "**: sizes and virtual times are the simulated driver's; nothing "
        f"here was measured on a GPU. {options.steps} steps each; held (MiB, by the driver's count) and a step's time (ms) are of the second half.", "",
        "`save_on_cpu` is `torch.autograd.graph.save_on_cpu(pin_memory=True)` around the whole program: each tensor that the backward pass needs is copied to the host in the "
        "forward pass, which waits for it. *Checkpointing* recomputes the activations of each block (`torch.utils.checkpoint`), by a switch in the program. Both need the program "
        "changed. memopt runs the unchanged program with `MEMOPT_LIMIT` at what the offer holds.", "",
        page.table(HEADS, [row.cells() for row in rows]), "", "## What went wrong", "",
        *([f"- {fault}" for fault in faults] or ["Nothing: all runs ended and kept to their limits."]), ""]), bool(faults)


def main():
    options = parse()
    build = os.environ.get("TEST_BUILD") or os.path.join(program_runs.ROOT, "build", "release")
    runner = program_runs.Runner(build, options.python, options.kept or os.path.join(build, "opponents-table"), options.timeout)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = [row for found in pool.map(lambda name: rows_of(runner, name, options.steps), options.programs) for row in found]
    text, faulty = markdown(rows, options)
    print(text)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
