#!/usr/bin/env python3
"""What we say that drops and replays come to, against a judge that shares no code with us; and plans of `memoptctl plan --recompute`."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

import cases
import judge
import patience
import random_iterations
import verdicts

VERIFY = os.environ["VERIFY_RECOMPUTE"]
MEMOPTCTL = os.environ["MEMOPTCTL"]
LOGS = os.path.join(os.environ.get("MEMOPT_SHARED", ""), "dtr")
PLANS = int(os.environ.get("MEMOPT_RANDOM_PLANS", "3000")) // (1 if cases.SANITIZER == "" else 5)
SEED = int(os.environ.get("MEMOPT_RANDOM_SEED", "1"))
EXACT = ("footprint", "replays", "drops")
# Ours, and what is published.
STRATEGIES = ("memopt", "dtr", "dtr:eq", "dtr:local", "dtr:lru", "dtr:size", "dtr:msps", "chen:sqrt", "chen:budget", "chen:recursive",
              "chen:drop-cheap")


def theirs(plan):
    return verdicts.theirs(judge.judge, judge.Invalid, plan)


class AgainstTheJudge(unittest.TestCase):
    def compare(self, plans):
        """Counts those that hold, and those of them in which something is replayed."""
        valid = replayed = 0
        for plan, own in zip(plans, verdicts.ours(VERIFY, plans), strict=True):
            judged = theirs(plan)
            shown = verdicts.shown(plan, judged, own)
            self.assertEqual(own["valid"], judged["valid"], shown)
            if not judged["valid"]:
                continue
            valid += 1
            replayed += judged["replays"] > 0
            for field in EXACT:
                self.assertEqual(own[field], judged[field], field + ": " + shown)
            self.assertAlmostEqual(own["added_ns"], judged["added_ns"], delta=1e-6, msg=shown)
            self.assertEqual(theirs(json.loads(own["written"])), judged, shown)
        return valid, replayed

    def test_random_plans(self):
        rng = random.Random(SEED)
        plans = []
        for _ in range(PLANS):
            plan = random_iterations.iteration(rng)
            plan["recompute"] = random_iterations.steps(rng, plan)
            plans.append(plan)
        valid, replayed = self.compare(plans)
        self.assertGreater(valid, PLANS // 4)
        self.assertGreater(len(plans) - valid, PLANS // 20)
        self.assertGreater(replayed, PLANS // 3)

    def test_mutations_of_plans_that_hold(self):
        rng = random.Random(SEED + 1)
        plans = []
        while len(plans) < PLANS:
            plan = random_iterations.iteration(rng)
            plan["recompute"] = random_iterations.steps(rng, plan)
            if theirs(plan)["valid"]:
                plans += [random_iterations.mutated(rng, plan) for _ in range(4)]
        plans = [plan for plan in plans if not plan.get("lazy_malloc") and not plan.get("layout", True)]
        valid, _ = self.compare(plans)
        self.assertGreater(valid, PLANS // 10)
        self.assertGreater(len(plans) - valid, PLANS // 10)


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def plan(self, *arguments):
        return subprocess.run([MEMOPTCTL, "plan", *arguments], capture_output=True, text=True, timeout=patience.seconds(200))

    def write(self, document):
        with open(self.path("iteration.json"), "w", encoding="utf-8") as file:
            json.dump(document, file)
        return self.path("iteration.json")

    def layers(self, count):
        """Forward and backward, 1 MiB and 1 ms each; each backward launch reads a layer, and what comes from behind."""
        ops, blocks, launches, now = [], [], [], 0

        def make(reads):
            nonlocal now
            block = len(blocks)
            blocks.append({"id": block, "size": 1 << 20})
            ops.append(["m", block, now])
            launches.append([len(ops), len(reads) + 1])
            ops.extend(["r", read, now] for read in reads)
            ops.append(["w", block, now])
            now += 1000000
            return block

        made = [make([])]
        for _ in range(count - 1):
            made.append(make(made[-1:]))
        gradient = make(made[-1:])
        for layer in reversed(made):
            following = make([layer, gradient])
            ops.extend((["f", layer, now], ["f", gradient, now]))
            gradient = following
        ops.append(["f", gradient, now])
        return {"format": "memopt-plan-2", "layout": False, "limit": count << 20, "period": now, "ops": ops, "blocks": blocks, "launches": launches,
                "machine": {"out_bytes_per_ns": 1, "in_bytes_per_ns": 1}}

    def judged(self, path, shown):
        """The plan that was written, which is the one that was printed."""
        with open(path, encoding="utf-8") as file:
            plan = json.load(file)
        result = judge.judge(plan)
        self.assertRegex(shown, rf"(?m)^footprint +{result['footprint'] / 2**20:.2f} MiB \(load only\)$")
        self.assertRegex(shown, rf"(?m)^added time +{result['added_ns'] / 1e6:.3f} ms an iteration")
        bound = re.search(r"(?m)^added time .*; bound ([\d.]+) ms, [\d.]+ %$", shown)
        self.assertLessEqual(float(bound.group(1)), result["added_ns"] / 1e6 + 0.001)
        self.assertRegex(shown, rf"(?m)^replays +{result['replays']} of \d+ launches$")
        self.assertRegex(shown, rf"(?m)^drops +{result['drops']}; ")
        return result

    def test_plans_of_all_strategies(self):
        iteration = self.write(self.layers(40))
        added = {}
        for strategy in STRATEGIES:
            out = self.path(f"{strategy}.json")
            budget = ("--time-budget", "0.5") if strategy == "memopt" else ()
            done = self.plan(iteration, "--recompute", "--strategy", strategy, "--limit", "14MiB", "--json", out, *budget)
            if strategy == "chen:drop-cheap":  # All launches take as long.
                self.assertEqual(done.returncode, 3, done.stderr)
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            result = self.judged(out, done.stdout)
            self.assertLessEqual(result["footprint"], 14 << 20)
            added[strategy] = result["added_ns"]
            # What was written can be planned again: its own limit holds.
            again = self.plan(out, "--recompute", "--strategy", strategy, *budget)
            self.assertRegex(again.stdout, r"(?m)^footprint ")
        self.assertEqual(min(added.values()), added["memopt"])

    def test_a_comparison(self):
        out = self.path("table.json")
        done = self.plan(self.write(self.layers(30)), "--recompute", "--compare", "--limits", "90%,50%,30%,2%", "--time-budget", "0.3", "--json", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, encoding="utf-8") as file:
            table = json.load(file)
        self.assertEqual(table["format"], "memopt-recompute-compare-1")
        self.assertEqual(len(table["limits"]), 4)
        self.assertEqual(set(table["limits"][0]["plans"]), set(STRATEGIES))
        self.assertEqual(table["limits"][3]["plans"], dict.fromkeys(STRATEGIES))  # none
        mine = [row["plans"]["memopt"]["added_ns"] for row in table["limits"][:3]]
        self.assertEqual(mine, sorted(mine))
        self.assertEqual([row["infeasible"] for row in table["limits"]], [False, False, False, True])
        for row in table["limits"][:3]:
            self.assertLessEqual(row["least_added_ns_bound"], row["plans"]["memopt"]["added_ns"])
            self.assertLessEqual(row["plans"]["memopt"]["added_ns"], min(plan["added_ns"] for plan in row["plans"].values() if plan))

    def test_what_is_refused(self):
        iteration = self.layers(5)
        unknown = dict(iteration, format="memopt-plan-1")
        del unknown["launches"]
        for document, arguments, code, message in (
                (iteration, ("--limit", "1MiB"), 3, r"^memoptctl: no plan is within 1\.00 MiB: what can't be made again, or one launch touches, is more$"),
                (iteration, ("--limit", "1MiB"), 3, r"memopt finds no plan within 1\.00 MiB; the least limit it reaches is 3\.00 MiB \(3145728 bytes\)$"),
                (iteration, ("--limit", "2%", "--strategy", "dtr:lru"), 3, r"dtr:lru finds no plan within 0\.14 MiB; the least limit it reaches is \d\.00 MiB"),
                (iteration, ("--limit", "50%", "--strategy", "best"), 2, r"--strategy: expected memopt, dtr, dtr:eq, .*, not best$"),
                (iteration, ("--limit", "50%", "--plot", "x.svg"), 2, r"--plot is for swaps, and --recompute plans none$"),
                (iteration, ("--limit", "50%", "--strategy", "dtr", "--time-budget", "3"), 2, r"--time-budget is for the strategy memopt; dtr does not"),
                (iteration, ("--limit", "50%", "--strategy", "chen:sqrt", "--seed", "3"), 2, r"--seed is for the strategy memopt; chen:sqrt does not"),
                (iteration, ("--limit", "50%", "--limits", "3"), 2, r"--limits is for --compare$"),
                (iteration, ("--compare", "--limit", "50%"), 2, r"--limit is for one plan; --compare takes --limits$"),
                (dict(iteration, lazy_malloc=True), ("--limit", "90%"), 1, r"expected lazy_malloc to be false"),
                (unknown, ("--limit", "50%"), 1, r"what its launches write is not known; --recompute is for logs")):
            done = self.plan(self.write(document), "--recompute", *arguments, *(() if "--strategy" in arguments else ("--time-budget", "0.1")))
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertRegex(done.stderr, re.compile(message, re.MULTILINE))

    @cases.in_plain_builds
    def test_published_logs(self):
        if not os.path.isdir(LOGS):
            self.skipTest("MEMOPT_SHARED names no folder with logs for DTR's simulator")
        table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "logs_table.py")
        logs = [os.path.join(LOGS, name + ".log.gz") for name in ("resnet32-56", "tv_densenet121-84", "unroll_gan-512")]
        done = subprocess.run([sys.executable, table, MEMOPTCTL, "--limits", "50", "--seconds", "0.5", *logs], capture_output=True, text=True,
                              timeout=patience.seconds(200))
        self.assertEqual(done.returncode, 0, done.stderr)
        # All but chen:sqrt's, and of the first one chen:drop-cheap's.
        self.assertRegex(done.stdout, r"(?m)^plans that were found, all accepted: (2[7-9]|3[0-3]) of 33$")


if __name__ == "__main__":
    cases.main()
