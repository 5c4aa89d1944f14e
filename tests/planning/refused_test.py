#!/usr/bin/env python3
"""A plan that is refused, as it needs more than is held without it: the program is not recorded for ever, and a better layout of the same
iteration is still taken. The iteration is an instance of MiniMalloc's benchmark (tests/data/layout) whose first layout is a tenth above
the load, in multiples of a chunk, so that little is lost where there is no plan."""
import csv
import os
import re
import subprocess
import time
import unittest
import uuid

import cases
from runs import BUILD, PLANNER, SOURCE, PlanningCase, Run

INSTANCES = os.path.join(SOURCE, "tests", "data", "layout", "minimalloc")
UNIT = 2048  # bytes of a byte of the instance: its sizes are multiples of 1024
PROGRAM = os.path.join(BUILD, "tests", "allocations")
REFUSED = "the plan is not used: it needs 2.0"


def iterations_of(name, count):
    """Lines of a trace, and how many operations they are."""
    with open(os.path.join(INSTANCES, name + ".1048576.csv"), encoding="utf-8", newline="") as file:
        rows = [{key: int(value) for key, value in row.items()} for row in csv.DictReader(file)]
    # Half-open lifetimes: who ends goes before who begins.
    moments = sorted([(row["lower"], 1, row) for row in rows] + [(row["upper"], 0, row) for row in rows],
                     key=lambda moment: (moment[0], moment[1], moment[2]["id"]))
    lines = [f"{'Malloc' if begins else 'Free'} {name}{row['id']} {row['size'] * UNIT} 0\n" for _, begins, row in moments]
    return lines * count, 3 * len(rows)  # each block is filled a little


class Refused(PlanningCase):
    def setUp(self):
        self.name = "test-" + uuid.uuid4().hex[:12]
        self.log = os.path.join(self.folder, self.name)
        planner = subprocess.Popen([PLANNER, "--foreground", "--name", self.name, "--log", self.log, "--idle-exit", "0"])
        self.addCleanup(lambda: (planner.terminate(), planner.wait()))
        deadline = time.monotonic() + 60
        while not os.path.exists(self.log) and time.monotonic() < deadline:
            time.sleep(0.01)

    def play(self, lines, iterations, *arguments, **more):
        trace = os.path.join(self.folder, uuid.uuid4().hex)
        with open(trace, "w", encoding="utf-8") as file:
            file.writelines(line.replace(" 0\n", f" {i}\n") for i, line in enumerate(lines))
        run = Run([PROGRAM, trace, "--iterations", iterations, *arguments], CUDASIM_POISON="off", CUDASIM_DEVICE="a100-40g", MEMOPT_LOG="info",
                  MEMOPT_PLANNER_NAME=self.name, **more)
        self.assertEqual(run.code, 0, run.output + run.errors)
        return run

    def refused(self, lines, iterations, **more):
        run = self.play(lines, iterations, **more)
        self.assertIn(REFUSED, run.errors)
        return run

    def records(self):
        """That the planner has seen of the last program."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with open(self.log, encoding="utf-8") as file:
                found = re.findall(r"gone after (\d+) records", file.read())
            if found:
                return int(found[-1])
            time.sleep(0.01)
        self.fail("the planner did not notice that the program is gone")

    def plans(self):
        with open(self.log, encoding="utf-8") as file:
            return len(re.findall(r"plan \d+ sent", file.read()))

    def test_a_better_layout_is_still_taken(self):
        lines, _ = iterations_of("D", 4)
        # How long the searches take is the machine's affair. At about its 45th iteration the program comes to hold more than the first layout
        # needs, which is no longer refused then: it must not be there before that layout is, nor at its end before the better one is.
        for pause in (5, 25, 125):
            run = self.play(lines, 200, "--pause", pause, MEMOPT_SYNC_PLAN="0")
            if run.live_at is not None and REFUSED in run.errors:
                break
        self.assertIn(REFUSED, run.errors)
        self.assertIsNotNone(run.live_at, run.errors)
        held = run.report["held_history"]["peaks"]
        self.assertLessEqual(held[-1], max(held))

    def test_recording_ends_and_nothing_is_sent_again(self):
        lines, operations = iterations_of("D", 4)
        run = self.refused(lines, 60)
        self.assertIsNone(run.live_at, run.errors)
        self.assertLess(self.records(), 12 * operations)
        self.assertEqual(self.plans(), 1)

    def test_recording_begins_again_when_the_program_changes(self):
        before, operations = iterations_of("D", 40)
        after, others = iterations_of("C", 8)
        run = self.refused(before + after, 12)
        self.assertIsNotNone(run.live_at, run.errors)
        self.assertLess(self.records(), 12 * operations + 20 * others)


if __name__ == "__main__":
    cases.main()
