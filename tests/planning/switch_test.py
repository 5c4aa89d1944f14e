#!/usr/bin/env python3
"""The switch to a plan, of a program half of whose memory lives from one iteration into the next: it needs no memory of its own, since
the chunks of such blocks lie where the plan has nothing before they are freed."""
import os
import re
import unittest

import cases
from runs import WORKLOADS, PlanningCase

MIB = 1 << 20
CROSSING = 16


def trace(iterations):
    """Blocks of odd sizes that are made at the end of an iteration and freed in the middle of the next, while others take their places."""
    lines = []

    def say(verb, name, size):
        lines.append(f"{verb} {hex(name)} {size} {1000 * (len(lines) + 1)}\n")

    def make(name, size):
        say("Malloc", name, size)
        say("Mutable", name, size)

    def end(name, size):
        say("Read", name, size)
        say("Free", name, size)

    size = 13 * MIB - 4096
    early = [(0x40000 + i, (7 + 2 * i) * MIB) for i in range(6)]
    middle = [(0x60000 + i, size + MIB * (i % 3)) for i in range(CROSSING)]
    for weight in range(4):
        make(0x10000 + weight, 4 * MIB)
    for iteration in range(iterations):
        for block in early:
            make(*block)
        for i in range(CROSSING):
            if iteration != 0:
                end(0x20000 + 0x1000 * ((iteration - 1) % 2) + i, size)
            make(*middle[i])
        for block in early:
            end(*block)
        for i in range(CROSSING):
            end(*middle[i])
            make(0x20000 + 0x1000 * (iteration % 2) + i, size)
    return "".join(lines)


class Switch(PlanningCase):
    @cases.in_plain_builds
    def test_the_switch_needs_no_more_than_was_held_before(self):
        path = os.path.join(self.folder, "crossing.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(trace(6))
        run = self.succeed([os.path.join(WORKLOADS, "replay"), path, "--iterations", 20], numbers=True, CUDASIM_POISON="off",
                           MEMOPT_LOG="debug")
        self.assertEqual(run.numbers["mismatches"], 0)
        self.assertIsNotNone(run.live_at, run.errors)
        lent = [int(count) for count in re.findall(r"(\d+) to be lent", run.errors)]
        self.assertGreater(lent[0], 6 * CROSSING // 2, "or nothing lived across the switch")
        peaks = run.report["held_history"]["peaks"]
        before = peaks[:len(peaks) // 3]
        self.assertEqual(max(peaks), max(before))
        self.assertLess(run.steady_footprint, 0.95 * max(before))


if __name__ == "__main__":
    cases.main()
