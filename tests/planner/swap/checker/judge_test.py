#!/usr/bin/env python3
"""Our verifier and simulator against the judge of these tests, which shares no code with them and knows where blocks return to."""
import json
import os
import random
import unittest

import cases
import judge
import random_plans
import verdicts

VERIFY_PLANS = os.environ["VERIFY_PLANS"]
PLANS = int(os.environ.get("MEMOPT_RANDOM_PLANS", "800")) // (1 if cases.SANITIZER == "" else 5)
SEED = int(os.environ.get("MEMOPT_RANDOM_SEED", "1"))
EXACT = ("footprint", "peak_live", "returns_elsewhere", "remapped_chunks")


def theirs(plan):
    return verdicts.theirs(judge.judge, judge.Invalid, plan)


def with_layout(rng, layout=True):
    while True:
        plan = random_plans.plan(rng)
        if plan.get("layout", True) == layout:
            return plan


def without_layout(rng):
    return with_layout(rng, False)


class AgainstTheJudge(unittest.TestCase):
    def compare(self, plans):
        """Counts those that hold, those in which something waits, and those in which a block returns elsewhere."""
        valid = waiting = elsewhere = 0
        for plan, own, judged, shown in verdicts.agreed(self, VERIFY_PLANS, judge.judge, judge.Invalid, plans):
            valid += 1
            for field in EXACT:
                self.assertEqual(own[field], judged[field], field + ": " + shown)
            # Of offsets in turn ours counts over iterations that are no multiple of the turns.
            self.assertEqual(own["early_swap_ins"] > 0, judged["early_swap_ins"] > 0, shown)
            if own["converged"] and judged["converged"]:
                self.assertAlmostEqual(own["added_ns"], judged["added_ns"], delta=2e-3, msg=shown)
            if not plan.get("layout", True):
                # Ours counts what is resident in simulated time, the limit what was issued.
                self.assertLessEqual(own["peak_resident"], judged["peak_taken"], shown)
            waiting += judged["added_ns"] > 1e-6
            elsewhere += judged["returns_elsewhere"] > 0
        return valid, waiting, elsewhere

    def test_plans_of_the_first_format(self):
        rng = random.Random(SEED)
        valid, waiting, _ = self.compare([with_layout(rng) for _ in range(PLANS)])
        self.assertGreater(valid, PLANS // 10)
        self.assertGreater(waiting, PLANS // 40)

    def test_plans_with_a_place_for_each_return(self):
        rng = random.Random(SEED + 1)
        plans = []
        while len(plans) < PLANS:
            plan = with_layout(rng)
            if any("need" in swap for swap in plan["swaps"]) and theirs(plan)["valid"]:
                plans.append(random_plans.return_elsewhere(rng, plan))
        valid, waiting, elsewhere = self.compare(plans)
        self.assertGreater(valid, PLANS // 4)
        self.assertGreater(waiting, PLANS // 10)
        self.assertGreater(elsewhere, PLANS // 10)

    def test_mutations_of_them(self):
        rng = random.Random(SEED + 2)
        plans = []
        while len(plans) < PLANS:
            plan = with_layout(rng)
            if not any("need" in swap for swap in plan["swaps"]) or not theirs(plan)["valid"]:
                continue
            plan = random_plans.return_elsewhere(rng, plan)
            if theirs(plan).get("returns_elsewhere", 0) > 0:
                plans += [one for one in (random_plans.mutated(rng, plan) for _ in range(10)) if one.get("layout", True)]
        valid, _, elsewhere = self.compare(plans)
        self.assertGreater(valid, PLANS // 10)
        self.assertGreater(elsewhere, PLANS // 10)
        self.assertGreater(len(plans) - valid, PLANS // 5)

    def test_plans_without_layout(self):
        rng = random.Random(SEED + 4)
        valid, waiting, _ = self.compare([without_layout(rng) for _ in range(PLANS // 2)])
        self.assertGreater(valid, PLANS // 6)
        self.assertGreater(waiting, PLANS // 12)

    def test_mutations_of_plans_without_layout(self):
        rng = random.Random(SEED + 5)
        plans = []
        while len(plans) < PLANS // 2:
            plan = without_layout(rng)
            if plan["swaps"] and theirs(plan)["valid"]:
                plans += [random_plans.mutated(rng, plan) for _ in range(5)]
        valid, waiting, _ = self.compare(plans)
        self.assertGreater(valid, PLANS // 6)
        self.assertGreater(waiting, PLANS // 12)
        self.assertGreater(len(plans) - valid, PLANS // 12)

    def test_the_limit_counts_what_was_issued(self):
        """Block 1 is allocated while block 0's copy out, of 25 ns, is under way: it waits for that, and fits."""
        plan = {"format": "memopt-plan-1", "layout": False, "limit": 150, "period": 60,
                "machine": {"out_bytes_per_ns": 4, "in_bytes_per_ns": 10},
                "blocks": [{"id": 0, "size": 100}, {"id": 1, "size": 100}],
                "ops": [["m", 0, 0], ["w", 0, 0], ["m", 1, 10], ["f", 1, 20], ["x", -1, 30], ["r", 0, 40], ["f", 0, 50]],
                "swaps": [{"block": 0, "out_after": 1, "in_after": 3, "need": 5}]}
        # Out from 10 to 35; operation 2 waits 25 and ends at 45, 3 at 55. Half of the bytes for the copy in are block 1's: from 55 to 65, when
        # operation 4 ends.
        result = theirs(plan)
        self.assertEqual((result["peak_taken"], result["added_ns"]), (100, 25))
        # Copied in before the free of block 1, both have to fit.
        plan["swaps"][0]["in_after"] = 2
        self.assertEqual(theirs(plan)["error"], "200 bytes are taken, and the limit is 150")
        plan["limit"] = 200
        # It takes what no block had; in from 35 to 45, as the copy out ends at 35.
        self.assertEqual(theirs(plan)["added_ns"], 5)
        for limit in (99, None):
            plan["limit"] = limit
            self.assertFalse(theirs(plan)["valid"])

    def test_the_judge_sees_what_our_plans_are_free_of(self):
        """Nobody waits for the bytes' previous owners: what comes of it is seen in simulated time."""
        rng = random.Random(SEED + 3)
        set_owners, seen = judge.set_previous_owners, 0

        def nobody_waits(plan, stays):
            early = set_owners(plan, stays)
            for stay in stays:
                stay.previous = {turn: [] for turn in stay.previous}
            return early

        self.addCleanup(setattr, judge, "set_previous_owners", set_owners)
        for _ in range(PLANS // 2):
            plan = with_layout(rng)
            judge.set_previous_owners = set_owners
            before = theirs(plan)
            judge.set_previous_owners = nobody_waits
            after = theirs(plan)
            if not before["valid"] or after.get("added_ns") == before["added_ns"]:
                continue
            self.assertIn("share bytes at time", after.get("error", ""), json.dumps(plan))
            seen += 1
        self.assertGreater(seen, PLANS // 100)

    def test_the_judge_sees_the_same_without_layout(self):
        """Not of all: bytes that are kept for a copy in that has not started are nobody's in simulated time."""
        rng = random.Random(SEED + 6)
        take, seen = judge.Pool.take, 0
        self.addCleanup(setattr, judge.Pool, "take", take)
        for _ in range(PLANS // 2):
            plan = without_layout(rng)
            judge.Pool.take = take
            before = theirs(plan)
            judge.Pool.take = lambda *_: 0.0
            after = theirs(plan)
            if before["valid"] and not after["valid"]:
                self.assertRegex(after["error"], "^[0-9]+ bytes are resident at time ", json.dumps(plan))
                seen += 1
        self.assertGreater(seen, PLANS // 200)


if __name__ == "__main__":
    cases.main()
