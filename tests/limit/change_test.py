#!/usr/bin/env python3
"""The limit of a program that runs is lowered twice and taken away: by `memoptctl limit`. What is held by the driver's count comes below it
within a few iterations, swaps are planned for it, and the same is computed. With --full: more orders of operations."""
import json
import os
import subprocess
import tempfile
import time
import unittest

import cases
import patience
import simulated
from limit_runs import CHUNK, DEADLINE, LimitCase, native
from runs import FULL, MEMOPTCTL, WITHOUT_A_PLANNER, WORKLOADS, environment

REPLAY = os.path.join(WORKLOADS, "replay")
ITERATIONS = 240
ITERATIONS_TO_PLAN = 60  # more of them where plans are waited for
PIECE = 8192  # calls at most, of which the simulator's report has the most that was held
# What is held is seen to be below the limit so many iterations after it was set, at the latest: two, and time to look.
ITERATIONS_TO_FOLLOW = 6


def memoptctl(*arguments):
    return subprocess.run([MEMOPTCTL, *map(str, arguments)], env=simulated.clean_environment(), capture_output=True, text=True,
                          timeout=DEADLINE)


class Running:
    """A program that runs beside the test."""

    def __init__(self, command, **options):
        self.folder = tempfile.TemporaryDirectory()
        self.report_file = os.path.join(self.folder.name, "report")
        self.errors_file = os.path.join(self.folder.name, "errors")
        with open(self.errors_file, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(command, env=environment(CUDASIM_REPORT=self.report_file, **options), text=True,
                                            stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self.folder.cleanup()

    @property
    def errors(self):
        with open(self.errors_file, encoding="utf-8") as file:
            return file.read()

    def status(self):
        """What the agent says; None as long as it says nothing."""
        shown = memoptctl("status", "--json", "--pid", self.process.pid)
        processes = json.loads(shown.stdout)["processes"]
        return processes[0]["agent"] if processes else None

    def wait_until(self, what):
        """The first status of which it holds."""
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            status = self.status()
            if status and what(status):
                return status
            assert self.process.poll() is None, "the program has ended: " + self.errors
        raise AssertionError(f"not within {DEADLINE} s: {status}; {self.errors}")

    def let_run(self, calls):
        begun = self.status()["calls"]["total"]
        return self.wait_until(lambda status: status["calls"]["total"] >= begun + calls)

    def end(self):
        output, _ = self.process.communicate(timeout=DEADLINE)
        with open(self.report_file, encoding="utf-8") as file:
            return self.process.returncode, output.splitlines()[-1], json.load(file)


class Changed(LimitCase):
    def lower(self, program, limit, calls_per_iteration):
        set_limit = memoptctl("limit", program.process.pid, limit)
        self.assertEqual((set_limit.returncode, set_limit.stderr), (0, ""))
        self.assertRegex(set_limit.stdout, r"^limit [\d.]+ MiB: [\d.]+ MiB held, which comes below it")
        limit = limit // CHUNK * CHUNK
        since = program.status()
        self.assertEqual(since["swaps"]["limit"], limit)
        below = program.wait_until(lambda status: status["swaps"]["held"] <= limit)
        self.assertLessEqual(below["calls"]["total"] - since["calls"]["total"], ITERATIONS_TO_FOLLOW * calls_per_iteration)
        later = program.let_run(2 * PIECE)  # of which one piece is whole
        self.assertLessEqual(later["swaps"]["held"], limit)
        self.assertGreater(later["swaps"]["swapped_in"], since["swaps"]["swapped_in"])
        self.assertEqual(later["swaps"]["beyond"], 0, later["swaps"]["beyond_why"])
        self.assertIn(f"limit {limit >> 20} MiB: ", memoptctl("status", "--pid", program.process.pid).stdout)

    def change(self, *arguments, planned=False, **options):
        iterations = ITERATIONS + (ITERATIONS_TO_PLAN if planned else 0)
        command = [REPLAY, self.net("vgg11", "--batch", 20), "--iterations", str(iterations), *arguments]
        reference = native(*command, numbers=True, CUDASIM_POISON="off")
        peak_load = reference.numbers["peak_load"]
        calls_per_iteration = sum(reference.numbers["per_iteration"][which] for which in ("launches", "cuMemAlloc_v2", "cuMemFree_v2"))
        with Running(command, CUDASIM_POISON="off", **options) as program:
            program.wait_until(lambda status: status.get("plan") and status["plan"]["footprint"] > peak_load * 9 // 10 and
                               (not planned or status["state"] == "planned"))
            self.assertNotIn("swaps", program.status())
            if planned and options["MEMOPT_SYNC_PLAN"] != "0":
                self.lower(program, peak_load * 85 // 100, calls_per_iteration)
                # Within the new limit swaps are planned, and followed. Beside the program the planner may take longer than it runs.
                program.wait_until(lambda status: status["swaps"]["planned"]["in"] > 20 and status["state"] == "planned")
            self.lower(program, peak_load * 75 // 100, calls_per_iteration)
            self.lower(program, peak_load * 50 // 100, calls_per_iteration)
            if planned:
                # Less than the blocks need that live through all iterations: these are swapped too, or why not is said.
                self.assertRegex(program.status()["plan"]["note"], r"is the limit|planned \d+ swaps an iteration")
            none = memoptctl("limit", program.process.pid, "none")
            self.assertEqual((none.returncode, none.stdout.partition(":")[0]), (0, "limit none"), none.stderr)
            after = program.wait_until(lambda status: "swaps" in status and status["swaps"]["away"] == 0 and
                                       (not planned or status["state"] == "planned"))
            self.assertEqual((after["swaps"]["limit"], after["swaps"]["planned"]["swaps"]), (0, 0))
            code, last_line, report = program.end()
            self.assertEqual(code, 0, program.errors)
        self.assertEqual(last_line, reference.last_line)
        counters = report["counters"]
        self.assertEqual((counters["unknown_kernels"], counters["races"]), (0, 0), report["last_race"])
        peaks = report["held_history"]["peaks"]
        self.assertLessEqual(report["held_history"]["calls_per_piece"], PIECE)
        self.assertLessEqual(min(peaks), peak_load * 50 // 100 + CHUNK)
        self.assertTrue(any(peak_load * 50 // 100 + CHUNK < peak <= peak_load * 75 // 100 + CHUNK for peak in peaks), peaks)
        self.assertGreater(max(peaks[-2:]), peak_load * 9 // 10)  # what is freed at the end may be a piece of its own

    def test_a_plan_is_left_and_taken_up_again(self):
        self.change(planned=True, MEMOPT_SYNC_PLAN=patience.WAIT)

    if FULL:
        def test_without_a_planner(self):
            self.change(**WITHOUT_A_PLANNER)

    def test_two_streams(self):
        for seed in ("1", "2", "3") if FULL else ("1",):
            with self.subTest(seed=seed):
                self.change("--streams", "2", CUDASIM_SEED=seed, **WITHOUT_A_PLANNER)
                if FULL:
                    self.change("--streams", "2", planned=True, CUDASIM_SEED=seed, MEMOPT_SYNC_PLAN="0")


class Refused(unittest.TestCase):
    def test_values_that_are_no_limits(self):
        for value in ("", "0", "6GB", "-1", "101%", "0%", "all", "None", "6 GiB", "9" * 60):
            with self.subTest(value):
                done = memoptctl("limit", os.getpid(), "--", value) if value.startswith("-") else memoptctl("limit", os.getpid(), value)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                if not value.startswith("-"):
                    self.assertIn("expected a size (8GiB, 500M), a part of the device (60%), or none", done.stderr)

    def test_processes_that_are_not_there(self):
        done = memoptctl("limit", os.getpid(), "60%")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("expected a process of this user that runs under memopt", done.stderr)
        for pid in ("0", "-1", "x", str(1 << 23)):
            with self.subTest(pid):
                self.assertEqual(memoptctl("limit", pid, "60%").returncode, 2)


if __name__ == "__main__":
    cases.main()
