#!/usr/bin/env python3
"""swap_table.py still prints its table: one small network, little time."""
import os
import re
import subprocess
import sys
import unittest

import cases
import patience

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "swap_table.py")


def table(*arguments):
    return subprocess.run([sys.executable, TABLE, *arguments], capture_output=True, text=True, timeout=patience.seconds(280))


class SwapTable(unittest.TestCase):
    def test_a_row_for_each_machine(self):
        done = table("--time-budget", "0.3", "--no-bound", "--machines", "gtx1080ti,h200", "vgg11")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = re.findall(r"^vgg11 +389 +284 +-27\.0 % +(386\.\d) +([\d.]+) +([+-][\d.]+) % +\? +([\d.]+) ms \+ 0\.0\d\d +[\d.]+ s$", done.stdout, re.MULTILINE)
        self.assertEqual(len(rows), 2, done.stdout)
        for peak, footprint, less, _ in rows:
            self.assertLess(float(footprint), float(peak) * 1.1, "the layout without swaps, on a slow machine")
            self.assertAlmostEqual(float(less), 100 * (float(footprint) / float(peak) - 1), delta=0.1)
        self.assertLess(float(rows[1][3]), float(rows[0][3]), "the H200 computes faster")

    def test_what_is_refused(self):
        self.assertIn("unknown network 'vgg12'", table("vgg12").stderr)
        self.assertIn("unknown machine 'h100'", table("--machines", "h100").stderr)


if __name__ == "__main__":
    cases.main()
