#!/usr/bin/env python3
"""Stream-ordered allocation, served by memopt in the place of the driver's pools: the same answers, the same contents, no missing order.

The simulated driver's own pools are the reference; its checker stops a program in which an order is missing.
"""
import itertools
import unittest

import cases
from runs import POOLS, PlanningCase, Run

# Adversarial order or none, waiting for the planner or not: with a sanitizer each of them, not each with each.
ORDERS = ((None, "1"), ("1", "0")) if cases.SANITIZER else tuple(itertools.product((None, "1", "2"), ("1", "0")))


class Pools(PlanningCase):
    def test_answers_and_contents_are_those_of_the_drivers_pools(self):
        for arguments in ([], ["--named"], ["--plain"], ["--seed", "7", "--odd", "6"], ["--streams", "1"],
                          ["--streams", "8", "--seed", "3", "--named", "--plain", "--odd", "9"]):
            command = [POOLS, "20", *arguments]
            reference = Run(command, planned=False)
            self.assertEqual(reference.code, 0, reference.errors)
            for seed, waiting in ORDERS:
                with self.subTest(arguments=arguments, seed=seed, waits_for_the_planner=waiting):
                    run = self.succeed(command, MEMOPT_SYNC_PLAN=waiting, **({} if seed is None else {"CUDASIM_SEED": seed}))
                    self.assertEqual(run.output, reference.output)
                    if waiting == "1":
                        self.assertIsNotNone(run.live_at, run.errors)

    @cases.in_plain_builds
    def test_they_are_served_without_the_driver(self):
        """Twice as many iterations make not one call more for memory, the pools' own included."""
        calls = [[self.succeed([POOLS, iterations]).report["calls"].get(symbol, 0)
                  for symbol in ("cuMemAllocAsync", "cuMemFreeAsync", "cuMemCreate", "cuMemMap", "cuMemUnmap", "cuStreamSynchronize")]
                 for iterations in (30, 60)]
        # Three synchronisations of an iteration are the program's own.
        self.assertEqual(calls[1][:5], calls[0][:5])
        self.assertEqual(calls[1][5] - calls[0][5], 3 * 30)

    def test_a_trial_of_more_than_there_is_takes_nothing(self):
        """The program asks for 32 TiB, gets the driver's answer, and nothing is gathered for it."""
        run = self.succeed([POOLS, "10"])
        self.assertIn("too many bytes: 2\nafter too many: 0\n", run.output)
        self.assertLess(max(run.report["held_history"]["peaks"]), 200 << 20)

    def test_without_virtual_memory_management_the_driver_serves_and_memopt_follows(self):
        command = [POOLS, "20"]
        reference = Run(command, planned=False)
        run = self.succeed(command, CUDASIM_INJECT="cuMemAddressReserve:801")
        self.assertEqual(run.output, reference.output)


if __name__ == "__main__":
    cases.main()
