#!/usr/bin/env python3
"""many_blocks.py still prints its table: few blocks. And what many blocks take of the device."""
import os
import re
import subprocess
import sys
import unittest

import cases
import patience
from runs import BUILD, PlanningCase

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "many_blocks.py")
PROGRAM = os.path.join(BUILD, "tests", "many_blocks")


def table(*arguments):
    return subprocess.run([sys.executable, TABLE, *arguments], capture_output=True, text=True, timeout=patience.seconds(280))


class ManyBlocks(PlanningCase):
    def test_a_row_for_each_order(self):
        done = table("--counts", "300,500", "--bytes", "700")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = re.findall(r"^ +(\d+)  (in order|reverse|random) +(.*)$", done.stdout, re.MULTILINE)
        self.assertEqual([row[:2] for row in rows], [(count, order) for count in ("300", "500") for order in ("in order", "reverse", "random")])
        for _, order, numbers in rows:
            numbers = [float(text) for text in numbers.split()]
            self.assertEqual(len(numbers), 11 if order == "in order" else 9)
            for native, planned, ratio in zip(numbers[0:9:3], numbers[1:9:3], numbers[2:9:3]):
                self.assertGreater(min(native, planned), 0)
                self.assertAlmostEqual(ratio, planned / native, delta=0.02 * ratio + 0.01)

    def test_what_is_refused(self):
        for counts in ("1", "many", ""):
            self.assertIn("--counts: expected numbers above 1", table("--counts", counts).stderr)

    def test_a_small_block_takes_512_bytes(self):
        """Blocks that are freed and made again, in whatever order, fill the same bytes again."""
        run = self.succeed([PROGRAM, 20000])
        self.assertLess(run.report["counters"]["bytes_held_peak"], 20000 * 512 + (5 << 20))


if __name__ == "__main__":
    cases.main()
