#!/usr/bin/env python3
"""Writes the fake driver's exported symbols: each jumps through its slot of fake_functions, in the order of the hook table."""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "cmake"))
import entry_points  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--include", required=True)
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    entries, _, _ = entry_points.load(options.include)
    lines = ["    .text\n"]
    rows = entry_points.hooks(entries)
    for index, entry in enumerate(rows):
        lines.append(f"    .globl {entry.symbol}\n    .type {entry.symbol}, @function\n{entry.symbol}:\nfake_stub_{index}:\n"
                     f"    jmpq *(fake_functions + {index * 8})(%rip)\n    .size {entry.symbol}, . - {entry.symbol}\n")
    lines.append("    .section .data.rel.ro.local, \"aw\", @progbits\n    .globl fake_stubs\n    .hidden fake_stubs\nfake_stubs:\n")
    lines += [f"    .quad fake_stub_{index}\n" for index in range(len(rows))]
    lines.append("    .section .note.GNU-stack, \"\", @progbits\n")
    entry_points.write_if_changed(options.output, "".join(lines))


if __name__ == "__main__":
    main()
