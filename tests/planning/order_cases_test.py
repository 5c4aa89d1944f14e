#!/usr/bin/env python3
"""What programs may rely on by CUDA's rules of order holds under memopt, with every thread and stream, and nothing hangs.

The program without memopt is the reference for what is printed; the simulator's checker, silent natively, must be silent under memopt.
"""
import itertools
import os
import re
import subprocess
import sys
import unittest

import cases
import patience
from runs import ORDER, PlanningCase, Run

SEEDS = (None, "1", "2", "3")


class Order(PlanningCase):
    def check(self, *command, seeds=SEEDS, modes=("1",), timeout=patience.seconds(120), **options):
        command = [ORDER, *map(str, command)]
        reference = Run(command, planned=False, timeout=timeout, **options)
        self.assertEqual(reference.code, 0, reference.errors)
        for seed, plan in itertools.product(seeds, modes):
            with self.subTest(command=command, seed=seed, plan=plan):
                run = self.succeed(command, timeout=timeout, MEMOPT_SYNC_PLAN="0", MEMOPT_PLAN=plan,
                                   **options, **({} if seed is None else {"CUDASIM_SEED": seed}))
                self.assertEqual(run.output, reference.output)
        return reference

    def test_streams_of_one_thread(self):
        for streams in (2, 3, 64, 300):
            self.check("streams", streams, seeds=SEEDS if streams < 300 else SEEDS[1:2])

    def test_a_block_is_freed_by_another_thread_than_the_one_whose_stream_uses_it(self):
        self.check("other-thread", 20)

    def test_a_host_function_may_wait_for_another_thread(self):
        self.check("host-function", 10, seeds=SEEDS[:2], modes=("1", "0"), timeout=patience.seconds(60))

    def test_many_threads(self):
        self.check("threads", 100, seeds=SEEDS[:2], modes=("1", "0"))

    def test_threads_in_turn(self):
        self.check("in-turn", 2000, seeds=SEEDS[:2])

    def test_a_free_is_a_barrier(self):
        reference = self.check("barrier")
        self.assertIn("before the free 600, after it: stream 0, event 0, elapsed 0 (a time); wrong words: 0", reference.output)

    def test_after_a_fault_the_driver_answers(self):
        self.check("failure", seeds=SEEDS[:1], modes=("1", "0"), CUDASIM_CHECK="off")

    def test_the_table_of_contention_is_printed(self):
        table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "contention.py")
        done = subprocess.run([sys.executable, table, "--threads", "2,3", "--rounds", "5", "--repeat", "1"], capture_output=True, text=True,
                              timeout=patience.seconds(120))
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = re.findall(r"^ +(\d+)  (native|memopt|MEMOPT_PLAN=0) +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+$", done.stdout, re.MULTILINE)
        self.assertEqual(rows, [(threads, mode) for threads in "23" for mode in ("native", "memopt", "MEMOPT_PLAN=0")])


if __name__ == "__main__":
    cases.main()
