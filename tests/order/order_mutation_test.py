#!/usr/bin/env python3
"""Planted bugs of order must be caught by programs of several threads (order_test.py, which shows that the library itself passes): each
mutant of libmemopt.so is built from a changed copy of one source file, and one of the first runs under it has to fail as is said."""
import concurrent.futures
import os
import tempfile
import unittest

import cases
import mutant
from order_runs import BUILD, SHIM, Run, Seeds

SOURCE = os.environ["TEST_SOURCE"]
MOST_PROGRAMS = 2_000
ORDER = ("race", "order_fuzzer")
DEADLOCK = ("deadlock",)

# File, what stands there, what is put in its place, how it shows, and what is wrong then. Where both texts are the same, the bug is in the
# tree: its mended text goes first, and the bug stays planted.
MUTANTS = {
    "own-operation-counts-as-queued": (
        "agent/order/in_flight.cpp", "    if (&thread == in_flight_own) continue;\n", "    if (&thread == in_flight_own) continue;\n", ORDER,
        "a wait in the midst of an operation takes that operation, announced and not queued, for complete"),
    "announced-counts-as-queued": (
        "agent/order/in_flight.cpp", "  if (registered >= kInFlightThreads) return 0;\n", "  if (registered != 0) return position;\n", ORDER,
        "an event is taken to come after what other threads are about to queue"),
    "event-placed-after-the-call": (
        "preload/event_hooks.cpp", "  agent::note_event_recorded(event, name);\n", "  agent::note_event_recorded(event, name);\n", ORDER,
        "the place of an event is looked up when the driver has recorded it, and another thread has queued something meanwhile"),
    "device-waited-for-with-the-lock": (
        "agent/order/stream_table.cpp", "  if (driver_.synchronize_context() != CUDA_SUCCESS) return false;\n",
        "  if (driver_.synchronize_context() != CUDA_SUCCESS) return false;\n", DEADLOCK,
        "a thread waits for the device with the arena's lock, and the device for another thread, which wants that lock"),
    "dropped-wait": (
        "agent/order/stream_table.cpp", "driver_.stream_wait_event(name_of(waiting), event->event, 0) != CUDA_SUCCESS", "false", ORDER,
        "a stream does not wait for the former users of its bytes"),
}


class OrderMutants(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def build(self, name):
        source, old, new, _, _ = MUTANTS[name]
        library = mutant.build_library(BUILD, SOURCE, source, old, new, tempfile.mkdtemp(dir=self.folder))
        return SHIM if old == new else library

    def caught(self, library, kinds):
        seeds = [Seeds(one.programs, one.count, one.schedule, one.adversary, False) for one in Seeds.batches(MOST_PROGRAMS)]
        together = min(os.cpu_count() or 2, 16)
        with concurrent.futures.ThreadPoolExecutor(together) as pool:
            for first in range(0, len(seeds), together):
                for run in pool.map(lambda one: Run(one, memopt=True, shim=library), seeds[first:first + together]):
                    if run.code != 0 and any(kind in run.errors for kind in kinds):
                        return run
        return None

    def test_each_mutant_is_caught(self):
        for name, (_, _, _, kinds, what) in MUTANTS.items():
            with self.subTest(name):
                run = self.caught(self.build(name), kinds)
                self.assertIsNotNone(run, f"{what}, and no program of {MOST_PROGRAMS} saw it")
                print(f"{name}: {run.summary}\n  {run.command}", flush=True)


if __name__ == "__main__":
    cases.main()
