#!/usr/bin/env python3
"""limit_table.py still prints its table: one small network, two limits."""
import os
import re
import subprocess
import sys

import cases
from runs import PlanningCase

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "limit_table.py")


class LimitTable(PlanningCase):
    def test_a_row_for_each_limit(self):
        trace = self.net("vgg11", "--batch", 20)
        done = subprocess.run([sys.executable, TABLE, "--parts", "75,45", "--iterations", "20", trace], capture_output=True, text=True,
                              timeout=280)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [row.split(" | ")[1:] for row in done.stdout.splitlines() if row.startswith("| vgg11")]
        self.assertEqual(len(rows), 2, done.stdout)
        for limit, _, held, *_ in rows:
            self.assertLessEqual(int(held), int(limit) + 2)
        on_demand = [float(row[5]) for row in rows]
        self.assertGreater(on_demand[1], on_demand[0], "more leaves where there is less room")
        self.assertTrue(all(re.fullmatch(r"(\d+|-) \|", row[-1]) for row in rows), done.stdout)
        self.assertRegex(rows[0][-1], r"\d+ \|", "at three quarters of the peak load swaps are planned")
        self.assertLess(float(rows[0][6]), on_demand[0])


if __name__ == "__main__":
    cases.main()
