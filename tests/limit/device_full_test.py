#!/usr/bin/env python3
"""A program that needs more than the device has, and no limit is set: natively it ends, under memopt blocks leave for host memory from then
on, swaps are planned, and the same is computed. Programs that try how much they can have are told. With --full: more orders of operations."""
import os
import re
import unittest

import cases
from limit_runs import CHUNK, LimitCase, native
from runs import BUILD, FULL, WORKLOADS, Run

REPLAY = os.path.join(WORKLOADS, "replay")
FILLS = os.path.join(BUILD, "tests", "full_device")
QUIET = {"CUDASIM_POISON": "off"}
WITHOUT_A_PLANNER = {"MEMOPT_PLANNER": "/bin/false", "MEMOPT_SYNC_PLAN": "0"}
ITERATIONS = 24
OUT_OF_MEMORY = 3  # the exit code of replay where the driver fails


class DeviceFull(LimitCase):
    def setUp(self):
        self.command = [REPLAY, self.net("vgg11", "--batch", 50), "--iterations", str(ITERATIONS)]
        self.roomy = native(*self.command, numbers=True, **QUIET)
        # 94 % of what the program uses at once.
        self.capacity = self.roomy.numbers["peak_load"] * 94 // 100 // CHUNK * CHUNK
        self.small = QUIET | {"CUDASIM_CAPACITY": str(self.capacity)}

    def survives(self, *arguments, **options):
        command = [*self.command, *arguments]
        reference = native(*command, numbers=True, **QUIET)
        run = self.succeed(command, numbers=True, **(self.small | options))
        self.assertEqual(run.numbers["mismatches"], 0)
        self.assertEqual(run.last_line, reference.last_line)
        self.assertEqual(len(re.findall(r"the device is full, \d+ MiB of it held for the program", run.errors)), 1, run.errors)
        self.assertLessEqual(run.report["counters"]["bytes_held_peak"], self.capacity)
        return run

    def test_it_ends_natively_and_where_nothing_may_leave(self):
        for options in ({"planned": False}, {"MEMOPT_SWAP": "0"}, {"MEMOPT_PLAN": "0"}):
            with self.subTest(**options):
                run = Run(self.command, **(self.small | options))
                self.assertEqual(run.code, OUT_OF_MEMORY, run.errors)
                self.assertIn("OUT_OF_MEMORY", run.output + run.errors)
        run = Run(self.command, **self.small, MEMOPT_SWAP="0")
        self.assertRegex(run.errors, r"out of memory: \d+ MiB wanted, \d+ MiB held; with MEMOPT_SWAP=1, blocks of \d+ MiB could leave")

    def test_it_runs_on_and_its_swaps_are_planned(self):
        run = self.survives()
        told = re.search(r"^memopt: device full at [\d.]+ MiB: .*; (\d+) swaps as planned, (\d+) not$", run.errors, re.MULTILINE)
        self.assertIsNotNone(told, run.errors)
        made, otherwise = map(int, told.groups())
        self.assertGreater(made, 50)
        self.assertLess(otherwise, made / 10)
        steady = run.numbers["per_iteration"]
        self.assertEqual(steady["vmm_calls"], 0)
        # Of the simulated clock, which is exact: at 94 % there is time for all copies beside the kernels.
        self.assertLess(steady["virtual_ns"], 1.25 * self.roomy.numbers["per_iteration"]["virtual_ns"])
        on_demand = self.survives(**WITHOUT_A_PLANNER).numbers["per_iteration"]
        self.assertLess(steady["virtual_ns"], 0.6 * on_demand["virtual_ns"])

    def test_any_order_that_the_edges_allow(self):
        for seed in map(str, range(1, 9)) if FULL else ("1",):
            with self.subTest(seed=seed):
                self.survives("--streams", "2", CUDASIM_SEED=seed)
                self.survives("--streams", "2", CUDASIM_SEED=seed, **WITHOUT_A_PLANNER)

    def test_without_host_memory_the_program_is_told(self):
        run = Run(self.command, **self.small, MEMOPT_HOST_LIMIT="2M")
        self.assertEqual(run.code, OUT_OF_MEMORY, run.errors)
        self.assertIn("MEMOPT_HOST_LIMIT", run.errors)


class OtherMemory(LimitCase):
    """What does not come from memopt gets what blocks leave, which are written and read on meanwhile."""

    def test_other_kinds_of_memory(self):
        for kind in ("create", "pitch", "module", "context"):
            with self.subTest(kind=kind):
                command = [FILLS, kind, "--loop", "12", "--within", "--again", "8"]
                small = {"CUDASIM_CAPACITY": "128M"}
                had = [int(kib) for kib in re.findall(r"(\d+) KiB$", native(*command, **small).output, re.MULTILINE)]
                run = self.succeed(command, **small)
                has = [int(kib) for kib in re.findall(r"(\d+) KiB$", run.output, re.MULTILINE)]
                self.assertEqual(len(had), len(has))
                for natively, under_memopt in zip(had, has):
                    self.assertGreaterEqual(under_memopt, natively)

    def test_programs_that_try_how_much_they_can_have(self):
        """Nothing has been used that could leave."""
        command = [FILLS, "nothing", "--loop", "12", "--trials", "--again", "8"]
        run = self.succeed(command, CUDASIM_CAPACITY="128M")
        self.assertEqual(run.output, native(*command, CUDASIM_CAPACITY="128M").output)
        self.assertNotIn("the device is full", run.errors)
        self.assertEqual(run.report["counters"]["bytes_copied_out"], native(*command, CUDASIM_CAPACITY="128M").report["counters"]["bytes_copied_out"])


if __name__ == "__main__":
    cases.main()
