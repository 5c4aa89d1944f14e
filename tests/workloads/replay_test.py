#!/usr/bin/env python3
"""replay on the simulated driver: it verifies what it reads, notices what is wrong, and is free of races under an adversary."""
import json
import os
import re
import unittest

import cases
from replay_run import PREFIX, ReplayCase, Run

SMALL = ["vgg11", "--batch", 1]


class Replay(ReplayCase):
    @cases.not_under_tsan
    def test_verifies_every_page_of_every_read(self):
        run = self.succeed(self.net(*SMALL))
        read = pages = 0
        with open(self.net(*SMALL), encoding="ascii") as file:
            for line in file:
                verb, _, size, _ = line.split()
                read += int(size) if verb == "Read" else 0
                pages += -(-int(size) // 4096) if verb == "Read" else 0
        self.assertEqual(run.numbers["first_reads"], 0)
        self.assertEqual(run.numbers["ignored"], 0)
        self.assertEqual(run.numbers["pages_verified"], pages)
        self.assertEqual(run.numbers["bytes_verified"], read)
        self.assertEqual(run.numbers["trace_iterations"], 3)
        self.assertEqual(run.numbers["iterations"], 3)
        # All the ways of writing and reading were there.
        self.assertGreater(run.report["counters"]["bytes_copied_out"], 0)
        for call in "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemsetD32Async":
            self.assertGreater(run.report["calls"].get(call, 0), 0, call)

    @cases.in_plain_builds
    def test_the_loop_is_the_trace_continued(self):
        for name in SMALL[0], "resnet18":
            with self.subTest(network=name):
                longer = self.succeed(self.net(name, "--batch", 1, "--iterations", 6))
                looped = self.succeed(self.net(name, "--batch", 1), "--iterations", 6)
                self.assertEqual(looped.numbers["checksum"], longer.numbers["checksum"])
                self.assertEqual(looped.numbers["operations"], longer.numbers["operations"])
                self.assertEqual(looped.numbers["peak_load"], longer.numbers["peak_load"])

    @cases.in_plain_builds
    def test_fewer_iterations_than_the_trace_has(self):
        short = self.succeed(self.net(*SMALL, "--iterations", 5), "--iterations", 3)
        same = self.succeed(self.net(*SMALL))
        self.assertEqual(short.numbers["checksum"], same.numbers["checksum"])
        self.assertEqual(short.numbers["operations"], same.numbers["operations"])
        self.assertEqual(short.numbers["iterations"], 3)

    def test_the_same_is_read_on_any_number_of_streams_under_an_adversary(self):
        reference = self.succeed(self.net(*SMALL), "--iterations", 4)
        for streams in 2, 5:
            for seed in "1", "2":
                with self.subTest(streams=streams, seed=seed):
                    run = self.succeed(self.net(*SMALL), "--iterations", 4, "--streams", streams, CUDASIM_SEED=seed)
                    self.assertEqual(run.numbers["checksum"], reference.numbers["checksum"])
                    self.assertGreater(run.report["calls"]["cuStreamWaitEvent"], 100)

    def test_threads_under_an_adversary(self):
        trace = self.net(*SMALL)
        reference = self.succeed(trace, "--streams", 2, "--threads", 2, "--iterations", 4)
        self.assertEqual(reference.numbers["operations"], 2 * self.succeed(trace, "--iterations", 4).numbers["operations"])
        for seed in "1", "2":
            with self.subTest(seed=seed):
                run = self.succeed(trace, "--streams", 2, "--threads", 2, "--iterations", 4, CUDASIM_SEED=seed)
                self.assertEqual(run.numbers["checksum"], reference.numbers["checksum"])

    def test_every_access_of_the_kernels_is_ordered(self):
        if PREFIX:
            self.skipTest("the plug-in's callbacks carry the sanitizer's names: the plain build runs this")
        reference = self.succeed(self.net(*SMALL), "--iterations", 4)
        for seed in "1", "2":
            with self.subTest(seed=seed):
                run = self.succeed(self.net(*SMALL), "--iterations", 4, "--streams", 3, kernels="kernels-instrumented",
                                   CUDASIM_SEED=seed)
                self.assertEqual(run.numbers["checksum"], reference.numbers["checksum"])

    @cases.in_plain_builds
    def test_repeats_to_the_nanosecond_and_other_seeds_are_other_runs(self):
        trace = self.net(*SMALL)
        first, second = (self.succeed(trace, "--streams", 3, "--seed", 5) for _ in range(2))
        self.assertEqual(first.output, second.output)
        self.assertNotEqual(self.succeed(trace, "--streams", 3, "--seed", 6).numbers["checksum"], first.numbers["checksum"])

    @cases.in_plain_builds
    def test_a_corrupted_page_is_found(self):
        trace = self.net(*SMALL)
        for at in 0, 1, 700, 2000, 5000:
            for streams in 1, 3:
                with self.subTest(at=at, streams=streams):
                    run = Run(trace, "--iterations", 5, "--streams", streams, "--corrupt-at", at)
                    self.assertEqual(run.code, 1, run.output + run.errors)
                    self.assertGreaterEqual(run.numbers["mismatches"], 1)
                    self.assertEqual(len(re.findall(r"replay: mismatch in block \d+, page \d+: expected version \d+ of it \(.*\), "
                                                    r"found ", run.errors)), 1, "the first one is printed, the others are not")

    @cases.not_under_tsan
    def test_blocks_of_every_small_size(self):
        sizes = [*range(1, 20), 4095, 4096, 4097, 4099, 4112, 8191, 8193]
        lines = []
        for iteration in range(3):
            lines += [f"Malloc {i + 1:x} {size} 0" for i, size in enumerate(sizes)]
            for _ in range(6):    # several, so that other ways of reading and writing come up
                for verb in "Mutable", "Read", "Read":
                    lines += [f"{verb} {i + 1:x} {size} 0" for i, size in enumerate(sizes)]
            lines += [f"Free {i + 1:x} {size} 0" for i, size in enumerate(sizes)]
        trace = self.trace("\n".join(lines))
        run = self.succeed(trace, "--iterations", 4)
        self.assertEqual(run.numbers["bytes_verified"], 4 * 12 * sum(sizes))
        if not PREFIX:
            self.succeed(trace, "--iterations", 4, "--streams", 2, kernels="kernels-instrumented", CUDASIM_SEED="1")
        for index, size in enumerate(sizes):
            with self.subTest(size=size):
                at = 2 * len(sizes) + index    # its first read
                self.assertEqual(Run(trace, "--corrupt-at", at).code, 1)

    @cases.not_under_tsan
    def test_a_block_that_nothing_wrote_is_written_by_its_first_read(self):
        run = self.succeed(self.trace("Malloc 1 5000 0\nRead 1 0\nRead 1 0\nFree 1 0\nRead 1 0\nRead 2 0\n"))
        self.assertEqual(run.numbers["first_reads"], 1)
        self.assertEqual(run.numbers["bytes_verified"], 5000)
        self.assertEqual(run.numbers["ignored"], 2)

    @cases.in_plain_builds
    def test_counts_what_reaches_the_driver(self):
        trace = self.net(*SMALL)
        run = self.succeed(trace, "--iterations", 8, "--warm-up", 5)
        with open(trace, encoding="ascii") as file:
            mallocs = sum(line.startswith("Malloc") for line in file) / 3
        numbers, each = run.numbers, run.numbers["per_iteration"]
        self.assertEqual(numbers["warm_up"], 5)
        self.assertEqual(numbers["steady_iterations"], 4)
        self.assertEqual(each["vmm_calls"], 0)
        self.assertEqual(each["cuMemAlloc_v2"], mallocs)
        self.assertEqual(each["cuMemFree_v2"], mallocs)
        self.assertEqual(each["host_synchronizations"], mallocs + 1, "each free waits, and the end of the iteration")
        self.assertGreater(each["virtual_ns"], 0)
        self.assertEqual(numbers["footprint"], run.report["counters"]["bytes_held_peak"])
        self.assertGreaterEqual(numbers["footprint"], numbers["peak_load"])
        self.assertLessEqual(numbers["footprint_after_warm_up"], numbers["footprint"])
        for text in "peak load", "footprint", "VMM calls", "mismatches 0":
            self.assertIn(text, run.output)
        self.assertEqual(self.succeed(trace, "--quiet").output.count("\n"), 1)

    @cases.in_plain_builds
    def test_time_follows_the_bytes_the_trace_and_the_host(self):
        trace = self.net(*SMALL)
        plain = self.succeed(trace).numbers["per_iteration"]["virtual_ns"]
        with open(trace, encoding="ascii") as file:
            lines = [line.split() for line in file]
        period = len(lines) // 3
        thoughts = int(lines[-1][3]) - int(lines[-period - 1][3])
        think = self.succeed(trace, "--think").numbers["per_iteration"]["virtual_ns"]
        self.assertGreater(think, plain)
        self.assertGreater(think, 0.9 * thoughts)
        slow = self.succeed(trace, CUDASIM_DEVICE="gtx1080ti").numbers["per_iteration"]["virtual_ns"]
        self.assertGreater(slow, plain)
        self.assertNotEqual(self.succeed(trace, "--times", "trace").numbers["per_iteration"]["virtual_ns"], plain)

    @cases.not_under_tsan
    def test_allocations_only(self):
        bare = self.trace("".join("Malloc 1 100 1512107406951\nMalloc 2 50 1512107406951\nFree 1 1512107406952\nFree 2 1512107406952\n"
                                  for _ in range(3)))
        refused = Run(bare)
        self.assertEqual(refused.code, 2)
        self.assertIn("no reads and writes", refused.errors)
        run = self.succeed(bare, "--allocations-only", "--iterations", 10)
        self.assertEqual(run.numbers["operations"], 40)
        self.assertEqual(run.numbers["peak_load"], 150)
        self.assertEqual(run.report["counters"]["launches"], 0)

    @cases.not_under_tsan
    def test_bad_input_is_named(self):
        good = self.net(*SMALL)
        growing = self.trace("".join(f"Malloc {i} 10{i} 0\nMutable {i} 0\n" for i in range(1, 9)))
        for arguments, words in (
                (["/nowhere"], "/nowhere: can't be read"),
                ([self.trace("Malloc 1 8 0\nMalloc 2 many 0\n")], ":2: 'many' is not a size"),
                ([self.trace("")], "no operations"),
                ([growing, "--iterations", 5], "no iteration to repeat"),
                ([good, "--warm-up", 3], "--warm-up 3 leaves nothing of 3 iterations"),
                ([good, "--streams", 0], "--streams takes a number from 1 to 64, not '0'"),
                ([good, "--threads", "two"], "--threads takes a number from 1 to 64, not 'two'"),
                ([good, "--times", "real"], "--times takes bytes or trace, not 'real'"),
                ([good, "--sideways"], "unknown option --sideways"),
                ([good, good], "one trace at a time"),
                ([good, "--module", "/nowhere"], "/nowhere: no module of kernels there"),
                ([], "which trace?")):
            with self.subTest(arguments=arguments):
                run = Run(*arguments)
                self.assertEqual(run.code, 2)
                self.assertIn(words, run.errors)
                self.assertEqual(run.output, "")

    @cases.not_under_tsan
    def test_a_driver_error_ends_it(self):
        run = Run(self.net(*SMALL), CUDASIM_INJECT="cuMemAlloc_v2:2@200")
        self.assertEqual(run.code, 3)
        self.assertIn("cuMemAlloc", run.errors)
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", run.errors)

    @cases.not_under_tsan
    def test_json_is_what_was_printed(self):
        odd = os.path.join(self.folder, 'a "strange\\ name')
        os.symlink(self.net(*SMALL), odd)
        run = self.succeed(odd)
        self.assertEqual(run.numbers["trace"], odd)
        self.assertEqual(run.last_line, "checksum " + run.numbers["checksum"])
        json.dumps(run.numbers)


if __name__ == "__main__":
    cases.main()
