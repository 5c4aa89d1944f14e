#!/usr/bin/env python3
"""A small program under a plan, in every build: with streams, iterations that differ, blocks that are freed late, adversarial orders."""
import itertools
import re
import unittest

import cases
from runs import LOOP, WITHOUT_A_PLANNER, PlanningCase, Run

# Adversarial order or none, waiting for the planner or not: with a sanitizer each of them, not each with each.
ORDERS = ((None, "0"), ("1", "1")) if cases.SANITIZER else tuple(itertools.product((None, "1"), ("1", "0")))


class Loop(PlanningCase):
    def test_results_are_those_without_memopt(self):
        for arguments in (["--keep"], ["--keep", "--odd", "7"], ["--late", "5"], ["--keep", "--streams", "3"],
                          ["--streams", "3", "--odd", "5", "--late", "7"], ["--keep", "--threads"]):
            command = [LOOP, "25", *arguments]
            reference = Run(command, planned=False)
            self.assertEqual(reference.code, 0, reference.errors)
            for seed, waiting in ORDERS:
                with self.subTest(arguments=arguments, seed=seed, waits_for_the_planner=waiting):
                    run = self.succeed(command, MEMOPT_SYNC_PLAN=waiting, **({} if seed is None else {"CUDASIM_SEED": seed}))
                    self.assertEqual(run.output, reference.output)
                    if waiting == "1":
                        self.assertIsNotNone(run.live_at, run.errors)
                        self.assertLessEqual(run.live_at, 6)

    def test_each_context_is_planned(self):
        """After a reset of the device, or in another context when the first one is gone, everything begins again."""
        alone = self.succeed([LOOP, "20", "--keep"]).report["counters"]["bytes_held"]
        for arguments in (["--reset", "20"], ["--leave", "20"], ["--reset", "20", "--streams", "3"], ["--reset", "20", "--threads"]):
            command = [LOOP, "60", "--keep", *arguments]
            reference = Run(command, planned=False)
            self.assertEqual(reference.code, 0, reference.errors)
            for waiting in ("1", "0"):
                with self.subTest(arguments=arguments, waits_for_the_planner=waiting):
                    run = self.succeed(command, MEMOPT_SYNC_PLAN=waiting)
                    self.assertEqual(run.output, reference.output)
                    if waiting == "1":
                        live = re.findall(r"^memopt: plan live at iteration (\d+)", run.errors, re.MULTILINE)
                        self.assertEqual(len(live), 3, run.errors)
                        self.assertTrue(all(int(at) <= 6 for at in live), live)
                        if "--streams" not in arguments:  # nothing of the contexts before is held
                            self.assertLessEqual(run.report["counters"]["bytes_held"], alone)

    def test_a_plan_that_is_not_kept_to_is_left(self):
        """As where batches differ in size, and some are alike by chance: nothing is held for the plan any more."""
        command = [LOOP, "120", "--keep", "--sizes", "12"]
        reference = Run(command, planned=False)
        without = self.succeed(command, **WITHOUT_A_PLANNER)
        for waiting in ("1", "0"):
            with self.subTest(waits_for_the_planner=waiting):
                run = self.succeed(command, MEMOPT_SYNC_PLAN=waiting, MEMOPT_LOG="info")
                self.assertEqual(run.output, reference.output)
                left = re.findall(r"the plan is left: it was not kept to: (\d+) of (\d+) blocks lay beside it", run.errors)
                if waiting == "1":
                    self.assertEqual(len(left), 1, run.errors)
                    self.assertGreaterEqual(int(left[0][0]), int(left[0][1]) // 8)
                    self.assertRegex(run.errors, r"memopt: planned at iteration \d+, and left, as it was not kept to; ")
                    self.assertLessEqual(run.steady_footprint, 1.05 * without.steady_footprint)

    def test_why_there_was_no_plan_is_said(self):
        """Of a program that allocates often, at its end, with what it held."""
        said = re.compile(r"^memopt: no plan went live in (\d+) allocations: (.+); ([\d.]+) MiB held at most$", re.MULTILINE)
        run = self.succeed([LOOP, "400", "--keep"], **WITHOUT_A_PLANNER)
        [(allocations, why, held)] = said.findall(run.errors)
        self.assertGreaterEqual(int(allocations), 1000)
        self.assertIn("planner", why)
        self.assertAlmostEqual(float(held), run.report["counters"]["bytes_held_peak"] / 2**20, delta=4)
        for iterations, environment in (("400", {}), ("3", WITHOUT_A_PLANNER), ("400", WITHOUT_A_PLANNER | {"MEMOPT_LOG": "error"})):
            with self.subTest(iterations=iterations, environment=environment):
                self.assertNotIn("no plan went live", self.succeed([LOOP, iterations, "--keep"], **environment).errors)

    @cases.in_plain_builds
    def test_the_steady_state_asks_the_driver_for_no_memory(self):
        """Twice as many iterations make not one call more; also where each has a thread of its own, which takes over the last one's
        place in the plan."""
        for arguments in (["--keep"], ["--keep", "--threads"]):
            with self.subTest(arguments=arguments):
                calls = [[self.succeed([LOOP, iterations, *arguments]).report["calls"].get(symbol, 0)
                          for symbol in ("cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemAlloc_v2")] for iterations in (40, 80)]
                self.assertEqual(calls[0], calls[1])


if __name__ == "__main__":
    cases.main()
