#!/usr/bin/env python3
"""Out of memory only where the driver is out of memory, too: what memopt holds without need goes to whatever asks for memory.

A program fills a small device with one kind of memory, natively and under memopt: without a plan, while one is prepared, and under one.
With --full: each kind and size at each of these times, in both orders.
"""
import functools
import os
import re
import unittest

import cases
from runs import BUILD, FULL, PlanningCase, Run

PROGRAM = os.path.join(BUILD, "tests", "full_device")
KINDS = ("all", "context", "pitch", "create", "pool", "closed-pool", "module", "size=3145728", "size=262144")
LIVE = 12  # iterations by which a plan is live
KIB = (64, 128, 256, 300, 512, 600, 768, 1023, 1024, 1229, 1536, 1945.5, 2047.5, 2048, 2049, 3072, 4096, 6144)
# Where amounts are compared, pages are not written that the program does not write itself: most of these runs' time. Blocks are filled with
# words of their own and checked all the same.
# What is held without need is what this is about, not that blocks can leave for host memory.
AMOUNTS = {"MEMOPT_SWAP": "0"} | ({} if FULL else {"CUDASIM_POISON": "off"})
POISONED = {"CUDASIM_POISON": None}
# There is no virtual memory management: blocks are the driver's, and so is the plan's memory.
NO_VMM = {"CUDASIM_INJECT": "cuMemAddressReserve:801"}


@functools.cache
def native(*arguments):
    run = Run([PROGRAM, *arguments], planned=False, CUDASIM_CAPACITY="128M", **AMOUNTS)
    assert run.code == 0, run.errors
    return run.output


def amounts(output):
    return [int(kib) for kib in re.findall(r"(\d+) KiB$", output, re.MULTILINE)]


class FullDevice(PlanningCase):
    def fill(self, *arguments, **options):
        return self.succeed([PROGRAM, *arguments], CUDASIM_CAPACITY="128M", **(AMOUNTS | options))

    def assert_as_much(self, run, *arguments):
        reference = amounts(native(*arguments))
        mine = amounts(run.output)
        self.assertEqual(len(mine), len(reference))
        for had, there_is in zip(mine, reference):
            self.assertGreaterEqual(had, there_is, f"{run.output}{run.errors}")

    def test_every_kind_of_memory_gets_what_is_idle(self):
        """After so many iterations, of which the driver has all memory back natively: none, some, a plan that is armed or live."""
        for kind in KINDS:
            for iterations in (0, 2, 3, LIVE) if FULL or kind in ("all", "create", "pool") else (0, LIVE):
                with self.subTest(kind=kind, iterations=iterations):
                    arguments = (kind, "--loop", str(iterations), "--again", "8")
                    run = self.fill(*arguments)
                    self.assert_as_much(run, *arguments)
                    if iterations == LIVE:
                        self.assertIsNotNone(run.live_at, run.errors)
                        self.assertLess(run.live_at, LIVE)

    def test_beside_blocks_that_live_under_a_plan(self):
        for kind in KINDS:
            for seed in (None, "1") if FULL else ("1",):
                with self.subTest(kind=kind, seed=seed):
                    arguments = (kind, "--loop", str(LIVE), "--within", "--again", "8")
                    self.assert_as_much(self.fill(*arguments, **POISONED, **({} if seed is None else {"CUDASIM_SEED": seed})), *arguments)

    def test_work_on_what_is_idle_is_waited_for(self):
        """Its bytes are unmapped: a kernel that still wrote there would fault."""
        for kind in KINDS:
            for seed, iterations in (("1", "2"), ("2", str(LIVE)), ("3", str(LIVE))):
                with self.subTest(kind=kind, seed=seed):
                    run = self.fill(kind, "--loop", iterations, "--pending", "--again", "8", CUDASIM_SEED=seed, **POISONED)
                    self.assert_as_much(run, kind, "--loop", iterations, "--again", "8")

    def test_without_virtual_memory_management(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                arguments = (kind, "--loop", str(LIVE), "--again", "8")
                run = self.fill(*arguments, **NO_VMM)
                self.assertIsNotNone(run.live_at, run.errors)
                self.assert_as_much(run, *arguments)

    def test_without_a_planner(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                arguments = (kind, "--loop", "5", "--again", "2")
                self.assert_as_much(self.fill(*arguments, MEMOPT_PLANNER="/nonexistent/memoptd", MEMOPT_SYNC_PLAN="0"), *arguments)
                self.assert_as_much(self.fill(*arguments, MEMOPT_PLAN="0"), *arguments)

    def test_blocks_of_any_size_fill_the_device_as_natively(self):
        for index, kib in enumerate(KIB):
            for iterations in ("0", str(LIVE)) if FULL or index % 3 == 0 else (str(LIVE),):
                with self.subTest(kib=kib, iterations=iterations):
                    arguments = (f"size={int(kib * 1024)}", "--loop", iterations)
                    self.assert_as_much(self.fill(*arguments), *arguments)

    def test_mixed_sizes_fill_the_device_as_natively(self):
        for kind in (*(f"shared={seed}" for seed in range(4)), "fragments=1258291", "fragments=614400"):
            with self.subTest(kind=kind):
                self.assert_as_much(self.fill(kind), kind)

    def test_taking_turns_in_a_full_device(self):
        """Blocks of 1 to 2 MiB, which have granules of their own natively."""
        for seed in range(3):
            with self.subTest(seed=seed):
                kind = f"small-turns={seed}"
                self.assertEqual(self.fill(kind).output, native(kind))
                # From 1 to 12 MiB: blocks that share chunks keep some of them from others, of 3000 one in fifty at most.
                failed = int(re.match(r"(\d+) do not fit", self.fill(f"turns={seed}").output).group(1))
                self.assertLessEqual(failed, 60)

    def test_the_plan_goes_on_afterwards(self):
        """Once there is memory again, iterations need the driver no more."""
        calls = [[self.fill("create", "--loop", str(LIVE), "--again", again).report["calls"].get(symbol, 0)
                  for symbol in ("cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemRelease", "cuMemAlloc_v2")] for again in ("60", "90")]
        self.assertEqual(calls[0], calls[1])

    def test_trials_take_nothing_from_a_plan(self):
        run = self.fill("nothing", "--loop", str(LIVE), "--trials", "--again", "8", MEMOPT_LOG="info")
        self.assertIsNotNone(run.live_at)
        self.assertNotIn("memory is short", run.errors)
        self.assertEqual(run.report["calls"].get("cuCtxSynchronize", 0), 0)
        self.assertIn("memory is short", self.fill("create", "--loop", str(LIVE), MEMOPT_LOG="info").errors)


if __name__ == "__main__":
    cases.main()
