#!/usr/bin/env python3
"""limit_table.py still prints its table: one small network, two limits."""
import os
import re
import subprocess
import sys

import cases
import patience
from runs import WORKLOADS, PlanningCase

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "limit_table.py")


class LimitTable(PlanningCase):
    def test_a_row_for_each_limit(self):
        trace = self.net("vgg11", "--batch", 20)
        done = subprocess.run([sys.executable, TABLE, "--parts", "75,45", "--iterations", "20", trace], capture_output=True, text=True,
                              timeout=patience.seconds(280))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [row.split(" | ")[1:] for row in done.stdout.splitlines() if row.startswith("| vgg11")]
        self.assertEqual(len(rows), 2, done.stdout)
        for limit, _, held, *_ in rows:
            self.assertLessEqual(int(held), int(limit) + 2)
        on_demand = [float(row[5]) for row in rows]
        self.assertGreater(on_demand[1], on_demand[0], "more leaves where there is less room")
        self.assertTrue(all(re.fullmatch(r"\d+|-", row[-2]) for row in rows), done.stdout)
        self.assertRegex(rows[0][-2], r"\d+", "at three quarters of the peak load swaps are planned")
        by_uvm = [float(row[-1].rstrip(" |")) for row in rows]
        self.assertGreater(by_uvm[1], by_uvm[0])
        self.assertGreater(by_uvm[0], on_demand[0], "pages are waited for one by one")
        self.assertLess(float(rows[0][6]), on_demand[0])

    def test_a_host_that_takes_its_time(self):
        trace = self.net("vgg11", "--batch", 5)
        command = [sys.executable, TABLE, "--parts", "75", "--iterations", "4", "--times", "trace"]
        plain, late = (subprocess.run([*command, *more, trace], capture_output=True, text=True, timeout=patience.seconds(120))
                       for more in ((), ("--think",)))
        self.assertEqual((plain.returncode, late.returncode), (0, 0), plain.stderr + late.stderr)
        without = [float(done.stdout.splitlines()[-1].split(" | ")[5]) for done in (plain, late)]
        self.assertGreater(without[1], 1.5 * without[0], "between launches the device waits for the host")


class LimitSteps(PlanningCase):
    def test_a_row_of_a_training(self):
        steps = os.path.join(os.path.dirname(TABLE), "limit_steps.py")
        train = [os.path.join(WORKLOADS, "digits_cnn"), "--epochs", "3", "--quiet"]
        done = subprocess.run([sys.executable, steps, "--wait", "--steps", "15", "--limits", "60MiB", "--", *train], capture_output=True,
                              text=True, timeout=patience.seconds(280))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        row = [cell.strip() for cell in done.stdout.splitlines()[-1].strip("| ").split("|")]
        self.assertEqual(row[:2], ["60MiB", "60.0 MiB"])
        self.assertLess(float(row[2]), float(row[4]), "copies cost something")
        self.assertLess(float(row[4]), float(row[3]), "planned, they cost less")
        self.assertRegex(row[7], r"^\d+ / \d+$")
        wrong = subprocess.run([sys.executable, steps, "--steps", "1", "--limits", "60MiB", "--", "/bin/false"], capture_output=True, text=True)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("/bin/false: exit code 1", wrong.stderr)


if __name__ == "__main__":
    cases.main()
