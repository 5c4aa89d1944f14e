#!/usr/bin/env python3
"""Programs that train, at a part of what they need: the same losses and weights, bit for bit. With --full: more limits and orders."""
import os
import re
import sys
import unittest

import cases
import patience
from limit_runs import CHUNK, MIB, LimitCase, native
from runs import FULL, WITHOUT_A_PLANNER, WORKLOADS

DIGITS = [os.path.join(WORKLOADS, "digits_cnn")]
TRAIN = [sys.executable, os.path.join(WORKLOADS, "train.py")]
SEEDS = (None, "1", "2") if FULL else (None, "1")
PARTS = (90, 75, 60, 45) if FULL else (60,)
EPOCHS = "4" if FULL else "1"


class Training(LimitCase):
    def train(self, command, limit, seed, **more):
        reference = native(*command)
        more |= {} if seed is None else {"CUDASIM_SEED": seed}
        run = self.limited(command, limit, timeout=patience.seconds(600), **({"MEMOPT_LOG": "info"} | more))
        # Losses, accuracy and the checksum over the weights.
        self.assertEqual(run.output, reference.output, run.errors)
        return run

    def test_digits_cnn(self):
        """Of 85 MB at most, 18 blocks have at least 2 MiB; the others stay."""
        command = (*DIGITS, "--epochs", EPOCHS)
        peak = native(*command).report["counters"]["bytes_live_peak"]
        for part in PARTS:
            for seed in SEEDS:
                with self.subTest(part=part, seed=seed):
                    limit = peak * part // 100 // CHUNK * CHUNK
                    run = self.train(command, limit, seed)
                    self.assertGreater(min(run.copied(native(*command))), 0, run.errors)
                    self.assert_kept(run)

    def test_what_lies_between_epochs_costs_little(self):
        """Each five steps a batch is loaded that no step before it has made room for: the plan of a step is left, and followed again in it."""
        command = (*DIGITS, "--epochs", "6", "--quiet")
        limit = native(*command).report["counters"]["bytes_live_peak"] * 70 // 100 // CHUNK * CHUNK
        planned = self.train(command, limit, None)
        self.assert_kept(planned)
        told = re.search(r"; (\d+) swaps as planned, (\d+) not", planned.last_words)
        self.assertIsNotNone(told, planned.errors)
        made, otherwise = map(int, told.groups())
        each = re.findall(r"(\d+) swaps an iteration of", planned.errors)
        # Of 30 steps, the first seven or so have no plan yet.
        self.assertGreater(made, 16 * int(each[-1]), planned.errors)
        self.assertLess(otherwise, made / 20)
        on_demand = self.train(command, limit, None, **WITHOUT_A_PLANNER)
        self.assertLess(planned.report["host_end_ns"], 0.75 * on_demand.report["host_end_ns"])

    def test_train_py(self):
        """All of its blocks are small: nothing can leave, so it passes a limit of one chunk, and says so."""
        for seed in SEEDS:
            with self.subTest(seed=seed):
                run = self.train(tuple(TRAIN), 2 * MIB, seed)
                self.assertEqual(run.held > run.limit, run.passed_by > 0, run.errors)


if __name__ == "__main__":
    cases.main()
