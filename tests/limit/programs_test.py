#!/usr/bin/env python3
"""Programs of other kinds than training (programs/limit_programs.cu) in 60 % of what they hold natively: they compute the same, in an order that the
declared edges allow, stay within the limit, and swaps are planned where there is an iteration to be found. With --full: all of them, more limits and
orders, on demand as well."""
import os
import re
import unittest

import cases
import patience
from limit_runs import CHUNK, MIB, LimitCase, native
from runs import BUILD, FULL, WITHOUT_A_PLANNER

PROGRAM = os.path.join(BUILD, "tests", "limit_programs")
ITERATIONS = "12"
# Of these swaps are planned within so few iterations.
PLANNED = ("pipeline", "pointer-table", "streams-anew", "graph") + (("workspace", "double-buffer", "recursive", "optimizer") if FULL else ())
OTHERS = ("queue",) + (("ping-pong", "doubling", "two-phases", "late-free") if FULL else ())
PARTS = (90, 75, 60, 45) if FULL else (60,)
AS_PLANNED = r"; \d{2,} swaps as planned"
ORDERS = [{"CUDASIM_SEED": "1"}]
if FULL:
    ORDERS += [{}, {"CUDASIM_SEED": "2"}, WITHOUT_A_PLANNER | {"CUDASIM_SEED": "3"}]


class Programs(LimitCase):
    def same(self, name, part, **order):
        reference = native(PROGRAM, name, ITERATIONS)
        limit = reference.report["counters"]["bytes_held_peak"] * part // 100 // CHUNK * CHUNK
        run = self.limited([PROGRAM, name, ITERATIONS], limit, **order)
        self.assertEqual(run.output, reference.output, run.errors)
        # Where one operation needs more than the limit, that is said.
        self.assertLessEqual(run.held, limit + run.passed_by + 2 * CHUNK, run.errors)
        if part >= 60:
            self.assertLessEqual(run.passed_by, CHUNK, run.errors)
        return run

    def test_the_same_is_computed(self):
        for name in PLANNED + OTHERS:
            for part in PARTS:
                for order in ORDERS:
                    with self.subTest(program=name, part=part, **order):
                        run = self.same(name, part, **order)
                        if name not in PLANNED or part != 60 or order != ORDERS[0]:
                            continue
                        # A loaded machine may cut the search short, which is bounded by a number of attempts otherwise.
                        for times in (5, 20):
                            if re.search(AS_PLANNED, run.last_words):
                                break
                            run = self.same(name, part, MEMOPT_SYNC_PLAN=str(min(times * patience.WAIT_SECONDS, 3600)), **order)
                        self.assertRegex(run.last_words, AS_PLANNED)

    def test_a_loop_does_not_drive_itself_out(self):
        """Least recently used first would have all 80 MiB leave in each iteration, though 50 of them could stay."""
        run = self.same("loop", 60, **WITHOUT_A_PLANNER)
        back = run.copied(native(PROGRAM, "loop", ITERATIONS))[1]
        self.assertLess(back, (int(ITERATIONS) - 1) * 80 * MIB * 3 // 4, run.errors)


if __name__ == "__main__":
    cases.main()
