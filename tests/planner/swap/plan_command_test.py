#!/usr/bin/env python3
"""`memoptctl plan` on an iteration in memopt-plan-1: strategies, limits, bounds; plans judged by a checker that shares no code."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import cases

SHARED = os.environ.get("MEMOPT_SHARED", "")
MEMOPTCTL = os.environ["MEMOPTCTL"]
CHECKER = os.path.join(SHARED, "tools", "check_plan.py")
TRACE = os.path.join(SHARED, "traces", "vec_block_fresh_vgg.csv")
MIB = 1 << 20
STRATEGIES = ("memopt", "autoswap:doa", "autoswap:aoa", "autoswap:wdoa", "autoswap:swdoa")

# Block 0 is idle while block 1 lives: 2 MiB suffice, at 0.1 MiB a microsecond even in time.
TWO = {"format": "memopt-plan-1", "period": 100000, "machine": {"out_bytes_per_ns": 200, "in_bytes_per_ns": 200},
       "blocks": [{"id": 5, "size": 2 * MIB}, {"id": 9, "size": 2 * MIB}],
       "ops": [["m", 5, 0], ["w", 5, 1000], ["x", -1, 2000], ["m", 9, 40000], ["w", 9, 41000], ["f", 9, 50000], ["x", -1, 51000], ["r", 5, 90000],
               ["f", 5, 91000]]}


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


class PlanCommand(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, plan):
        with open(self.path("problem.json"), "w", encoding="utf-8") as file:
            json.dump(plan, file)
        return self.path("problem.json")

    def plan(self, *arguments):
        return run(MEMOPTCTL, "plan", self.write(TWO), *arguments)

    def test_a_block_makes_room_for_another(self):
        for strategy in STRATEGIES:
            out = self.path("plan.json")
            done = self.plan("--strategy", strategy, "--limit", "2MiB", "--json", out, "--no-bound")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertRegex(done.stdout, r"(?m)^footprint +2\.00 MiB$")
            self.assertRegex(done.stdout, r"(?m)^added time +0\.000 ms an iteration of 0\.100 ms$")
            with open(out, encoding="utf-8") as file:
                plan = json.load(file)
            self.assertEqual([s["block"] for s in plan["swaps"]], [5])
            self.assertEqual(plan["limit"], 2 * MIB)
            self.assertEqual(plan["ops"], TWO["ops"])

    def test_streams_are_carried_through(self):
        ops = [op + [0] * (4 - len(op)) + [stream] for op, stream in zip(TWO["ops"], (0, 7, 7, 0, 1, 1, 2, 7, 4294967295), strict=True)]
        shown = {}
        for strategy in ("none", *STRATEGIES):
            for streams in (False, True):
                out = self.path("plan.json")
                problem = self.write(dict(TWO, ops=ops) if streams else TWO)
                done = run(MEMOPTCTL, "plan", problem, "--strategy", strategy, "--json", out, "--no-bound")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                with open(out, encoding="utf-8") as file:
                    plan = json.load(file)
                self.assertEqual(plan["ops"], ops if streams else TWO["ops"])
                shown[streams] = (plan.get("swaps"), [block["offset"] for block in plan["blocks"]])
            self.assertEqual(shown[True], shown[False], "plans do not depend on streams: " + strategy)

    def test_tuned_weights_or_why_there_are_none(self):
        done = self.plan("--strategy", "autoswap:tuned", "--limit", "2MiB", "--no-bound")
        if "libeigen3-dev" in done.stderr:
            self.assertEqual(done.returncode, 1)
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^footprint +2\.00 MiB$")
        self.assertRegex(done.stdout, r"(?m)^added time +0\.000 ms an iteration of 0\.100 ms$")

    def test_without_a_limit_the_least_footprint_at_no_added_time(self):
        done = self.plan("--no-bound")
        self.assertRegex(done.stdout, r"(?m)^footprint +2\.00 MiB$", done.stderr)

    def test_none_swaps_nothing(self):
        done = self.plan("--strategy", "none", "--no-bound")
        self.assertRegex(done.stdout, r"(?m)^footprint +4\.00 MiB$", done.stderr)

    def test_the_objective_decides_what_a_limit_is_for(self):
        done = self.plan("--limit", "4MiB", "--no-bound", "--time-budget", "0.2")
        self.assertRegex(done.stdout, r"(?m)^swaps +0 of", done.stdout + done.stderr)
        done = self.plan("--limit", "4MiB", "--objective", "footprint", "--no-bound", "--time-budget", "0.2")
        self.assertRegex(done.stdout, r"(?m)^footprint +2\.00 MiB$", done.stdout + done.stderr)

    def test_an_infeasible_limit_names_the_least_feasible_one(self):
        done = self.plan("--limit", "1.5MiB", "--no-bound")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("the least feasible limit it reaches is 2.00 MiB (2097152 bytes)", done.stderr)
        self.assertEqual(self.plan("--limit", "2097152", "--no-bound").returncode, 0)

    def test_bounds_or_why_there_are_none(self):
        done = self.plan("--limit", "50%")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(re.search(r"^no bounds .*coinor-libclp-dev", done.stdout, re.MULTILINE) or
                        re.search(r"^footprint +2\.00 MiB, bound 2\.00 MiB", done.stdout, re.MULTILINE) and
                        re.search(r"^added time .*, bound 0\.000 ms$", done.stdout, re.MULTILINE), done.stdout)

    def test_what_is_refused(self):
        for arguments, code, part in ((("--limit", "much"), 2, "--limit: expected bytes"), (("--strategy", "best"), 2, "--strategy: expected memopt, none"),
                                      (("--limit", "-3"), 2, "--limit: expected bytes"),
                                      (("--objective", "time"), 2, "--objective time: expected a --limit"),
                                      (("--objective", "speed"), 2, "--objective: expected footprint or time")):
            done = self.plan(*arguments)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertIn(part, done.stderr)
        done = run(MEMOPTCTL, "plan", self.write(dict(TWO, surprise=1)))
        self.assertEqual(done.returncode, 1)
        self.assertIn("surprise: unknown field", done.stderr)

    @unittest.skipUnless(os.path.exists(CHECKER) and os.path.exists(TRACE), "MEMOPT_SHARED names no folder with the checker and the trace")
    def test_plans_of_the_published_trace_are_accepted(self):
        base = self.path("base.json")
        done = run(sys.executable, CHECKER, "from-zhang", TRACE, "-o", base)
        self.assertEqual(done.returncode, 0, done.stderr)
        for strategy, limit in (("memopt", "450MiB"), ("memopt", "300MiB"), ("none", "700MiB"), ("autoswap:aoa", "500MiB"), ("autoswap:doa", "550MiB")):
            out = self.path("plan.json")
            done = run(MEMOPTCTL, "plan", base, "--strategy", strategy, "--limit", limit, "--json", out, "--no-bound")
            if limit == "300MiB" and done.returncode == 3:
                continue  # on a slow machine, or instrumented, there are too few attempts in the time
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            judged = run(sys.executable, CHECKER, "check", out, "--base", base, "--no-early", "--json")
            self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
            result = json.loads(judged.stdout)
            added = float(re.search(r"^added time +([\d.]+) ms", done.stdout, re.MULTILINE).group(1))
            self.assertAlmostEqual(added, result["added_ns"] / 1e6, delta=max(6e-4, 1e-3 * added))
            footprint = float(re.search(r"^footprint +([\d.]+) MiB", done.stdout, re.MULTILINE).group(1))
            self.assertAlmostEqual(footprint, result["footprint"] / MIB, delta=0.006)


if __name__ == "__main__":
    cases.main()
