#!/usr/bin/env python3
"""What the device took, as recordings tell it, against the simulated device, which knows: it was told how long each kernel takes, and how
long iterations take is in what the programs and the driver say at their end."""
import json
import os
import re
import subprocess
import tempfile
import unittest

import cases
from runs import LOOP, MEMOPTCTL, POOLS, WORKLOADS, PlanningCase, Run, environment

REPLAY = os.path.join(WORKLOADS, "replay")
DIGITS = os.path.join(WORKLOADS, "digits_cnn")
BLOCKS = 12
BYTES = 4 << 20


def write_ns(block):
    return 200000 + 1000 * block


def read_ns(block):
    return 300000 + 1000 * block


def trace():
    """An iteration that writes blocks one after the other and reads them in reverse, each for a time of its own."""
    lines, time = [], 0
    for _ in range(3):
        for block in range(BLOCKS):
            place = f"{(block + 1) << 28:#x} {BYTES} "
            lines += [f"Malloc {place}{time}", f"Mutable {place}{time}"]
            time += write_ns(block)
        for block in reversed(range(BLOCKS)):
            place = f"{(block + 1) << 28:#x} {BYTES} "
            lines += [f"Read {place}{time}", f"Free {place}{time + read_ns(block)}"]
            time += read_ns(block)
    return "\n".join(lines) + "\n"


class Recorded:
    """A program that was recorded on the simulator: what it said, and what is in the file."""

    def __init__(self, folder, command, **names):
        self.file, self.report_file = os.path.join(folder, "recording"), os.path.join(folder, "report")
        self.done = self.memoptctl("record", "-o", self.file, "--force", "--sim", "a100-40g", "--", *command,
                                   CUDASIM_REPORT=self.report_file, **names)
        with open(self.report_file, encoding="utf-8") as file:
            self.report = json.load(file)

    @staticmethod
    def memoptctl(*arguments, **names):
        done = subprocess.run([MEMOPTCTL, *arguments], env=environment(planned=False) | {"LD_PRELOAD": ""} | names, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=1200)
        if done.returncode != 0:
            raise AssertionError(f"{arguments}: {done.returncode}: {done.stderr}")
        return done

    def plan(self):
        """The iteration, and the line that says where its times come from."""
        out = self.file + ".json"
        done = self.memoptctl("plan", self.file, "--strategy", "none", "--no-bound", "--json", out)
        with open(out, encoding="utf-8") as file:
            return json.load(file), done.stdout.splitlines()[0]

    def operations(self):
        return self.memoptctl("show", self.file, "--operations", "1:").stdout.splitlines()


class WithFolder(PlanningCase):
    def setUp(self):
        super().setUp()
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name


class Measured(WithFolder):
    def replay(self, iterations, **names):
        path = os.path.join(self.folder, "trace")
        with open(path, "w", encoding="utf-8") as file:
            file.write(trace())
        self.numbers = os.path.join(self.folder, "numbers")
        return Recorded(self.folder, [REPLAY, path, "--iterations", str(iterations), "--times", "trace", "--json", self.numbers], **names)

    def steady_ns(self):
        with open(self.numbers, encoding="utf-8") as file:
            return json.load(file)["per_iteration"]["virtual_ns"]

    def test_kernels_take_what_the_device_was_told(self):
        recorded = self.replay(20, MEMOPT_DEVICE_TIMES="1")
        stamps, exact, late = {}, 0, 0
        for line in recorded.operations():
            if found := re.search(r"^ *(\d+) .* launch +replay_stamp <<<.*>>> (\d+)$", line):
                stamps[found.group(1)] = int(found.group(2))
            found = re.search(r" kernel time +operation (\d+) took (\d+) ns, idle for (\d+) ns before", line)
            if not found or found.group(1) not in stamps:
                continue
            took, idle = int(found.group(2)), int(found.group(3))
            first = min(stamps.values())
            expected = write_ns((stamps[found.group(1)] - first) % BLOCKS)
            if idle == 0:
                self.assertEqual(took, expected, line)
                exact += 1
            else:
                # The device waited for the host: also for the launch itself.
                self.assertGreaterEqual(took, expected, line)
                self.assertLess(took, expected + 10000, line)
                late += 1
        self.assertGreater(exact, 20 * BLOCKS * 3 // 4)
        self.assertLess(late, exact)

    def test_an_iteration_takes_as_long_as_the_program_says(self):
        recorded = self.replay(60)
        plan, line = recorded.plan()
        self.assertAlmostEqual(plan["period"] / self.steady_ns(), 1, delta=0.001)
        measured, operations = map(int, re.match(r"times +device, (\d+) of (\d+) operations measured", line).groups())
        self.assertGreater(measured, operations * 0.8)
        # Measuring is in these numbers. Without it:
        self.replay(60, MEMOPT_DEVICE_TIMES="0")
        self.assertAlmostEqual(plan["period"] / self.steady_ns(), 1, delta=0.01)

    def test_each_operation_takes_its_own_time(self):
        plan, line = self.replay(20, MEMOPT_DEVICE_TIMES="1").plan()
        operations = int(re.match(r"times +device, (\d+) of \1 operations measured; idle for", line).group(1))
        self.assertGreater(operations, 2 * BLOCKS)
        times = [operation[2] for operation in plan["ops"]] + [plan["period"]]
        took = {}
        for (kind, block, begin, *_), end in zip(plan["ops"], times[1:]):
            if kind in "rw" and end > begin:
                took.setdefault(block, []).append(end - begin)
        written = sorted(lengths[0] for lengths in took.values() if write_ns(0) <= lengths[0] < read_ns(0))
        # One of the blocks is set, not stamped, and the first one may wait for the host.
        self.assertGreaterEqual(len(set(written) & {write_ns(block) for block in range(BLOCKS)}), BLOCKS - 2)

    def test_without_them_the_times_are_the_hosts(self):
        recorded = self.replay(20, MEMOPT_DEVICE_TIMES="0")
        self.assertFalse([line for line in recorded.operations() if " kernel time " in line])
        self.assertNotIn("cuEventElapsedTime", recorded.report["calls"])
        self.assertRegex(recorded.plan()[1], r"^times +host's calls; ")

    @cases.not_under_asan
    def test_nothing_of_it_shows_in_the_program(self):
        """Also where threads and streams are many, and the device is as late or early as it may be."""
        for command in ([LOOP, "25", "--keep"], [LOOP, "25", "--keep", "--streams", "3"], [LOOP, "25", "--keep", "--threads"], [POOLS, "20"],
                        [os.path.join(WORKLOADS, "vector_async")], [os.path.join(WORKLOADS, "vector_driver")]):
            plain = Run(command, planned=False)
            self.assertEqual(plain.code, 0, plain.errors)
            for seed in ({"CUDASIM_SEED": "3"},) if cases.SANITIZER else ({}, {"CUDASIM_SEED": "3"}):
                with self.subTest(command=command, seed=seed):
                    recorded = Recorded(self.folder, command, MEMOPT_DEVICE_TIMES="1", **seed)
                    self.assertEqual(recorded.done.stdout, plain.output)
                    self.assertGreater(recorded.report["calls"].get("cuEventElapsedTime", 0), 0)
                    planned = self.succeed(command, MEMOPT_DEVICE_TIMES="1", **seed)
                    # Above it, pools may answer otherwise where memopt serves them.
                    self.assertEqual(planned.last_line, plain.last_line)

    def test_a_driver_that_refuses(self):
        plain = Run([LOOP, "25"], planned=False)
        for call in ("cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventElapsedTime"):
            with self.subTest(call=call):
                recorded = Recorded(self.folder, [LOOP, "25"], MEMOPT_DEVICE_TIMES="1", CUDASIM_INJECT=f"{call}:999")
                self.assertEqual(recorded.done.stdout, plain.output)
                self.assertEqual(recorded.report["calls"][call], 1)
                self.assertFalse([line for line in recorded.operations() if " kernel time " in line])


@unittest.skipUnless(os.path.exists(DIGITS), "the workloads were not built")
class Training(WithFolder):
    def test_an_epoch_takes_as_long_as_on_the_device(self):
        few, many = (Recorded(self.folder, [DIGITS, "--epochs", str(epochs), "--quiet"]) for epochs in (2, 4))
        epoch = (many.report["device_end_ns"] - few.report["device_end_ns"]) / 2
        plan, line = many.plan()
        self.assertRegex(line, r"^times +device, \d+ of \d+ operations measured")
        # The iteration is a batch, or some of them.
        batches = epoch / plan["period"]
        self.assertGreater(round(batches), 0)
        self.assertAlmostEqual(batches / round(batches), 1, delta=0.002)


if __name__ == "__main__":
    cases.main()
