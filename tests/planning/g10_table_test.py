#!/usr/bin/env python3
"""g10_table.py still prints: a row for each of the two iterations, little time."""
import os
import subprocess
import sys
import unittest

import cases
import patience
import g10_table

TABLE = g10_table.__file__
SHARED = g10_table.SHARED


def table(*arguments):
    return subprocess.run([sys.executable, TABLE, "--build", os.environ["TEST_BUILD"], *arguments], capture_output=True, text=True, timeout=patience.seconds(280))


class G10Table(unittest.TestCase):
    @unittest.skipUnless(os.path.isdir(os.path.join(SHARED, "g10")), "MEMOPT_SHARED names no folder with g10")
    def test_a_row_for_each_iteration(self):
        done = table("--time-budget", "0.5", "--bound-time", "0.05")
        self.assertEqual(done.returncode, 0, done.stderr)
        heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()]
        self.assertEqual(heads, g10_table.HEADS)
        self.assertEqual([row[:2] for row in rows], [["BERT-256", "7.29"], ["ViT-1280", "3.72"]])
        for row in rows:
            self.assertEqual(len(row), len(heads))
            without, ours, autoswap, managed = (float(row[heads.index(head)]) for head in ("no limit", "memopt", "AutoSwap", "UVM, our model"))
            self.assertLessEqual(without, ours)
            self.assertLess(max(ours, autoswap), managed)

    def test_what_is_missing_is_said(self):
        done = table("--shared", "/nonexistent")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "g10_table.py: /nonexistent/g10: not there; --shared or MEMOPT_SHARED says where\n")
        self.assertIn("--limit", table("--limit", "much").stderr)


if __name__ == "__main__":
    cases.main()
