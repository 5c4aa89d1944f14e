#!/usr/bin/env python3
"""What a program is answered to wrong calls and rare questions: the same with memopt as without."""
import os
import unittest

import cases
from runs import BUILD, PlanningCase, Run

ANSWERS = os.path.join(BUILD, "tests", "answers")


class Answers(PlanningCase):
    maxDiff = None

    def assert_the_same(self, case, *more):
        native = Run([ANSWERS, case], planned=False)
        self.assertEqual(native.code, 0, native.output + native.errors)
        for options in ({}, {"MEMOPT_PLAN": "0"}, {"MEMOPT_RECORD": "1"}, *more):
            with self.subTest(options=options):
                run = self.succeed([ANSWERS, case], **options)
                self.assertEqual(run.output.splitlines(), native.output.splitlines())
        return native, run

    def test_wrong_frees(self):
        self.assert_the_same("wrong-frees")

    # It closes what is not its own: under ThreadSanitizer our threads have no table of descriptors of their own, and that is a race.
    @cases.not_under_tsan
    def test_descriptors(self):
        self.assert_the_same("descriptors")

    def test_pointer_attributes(self):
        native, _ = self.assert_the_same("pointer-attributes")
        self.assertIn("rdma: 0 1", native.output)

    def test_a_thread_that_is_cancelled(self):
        _, run = self.assert_the_same("cancelled", {"MEMOPT_LOG": "debug"}, {"MEMOPT_SYNC_PLAN": "0"})
        self.assertIn("came to its end: 1, was cancelled: 1", run.output)

    def test_wrong_streams(self):
        self.assert_the_same("wrong-streams")


if __name__ == "__main__":
    cases.main()
