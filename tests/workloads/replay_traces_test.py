#!/usr/bin/env python3
"""replay on whole traces: published ones where they are at hand, and the generated networks, at their published size by `full` only: a
fifth of it has as many operations."""
import unittest

import cases
from replay_run import ReplayCase

# Poisoning freed memory is most of the time of runs of this size; stale bytes of other blocks are found all the same.
LARGE = {"CUDASIM_POISON": "off"}
NETWORKS = ["vgg11", "vgg13", "vgg16", "vgg19", "resnet18", "resnet34", "resnet50", "resnet101"]


class TraceCase(ReplayCase):
    def verify(self, trace, streams, seeds, iterations=None):
        arguments = [trace, "--streams", streams] + (["--iterations", iterations] if iterations else [])
        checksums = set()
        for seed in seeds:
            run = self.succeed(*arguments, **LARGE, **({"CUDASIM_SEED": seed} if seed else {}))
            checksums.add(run.numbers["checksum"])
            self.assertGreater(run.numbers["bytes_verified"], 0)
            self.assertGreaterEqual(run.numbers["trace_iterations"], 3)
        self.assertEqual(len(checksums), 1)
        return run.numbers


class Daily(TraceCase):
    def test_published_vgg16(self):
        numbers = self.verify(self.shared("vec_block_fresh_vgg.csv"), 2, [None, "1"])
        self.assertEqual(numbers["trace_operations"], 9516)
        self.assertEqual(numbers["period"], 3172)
        self.assertEqual(numbers["trace_iterations"], 3)
        self.assertEqual(numbers["ignored"], 0)
        # Of the 647.73 MiB that the authors state, 13.1 are in blocks that the trace never mentions.
        self.assertEqual(numbers["peak_load"], 665434164)

    def test_published_alexnet(self):
        numbers = self.verify(self.shared("blockInfo_Alex_316.text"), 2, [None, "1"], 6)
        self.assertEqual(numbers["period"], 612)

    def test_generated(self):
        for name in "vgg16", "resnet18":
            with self.subTest(network=name):
                self.verify(self.net(name, "--batch", 20), 2, [None, "1"], 4)


class Full(TraceCase):
    def test_published(self):
        for name, period in (("blockInfo_VGG_315.text", 3098), ("blockInfo_resnet_315.text", 4035)):
            with self.subTest(trace=name):
                self.assertEqual(self.verify(self.shared(name), 3, [None, "1", "2"])["period"], period)

    def test_published_allocations(self):
        for name, period in (("memInfo_alex_20itr_100size.text", 188), ("memInfo_vgg_20itr_100size.text", 1020),
                             ("memInfo_resnet_20itr_100size.text", 1268)):
            with self.subTest(trace=name):
                run = self.succeed(self.shared(name), "--allocations-only", **LARGE)
                self.assertEqual(run.numbers["period"], period)

    def test_generated(self):
        for name in NETWORKS:
            with self.subTest(network=name):
                self.verify(self.net(name), 2, [None, "1"], 3)


if __name__ == "__main__":
    cases.main()
