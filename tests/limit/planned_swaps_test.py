#!/usr/bin/env python3
"""Swaps that are planned, carried out: blocks leave and come back behind the operations that the plan names, so that a
program stays within its limit for less than copies on demand cost, with the same contents. With --full: more networks, limits
and seeds."""
import itertools
import os
import re
import unittest

import cases
import patience
from limit_runs import CHUNK, MIB, PROGRAM, LimitCase, native
from runs import FULL, WITHOUT_A_PLANNER, WORKLOADS

REPLAY = os.path.join(WORKLOADS, "replay")
QUIET = {"CUDASIM_POISON": "off"}
NETS = ["vgg11"] + (["vgg16", "resnet18"] if FULL else [])
PARTS = (85, 75, 60, 45) if FULL else (75, 45)  # at 45 % hardly more than what lives through all iterations needs
SEEDS = ("1", "2") + (("3", "4", "5", "6", "7", "8") if FULL else ())


def rollouts(path, frames, batch, layer, layers, iterations=4):
    """A trace as of reinforcement learning, sizes in MiB: what a rollout fills lives until the next one is full, and is read at the beginning of each
    update."""
    lines, now, base = [], 0, 0x7f0000000000

    def note(verb, number, size):
        nonlocal now
        lines.append(f"{verb} {base + number * 0x10000000:#x} {size * MIB} {now}")
        now += 400_000 if verb in ("Read", "Mutable") else 1000

    def passing(number, size):
        note("Malloc", number, size)
        note("Mutable", number, size)
        note("Free", number, size)

    for iteration in range(iterations + 1):
        filled, before = iteration % 2, (iteration + 1) % 2
        note("Malloc", filled, frames)
        for _ in range(4):
            passing(2, 6)
            note("Mutable", filled, frames)
        if iteration != 0:
            note("Free", before, frames)
        for _ in range(3):
            note("Malloc", 3, batch)
            note("Read", filled, frames)
            note("Mutable", 3, batch)
            for number in range(4, 4 + layers):
                note("Malloc", number, layer)
                note("Read", number - 1, batch if number == 4 else layer)
                note("Mutable", number, layer)
            for number in reversed(range(4, 4 + layers)):
                note("Read", number, layer)
                note("Free", number, layer)
            note("Read", 3, batch)
            note("Free", 3, batch)
        passing(30, 5)    # so that no update alone is the iteration
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
    return path


class PlannedSwaps(LimitCase):
    def replay(self, trace, limit, *arguments, iterations=16, **more):
        command = [REPLAY, trace, "--iterations", str(iterations), *arguments]
        reference = native(*command, numbers=True, **QUIET)
        run = self.limited(command, limit, numbers=True, timeout=patience.seconds(600), **(QUIET | more))
        self.assertEqual(run.numbers["mismatches"], 0)
        self.assertEqual(run.last_line, reference.last_line)
        return run

    def planned(self, *arguments, **more):
        """A run in which swaps are planned. Where a loaded machine cuts the search for them short, which is bounded by a number of attempts
        otherwise, it has longer."""
        for times in (1, 5, 20):
            run = self.replay(*arguments, **(more | {"MEMOPT_SYNC_PLAN": str(min(times * patience.WAIT_SECONDS, 3600))}))
            if "swaps as planned" in run.last_words:
                break
        self.assertGreater(self.as_planned(run)[0], 0)
        return run

    def as_planned(self, run):
        """How many swaps were made as planned, and how many planned ones were not."""
        found = re.search(r"; (\d+) swaps as planned, (\d+) not", run.last_words)
        self.assertIsNotNone(found, run.errors)
        return int(found.group(1)), int(found.group(2))

    def limit_of(self, trace, part):
        peak = native(REPLAY, trace, "--iterations", "16", numbers=True, **QUIET).numbers["peak_load"]
        return peak * part // 100 // CHUNK * CHUNK

    def test_networks(self):
        """In the steady state nothing is mapped, and the host waits no more often than without a limit."""
        for name in NETS:
            trace = self.net(name, "--batch", 50 if FULL else 20)
            without = self.succeed([REPLAY, trace, "--iterations", "60"], numbers=True, **QUIET).numbers["per_iteration"]
            for part in PARTS:
                with self.subTest(net=name, part=part):
                    limit = self.limit_of(trace, part)
                    run = self.planned(trace, limit, iterations=60)
                    self.assert_kept(run)
                    made, otherwise = self.as_planned(run)
                    self.assertGreater(made, 50)
                    self.assertLess(otherwise, made / 10)
                    steady = run.numbers["per_iteration"]
                    self.assertEqual(steady["vmm_calls"], 0)
                    self.assertEqual(steady["host_synchronizations"], without["host_synchronizations"])
                    told = re.search(r"; ([\d.]+) ms an iteration, ([\d.]+) expected", run.last_words)
                    self.assertIsNotNone(told, run.errors)
                    self.assertAlmostEqual(float(told.group(1)) * 1e6, steady["virtual_ns"], delta=0.02 * steady["virtual_ns"])
                    on_demand = self.replay(trace, limit, **WITHOUT_A_PLANNER).numbers["per_iteration"]
                    # At 45 % what is copied each way takes three times as long as the computation, on demand as well.
                    self.assertLess(steady["virtual_ns"], (0.65 if part == 45 else 0.6) * on_demand["virtual_ns"])

    def test_batches_that_are_accumulated(self):
        """They look alike, and between two steps is an optimizer that allocates nothing: only its launches tell them apart."""
        trace = self.net("vgg11", "--batch", 20, "--accumulate", 2)
        limit = self.limit_of(trace, 75)
        # A better plan may take the place of the first one by the twentieth iteration.
        run = self.replay(trace, limit, iterations=48)
        self.assert_kept(run)
        made, otherwise = self.as_planned(run)
        self.assertGreater(made, 50)
        self.assertLess(otherwise, made / 10)
        on_demand = self.replay(trace, limit, **WITHOUT_A_PLANNER).numbers["per_iteration"]
        self.assertLess(run.numbers["per_iteration"]["virtual_ns"], 0.66 * on_demand["virtual_ns"])

    def test_a_large_block_of_the_iteration_before(self):
        """Where it has come back beside its place, in idle chunks of the slab, those that lack these get them back, and it its place: what went wrong
        at the switch is over some iterations later."""
        for part, *sizes in [(75, 48, 14, 10, 5)] + ([(85, 110, 28, 13, 11), (75, 61, 14, 8, 10)] if FULL else []):
            with self.subTest(sizes=sizes, part=part):
                trace = rollouts(os.path.join(self.folder, "-".join(map(str, sizes))), *sizes)
                arguments = [trace, "--times", "trace", "--alike"]
                without = self.succeed([REPLAY, *arguments, "--iterations", "16"], numbers=True, **QUIET).numbers["per_iteration"]
                limit = self.limit_of(trace, part)
                run = self.replay(arguments[0], limit, *arguments[1:], iterations=40)
                on_demand = self.replay(arguments[0], limit, *arguments[1:], **WITHOUT_A_PLANNER)
                # One of its copies names both.
                self.assertLessEqual(run.held, max(limit, on_demand.held))
                made, otherwise = self.as_planned(run)
                self.assertGreater(made, 50)
                self.assertLess(otherwise, made / 4)
                self.assertLess(run.numbers["per_iteration"]["virtual_ns"], 1.1 * without["virtual_ns"])

    def test_iterations_that_become_longer(self):
        """By the plan they take longer than on demand when it was made: it is left for a trial, and taken up again, as on demand they are no faster
        now."""
        run = self.limited([PROGRAM, "longer-launches", "120"], 28 * MIB, MEMOPT_LOG="info")
        self.assertEqual(run.output, native(PROGRAM, "longer-launches", "120").output)
        self.assert_kept(run)
        left, again = (run.errors.find(what) for what in ("is tried again", "the plan is taken up again"))
        self.assertGreater(left, 0, run.errors)
        self.assertGreater(again, left, run.errors)
        self.assertEqual(run.errors.count("the plan is taken up again"), 1, run.errors)
        self.assertGreater(run.errors.find("plan 1 is live"), again, run.errors)
        made, otherwise = self.as_planned(run)
        self.assertGreater(made, 500)
        self.assertLess(otherwise, made / 20)

    def test_what_is_to_stay(self):
        """MEMOPT_PIN."""
        command = [PROGRAM, "longer-launches", "40" if FULL else "16"]
        reference = native(*command)
        for pins, stay in (("size>=4MiB", True), ("frame=^limit_cases:", True), ("size>=1GiB|frame=^no_file:", False), ("size>4MiB", False),
                           ("frame=(", False)):
            run = self.limited(command, 28 * MIB, MEMOPT_PIN=pins)
            self.assertEqual(run.output, reference.output)
            # Some copies measure how fast they are.
            self.assertEqual(run.copied(reference)[0] < 100 * MIB, stay, f"{pins}: {run.errors}")
            self.assertEqual(run.passed_by != 0, stay, run.errors)
        self.assertIn("MEMOPT_PIN: 'frame=(' is no regular expression", run.errors)

    def test_any_order_that_the_edges_allow(self):
        trace = self.net("vgg11", "--batch", 20)
        limit = self.limit_of(trace, 60)
        # On one stream, test_every_access_of_the_kernels_is_ordered has such an order, with more to see.
        for seed, streams in itertools.product(SEEDS, ("1", "2")) if FULL else [("2", "2")]:
            with self.subTest(seed=seed, streams=streams):
                self.planned(trace, limit, "--streams", streams, CUDASIM_SEED=seed)

    def test_every_access_of_the_kernels_is_ordered(self):
        trace = self.net("vgg11", "--batch", 8)
        self.planned(trace, self.limit_of(trace, 60), CUDASIM_SEED="3", CUDASIM_INSTRUMENT="1")

    def test_two_threads(self):
        """Each with blocks and streams of its own; the peak load is both threads'."""
        trace = self.net("vgg11", "--batch", 8)
        for seed in (None, *SEEDS) if FULL else ("1",):
            with self.subTest(seed=seed):
                self.replay(trace, self.limit_of(trace, 60), "--threads", "2", **({} if seed is None else {"CUDASIM_SEED": seed}))


if __name__ == "__main__":
    cases.main()
