#!/usr/bin/env python3
"""Awkward programs (programs/limit_cases.cpp) whose blocks are more than memopt may hold: they read the same as without
memopt, in any order that the declared edges allow, the limit is kept where it can be, and nothing hangs. With --full: more
orders, every access of the kernels checked."""
import re
import unittest

import cases
import patience
from limit_runs import LIMIT, MIB, PROGRAM, LimitCase, native
from runs import FULL, WITHOUT_A_PLANNER

BLOCK = 6 * MIB
# In which order the device does what it may do in any.
ORDERS = [{}, WITHOUT_A_PLANNER | {"CUDASIM_SEED": "2"}]
# Of programs that repeat nothing a planner makes no plan: recorded for one, and in the adversary's order, they are served on demand as without.
ONE_ORDER = [{"CUDASIM_SEED": "2"}]
if cases.SANITIZER:
    ORDERS = ONE_ORDER = [{"CUDASIM_SEED": "1"}]
if FULL:
    ORDERS += [{"CUDASIM_SEED": str(seed), "CUDASIM_INSTRUMENT": "1"} for seed in (1, *range(3, 9))]
    ORDERS += [WITHOUT_A_PLANNER | {"CUDASIM_INSTRUMENT": "1"}]
    ONE_ORDER = ORDERS

# Some tens of swaps at least.
PLANNED = r"; \d{2,} swaps as planned"


class Cases(LimitCase):
    def same(self, *arguments, limit=LIMIT, moved=2, kept=True, in_use=0, orders=tuple(ONE_ORDER), **options):
        """`moved`: as many blocks leave and come back at least. `in_use`: bytes that several threads may use at once, which stay."""
        reference, run = native(PROGRAM, *arguments), None
        for order in orders:
            with self.subTest(case=arguments, **order):
                run = self.limited([PROGRAM, *arguments], limit, **order, **options)
                self.assertEqual(run.output, reference.output, run.errors)
                if run.report is None:
                    continue
                for copied in run.copied(reference):
                    self.assertGreaterEqual(copied, moved * BLOCK, run.errors)
                if kept and in_use == 0:
                    self.assert_kept(run)
                elif kept:
                    self.assertLessEqual(run.held, max(limit, in_use) + 2 * MIB, run.errors)
        return run

    def test_graphs_that_are_captured(self):
        # Nothing leaves while a capture is open, so that what it names comes on top; and that stays from then on.
        run = self.same("graphs-captured", moved=1, kept=False)
        self.assertIn("nothing leaves while a stream is captured into a graph", run.errors)
        self.assertLessEqual(run.held, LIMIT + 3 * BLOCK + 2 * MIB, run.errors)

    def test_graphs_that_are_made_by_hand(self):
        self.same("graphs-by-hand", moved=4)

    def test_graphs_that_copy_and_have_children(self):
        self.same("graphs-copies", moved=4, kept=False)

    def test_graphs_whose_blocks_are_beside_others(self):
        self.same("graphs-freed", moved=0)
        reference = native(PROGRAM, "graphs-freed")
        for order in ONE_ORDER:
            run = self.limited([PROGRAM, "graphs-freed", "free"], LIMIT, **order)
            self.assertEqual(run.output, reference.output, run.errors)

    def test_graphs_with_memory_of_their_own(self):
        run = self.same("graphs-allocated", moved=1, kept=False)  # the driver's pool has them
        self.assertNotIn("passed", run.last_words)

    def test_a_graph_in_each_iteration(self):
        """Its blocks are the program's again when it is gone: twelve iterations hold what one does (and 222 MiB, where they stay)."""
        for limit in (36 * MIB, "100%"):
            run = self.same("graphs-each", limit=limit, moved=0, kept=False)
            self.assertLessEqual(run.held, 5 * BLOCK, run.errors)

    def test_copies_to_the_host(self):
        self.same("copies-to-the-host", moved=6)

    def test_copies_from_the_host(self):
        self.same("copies-from-the-host", moved=5)

    def test_copies_on_the_device(self):
        self.same("copies-on-the-device", moved=12)

    def test_fills(self):
        self.same("fills", moved=6)

    def test_pointers_into_the_middle_and_to_the_end(self):
        self.same("middle")
        self.same("end")

    def test_addresses_among_other_parameters(self):
        self.same("parameters")

    def test_questions_are_answered_as_ever(self):
        self.same("questions", moved=1)

    def test_addresses_in_memory_keep_their_blocks(self):
        self.same("escaped", moved=4)
        self.same("escaped-to-the-host", moved=1)

    def test_addresses_that_kernels_store_keep_their_blocks(self):
        self.same("stored-by-kernels", moved=4)
        self.same("stored-before", moved=1)
        self.same("stored-in-iterations", moved=8, orders=ORDERS if FULL else ORDERS[:1])

    def test_what_may_not_leave_is_more_than_the_limit(self):
        run = self.same("escaped-beyond-the-limit", moved=0, kept=False)
        self.assertAlmostEqual(run.passed_by, 72 * MIB - LIMIT, delta=4 * MIB)
        self.assertLessEqual(run.held, LIMIT + run.passed_by + 2 * MIB)

    def test_one_operation_needs_more_than_the_limit(self):
        run = self.same("more-than-the-limit", kept=False)
        self.assertAlmostEqual(run.passed_by, 64 * MIB - LIMIT, delta=4 * MIB)
        # Beside the block that is being made.
        run = self.same("one-large-block", moved=1, kept=False)
        self.assertAlmostEqual(run.passed_by, 64 * MIB - LIMIT, delta=4 * MIB + BLOCK)

    def test_blocks_end_while_they_are_away(self):
        self.same("freed")
        self.same("freed-by-another-thread")
        self.same("pooled")

    def test_contexts_end(self):
        self.same("reset")
        self.same("destroyed-context")

    def test_processes_end(self):
        self.same("exit", moved=1)
        self.same("exit", "_exit", moved=1)
        self.same("exit", "exit-by-thread", moved=1)

    def test_forks(self):
        self.same("fork")
        self.same("fork", "_exit")
        self.same("fork", "frees")

    def test_streams_hand_blocks_on(self):
        for case in "handed-on", "rounds", "reused", "legacy-stream":
            self.same(case)

    def test_threads(self):
        # Three threads with two blocks of 6 MiB that a launch names and one of 12 that is being made; four with two that a launch names, one
        # that is being made and one that is read on the stream that all share.
        self.same("same-block", moved=1, in_use=72 * MIB)
        self.same("threads", in_use=96 * MIB)

    def test_work_that_waits_for_a_call_that_wants_memory(self):
        self.same("blocked", moved=0, timeout=patience.seconds(30))
        self.same("blocked-touch", moved=1, timeout=patience.seconds(30))

    def test_all_that_could_leave_waits_for_a_call_that_wants_memory(self):
        """Natively the call returns; so it does here, beyond the limit."""
        self.same("all-blocked", moved=0, kept=False, timeout=patience.seconds(30))

    def test_iterations_under_a_plan(self):
        self.same("iterations", "12", moved=8, orders=ORDERS)

    @cases.in_plain_builds
    def test_iterations_under_a_plan_on_other_streams_each_time(self):
        for seed in range(1, 9) if FULL else [3]:
            # On a loaded machine the search may be cut short before it has found any.
            for _ in range(3):
                run = self.same("iterations-on-streams", "20", moved=8, orders=[{"CUDASIM_SEED": str(seed)}])
                if re.search(PLANNED, run.last_words):
                    break
            self.assertRegex(run.last_words, PLANNED)

    @cases.in_plain_builds
    def test_small_copies_wait_for_no_more_than_a_piece(self):
        """Swaps are made of pieces of 4 MiB at most, one behind the other: where planned, a copy of the program's has one in front of it at most."""
        run = self.same("beside-small-copies", "28", moved=100, orders=ORDERS[:1])
        self.assertRegex(run.last_words, r"; \d{3,} swaps as planned, 0 not")
        self.assertIn("behind two pieces: 1 late\n", run.output)

    def test_limits_that_are_parts_of_the_device(self):
        run = self.same("turns", limit="50%", CUDASIM_CAPACITY="96M", orders=ORDERS[:1], kept=False)
        self.assertLessEqual(run.held, 50 * MIB)

    def test_small_limits(self):
        """The least feasible one is what an operation needs: two blocks, each on four pages; a page more or two lies between."""
        for limit in (32, 24, 8, 2):
            with self.subTest(limit=limit):
                run = self.same("turns", limit=limit * MIB, orders=ORDERS[1:2], kept=False)
                self.assertLessEqual(run.held, max(limit, 32) * MIB)
                self.assertEqual(run.passed_by > 0, run.held > limit * MIB, run.errors)


if __name__ == "__main__":
    cases.main()
