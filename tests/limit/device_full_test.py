#!/usr/bin/env python3
"""A program that needs more than the device has, and no limit is set: natively it ends, under memopt blocks leave for host memory from then
on, swaps are planned, and the same is computed. Programs that try how much they can have are told. With --full: more orders of operations."""
import os
import re
import shutil

import cases
from limit_runs import CHUNK, PROGRAM, LimitCase, native
from runs import BUILD, FULL, PREFIX, SHIM, SIMULATOR, WITHOUT_A_PLANNER, WORKLOADS, Run

REPLAY = os.path.join(WORKLOADS, "replay")
FILLS = os.path.join(BUILD, "tests", "full_device")
QUIET = {"CUDASIM_POISON": "off"}
ITERATIONS = 48  # before the last half begins, the times of all operations are known, and the plan for them is live
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
        self.assertEqual(len(re.findall(r"the device is full, [\d.]+ MiB of it held for the program", run.errors)), 1, run.errors)
        self.assertLessEqual(run.report["counters"]["bytes_held_peak"], self.capacity)
        return run

    def test_it_ends_natively_and_where_nothing_may_leave(self):
        for options in ({"planned": False}, {"MEMOPT_SWAP": "0"}, {"MEMOPT_PLAN": "0"}):
            with self.subTest(**options):
                run = Run(self.command, **(self.small | options))
                self.assertEqual(run.code, OUT_OF_MEMORY, run.errors)
                self.assertIn("OUT_OF_MEMORY", run.output + run.errors)
        run = Run(self.command, **self.small, MEMOPT_SWAP="0")
        self.assertRegex(run.errors, r"out of memory: [\d.]+ MiB wanted, [\d.]+ MiB held; with MEMOPT_SWAP=1, blocks of [\d.]+ MiB could leave")

    def test_it_runs_on_and_its_swaps_are_planned(self):
        run = self.survives()
        told = re.search(r"^memopt: device full at [\d.]+ MiB: .*; (\d+) swaps as planned, (\d+) not(?:$|;)", run.errors, re.MULTILINE)
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


class Refusals(LimitCase):
    """Of small programs (programs/limit_full.cpp) whose blocks are twice the device."""

    SMALL = {"CUDASIM_CAPACITY": "64M"}
    ALL = 20  # blocks that they ask for
    FIT = 10

    def lines(self, case, libraries="", **options):
        preload = {"LD_PRELOAD": f"{PREFIX}{SHIM}:{libraries}"} if libraries else {}
        run = self.succeed([PROGRAM, case], **(self.SMALL | preload | options))
        return run, run.output.splitlines()

    def test_blocks_that_were_used_leave(self):
        twice = [f"refused behind {self.FIT}", f"refused twice, behind {self.FIT}", f"{self.FIT} blocks", "all of them: 0 wrong"]
        self.assertEqual(native(PROGRAM, "refused", **self.SMALL).output.splitlines(), twice)
        self.assertEqual(self.lines("refused", MEMOPT_SWAP="0")[1], twice)
        for options in ({}, WITHOUT_A_PLANNER, {"CUDASIM_SEED": "1"}):
            with self.subTest(**options):
                self.assertEqual(self.lines("refused", **options)[1], [f"{self.ALL} blocks", "all of them: 0 wrong"])

    def test_a_framework_with_a_pool_is_refused_first(self):
        """Each time: it gives back what it holds for nothing, and asks again. Which ones are there is told by what is loaded."""
        folder = os.path.join(self.folder, "cupy", "cuda")
        os.makedirs(folder)
        stand_in = os.path.join(folder, "memory.stand-in.so")
        shutil.copy(os.path.join(SIMULATOR, "lib", "libcudasim_schedule.so"), stand_in)
        told = [line for behind in range(self.FIT, self.ALL)
                for line in (f"refused behind {behind}", f"served when asked again, behind {behind}")]
        self.assertEqual(self.lines("refused", stand_in)[1], [*told, f"{self.ALL} blocks", "all of them: 0 wrong"])

    def test_threads_that_are_out_of_memory_at_once(self):
        for seed in ("1", "2", "3") if FULL else ("1",):
            with self.subTest(seed=seed):
                self.assertEqual(self.lines("refused-threads", CUDASIM_SEED=seed)[1], ["0 refused", "of all threads: 0 wrong"])

    def test_blocks_that_were_not_used_stay(self):
        run, lines = self.lines("untouched")
        self.assertEqual(lines, native(PROGRAM, "untouched", **self.SMALL).output.splitlines())
        self.assertEqual(lines, [f"{self.FIT} blocks"])
        self.assertNotIn("the device is full", run.errors)

    def test_memory_of_the_driver_gets_what_blocks_leave(self):
        rest = ["beside them: 0 wrong", "without them: 0 wrong"]
        self.assertEqual(native(PROGRAM, "of-the-driver", **self.SMALL).output.splitlines(), ["4 pieces of the driver's", *rest])
        run, lines = self.lines("of-the-driver")
        self.assertEqual(lines, ["8 pieces of the driver's", *rest])
        # What the driver's own have got is none of what may be held.
        self.assertLessEqual(int(re.search(r"device full at (\d+)\.0 MiB", run.errors).group(1)), 64 - 8 * 4)

    def test_programs_that_try_how_much_they_can_have(self):
        command = [FILLS, "nothing", "--loop", "12", "--trials", "--again", "8"]
        natively = native(*command, CUDASIM_CAPACITY="128M")
        run = self.succeed(command, CUDASIM_CAPACITY="128M")
        self.assertEqual(run.output, natively.output)
        self.assertNotIn("the device is full", run.errors)
        self.assertEqual(run.report["counters"]["bytes_copied_out"], natively.report["counters"]["bytes_copied_out"])


if __name__ == "__main__":
    cases.main()
