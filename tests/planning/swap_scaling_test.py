#!/usr/bin/env python3
"""swap_scaling.py still prints: small iterations, little time."""
import os
import re
import subprocess
import sys
import unittest

import cases
import patience

SCALING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "swap_scaling.py")


def scaling(*arguments):
    return subprocess.run([sys.executable, SCALING, *arguments], capture_output=True, text=True, timeout=patience.seconds(280))


class SwapScaling(unittest.TestCase):
    def test_a_row_for_each_size(self):
        done = scaling("--layers", "12,30", "--time-budget", "0.2")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [[float(text) for text in line.split()] for line in done.stdout.splitlines() if re.match(r" +\d", line)]
        self.assertEqual([row[:2] for row in rows], [[479, 120], [1199, 300]])
        for _, _, without, first, first_seconds, better, part, seconds, memory in rows:
            self.assertLessEqual(first, without)
            self.assertLessEqual(better, without)
            self.assertAlmostEqual(part, better / without, delta=0.001)
            self.assertGreater(min(first_seconds, seconds, memory), 0)

    def test_what_is_refused(self):
        for layers in ("0", "many", ""):
            self.assertIn("--layers: expected numbers above 0", scaling("--layers", layers).stderr)


if __name__ == "__main__":
    cases.main()
