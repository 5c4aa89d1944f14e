#!/usr/bin/env python3
"""How long memoptctl takes to read a recording of many operations, and to write it for other tools: prints seconds, as they pass and of
the processor, and operations in one of the latter.

usage: reading_speed.py MEMOPTCTL [--operations N] [--keep FOLDER]

The recording is of a program that was made up: iterations of 1,000 operations, with launches of three blocks each.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

MALLOCS, LAUNCHES = 200, 600  # of an iteration; each block is freed in it, too


def write_operations(path, operations):
    """As CSV, whole iterations of at least so many."""
    written = block = 0
    with open(path, "w", encoding="utf-8") as file:
        file.write("time_ns,operation,stream,block,bytes,accesses,name,values\n")
        while written < operations:
            lines, first, at = [], block + 1, written * 1000
            for i in range(MALLOCS):
                block += 1
                at += 1000
                lines.append(f"{at},malloc,0,{block},{4096 * (i % 50 + 1)},,,\n")
                for j in range(LAUNCHES // MALLOCS):
                    at += 1000
                    names = f"{block}:rw {max(first, block - 1)}:r {max(first, block - j - 2)}:r"
                    lines.append(f"{at},launch,0,,,{names},,{i % 20} 1 1 1 256 1 1 0\n")
            for i in range(MALLOCS):
                at += 1000
                lines.append(f"{at},free,0,{first + i},,,,\n")
            file.write("".join(lines))
            written += 2 * MALLOCS + LAUNCHES
    return written


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(what, command, operations):
    before, used = time.monotonic(), processor_seconds()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seconds, used = time.monotonic() - before, processor_seconds() - used
    if done.returncode != 0:
        sys.exit(f"{what}: exit code {done.returncode}: {done.stderr.strip()}")
    print(f"{what:28} {seconds:8.2f} s, of the processor {used:8.2f} s {operations / max(used, 1e-3):14,.0f} operations/s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("memoptctl")
    parser.add_argument("--operations", type=int, default=10_000_000)
    parser.add_argument("--keep", help="folder for the files, which stay there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or scratch
        table, recording = os.path.join(folder, "operations.csv"), os.path.join(folder, "operations.rec")
        operations = write_operations(table, options.operations)
        print(f"{operations:,} operations, {os.path.getsize(table) / operations:.1f} bytes each as CSV")
        measure("import csv", [options.memoptctl, "import", table, "-o", recording, "--force"], operations)
        print(f"{os.path.getsize(recording) / operations:.1f} bytes an operation in the recording")
        measure("show", [options.memoptctl, "show", recording], operations)
        measure("plan", [options.memoptctl, "plan", recording], operations)
        for name in ("csv", "minimalloc", "perfetto", "pytorch-snapshot"):
            measure(f"export {name}", [options.memoptctl, "export", recording, "--format", name, "-o", os.path.join(folder, "out")], operations)
        print(f"largest process: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10} MiB")


if __name__ == "__main__":
    main()
