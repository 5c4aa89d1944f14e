#!/usr/bin/env python3
"""Before there is a plan, memopt is no worse than a caching allocator: bootstrap_table.py, for two small networks."""
import os
import re
import subprocess
import sys

import cases
import patience
from runs import PlanningCase

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bootstrap_table.py")


class BootstrapTable(PlanningCase):
    def rows(self, *arguments):
        traces = [self.net(name, "--batch", 32) for name in ("vgg11", "resnet18")]
        done = subprocess.run([sys.executable, TABLE, *map(str, arguments), *traces], capture_output=True, text=True, timeout=patience.seconds(280))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = re.findall(r"^(?:vgg11|resnet18)\S* +(.*)$", done.stdout, re.MULTILINE)
        self.assertEqual(len(rows), len(traces), done.stdout)
        return [[float(text) for text in row.split()] for row in rows]

    def test_no_more_memory_than_a_caching_allocator(self):
        for load, native, pool, memopt, ratio, *_ in self.rows():
            self.assertGreaterEqual(min(native, pool, memopt), load)
            self.assertAlmostEqual(ratio, memopt / pool, delta=0.02)

    def test_the_steady_state_calls_nothing_and_waits_for_nothing(self):
        for few, many in zip(self.rows("--iterations", 12), self.rows("--iterations", 24)):
            self.assertEqual(few[7], many[7], "calls of the driver by memopt")
            self.assertEqual(many[10] - few[10], 12, "one wait an iteration is the program's own")
            self.assertLessEqual(few[10], 12 + 2)

    def test_on_several_streams_nothing_waits_either(self):
        for row in self.rows("--streams", 3):
            self.assertEqual(row[10], row[9], "the pool's host waits are the program's own")

    def test_under_a_plan_the_peak_load_is_held(self):
        for load, pool, most, steady, ratio, live_at in self.rows("--planned"):
            self.assertLessEqual(load, steady)
            self.assertLessEqual(steady, most)
            self.assertLessEqual(most, 1.05 * pool + 4)
            self.assertAlmostEqual(ratio, steady / load, delta=0.02)
            self.assertLess(live_at, 12)

    def test_what_is_refused(self):
        done = subprocess.run([sys.executable, TABLE, "--streams", "0"], capture_output=True, text=True, timeout=patience.seconds(60))
        self.assertIn("expected a number above 0", done.stderr)


if __name__ == "__main__":
    cases.main()
