#!/usr/bin/env python3
"""What we say that drops and replays come to, against a judge that shares no code with us."""
import itertools
import json
import os
import random
import unittest

import cases
import checker
import random_iterations
import recompute_judge
import verdicts

VERIFY = os.environ["VERIFY_RECOMPUTE"]
PLANS = int(os.environ.get("MEMOPT_RANDOM_PLANS", "1000")) // (1 if cases.SANITIZER == "" else 5)
SEED = int(os.environ.get("MEMOPT_RANDOM_SEED", "1"))
EXACT = ("footprint", "replays", "drops")


def theirs(plan):
    return verdicts.theirs(recompute_judge.judge, recompute_judge.Invalid, plan)


def agreed(case, plans):
    return verdicts.agreed(case, VERIFY, recompute_judge.judge, recompute_judge.Invalid, plans)


def with_swaps(rng):
    """A plan whose steps hold, with swaps, and a limit that mostly leaves just enough."""
    while True:
        plan = random_iterations.iteration(rng)
        plan["recompute"] = random_iterations.steps(rng, plan)
        if not theirs(plan)["valid"]:
            continue
        plan["machine"] = random_iterations.machine(rng)
        plan["swaps"] = random_iterations.swaps(rng, plan, recompute_judge.extend(plan))
        if not plan["swaps"]:
            continue
        result = theirs(dict(plan, limit=1 << 40))
        if result["valid"]:
            peak = result["footprint"]
            plan["limit"] = rng.choice([plan["limit"], peak, peak + rng.randint(0, 100), peak - (rng.random() < 0.2)])
        return plan


def mutations_with_swaps(rng):
    """Without an end."""
    while True:
        plan = with_swaps(rng)
        if theirs(plan)["valid"]:
            yield from (random_iterations.mutated(rng, plan) for _ in range(5))


class AgainstTheJudge(unittest.TestCase):
    def compare(self, plans):
        """Counts those that hold, and those of them in which something is replayed."""
        valid = replayed = 0
        for _, own, judged, shown in agreed(self, plans):
            valid += 1
            replayed += judged["replays"] > 0
            for field in EXACT:
                self.assertEqual(own[field], judged[field], field + ": " + shown)
            self.assertAlmostEqual(own["added_ns"], judged["added_ns"], delta=1e-6, msg=shown)
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
        plans = [plan for plan in plans if not plan.get("lazy_malloc")]
        valid, _ = self.compare(plans)
        self.assertGreater(valid, PLANS // 10)
        self.assertGreater(len(plans) - valid, PLANS // 10)


class WithSwaps(unittest.TestCase):
    def compare(self, plans):
        """Counts those that hold, those of them in which something is replayed, and those in which something waits."""
        valid = replayed = waiting = settled = 0
        for _, own, judged, shown in agreed(self, plans):
            valid += 1
            replayed += judged["replays"] > 0
            waiting += judged["waits_ns"] > 1e-6
            for field in ("replays", "drops"):
                self.assertEqual(own[field], judged[field], field + ": " + shown)
            # Without swaps nothing is repeated.
            settled += own.get("converged", True)
            if judged["converged"] and own.get("converged", True):
                self.assertAlmostEqual(own["added_ns"], judged["added_ns"], delta=2e-3, msg=shown)
        self.assertGreater(settled, valid * 3 // 4)
        return valid, replayed, waiting

    def test_random_plans_with_swaps(self):
        rng = random.Random(SEED + 2)
        plans = [with_swaps(rng) for _ in range(PLANS // 8)]
        valid, replayed, waiting = self.compare(plans)
        self.assertGreater(valid, len(plans) // 3)
        self.assertGreater(len(plans) - valid, len(plans) // 10)
        self.assertGreater(replayed, len(plans) // 6)
        self.assertGreater(waiting, len(plans) // 6)

    def test_mutations_of_plans_with_swaps(self):
        plans = list(itertools.islice(mutations_with_swaps(random.Random(SEED + 3)), PLANS // 8))
        valid, replayed, _ = self.compare(plans)
        self.assertGreater(valid, len(plans) // 6)
        self.assertGreater(len(plans) - valid, len(plans) // 6)
        self.assertGreater(replayed, len(plans) // 12)


def with_places(rng, swapped):
    """A plan whose steps, and swaps if it has any, hold without a layout, with places that mostly do."""
    while True:
        plan = with_swaps(rng) if swapped else random_iterations.iteration(rng)
        if not swapped:
            plan["recompute"] = random_iterations.steps(rng, plan)
        if not theirs(dict(plan, limit=1 << 40))["valid"]:
            continue
        random_iterations.place(rng, plan, recompute_judge.extend(plan))
        return plan


class WithPlaces(unittest.TestCase):
    def compare(self, plans):
        """Counts those that hold, and those of them in which a step has places."""
        valid = placed = 0
        for plan, own, judged, shown in agreed(self, plans):
            valid += 1
            placed += any("places" in step for step in plan["recompute"])
            for field in ("footprint", "replays", "drops"):
                self.assertEqual(own[field], judged[field], field + ": " + shown)
            self.assertGreaterEqual(judged["footprint"], 0 if judged["swaps"] else judged["load"], shown)
            if judged["converged"] and own["converged"]:
                self.assertAlmostEqual(own["added_ns"], judged["added_ns"], delta=2e-3, msg=shown)
        return valid, placed

    def test_random_plans_with_places(self):
        rng = random.Random(SEED + 6)
        for swapped in (False, True):
            plans = [with_places(rng, swapped) for _ in range(PLANS // 25)]
            valid, placed = self.compare(plans)
            self.assertGreater(valid, len(plans) // 3)
            self.assertGreater(placed, len(plans) // 6)

    def test_mutations_of_plans_with_places(self):
        rng = random.Random(SEED + 7)
        plans = []
        while len(plans) < PLANS // 16:
            plan = with_places(rng, rng.random() < 0.3)
            if theirs(plan)["valid"] and any("places" in step for step in plan["recompute"]):
                plans += (random_iterations.mutated(rng, plan) for _ in range(5))
        valid, placed = self.compare(plans)
        self.assertGreater(valid, len(plans) // 10)
        self.assertGreater(len(plans) - valid, len(plans) // 3)
        self.assertGreater(placed, len(plans) // 10)

    def example(self):
        """Block 1 is dropped and made again by a launch that writes block 2 as well, which has been changed since: 100 bytes, and 50 besides."""
        plan = TheIterationWithItsSteps().example()
        plan.update(layout=True, limit=226, swaps=[], align=8, chunk=8)
        for block, offset in zip(plan["blocks"], (0, 16, 176)):
            block["offset"] = offset
        plan["recompute"][1]["places"] = [{"block": 1, "offset": 16}, {"block": 2, "offset": 120}]
        return plan

    def test_an_example(self):
        own, = verdicts.ours(VERIFY, [self.example()])
        for result in (own, theirs(self.example())):
            self.assertEqual((result["valid"], result["footprint"], result["added_ns"]), (True, 226, 10), result)
        # A later life may lie elsewhere.
        self.assertTrue(theirs(self.moved(1, {"offset": 8}, limit=None, weight=240))["valid"])

    def moved(self, block, place, weight=None, **fields):
        plan = dict(self.example(), **fields)
        one, = (one for one in plan["recompute"][1]["places"] if one["block"] == block)
        one.update(place)
        if weight is not None:
            plan["blocks"][0]["offset"] = weight
        return plan

    def test_places_that_do_not_hold(self):
        without, twice, of_another, negative, drop = (self.example() for _ in range(5))
        del without["recompute"][1]["places"][0]
        twice["recompute"][1]["places"].append({"block": 1, "offset": 16})
        of_another["recompute"][1]["places"].append({"block": 0, "offset": 0})
        negative["recompute"][1]["places"][0]["offset"] = -8
        drop["recompute"][0]["places"] = [{"block": 1, "offset": 16}]
        for plan, why in (
                (self.moved(1, {"offset": 24}), "blocks . and . are both resident at byte 120 at operation 10"),  # one unit onto the next
                (self.moved(1, {"offset": 8}), "blocks . and . are both resident at byte 8 at operation"),        # and onto the one before
                (self.moved(2, {"offset": 128}), "blocks . and . are both resident at byte 176 at operation 10"),
                (self.moved(1, {"offset": 17}), "an offset is no multiple of 8"),
                (self.moved(2, {"offset": 232}), "the footprint of 282 bytes is above the limit of 226"),
                (dict(self.example(), limit=225), "the footprint of 226 bytes is above the limit of 225"),
                (without, r"recompute\[1\]: places are of blocks \[2\], and it takes bytes for \[1, 2\]"),
                (twice, r"recompute\[1\].places\[2\]: block 1 has one already"),
                (of_another, r"recompute\[1\]: places are of blocks \[0, 1, 2\], and it takes bytes for \[1, 2\]"),
                (negative, r"recompute\[1\].places\[0\].offset is not a whole number"),
                (drop, r"recompute\[0\] does not have before and one of drop and replay, or has more"),
                (self.moved(1, {"window": "wide"}), r"recompute\[1\].places\[0\].window is neither linear nor own")):
            own, = verdicts.ours(VERIFY, [plan])
            self.assertFalse(own["valid"], why)
            self.assertRegex(theirs(plan).get("error", "it holds"), why, own)


class TheIterationWithItsSteps(unittest.TestCase):
    """What swaps of such plans are of, and what the judge makes of them."""

    def example(self):
        """Block 0 is a weight. A launch makes 1 and 2, and another changes 2. Block 1 is dropped, made again, and then swapped."""
        ops = [["m", 1, 0], ["m", 2, 0],
               ["r", 0, 0], ["w", 1, 0], ["w", 2, 0],
               ["r", 2, 10], ["w", 2, 10],
               ["x", -1, 20],
               ["r", 1, 120], ["x", -1, 130], ["r", 1, 230], ["r", 2, 240],
               ["f", 2, 250], ["f", 1, 255]]
        return {"format": "memopt-plan-2", "layout": False, "limit": 210, "period": 260, "ops": ops,
                "blocks": [{"id": 0, "size": 10, "persistent": True}, {"id": 1, "size": 100}, {"id": 2, "size": 50}],
                "launches": [[2, 3], [5, 2]], "recompute": [{"before": 7, "drop": 1}, {"before": 8, "replay": 2}],
                "machine": {"out_bytes_per_ns": 4, "in_bytes_per_ns": 10},
                "swaps": [{"block": 1, "out_after": 15, "in_after": 16, "need": 17}]}

    def test_an_example(self):
        # Lives: 0 the weight, 1 and 3 block 1, 2 block 2, 4 what is written instead of block 2, which is in version 2.
        expected = [["m", 1, 0], ["m", 2, 0],
                    ["r", 0, 0], ["w", 1, 0], ["w", 2, 0],
                    ["r", 2, 10], ["w", 2, 10],
                    ["f", 1, 20],
                    ["x", -1, 20],
                    ["m", 3, 120], ["m", 4, 120], ["r", 0, 120], ["w", 3, 120], ["w", 4, 120], ["f", 4, 130],
                    ["r", 3, 130], ["x", -1, 140], ["r", 3, 240], ["r", 2, 250],
                    ["f", 2, 260], ["f", 3, 265]]
        plan = self.example()
        extended = recompute_judge.extend(plan).plan(plan)
        self.assertEqual([operation[:3] for operation in extended["ops"]], expected)
        self.assertEqual({operation[3] for operation in extended["ops"]}, {0})
        self.assertEqual([block["size"] for block in extended["blocks"]], [10, 100, 50, 100, 50])
        self.assertEqual(extended["period"], 270)
        self.assertEqual(extended["swaps"], [{"block": 3, "out_after": 15, "in_after": 16, "need": 17}])
        # The copy in, of 10 ns, is issued when the block is needed. All are in memory while the replay runs.
        result = theirs(plan)
        self.assertEqual((result["added_ns"], result["waits_ns"], result["footprint"]), (20, 10, 210))
        self.assertEqual((result["replays"], result["drops"], result["swaps"]), (1, 1, 1))
        self.assertFalse(theirs(dict(plan, limit=209))["valid"])

    def test_where_a_swap_may_be(self):
        plan = self.example()
        for swap, why in (({"block": 1, "out_after": 4}, None),  # Of the first life, dropped while away.
                          ({"block": 1, "out_after": 3}, "is within the launch or replay of operations 2 to 4"),
                          ({"block": 1, "out_after": 0, "in_after": 0, "need": 2}, None),
                          ({"block": 1, "out_after": 0, "in_after": 0, "need": 3}, "is within the launch or replay of operations 2 to 4"),
                          ({"block": 1, "out_after": 4, "in_after": 8, "need": 15}, "ends behind the lifetime"),
                          ({"block": 1, "out_after": 7}, "block 1 is not there behind operation 7"),
                          ({"block": 1, "out_after": 8}, "block 1 is not there behind operation 8"),
                          ({"block": 1, "out_after": 12, "in_after": 13, "need": 15}, "is within the launch or replay of operations 11 to 13"),
                          ({"block": 1, "out_after": 13, "in_after": 13, "need": 15}, None),
                          ({"block": 1, "out_after": 20}, "block 1 is not there behind operation 20"),
                          # The replay does not touch block 2, but what is written instead.
                          ({"block": 2, "out_after": 6, "in_after": 16, "need": 18}, None),
                          ({"block": 2, "out_after": 5, "in_after": 16, "need": 18}, "is accessed at position 6"),
                          ({"block": 0, "out_after": 4, "in_after": 8, "need": 11}, None),
                          ({"block": 0, "out_after": 4, "in_after": 8, "need": 12}, "is accessed at position 11"),
                          ({"block": 0, "out_after": 2, "in_after": 8, "need": 11}, "is within the launch or replay of operations 2 to 4"),
                          ({"block": 0, "out_after": 11, "in_after": 21, "need": 23}, "is within the launch or replay of operations 11 to 13"),
                          ({"block": 0, "out_after": 13, "in_after": 21, "need": 23}, None)):
            result = theirs(dict(plan, swaps=[swap]))
            self.assertEqual(result["valid"], why is None, (swap, result))
            if why:
                self.assertIn(why, result["error"], swap)

    def test_launches_without_steps(self):
        plan = dict(self.example(), recompute=[])
        for out_after, valid in ((3, False), (4, True)):
            result = theirs(dict(plan, swaps=[{"block": 1, "out_after": out_after, "in_after": 6, "need": 8}]))
            self.assertEqual((result["valid"], result.get("added_ns", 0)), (valid, 0))

    def test_what_is_freed_by_the_program(self):
        """Behind its free a block is made again, and dropped; the free of what was dropped before is left out."""
        plan = dict(self.example(), swaps=[], launches=[[2, 3]])
        plan["recompute"] = [{"before": 12, "drop": 2}, {"before": 14, "replay": 2}, {"before": 14, "drop": 1}, {"before": 14, "drop": 2}]
        extended = recompute_judge.extend(plan).plan(plan)
        self.assertEqual([operation[:3] for operation in extended["ops"]][11:],
                         [["r", 2, 240], ["f", 2, 250], ["f", 1, 255],
                          ["m", 3, 260], ["m", 4, 260], ["r", 0, 260], ["w", 3, 260], ["w", 4, 260],
                          ["f", 3, 270], ["f", 4, 270]])
        self.assertEqual(extended["period"], 270)

    def test_a_block_without_bytes(self):
        """It can't be made again; where a launch that names it is replayed, the program may have freed it."""
        plan = dict(self.example(), swaps=[], launches=[[2, 2]], period=30, blocks=[{"id": 1, "size": 100}, {"id": 2, "size": 0}])
        plan["ops"] = [["m", 1, 0], ["m", 2, 0], ["w", 2, 0], ["w", 1, 5], ["f", 2, 10], ["x", -1, 10], ["r", 1, 20], ["f", 1, 30]]
        plan["recompute"] = [{"before": 5, "drop": 1}, {"before": 6, "replay": 2}]
        self.assertEqual([operation[:3] for operation in recompute_judge.extend(plan).plan(plan)["ops"]],
                         [["m", 0, 0], ["m", 1, 0], ["w", 1, 0], ["w", 0, 5], ["f", 1, 10], ["f", 0, 10], ["x", -1, 10],
                          ["m", 2, 20], ["x", -1, 20], ["w", 2, 25], ["r", 2, 30], ["f", 2, 40]])

    def test_without_swaps_it_is_as_large(self):
        """And nothing waits."""
        rng = random.Random(SEED + 4)
        seen = 0
        while seen < PLANS // 20:
            plan = random_iterations.iteration(rng)
            plan["recompute"] = random_iterations.steps(rng, plan)
            judged = theirs(plan)
            if not judged["valid"] or judged["drops"] == 0:
                continue
            seen += 1
            extended = recompute_judge.swap_judge.judge(recompute_judge.extend(plan).plan(plan))
            self.assertEqual(extended["peak_taken"], judged["footprint"], json.dumps(plan))
            self.assertAlmostEqual(extended["added_ns"], 0, delta=1e-6, msg=json.dumps(plan))

    def test_its_swaps_by_the_checker(self):
        """It knows of no launches, but sees the rest."""
        other = checker.load(self)
        rng = random.Random(SEED + 5)
        plans = [with_swaps(rng) for _ in range(PLANS // 20)]
        plans += itertools.islice(mutations_with_swaps(rng), PLANS // 20)
        valid = waiting = 0
        for plan in plans:
            judged = theirs(plan)
            try:
                extended = dict(recompute_judge.extend(plan).plan(plan), format="memopt-plan-1")
            except recompute_judge.Invalid:
                continue
            result = verdicts.theirs(other.check, other.Invalid, extended)
            shown = verdicts.shown(plan, judged, result)
            self.assertEqual(judged["valid"] or "within the launch" in judged["error"], result["valid"], shown)
            if not judged["valid"]:
                continue
            valid += 1
            waiting += judged["waits_ns"] > 1e-6
            if judged["converged"] and result["converged"]:
                self.assertAlmostEqual(judged["waits_ns"], result["added_ns"], delta=2e-3, msg=shown)
        self.assertGreater(valid, len(plans) // 4)
        self.assertGreater(waiting, len(plans) // 6)


if __name__ == "__main__":
    cases.main()
