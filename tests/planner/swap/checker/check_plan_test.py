#!/usr/bin/env python3
"""Our verifier and simulator against a checker that shares no code with them, on random small plans and mutations of them."""
import json
import os
import random
import unittest

import cases
import checker
import random_plans
import verdicts

VERIFY_PLANS = os.environ["VERIFY_PLANS"]
PLANS = int(os.environ.get("MEMOPT_RANDOM_PLANS", "1500"))
SEED = int(os.environ.get("MEMOPT_RANDOM_SEED", "1"))
EXACT = ("footprint", "peak_live", "bytes_out", "bytes_dropped", "bytes_in")
# Nanoseconds, or shares of 1: sums are formed in another order, and the checker rounds.
CLOSE = {"added_ns": 2e-3, "stall_malloc_ns": 2e-3, "stall_access_ns": 2e-3, "early_swap_ins": 1e-9, "out_utilisation": 1e-4,
         "in_utilisation": 1e-4}


class AgainstTheChecker(unittest.TestCase):
    def setUp(self):
        self.checker = checker.load(self)

    def theirs(self, plan):
        return verdicts.theirs(self.checker.check, self.checker.Invalid, plan)

    def compare(self, plans):
        """Counts the plans that hold, and those in which something waits."""
        valid = waiting = 0
        for plan, own in zip(plans, verdicts.ours(VERIFY_PLANS, plans), strict=True):
            judged = self.theirs(plan)
            shown = verdicts.shown(plan, judged, own)
            if "from an earlier iteration" in own.get("error", "") and judged["valid"]:
                # Where offsets take turns, the checker sees only those that cross its first boundary; none may be early anyway.
                self.assertGreater(judged["early_swap_ins"], 0, shown)
                continue
            self.assertEqual(own["valid"], judged["valid"], shown)
            if not judged["valid"]:
                continue
            valid += 1
            waiting += judged["added_ns"] > 0
            for field in EXACT:
                self.assertEqual(own[field], judged[field], field + ": " + shown)
            if any(not b.get("persistent") and b["size"] for b in plan["blocks"]):
                self.assertEqual(own["peak_resident"], judged["peak_resident"], shown)
            self.assertEqual(own["converged"], judged["converged"], shown)
            for field, tolerance in CLOSE.items():
                self.assertAlmostEqual(own[field], judged[field], delta=tolerance, msg=field + ": " + shown)
            written = json.loads(own["written"])
            self.checker.same_problem(written, plan)
            self.assertEqual(self.theirs(written), judged, shown)
        return valid, waiting

    def test_random_plans(self):
        rng = random.Random(SEED)
        plans = [random_plans.plan(rng) for _ in range(PLANS)]
        valid, waiting = self.compare(plans)
        self.assertGreater(valid, PLANS // 10)
        self.assertGreater(waiting, PLANS // 40)

    def test_mutations_of_plans_that_hold(self):
        rng = random.Random(SEED + 1)
        plans = []
        while len(plans) < PLANS:
            plan = random_plans.plan(rng)
            if self.theirs(plan)["valid"]:
                plans += [random_plans.mutated(rng, plan) for _ in range(10)]
        valid, _ = self.compare(plans)
        self.assertGreater(valid, PLANS // 10)
        self.assertGreater(len(plans) - valid, PLANS // 5)


if __name__ == "__main__":
    cases.main()
