#!/usr/bin/env python3
"""The workloads on the simulated driver: they learn, repeat bit by bit, and mean the same to every runtime, allocator, seed and preload.
With --full: every access looked at with and without the pool, in both orders."""
import functools
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

import cases
import simulated

PROGRAMS = os.environ["TEST_WORKLOADS"]
SIMULATOR = os.environ["TEST_SIMULATOR"]
POOL = os.path.join(SIMULATOR, "lib", "libcaching_pool.so")
SHIM = os.environ.get("TEST_SHIM", "")
PREFIX = os.environ.get("SANITIZER_PRELOAD", "")
MIB = 1 << 20

CNN = [os.path.join(PROGRAMS, "digits_cnn")]
CNN_STATIC = [os.path.join(PROGRAMS, "digits_cnn_static")]
TRAIN = [sys.executable, os.path.join(PROGRAMS, "train.py")]
# Five steps of the default shape; and a small one, for the plug-in that reports every load and store.
SHORT = ["--epochs", "1"]
SMALL = ["--epochs", "1", "--batch", "96", "--width", "2"]
SEEDS = ("1",) if PREFIX else ("1", "2")
FULL = "--full" in sys.argv
if FULL:
    sys.argv.remove("--full")


class Run(simulated.Finished):
    """With the pool's report where there is one."""

    def __init__(self, command, preload=(), driver=True, kernels=None, **environment):
        clean = simulated.clean_environment()
        libraries = PREFIX + ":".join(preload)
        if libraries:
            clean["LD_PRELOAD"] = libraries
        if driver:
            clean["LD_LIBRARY_PATH"] = os.path.join(SIMULATOR, "lib")
        clean["CUDASIM_KERNELS"] = os.path.join(SIMULATOR, kernels or "kernels", "digits_cnn.so")
        super().__init__(command, clean | environment, files={"CACHING_POOL_REPORT": "pool"})

    @property
    def accuracy(self):
        return float(re.search(r"^test accuracy ([0-9.]+) %", self.output, re.MULTILINE).group(1))


@functools.cache
def small():
    """One plain run, which several cases compare with."""
    run = Run(CNN + SMALL)
    assert run.code == 0, run.output + run.errors
    return run


class WorkloadCase(unittest.TestCase):
    def need_instrumented_kernels(self):
        if PREFIX:
            self.skipTest("the plug-in's callbacks carry the sanitizer's names: the plain build runs this")

    def succeed(self, command, **options):
        run = Run(command, **options)
        self.assertEqual(run.code, 0, run.output + run.errors)
        self.assertRegex(run.last_line, r"^checksum [0-9a-f]{16}$")
        # A kernel that no plug-in has would leave weights as they are, and equal.
        self.assertEqual(run.report["counters"]["unknown_kernels"], 0)
        self.assertEqual(run.report["counters"]["races"], 0)
        return run

    def assert_same(self, run, reference):
        self.assertEqual(run.last_line, reference.last_line)
        self.assertEqual(run.accuracy, reference.accuracy)


class DigitsCnn(WorkloadCase):
    @classmethod
    def setUpClass(cls):
        cls.reference = Run(CNN + SHORT)

    @cases.in_plain_builds
    def test_learns_and_holds_enough_memory(self):
        run = self.succeed(CNN)
        self.assertGreater(run.accuracy, 95)
        counters = run.report["counters"]
        self.assertGreaterEqual(counters["bytes_live_peak"], 64 * MIB)
        self.assertGreaterEqual(counters["blocks_2mib_live_at_peak"], 16)
        self.assertEqual(counters["bytes_live"], 0, "everything is freed at the end")

    @cases.in_plain_builds
    def test_repeats_to_the_nanosecond(self):
        run = self.succeed(CNN + SHORT)
        self.assertEqual(run.output, self.reference.output)
        self.assertEqual(run.report["host_end_ns"], self.reference.report["host_end_ns"])
        self.assertEqual(run.report["device_end_ns"], self.reference.report["device_end_ns"])

    @cases.in_plain_builds
    def test_another_seed_is_another_run(self):
        self.assertNotEqual(self.succeed(CNN + SHORT + ["--seed", "2"]).last_line, self.reference.last_line)

    @cases.not_under_tsan
    def test_static_runtime(self):
        self.assert_same(self.succeed(CNN_STATIC + SHORT), self.reference)

    @cases.in_plain_builds  # sanitised, the pool's run has it
    def test_adversarial_order(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                self.assert_same(self.succeed(CNN + SHORT, CUDASIM_SEED=seed), self.reference)

    def test_caching_pool(self):
        for seed in SEEDS if PREFIX else (None, *SEEDS):
            with self.subTest(seed=seed):
                run = self.succeed(CNN + SHORT, preload=[POOL], **({"CUDASIM_SEED": seed} if seed else {}))
                self.assert_same(run, self.reference)
                self.assertEqual(run.pool["mallocs"], run.pool["frees"])
                self.assertGreater(run.pool["hits"], run.pool["mallocs"] * 0.9)
                # What the pool holds is what the driver sees.
                self.assertEqual(run.pool["peak_reserved_bytes"], run.report["counters"]["bytes_live_peak"])
                self.assertGreaterEqual(run.pool["peak_reserved_bytes"], run.pool["peak_live_bytes"])
                # The program's load is the same as without the pool.
                self.assertEqual(run.pool["peak_requested_bytes"], self.reference.report["counters"]["bytes_live_peak"])

    def test_shim(self):
        if not SHIM:
            self.skipTest("the shim is not part of this build")
        # The runtime's other form has first_call_malloc_static under the shim there.
        for command in (CNN,) if PREFIX else (CNN, CNN_STATIC):
            with self.subTest(command=command[0]):
                self.assert_same(self.succeed(command + SHORT, preload=[SHIM]), self.reference)

    def test_every_access_is_ordered(self):
        self.need_instrumented_kernels()
        reference = small()
        for preload, seed in itertools.product(([], [POOL]), (None, "1")) if FULL else (([], None), ([POOL], "1")):
            with self.subTest(preload=preload, seed=seed):
                run = self.succeed(CNN + SMALL, preload=preload, kernels="kernels-instrumented", CUDASIM_INSTRUMENT="1",
                                   **({"CUDASIM_SEED": seed} if seed else {}))
                self.assertTrue(run.report["kernels_instrumented"])
                self.assert_same(run, reference)

    @cases.in_plain_builds
    def test_pacing_makes_wall_time_follow_virtual_time(self):
        pace = 5.0
        begin = time.monotonic_ns()
        run = self.succeed(CNN + SMALL, CUDASIM_PACE=str(pace))
        wall = time.monotonic_ns() - begin
        # A sleep has a lower bound only. The last wait for the device comes a few calls before the end.
        self.assertGreaterEqual(wall, 0.9 * pace * run.report["host_end_ns"])
        self.assertEqual(run.report["host_end_ns"], small().report["host_end_ns"])

    def test_serialize_changes_nothing_for_one_thread(self):
        self.assert_same(self.succeed(CNN + SMALL, CUDASIM_SERIALIZE="1"), small())

    @cases.not_under_tsan
    def test_any_shape(self):
        for shape in (["--batch", "333", "--width", "3"],) if PREFIX else (["--batch", "1000", "--width", "1"], ["--batch", "333", "--width", "3"]):
            with self.subTest(shape=shape):
                self.succeed(CNN + ["--epochs", "1"] + shape)

    @cases.in_plain_builds
    def test_bad_arguments(self):
        for arguments, message in ((["--epochs", "0"], "--epochs expects a number from 1"), (["--batch", "many"], "not 'many'"),
                                   (["--batch", "-1"], "not '-1'"), (["--seed"], "--seed expects a value"),
                                   (["--depth", "3"], "unknown option '--depth'"), (["--data", "/nowhere/digits.csv"], "'/nowhere/digits.csv'")):
            with self.subTest(arguments=arguments):
                run = Run(CNN + arguments)
                self.assertEqual(run.code, 2)
                self.assertEqual(run.output, "")
                self.assertIn(message, run.errors)

    @cases.in_plain_builds
    def test_bad_data(self):
        good = ",".join(["0"] * 64 + ["1"]) + "\n"
        for text, message in (("", "at least 100 images"), (good * 99, "at least 100 images"), (good + good[:-3] + "\n", ":2: field 64"),
                              ("17" + good[1:], ":1: field 1"), (good.replace(",1\n", ",10\n"), ":1: field 65"), ("x" * 5000, ":1: field 1")):
            with self.subTest(message=message), tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
                file.write(text)
                file.flush()
                run = Run(CNN + ["--data", file.name])
                self.assertEqual(run.code, 2)
                self.assertIn(message, run.errors)

    def test_out_of_memory_is_named(self):
        run = Run(CNN + SHORT, CUDASIM_CAPACITY="48M")
        self.assertEqual(run.code, 1)
        self.assertIn("cudaErrorMemoryAllocation", run.errors)


class TrainPy(WorkloadCase):
    @classmethod
    def setUpClass(cls):
        cls.reference = Run(TRAIN)

    @cases.in_plain_builds
    def test_learns(self):
        run = self.succeed(TRAIN)
        self.assertGreater(run.accuracy, 95)
        self.assertEqual(run.output, self.reference.output)

    @cases.in_plain_builds  # sanitised, DigitsCnn's has one
    def test_adversarial_order(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                self.assert_same(self.succeed(TRAIN, CUDASIM_SEED=seed), self.reference)

    def test_every_access_is_ordered(self):
        self.need_instrumented_kernels()
        short = TRAIN + ["--epochs", "2"]
        reference = self.succeed(short)
        run = self.succeed(short, kernels="kernels-instrumented", CUDASIM_INSTRUMENT="1")
        self.assertTrue(run.report["kernels_instrumented"])
        self.assert_same(run, reference)

    @cases.in_plain_builds
    def test_serialized_threads_repeat_to_the_nanosecond(self):
        first, second = (self.succeed(TRAIN, CUDASIM_SERIALIZE="1") for _ in range(2))
        self.assert_same(first, self.reference)
        for clock in "host_end_ns", "device_end_ns":
            self.assertEqual(first.report[clock], second.report[clock])

    def test_shim(self):
        if not SHIM:
            self.skipTest("the shim is not part of this build")
        self.assert_same(self.succeed(TRAIN, preload=[SHIM]), self.reference)

    @cases.in_plain_builds
    def test_bad_arguments(self):
        for arguments, message in ((["--module", "/nowhere.fatbin"], "/nowhere.fatbin"), (["--data", "/nowhere.csv"], "/nowhere.csv"),
                                   (["--epochs", "0"], "--epochs expects")):
            with self.subTest(arguments=arguments):
                run = Run(TRAIN + arguments)
                self.assertNotEqual(run.code, 0)
                self.assertIn(message, run.errors)


class FirstCalls(unittest.TestCase):
    """Programs whose first call is the one that finds, or misses, the driver."""

    PRELOADS = [[], [SHIM]] if SHIM else [[]]

    def test_allocation_first(self):
        for suffix, preload in itertools.product(("", "_static"), self.PRELOADS):
            with self.subTest(suffix=suffix, preload=preload):
                run = Run([os.path.join(PROGRAMS, "first_call_malloc" + suffix)], preload=preload)
                self.assertEqual((run.code, run.output), (0, "42\n"), run.errors)

    def test_count_first_and_end_without_exit_handlers(self):
        for suffix, preload in itertools.product(("", "_static"), self.PRELOADS):
            with self.subTest(suffix=suffix, preload=preload):
                run = Run([os.path.join(PROGRAMS, "first_call_count" + suffix)], preload=preload)
                self.assertEqual((run.code, run.output), (5, "cudaSuccess 1\n"), run.errors)
                self.assertIsNone(run.report)

    @cases.in_plain_builds
    def test_static_programs_are_stripped(self):
        for name in "digits_cnn_static", "first_call_malloc_static", "first_call_count_static":
            with self.subTest(name=name):
                sections = subprocess.run(["readelf", "-SW", os.path.join(PROGRAMS, name)], check=True, capture_output=True, text=True).stdout
                self.assertNotIn(".symtab", sections)
                self.assertIn(".dynsym", sections)

    @cases.in_plain_builds
    def test_programs_say_nothing_of_the_simulator(self):
        for name in "digits_cnn", "first_call_malloc", "first_call_count":
            with self.subTest(name=name):
                with open(os.path.join(PROGRAMS, name), "rb") as file:
                    self.assertNotRegex(file.read().lower(), rb"cudasim|libmemopt|memopt_")
                dynamic = subprocess.run(["readelf", "-dW", os.path.join(PROGRAMS, name)], check=True, capture_output=True, text=True).stdout
                self.assertRegex(dynamic, r"NEEDED.*libcudart\.so\.1[23]")
                self.assertNotRegex(dynamic, "RPATH|RUNPATH")


if __name__ == "__main__":
    cases.main()
