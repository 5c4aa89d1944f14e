#!/usr/bin/env python3
"""What memoptd sends for a program that was recorded on the simulator: layouts only, or, to an agent that carries swaps out, the plan that
`memoptctl plan` makes of the same recording."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import cases
import patience
from device_times_test import Recorded
from runs import BUILD, WORKLOADS, PlanningCase

DIGITS = os.path.join(WORKLOADS, "digits_cnn")
SENT_PLANS = os.path.join(BUILD, "tests", "sent_plans")
RECORDINGS = os.path.join(os.environ["TEST_SOURCE"], "tests", "data", "recordings")
CHECKER = os.path.join(os.environ.get("MEMOPT_SHARED") or os.path.join(os.environ["TEST_SOURCE"], "..", "shared"), "tools", "check_plan.py")


class SentForPyTorch(unittest.TestCase):
    """For PyTorch's programs, as they were recorded."""
    def sent(self, name, *arguments):
        done = subprocess.run([SENT_PLANS, os.path.join(RECORDINGS, name), *map(str, arguments)], capture_output=True, text=True,
                              timeout=patience.seconds(300))
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_what_accumulates_gradients_has_no_places_for_them_in_its_loop_and_all_others_place_everything(self):
        for name in sorted(os.listdir(RECORDINGS)):
            if not name.endswith(".rec"):
                continue
            with self.subTest(name=name):
                plans = self.sent(name)
                self.assertTrue(plans)
                self.assertEqual(plans[-1]["unplaced"], 0)
                loops = [plan for plan in plans if plan["unplaced"]]
                self.assertEqual(bool(loops), name.startswith("gpt_accumulate"))
                for plan in loops:
                    self.assertEqual((plan["mallocs"], plan["unplaced"]), (170, 29))

    def test_where_blocks_swap_all_have_places(self):
        for name in ("gpt_accumulate4.rec", "gpt_accumulate16.rec"):
            plans = self.sent(name, "a100-40g")
            self.assertTrue(plans)
            self.assertEqual([plan["unplaced"] for plan in plans], [0] * len(plans))


@unittest.skipUnless(os.path.exists(DIGITS), "the workloads were not built")
class SentPlans(PlanningCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        # So short that the last iteration that is found is the first one: a batch.
        cls.recorded = Recorded(scratch.name, [DIGITS, "--epochs", "1", "--quiet"])
        cls.iteration, _ = cls.recorded.plan()

    def sent(self, *arguments):
        done = subprocess.run([SENT_PLANS, self.recorded.file, *map(str, arguments)], capture_output=True, text=True, timeout=patience.seconds(300))
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    def swapped(self, *arguments):
        """Footprint in MiB and added milliseconds, as `memoptctl plan` prints them."""
        done = self.recorded.memoptctl("plan", self.recorded.file, "--machine", "a100-40g", "--time-budget", "2", *arguments)
        footprint, bound = map(float, re.search(r"^footprint +([\d.]+) MiB, bound ([\d.]+) MiB", done.stdout, re.MULTILINE).groups())
        return footprint, bound, float(re.search(r"^added time +([\d.]+) ms", done.stdout, re.MULTILINE).group(1))

    def test_an_agent_that_carries_no_swaps_out_has_layouts(self):
        plans, _ = self.sent()
        self.assertEqual([plan["swaps"] for plan in plans], [0] * len(plans))
        self.assertEqual([plan["generation"] for plan in plans], list(range(1, len(plans) + 1)))

    def test_the_others_have_the_plan_of_the_recording(self):
        laid_out, (plans, note) = self.sent()[0][-1], self.sent("a100-40g")
        plan = plans[-1]
        self.assertGreater(plan["swaps"], 0, note)
        self.assertAlmostEqual(plan["period_ns"] / self.iteration["period"], 1, delta=0.01)
        footprint, bound, _ = self.swapped()
        self.assertGreaterEqual(plan["footprint"] / 2**20, bound)
        self.assertLess(plan["footprint"] / 2**20, 1.25 * footprint)
        self.assertLess(plan["footprint"], laid_out["footprint"])
        self.assertLessEqual(plan["added_ns"], plan["period_ns"] / 1000)

    def test_within_a_limit(self):
        limit = int(self.sent()[0][-1]["footprint"] * 0.45)
        plans, note = self.sent("a100-40g", limit)
        self.assertGreater(plans[-1]["swaps"], 0, note)
        self.assertLessEqual(plans[-1]["footprint"], limit)
        # A program at a limit idles for copies on demand: all idle times are left out, and with them what copies could hide behind. Even so
        # it is expected to take no longer than the recorded iteration did with them.
        self.assertLess(plans[-1]["period_ns"], 0.9 * self.iteration["period"])
        self.assertLess(plans[-1]["period_ns"] + plans[-1]["added_ns"], self.iteration["period"])

    @unittest.skipUnless(os.path.exists(CHECKER), "MEMOPT_SHARED names no folder with tools/check_plan.py")
    def test_a_checker_that_shares_no_code_accepts_plans_of_the_recording(self):
        base, out = self.recorded.file + ".base", self.recorded.file + ".plan"
        machine = ("--machine", "a100-40g", "--no-bound")
        self.recorded.memoptctl("plan", self.recorded.file, *machine, "--strategy", "none", "--json", base)
        for arguments in ((), ("--limit", "50%"), ("--limit", "30%"), ("--strategy", "autoswap:swdoa", "--limit", "70%"),
                          ("--strategy", "autoswap:aoa", "--limit", "90%")):
            with self.subTest(arguments=arguments):
                printed = self.recorded.memoptctl("plan", self.recorded.file, *machine, *arguments, "--json", out).stdout
                done = subprocess.run([sys.executable, CHECKER, "check", out, "--base", base, "--no-early", "--json"], capture_output=True,
                                      text=True, timeout=patience.seconds(300))
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                judged = json.loads(done.stdout)
                footprint, added = (float(re.search(rf"^{name} +([\d.]+) ", printed, re.MULTILINE).group(1)) for name in ("footprint", "added time"))
                self.assertAlmostEqual(footprint, judged["footprint"] / 2**20, delta=0.006)
                self.assertAlmostEqual(added, judged["added_ns"] / 1e6, delta=max(6e-4, 1e-3 * added))


if __name__ == "__main__":
    cases.main()
