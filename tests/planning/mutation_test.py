#!/usr/bin/env python3
"""Planted bugs in the agent must be caught: each mutant of libmemopt.so is built from a changed copy of one source file, and at least
one run of replay, loop or pools under it has to fail: a mismatch, a race, a crash, an invalid access, or a broken result."""
import os
import tempfile
import unittest

import cases
import patience
import mutant
from runs import BUILD, LOOP, ORDER, PLANNER, POOLS, SOURCE, WORKLOADS, PlanningCase, Run

# File, what stands there, what is put in its place, and what is wrong then.
MUTANTS = {
    "dropped-wait": ("agent/order/stream_waits.cpp", "result = driver_.stream_wait_event(name, event->handle, 0);",
                     "result = CUDA_SUCCESS;", "a stream does not wait for the former users of its bytes"),
    "wait-for-an-older-event": ("agent/order/stream_waits.cpp", "return stream.ring.at_or_behind(position);",
                                "return stream.ring.at_or_behind(position - std::min<std::uint64_t>(position, 3));",
                                "an event that was recorded before the use counts as one after it"),
    "wrong-offset": ("agent/memory/arena.cpp", "block.base = window.base + place.begin;", "block.base = window.base + place.begin / 2 / 512 * 512;",
                     "a block does not lie where its bytes are owned"),
    "nobody-in-the-way": ("agent/order/ownership.cpp", "  if (head->owner != nullptr) {\n    *in_the_way = head->owner;\n    return nullptr;\n  }", "",
                          "bytes that have an owner are taken"),
    "no-release-event": ("agent/order/stream_waits.cpp",
                         "if (lacks_event(*streams_[use.slot], use.position) && !record(lock, use.slot)) release.unordered = true;",
                         "streams_[use.slot]->completed = use.position;",
                         "the last use of a block counts as over at its free"),
    "no-barrier-at-the-free": ("agent/memory/arena_free.cpp", "    block->window->map.give_back(block->span, uses);\n  } else {",
                               "    block->window->map.give_back(block->span, Release{});\n  } else {",
                               "a freed place forgets who used it last"),
    "allocation-ahead-of-its-stream": ("agent/memory/arena.cpp", "  arena.streams.add_needs(static_cast<StreamSlot>(operation.use.slot), block.former, &operation.needs);\n", "",
                                       "a stream-ordered allocation does not wait for the former users of its bytes"),
    "free-is-no-barrier": ("agent/order/free_barrier.cpp", "  if (!add_needs(slot, behind_barrier_, needs)) return false;\n", "",
                           "what is queued after a free does not see what was queued on other streams before"),
    "free-without-a-place": ("agent/memory/arena_free.cpp", "  Release uses = arena.streams.release_in_order(use);\n", "  Release uses;\n",
                             "a stream-ordered free comes before what its stream did"),
}


class Mutants(PlanningCase):
    def build(self, name):
        """The library with one file changed, in a folder of its own."""
        source, old, new, _ = MUTANTS[name]
        return mutant.build_library(BUILD, SOURCE, source, old, new, tempfile.mkdtemp(dir=self.folder))

    def runs(self):
        trace = self.net("vgg11", "--batch", 8)
        replay = [os.path.join(WORKLOADS, "replay"), trace, "--iterations", 14, "--streams", 3]
        yield [LOOP, 30, "--keep", "--streams", 3, "--odd", 7], {}
        yield [LOOP, 30, "--keep", "--late", 9], {}
        yield [ORDER, "barrier"], {}
        yield [POOLS, 30], {}
        yield replay, {}
        for seed in ("1", "2"):
            yield replay, {"CUDASIM_SEED": seed}
            yield [LOOP, 30, "--keep", "--streams", 3, "--odd", 7], {"CUDASIM_SEED": seed}

    def is_caught(self, library):
        for command, more in self.runs():
            # The planner is looked for beside the library, and a mutant stands alone.
            run = Run(command, shim=library, timeout=patience.seconds(300), MEMOPT_PLANNER=PLANNER, **more)
            if run.live_at is None and run.code == 0 and command[0] != ORDER:
                raise AssertionError(f"{os.path.basename(command[0])} {more}: no plan went live, so nothing is shown\n{run.errors}")
            if run.code != 0:
                return f"{os.path.basename(command[0])} {more}: exit code {run.code}"
        return None

    def test_the_library_itself_passes(self):
        """Or nothing would be shown by a mutant that fails."""
        self.assertIsNone(self.is_caught(os.path.join(BUILD, "lib", "libmemopt.so")))

    def test_each_mutant_is_caught(self):
        for name, (_, _, _, what) in MUTANTS.items():
            with self.subTest(name):
                caught = self.is_caught(self.build(name))
                self.assertIsNotNone(caught, f"{what}, and no test saw it")
                print(f"{name}: caught by {caught}", flush=True)


if __name__ == "__main__":
    cases.main()
