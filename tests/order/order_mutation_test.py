#!/usr/bin/env python3
"""Planted bugs of order must be caught by programs of several threads (order_test.py, which shows that the library itself passes): each
mutant of libmemopt.so is built from a changed copy of one source file, and one of the first runs under it has to fail as is said. The run
that found it last comes first; with --full all are in their own order, which shows how soon a bug like it is found."""
import concurrent.futures
import dataclasses
import os
import tempfile
import unittest

import cases
import mutant
from order_runs import BUILD, FULL, Run, Seeds

SOURCE = os.environ["TEST_SOURCE"]
MOST_PROGRAMS = 2_000
# The first programs of runs that have found the mutant: which do differs with what a thread does between two calls.
FOUND_BY = {"announced-counts-as-queued": (300, 235), "event-placed-after-the-call": (405, 480, 500), "device-waited-for-with-the-lock": (220,),
            "free-of-many-threads-without-a-wait": (10,), "legacy-allocation-orders-nothing": (900,)}
# What is wrong only if another thread runs between one call's return and the next thing its thread does: threads are preempted there alone.
AT = {"event-placed-after-the-call": "cuEventRecord"}
ORDER = ("race", "order_fuzzer")
DEADLOCK = ("deadlock",)

# File, what stands there, what is put in its place, how it shows, and what is wrong then.
MUTANTS = {
    "announced-counts-as-queued": (
        "agent/order/in_flight.cpp", "  return {least - 1, more || count != position + 1 - least};\n", "  return {position, false};\n", ORDER,
        "an event is taken to come after what threads have announced and are about to queue"),
    "event-placed-after-the-call": (
        "preload/event_hooks.cpp",
        "  const agent::EventRecord record = agent::begin_event_record(event, name);\n"
        "  const CUresult result = agent::noted(real<hook>()(event, stream, flags...));\n",
        "  const CUresult result = agent::noted(real<hook>()(event, stream, flags...));\n"
        "  const agent::EventRecord record = agent::begin_event_record(event, name);\n", ORDER,
        "the place of an event is looked up when the driver has recorded it, and another thread has queued something meanwhile"),
    "device-waited-for-with-the-lock": (
        "agent/order/stream_waits.cpp",
        "    {\n      const Unlocked unlocked(lock);\n      result = driver_.event_synchronize(event->handle);\n    }\n",
        "    result = driver_.event_synchronize(event->handle);\n", DEADLOCK,
        "a thread waits for the device with the arena's lock, and the device for another thread, which wants that lock"),
    "folded-before-it-has-its-place": (
        "agent/order/stream_waits.cpp", "  if (slot == kFoldSlot) ++waiting.position;\n", "", ORDER,
        "what another thread is folding counts as over"),
    "dropped-wait": (
        "agent/order/stream_waits.cpp", "result = driver_.stream_wait_event(name, event->handle, 0);", "result = CUDA_SUCCESS;", ORDER,
        "a stream does not wait for the former users of its bytes"),
    "free-of-many-threads-without-a-wait": (
        "agent/memory/arena_free.cpp", "  if (free.needs_wait) result = arena.streams.finish_all(lock);\n", "", ORDER,
        "where many threads free, bytes are taken for free while work uses them"),
    "legacy-allocation-orders-nothing": (
        "agent/order/stream_waits.cpp", "    if (lacks_event(stream, stream.position)) record(lock, slot);\n    return;\n", "    return;\n", ORDER,
        "an allocation on the legacy stream is no work, and blocking streams are not ordered by it"),
}


class OrderMutants(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def build(self, name):
        source, old, new, _, _ = MUTANTS[name]
        return mutant.build_library(BUILD, SOURCE, source, old, new, tempfile.mkdtemp(dir=self.folder))

    def caught(self, library, kinds, first, at):
        seeds = [dataclasses.replace(one, barrier=False, at=at) for one in Seeds.batches(MOST_PROGRAMS)]
        if not FULL:
            # Several times: not each run of such a program finds it.
            seeds = 3 * [one for one in seeds if one.programs in first] + seeds
        together = min(os.cpu_count() or 2, 16)
        with concurrent.futures.ThreadPoolExecutor(together) as pool:
            for begin in range(0, len(seeds), together):
                for run in pool.map(lambda one: Run(one, memopt=True, shim=library), seeds[begin:begin + together]):
                    if run.code != 0 and any(kind in run.errors for kind in kinds):
                        return run
        return None

    def test_each_mutant_is_caught(self):
        for name, (_, _, _, kinds, what) in MUTANTS.items():
            with self.subTest(name):
                run = self.caught(self.build(name), kinds, FOUND_BY.get(name, ()), AT.get(name))
                self.assertIsNotNone(run, f"{what}, and no program of {MOST_PROGRAMS} saw it")
                print(f"{name}: {run.summary}\n  {run.command}", flush=True)


if __name__ == "__main__":
    cases.main()
