#!/usr/bin/env python3
"""Traces replayed at a part of their peak load: every read is verified, the same is read as natively, and no more is held
than the limit, by the driver's count. With --full: all networks and published traces."""
import itertools
import os
import unittest

import cases
import patience
from limit_runs import CHUNK, LimitCase, native
from runs import FULL, PLANNER_NAME, WITHOUT_A_PLANNER, WORKLOADS

REPLAY = os.path.join(WORKLOADS, "replay")
ITERATIONS = 8 if FULL else 5
PARTS = (90, 75, 60, 45)
BATCH = () if FULL else ("--batch", 20)
NETS = ["vgg11"]
TRACES = ["blockInfo_Alex_316.text"]
if FULL:
    NETS += ["vgg13", "vgg16", "vgg19", "resnet18", "resnet34", "resnet50", "resnet101"]
    TRACES += ["blockInfo_VGG_315.text", "blockInfo_resnet_315.text", "vec_block_fresh_vgg.csv"]
# Per cent of the peak load below which the limit is passed: Alex has a block of 103 MiB, 47 % of it, beside which others are used.
LEAST = {"blockInfo_Alex_316.text": 56}
SEEDS = ("1", "2") + (("3", "4", "5", "6") if FULL else ())
QUIET = {"CUDASIM_POISON": "off"}


class Replayed(LimitCase):
    def replay(self, trace, part, *arguments, **more):
        command = [REPLAY, trace, "--iterations", str(ITERATIONS), *arguments]
        reference = native(*command, numbers=True, CUDASIM_POISON="off")
        limit = reference.numbers["peak_load"] * part // 100 // CHUNK * CHUNK
        run = self.limited(command, limit, numbers=True, timeout=patience.seconds(600 if FULL else 120), **(QUIET | WITHOUT_A_PLANNER | more))
        self.assertEqual(run.numbers["mismatches"], 0)
        self.assertEqual(run.last_line, reference.last_line)
        for copied in run.copied(reference):
            self.assertGreater(copied, 0, run.errors)
        if part >= LEAST.get(os.path.basename(trace), 0):
            self.assert_kept(run)
        else:
            self.assertLessEqual(run.held, run.limit + run.passed_by + CHUNK, run.errors)
        return run

    def at_all_parts(self, trace):
        for part in PARTS:
            with self.subTest(trace=os.path.basename(trace), part=part):
                self.replay(trace, part)

    def test_networks(self):
        for name in NETS:
            self.at_all_parts(self.net(name, *BATCH))

    def test_published_traces(self):
        for name in TRACES:
            with self.subTest(name):
                self.at_all_parts(self.shared(name))

    def test_any_order_that_the_edges_allow(self):
        trace = self.net("vgg11", "--batch", 8)
        for seed, streams in itertools.product(SEEDS, ("1", "2")):
            with self.subTest(seed=seed, streams=streams):
                self.replay(trace, 60, "--streams", streams, CUDASIM_SEED=seed)

    def test_two_streams(self):
        trace = self.net("vgg11", *BATCH)
        for part in PARTS:
            with self.subTest(part=part):
                self.replay(trace, part, "--streams", "2")

    def test_two_threads(self):
        """Each with blocks and streams of its own; the peak load is both threads'."""
        trace = self.net("vgg11", "--batch", 8)
        for seed in (None, *SEEDS):
            with self.subTest(seed=seed):
                self.replay(trace, 60, "--threads", "2", **({} if seed is None else {"CUDASIM_SEED": seed}))

    def test_every_access_of_the_kernels_is_ordered(self):
        trace = self.net("vgg11", "--batch", 1)
        for seed in SEEDS:
            with self.subTest(seed=seed):
                self.replay(trace, 75, "--streams", "2", CUDASIM_SEED=seed, CUDASIM_INSTRUMENT="1")

    def test_with_a_planner(self):
        """A plan that needs more than the limit is none; what is served is served within it."""
        for part in PARTS if FULL else (75, 45):
            with self.subTest(part=part):
                self.replay(self.net("vgg11", *BATCH), part, MEMOPT_PLANNER=None, MEMOPT_PLANNER_NAME=PLANNER_NAME, MEMOPT_SYNC_PLAN=patience.WAIT)


if __name__ == "__main__":
    cases.main()
