#!/usr/bin/env python3
"""Swaps that are planned, carried out: blocks leave and come back behind the operations that the plan names, so that a
program stays within its limit for less than copies on demand cost, with the same contents. With --full: all networks, more
seeds, and a deviation at every operation of an iteration."""
import os
import re
import unittest

import cases
from limit_runs import CHUNK, MIB, LimitCase, native
from runs import FULL, WORKLOADS

REPLAY = os.path.join(WORKLOADS, "replay")
QUIET = {"CUDASIM_POISON": "off"}
NETS = ["vgg11"] + (["vgg16", "resnet18"] if FULL else [])
PARTS = (85, 75)
SEEDS = ("1", "2") + (("3", "4", "5", "6", "7", "8") if FULL else ())


class PlannedSwaps(LimitCase):
    def replay(self, trace, limit, *arguments, iterations=16, **more):
        command = [REPLAY, trace, "--iterations", str(iterations), *arguments]
        reference = native(*command, numbers=True, **QUIET)
        run = self.limited(command, limit, numbers=True, timeout=600 if FULL else 180, **(QUIET | more))
        self.assertEqual(run.numbers["mismatches"], 0)
        self.assertEqual(run.last_line, reference.last_line)
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
            trace = self.net(name, "--batch", 50)
            without = self.succeed([REPLAY, trace, "--iterations", "32"], numbers=True, **QUIET).numbers["per_iteration"]
            for part in PARTS:
                with self.subTest(net=name, part=part):
                    limit = self.limit_of(trace, part)
                    run = self.replay(trace, limit, iterations=32)
                    self.assert_kept(run)
                    made, otherwise = self.as_planned(run)
                    self.assertGreater(made, 50)
                    self.assertLess(otherwise, made / 10)
                    steady = run.numbers["per_iteration"]
                    self.assertEqual(steady["vmm_calls"], 0)
                    self.assertEqual(steady["host_synchronizations"], without["host_synchronizations"])
                    on_demand = self.replay(trace, limit, MEMOPT_PLANNER="/bin/false", MEMOPT_SYNC_PLAN="0").numbers["per_iteration"]
                    self.assertLess(steady["virtual_ns"], 0.6 * on_demand["virtual_ns"])

    def test_any_order_that_the_edges_allow(self):
        trace = self.net("vgg11", "--batch", 20)
        limit = self.limit_of(trace, 80)
        for seed in SEEDS:
            for streams in ("1", "2"):
                with self.subTest(seed=seed, streams=streams):
                    run = self.replay(trace, limit, "--streams", streams, CUDASIM_SEED=seed)
                    self.assertGreater(self.as_planned(run)[0], 0)

    def test_every_access_of_the_kernels_is_ordered(self):
        trace = self.net("vgg11", "--batch", 8)
        run = self.replay(trace, self.limit_of(trace, 85), CUDASIM_SEED="3", CUDASIM_INSTRUMENT="1")
        self.assertGreater(self.as_planned(run)[0], 0)

    def test_two_threads(self):
        """Each with blocks and streams of its own; the peak load is both threads'."""
        trace = self.net("vgg11", "--batch", 8)
        for seed in (None, *SEEDS):
            with self.subTest(seed=seed):
                self.replay(trace, self.limit_of(trace, 85), "--threads", "2", **({} if seed is None else {"CUDASIM_SEED": seed}))


class Deviations(LimitCase):
    """What the program does otherwise than in all iterations before costs time, and changes nothing."""
    LAYERS = 8
    BYTES = 6 * MIB - 4096
    WARM = 14   # iterations until swaps are followed
    CALM = 3    # between two that deviate
    KINDS = ("missing", "extra", "larger", "freed early", "never freed")

    def iteration(self):
        """A pass forward that keeps its activations, and one backward that frees them: verb, block, bytes. All of other sizes, so that
        a thread can tell where it is."""
        steps = []
        for layer in range(self.LAYERS):
            steps += [("Malloc", f"a{layer}", self.BYTES - 4096 * layer)]
            steps += [("Read", f"a{layer - 1}", 0)] if layer else []
            steps += [("Mutable", f"a{layer}", 0), ("Read", "w", 0)]
        for layer in reversed(range(self.LAYERS)):
            steps += [("Malloc", f"g{layer}", self.BYTES - 4096 * (layer + 20)), ("Read", f"a{layer}", 0), ("Mutable", f"g{layer}", 0)]
            steps += [("Free", f"g{layer + 1}", 0)] if layer + 1 < self.LAYERS else []
            steps += [("Free", f"a{layer}", 0), ("Mutable", "w", 0)]
        return steps + [("Free", "g0", 0)]

    def changed(self, kind, at):
        steps = self.iteration()
        verb, block, _ = steps[at]
        if kind == "missing":
            del steps[at]
        elif kind == "extra":
            steps[at:at] = [("Malloc", "x", self.BYTES // 2), ("Mutable", "x", 0), ("Free", "x", 0)]
        elif kind == "larger" and verb == "Malloc":
            steps[at] = (verb, block, 2 * self.BYTES)
        elif kind == "freed early" and verb != "Free" and block != "w":
            steps = steps[:at + 1] + [("Free", block, 0)] + [step for step in steps[at + 1:] if step[1] != block]
        elif kind == "never freed" and verb == "Free":
            del steps[at]
        else:
            return None
        return steps

    def write(self, path, iterations):
        """Blocks have an address of their own each, as long as they live."""
        fresh, lines, time = iter(range(1 << 20)), ["Mutable 0x7e0000000000 8388608 0"], 0
        where, sizes = {"w": 0x7e0000000000}, {"w": 8388608}
        for steps in iterations:
            for verb, block, size in steps:
                time += 60_000
                if verb == "Malloc":
                    where[block], sizes[block] = 0x7f0000000000 + next(fresh) * (64 * MIB), size
                if block not in where:
                    continue
                lines.append(f"{verb} {where[block]:#x} {sizes[block]} {time}")
                if verb == "Free":
                    del where[block]
        with open(path, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")

    def test_at_an_operation(self):
        count = len(self.iteration())
        for kind in self.KINDS:
            with self.subTest(kind):
                places = range(count) if FULL else range(self.KINDS.index(kind), count, 11)
                changes = [steps for steps in (self.changed(kind, at) for at in places) if steps is not None]
                clean = self.iteration()
                iterations = [clean] * self.WARM + [one for steps in changes for one in [steps] + [clean] * self.CALM]
                trace = os.path.join(self.folder, kind.replace(" ", "-"))
                self.write(trace, iterations)
                command = [REPLAY, trace, "--times", "trace"]
                reference = native(*command, numbers=True, **QUIET)
                for more in ({}, {"CUDASIM_SEED": "5"}):
                    run = self.limited(command, 44 * MIB, numbers=True, timeout=600, **(QUIET | more))
                    self.assertEqual(run.numbers["mismatches"], 0)
                    self.assertEqual(run.last_line, reference.last_line)
                    self.assertRegex(run.last_words, r"; [1-9]\d* swaps as planned, ", run.errors)


if __name__ == "__main__":
    cases.main()
