#!/usr/bin/env python3
"""Programs that leave a plan with swaps at each of its operations, in each way: an operation or a block is missing, there is one more, a
block is larger, is freed early, is freed iterations later, or blocks are touched which the plan has away. Contents are those of a native run, every access is ordered, and
the plan is followed in between. With --full: a longer iteration, more orders of operations, on two streams."""
import os
import re
import unittest

import cases
import patience
from limit_runs import CHUNK, MIB, LimitCase, native
from runs import FULL, WITHOUT_A_PLANNER, WORKLOADS

REPLAY = os.path.join(WORKLOADS, "replay")
QUIET = {"CUDASIM_POISON": "off"}
LAYERS = 24 if FULL else 6
MORE_LAYERS = 24 if FULL else 8  # where it is counted how many swaps are made
CALM = 12  # iterations without deviation before the first; the plan is live then
APART = 3  # each so many
KINDS = ("missing", "extra", "larger", "early", "late", "touched")
LATE = 4  # iterations after which what was not freed in time is


class Iterations:
    """A training iteration again and again, as a trace for replay."""

    def __init__(self, layers=LAYERS):
        self.layers = layers
        self.lines, self.live, self.late, self.named, self.written = [], {}, {}, 0, set()
        self.done = 0
        self.now = 0
        for layer in range(layers):
            self.make(("weight", layer), 2 * MIB + 4096 * layer)
            self.touch("Mutable", ("weight", layer))

    def operations(self):
        """(verb, block, bytes), of an iteration."""
        listed = []
        for layer in range(self.layers):
            listed += [("Malloc", ("out", layer), (2 + layer % 4) * MIB + 512 * layer), ("Read", ("weight", layer), 0)]
            listed += [("Read", ("out", layer - 1), 0)] if layer else []
            listed += [("Mutable", ("out", layer), 0)]
            if layer % 3 == 0:
                listed += [("Malloc", ("scratch", layer), 300_000 + layer), ("Mutable", ("scratch", layer), 0), ("Free", ("scratch", layer), 0)]
        for layer in reversed(range(self.layers)):
            listed += [("Malloc", ("gradient", layer), 3 * MIB + 512 * layer), ("Read", ("out", layer), 0), ("Mutable", ("gradient", layer), 0),
                       ("Free", ("out", layer), 0), ("Read", ("gradient", layer), 0), ("Mutable", ("weight", layer), 0),
                       ("Free", ("gradient", layer), 0)]
        return listed

    def line(self, verb, pointer, size):
        self.now += 1000
        self.lines.append(f"{verb} {pointer:#x} {size} {self.now}")

    def make(self, block, size):
        self.named += 1
        self.live[block] = (self.named << 28, size)
        self.line("Malloc", *self.live[block])

    def touch(self, verb, block):
        if block in self.live:
            self.line(verb, *self.live[block])

    def end(self, block):
        if block in self.live:
            self.line("Free", *self.live.pop(block))

    def play(self, kind=None, at=None):
        """An iteration; with `kind`, it deviates at that operation."""
        self.done += 1
        for block in self.late.pop(self.done, []):
            self.end(block)
        whose = self.operations()[at][1] if kind else None
        self.written = set()
        for index, (verb, block, size) in enumerate(self.operations()):
            here = index == at
            if kind in ("touched", "all touched") and here:
                for layer in range(0, self.layers, 3 if kind == "touched" else 1):
                    # As stale words of a launch's parameters do.
                    if ("out", layer) in self.written:
                        self.touch("Read", ("out", layer))
            if kind == "extra" and here:
                self.make("extra", 2 * MIB + 300_000)
                self.touch("Mutable", "extra")
                self.touch("Read", "extra")
                self.end("extra")
            if verb == "Free" and block in self.live and (kind == "late" and block == whose or kind == "missing" and here):
                kept = ("late", self.done)
                self.live[kept] = self.live.pop(block)
                self.late.setdefault(self.done + (LATE if kind == "late" else 1), []).append(kept)
                continue
            if kind == "missing" and (here or (block == whose and self.operations()[at][0] == "Malloc")):
                continue
            if verb == "Mutable":
                self.written.add(block)
            if verb == "Free":
                self.written.discard(block)
            if verb == "Malloc":
                self.make(block, 2 * size + 512 if kind == "larger" and block == whose else size)
            elif verb == "Free":
                self.end(block)
            else:
                # What nothing was written to can't be read.
                self.touch("Mutable" if kind == "missing" and block == whose else verb, block)
            if kind == "early" and here and block[0] != "weight":
                self.end(block)

    def write(self, path):
        for blocks in self.late.values():
            for block in blocks:
                self.end(block)
        for block in list(self.live):
            self.end(block)
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(self.lines) + "\n")


class Deviations(LimitCase):
    def trace(self, kind, layers):
        iterations = Iterations(layers)
        for _ in range(CALM):
            iterations.play()
        for at, _ in enumerate(iterations.operations()):
            iterations.play(kind, at)
            for _ in range(APART - 1):
                iterations.play()
        path = os.path.join(self.folder, f"{kind}.text")
        iterations.write(path)
        return path

    def deviates(self, kind, *arguments, part=65, layers=LAYERS, **more):
        path = self.trace(kind, layers)
        command = [REPLAY, path, "--alike", *arguments]
        reference = native(*command, numbers=True, **QUIET)
        # Of what an iteration needs that keeps to its plan.
        calm = Iterations(layers)
        for _ in range(CALM):
            calm.play()
        undisturbed = os.path.join(self.folder, f"calm-{layers}.text")
        calm.write(undisturbed)
        peak = native(REPLAY, undisturbed, numbers=True, **QUIET).numbers["peak_load"]
        limit = peak * part // 100 // CHUNK * CHUNK
        run = self.limited(command, limit, numbers=True, timeout=patience.seconds(900), **(QUIET | more))
        self.assertEqual(run.numbers["mismatches"], 0)
        self.assertEqual(run.last_line, reference.last_line)
        self.assertLessEqual(run.held, limit + run.passed_by + CHUNK, run.errors)
        return run

    def test_at_every_operation(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                run = self.deviates(kind, layers=MORE_LAYERS if kind == "touched" else LAYERS)
                told = re.search(r"; (\d+) swaps as planned, (\d+) not", run.last_words)
                self.assertIsNotNone(told, run.errors)
                self.assertGreater(int(told.group(1)), 100 + int(told.group(2)), run.errors)
                # 447, if such blocks stay, where others are to lie: the plan is left for good soon after.
                if kind == "touched":
                    self.assertGreater(int(told.group(1)), 600, run.errors)

    def test_what_has_come_back_beside_the_slab_leaves_again(self):
        """Where it stays, the limit is passed by 18 MiB. What others had beside the slab is then for nothing, and goes to places that lack chunks: where
        it does not, no more than 2,544 swaps are made as planned, as the plan is left, and it all takes twice as long."""
        run = self.deviates("all touched", part=50, layers=MORE_LAYERS)
        self.assertLess(run.passed_by, 10 * MIB, run.errors)
        told = re.search(r"; (\d+) swaps as planned, (\d+) not", run.last_words)
        self.assertIsNotNone(told, run.errors)
        self.assertGreater(int(told.group(1)), 4000, run.errors)

    def test_any_order_that_the_edges_allow(self):
        for seed in range(1, 9) if FULL else (1,):
            for kind in KINDS if FULL else ("late",):
                with self.subTest(kind=kind, seed=seed):
                    self.deviates(kind, "--streams", "2", CUDASIM_SEED=str(seed))

    if FULL:
        def test_on_demand(self):
            for kind in KINDS:
                with self.subTest(kind=kind):
                    self.deviates(kind, "--streams", "2", CUDASIM_SEED="1", **WITHOUT_A_PLANNER)


if __name__ == "__main__":
    cases.main()
