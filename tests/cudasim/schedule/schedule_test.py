#!/usr/bin/env python3
"""Programs under CUDASIM_SCHEDULE, with libcudasim_schedule.so preloaded, as a process: one seed is one run."""
import os
import tempfile
import unittest

import cases
import patience
import simulated

BUILD = os.environ["TEST_BUILD"]
LIBRARIES = os.path.join(BUILD, "cudasim", "lib")
PRELOAD = os.path.join(LIBRARIES, "libcudasim_schedule.so")
PROBE = os.path.join(BUILD, "tests", "schedule_probe")
DEADLOCK = 87


class Probe(simulated.Finished):
    def __init__(self, what, preload=PRELOAD, **more):
        environment = simulated.clean_environment() | {"LD_LIBRARY_PATH": LIBRARIES} | more
        if preload:
            environment["LD_PRELOAD"] = preload
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace")
            if "CUDASIM_SCHEDULE" in more:
                environment["CUDASIM_SCHEDULE_TRACE"] = trace
            super().__init__([PROBE, what], environment, timeout=patience.seconds(60))
            self.trace = None
            if os.path.exists(trace):
                with open(trace, encoding="utf-8") as file:
                    self.trace = file.read()


class Schedule(unittest.TestCase):
    def test_one_seed_is_one_run(self):
        traces, orders = set(), set()
        for seed in range(16):
            with self.subTest(seed=seed):
                first, second = (Probe("work", CUDASIM_SCHEDULE=str(seed)) for _ in range(2))
                self.assertEqual(first.code, 0, first.errors)
                self.assertEqual(first.errors, "")
                self.assertTrue(first.trace == second.trace)
                self.assertEqual(first.output, second.output)
                self.assertEqual(first.report["schedule"], second.report["schedule"])
                self.assertEqual(first.output.split()[1:], ["30", "1"])
                self.assertTrue(" cuDeviceGetCount\n" in first.trace)
                traces.add(first.trace)
                orders.add(first.output)
        self.assertGreaterEqual(len(traces), 13)
        self.assertGreaterEqual(len(orders), 8)

    def test_a_thread_waits_where_it_would_wait(self):
        trace = "".join(Probe("work", CUDASIM_SCHEDULE=str(seed)).trace for seed in range(8, 16))
        for what in ("a mutex", "a condition", "a futex", "the end of a thread", "the end of its sleep"):
            self.assertTrue(f" {what}\n" in trace, what)

    def test_a_deadlock_is_found_and_named(self):
        found = set()
        for seed in range(8, 14):
            run = Probe("deadlock", CUDASIM_SCHEDULE=str(seed))
            found.add(run.code)
            if run.code == DEADLOCK:
                self.assertRegex(run.errors, f"deadlock with CUDASIM_SCHEDULE={seed}: thread 1 waits for the end of a thread, "
                                             "thread 2 waits for a mutex 0x[0-9a-f]+, thread 3 waits for a mutex 0x[0-9a-f]+\n")
                break
        self.assertIn(DEADLOCK, found)

    def test_a_host_function_may_wait_for_threads(self):
        for seed in range(12):
            run = Probe("function", CUDASIM_SCHEDULE=str(seed))
            self.assertEqual((run.code, run.output), (0, "stage 3\n"), run.errors)

    def test_without_a_seed_the_library_does_nothing(self):
        run = Probe("work")
        self.assertEqual((run.code, run.errors), (0, ""))
        self.assertIsNone(run.report["schedule"])

    def test_it_says_that_it_wants_the_library(self):
        run = Probe("nothing", preload=None, CUDASIM_SCHEDULE="0")
        self.assertIn("libcudasim_schedule.so is not preloaded", run.errors)


if __name__ == "__main__":
    cases.main()
