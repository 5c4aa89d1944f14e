#!/usr/bin/env python3
"""Writes one iteration of a published text trace as a layout problem (docs/formats/layout-csv.md), cut out as Zhang et al. 2019 count:
what lives at the cut begins or ends there, although the iteration repeats.

Usage: cut_iteration.py TRACE OPERATIONS > BUFFERS.csv: the last OPERATIONS lines of the trace."""
import sys


def cut(lines, operations):
    begin, end = len(lines) - operations, len(lines)
    live, buffers = {}, []

    def finish(pointer, now):
        born, size = live.pop(pointer)
        if now > begin and now > born:
            buffers.append((max(born, begin) - begin, now - begin, size))

    for now, line in enumerate(lines):
        words = line.split()
        if words[0] == "Malloc":
            live[words[1]] = (now, int(words[2]))
        elif words[0] == "Free":
            if words[1] in live:
                finish(words[1], now)
        elif words[0] in ("Read", "Mutable") and words[1] not in live and len(words) > 3:
            live[words[1]] = (0, int(words[2]))  # made before the trace began
    for pointer in list(live):
        finish(pointer, end)
    return buffers


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        buffers = cut([line for line in file if line.strip()], int(sys.argv[2]))
    print("id,lower,upper,size")
    for number, (lower, upper, size) in enumerate(buffers):
        print(f"{number},{lower},{upper},{size}")


if __name__ == "__main__":
    main()
