#!/usr/bin/env python3
"""A small program under a plan, in every build: with streams, iterations that differ, blocks that are freed late, adversarial orders."""
import itertools
import unittest

import cases
from runs import LOOP, PlanningCase, Run


class Loop(PlanningCase):
    def test_results_are_those_without_memopt(self):
        for arguments in (["--keep"], ["--keep", "--odd", "7"], ["--late", "5"], ["--keep", "--streams", "3"],
                          ["--streams", "3", "--odd", "5", "--late", "7"]):
            command = [LOOP, "25", *arguments]
            reference = Run(command, planned=False)
            self.assertEqual(reference.code, 0, reference.errors)
            for seed, waiting in itertools.product((None, "1"), ("1", "0")):
                with self.subTest(arguments=arguments, seed=seed, waits_for_the_planner=waiting):
                    run = self.succeed(command, MEMOPT_SYNC_PLAN=waiting, **({} if seed is None else {"CUDASIM_SEED": seed}))
                    self.assertEqual(run.output, reference.output)
                    if waiting == "1":
                        self.assertIsNotNone(run.live_at, run.errors)
                        self.assertLessEqual(run.live_at, 6)


if __name__ == "__main__":
    cases.main()
