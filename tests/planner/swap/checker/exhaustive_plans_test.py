#!/usr/bin/env python3
"""The exhaustive search against a checker that shares no code with it: its plans hold and cost what it says, and random plans are never better."""
import copy
import json
import os
import random
import subprocess
import unittest

import cases
import patience
import checker
import random_plans

EXHAUSTIVE_PLANS = os.environ["EXHAUSTIVE_PLANS"]
PROBLEMS = int(os.environ.get("MEMOPT_RANDOM_PROBLEMS", "40"))
TRIES = int(os.environ.get("MEMOPT_RANDOM_TRIES", "60"))
SEED = int(os.environ.get("MEMOPT_RANDOM_SEED", "1"))


def best_plans(layout):
    done = subprocess.run([EXHAUSTIVE_PLANS, str(SEED), str(PROBLEMS), layout], capture_output=True, text=True, timeout=patience.seconds(300), check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def random_plan(rng, problem):
    """Decisions for the problem; None where they have more places than the search looks at."""
    plan = copy.deepcopy(problem)
    plan["swaps"] = []
    random_plans.add_swaps(rng, plan)
    for swap in plan["swaps"]:
        swap.pop("copy", None)
    if not plan["layout"]:
        return plan
    random_plans.place(rng, plan, 1 << 20)
    for block in plan["blocks"]:
        if isinstance(block["offset"], list):
            crosses = random_plans.Life(plan, block).freed >= len(plan["ops"])
            if len(block["offset"]) > (2 if crosses else 1):
                return None
    return plan


class AgainstTheChecker(unittest.TestCase):
    def setUp(self):
        self.checker = checker.load(self)

    def judged(self, plan):
        try:
            result = self.checker.check(plan)
        except self.checker.Invalid:
            return None
        return result if result["valid"] and result["early_swap_ins"] == 0 else None

    def compare(self, layout):
        rng = random.Random(SEED)
        tried = equal = 0
        for line in best_plans(layout):
            for best in line["plans"]:
                self.checker.same_problem(best["plan"], line["problem"])
                result = self.judged(best["plan"])
                self.assertIsNotNone(result, json.dumps(best["plan"]))
                self.assertAlmostEqual(result["added_ns"], best["added_ns"], delta=2e-3)
                if layout == "layout":
                    self.assertEqual(result["footprint"], best["footprint"])
            for _ in range(TRIES):
                plan = random_plan(rng, line["problem"])
                result = plan and self.judged(plan)
                if not result or not result["converged"]:
                    continue
                tried += 1
                fitting = [p["added_ns"] for p in line["plans"] if layout != "layout" or p["footprint"] <= result["footprint"]]
                self.assertTrue(fitting, json.dumps(plan))
                self.assertLessEqual(min(fitting), result["added_ns"] + 2e-3, json.dumps(plan))
                equal += bool(plan["swaps"]) and min(fitting) >= result["added_ns"] - 2e-3
        return tried, equal

    def test_with_layout(self):
        tried, equal = self.compare("layout")
        self.assertGreater(tried, PROBLEMS)
        self.assertGreater(equal, 0)

    def test_without_layout(self):
        tried, _ = self.compare("load")
        self.assertGreater(tried, PROBLEMS)


if __name__ == "__main__":
    cases.main()
