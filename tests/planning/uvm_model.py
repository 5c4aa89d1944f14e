#!/usr/bin/env python3
"""Prints, as a table in Markdown, what an iteration would take with managed memory (UVM) on a device of less than its peak load: a model.

usage: uvm_model.py [--parts P,...] [--limit SIZE] [--machine OUT:IN] [--fault US] FILE...

Each FILE is an iteration, memopt-plan-1 (`memoptctl plan TRACE --strategy none --json FILE`; docs/formats/plan-json.md). Each block is a
managed allocation of its own, in pieces of 2 MiB, as the driver evicts them, the last one of less. An operation whose block has pieces that
are not on the device waits for each: FAULT microseconds, and the copy from the host, if it was there before and has been evicted. Where the
device is full, the piece that was used least lately is copied to the host first, and the fault waits for that: the driver does not know what
is only read. What is freed is dropped. Faults are handled one after the other, and nothing else runs meanwhile.

45 us is what is published for a fault that the host handles (Ganguly and others, ISCA 2019, and G10, MICRO 2023, take it; 20 to 50 are seen:
Zheng and others, HPCA 2016). In favour of UVM: one fault brings all of 2 MiB, pieces leave by use and not by migration, copies have no
latency, and freed memory is not copied. Exit code 1: a FILE is no iteration."""
import argparse
import collections
import json
import os
import sys

MIB = 1 << 20
PIECE = 2 * MIB
PAGE = 64 << 10  # a piece at the end of a block has as many of these as it needs
FAULT_US = 45.0
ITERATIONS = 4  # the last one counts
MOST = 1 << 40  # bytes or nanoseconds: more would take for ever


class Wrong(Exception):
    pass


def steady_ages(blocks, ops):
    """For each operation, how many iterations ago its block was allocated."""
    persistent = {block["id"] for block in blocks if block.get("persistent")}
    allocated = set()
    ages = []
    for kind, block, _, *age in ops:
        if kind == "m":
            allocated.add(block)
        given = age[0] if age else None
        ages.append(given if given is not None else 0 if block in persistent or block in allocated else 1)
    return persistent, ages


def pieces_of(size):
    """Of a block, how many bytes of the device each holds."""
    whole, rest = divmod(size, PIECE)
    return [PIECE] * whole + ([-(-rest // PAGE) * PAGE] if rest else [])


def stall_ns(problem, limit, out_rate, in_rate, fault_ns):
    """How long operations of a steady iteration wait for pages, and how many bytes go each way; None: an operation needs more than all."""
    pieces = {block["id"]: pieces_of(block["size"]) for block in problem["blocks"]}
    persistent, ages = steady_ages(problem["blocks"], problem["ops"])
    room = limit
    here = collections.OrderedDict()  # pieces on the device: instance and number, the one that was used least lately first
    away = set()
    for iteration in range(ITERATIONS):
        waited, came, left = 0.0, 0, 0
        for (kind, block, *_), age in zip(problem["ops"], ages):
            if block < 0 or kind == "m":
                continue
            born = 0 if block in persistent else iteration - age
            if kind == "f":
                for number in range(len(pieces[block])):
                    room += here.pop((block, born, number), 0)
                    away.discard((block, born, number))
                continue
            if sum(pieces[block]) > limit:
                return None
            for number, size in enumerate(pieces[block]):
                piece = (block, born, number)
                if piece in here:
                    here.move_to_end(piece)
                    continue
                waited += fault_ns
                while room < size:
                    oldest, its = here.popitem(last=False)
                    away.add(oldest)
                    room += its
                    waited += its / out_rate
                    left += its
                if piece in away:
                    away.discard(piece)
                    waited += size / in_rate
                    came += size
                here[piece] = size
                room -= size
    return waited, left, came


def peak_load(problem):
    """Of live blocks."""
    held = {block["id"]: block["size"] for block in problem["blocks"]}
    persistent, ages = steady_ages(problem["blocks"], problem["ops"])
    live = sum(held[block] for block in persistent)
    # What crosses the end of the iteration is there when it begins, once for each iteration that it is old when it is freed.
    live += sum(age * held[block] for (kind, block, *_), age in zip(problem["ops"], ages) if kind == "f")
    most = live
    for kind, block, *_ in problem["ops"]:
        live += held[block] if kind == "m" else -held[block] if kind == "f" else 0
        most = max(most, live)
    return most


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            problem = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise Wrong(f"{path}: {error}") from None
    if not isinstance(problem, dict) or problem.get("format") != "memopt-plan-1":
        raise Wrong(f"{path}: expected an iteration, memopt-plan-1")
    try:
        numbers = [problem["period"], *problem["machine"].values(), *(block["size"] for block in problem["blocks"])]
        rates = [problem["machine"][rate] for rate in ("out_bytes_per_ns", "in_bytes_per_ns")]
        known = {block["id"] for block in problem["blocks"]}
        right = (known and all(0 <= number < MOST for number in numbers) and min(rates) > 0 and sum(block["size"] for block in problem["blocks"]) < MOST
                 and all(block in known or (kind, block) == ("x", -1) for kind, block, *_ in problem["ops"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Wrong(f"{path}: not as docs/formats/plan-json.md says: {error!r}") from None
    if not right:
        raise Wrong(f"{path}: expected blocks that its operations name, of less than 1 TiB together, and rates above 0")
    return problem


def size_of(text):
    try:
        number = float(text.removesuffix("GiB").removesuffix("MiB")) * (1 << 30 if text.endswith("GiB") else MIB)
    except ValueError:
        number = 0
    if not PIECE <= number < 1 << 50:
        raise argparse.ArgumentTypeError(f"expected a size such as 300MiB or 40GiB, of at least 2 MiB, not '{text}'")
    return int(number)


def above_zero(text):
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"expected a number above 0, not '{text}'")
    return number


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--parts", default="90,75,60,45", metavar="P,...", help="per cent of the peak load (default 90,75,60,45)")
    parser.add_argument("--limit", type=size_of, metavar="SIZE", help="instead of parts of the peak load, such as 40GiB")
    parser.add_argument("--machine", metavar="OUT:IN", help="of copies, in GB/s (default: the file's)")
    parser.add_argument("--fault", type=above_zero, default=FAULT_US, metavar="US", help=f"of one, in microseconds (default {FAULT_US:g})")
    options = parser.parse_args()
    try:
        options.parts = [above_zero(part) for part in options.parts.split(",")]
        if options.machine:
            options.machine = [above_zero(rate) for rate in options.machine.split(":")]
            if len(options.machine) != 2:
                parser.error("--machine: expected two rates with a colon between them")
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    return options


def main():
    options = parse()
    print("| iteration | device (MiB) | of the peak load | ms without faults | ms by UVM (model) | GiB to the host | GiB back |\n"
          "|---|---:|---:|---:|---:|---:|---:|")
    try:
        for path in options.files:
            problem = read(path)
            most = peak_load(problem)
            machine = problem["machine"]
            out_rate, in_rate = options.machine or (machine["out_bytes_per_ns"], machine["in_bytes_per_ns"])
            for limit in [options.limit] if options.limit else [int(most * part / 100) for part in options.parts]:
                found = stall_ns(problem, limit, out_rate, in_rate, options.fault * 1e3)
                shown = "- | - | -"
                if found:
                    waited, left, came = found
                    shown = f"{(problem['period'] + waited) / 1e6:.2f} | {left / 2**30:.2f} | {came / 2**30:.2f}"
                print(f"| {problem.get('name') or os.path.basename(path)} | {limit // MIB} | {100 * limit / most:.0f} % | "
                      f"{problem['period'] / 1e6:.2f} | {shown} |", flush=True)
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
