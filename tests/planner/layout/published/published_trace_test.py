#!/usr/bin/env python3
"""The trace behind the published table (Zhang et al. 2019, Table I, VGG16): the published algorithm gives the published ratio on it, and
the planner's own layout of it is as small as the load.

usage: published_trace_test.py MEMOPTCTL [unittest arguments]
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools"))
import cases  # noqa: E402
import patience
import cut_iteration  # noqa: E402

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "..")
SHARED = os.environ.get("MEMOPT_SHARED") or os.path.join(os.path.dirname(os.path.abspath(SOURCE)), "shared")
TRACE = os.path.join(SHARED, "traces", "vec_block_fresh_vgg.csv")
OPERATIONS = 3172  # of an iteration


@unittest.skipUnless(os.path.exists(TRACE), f"{TRACE} is not here: the published traces have no licence and are not part of the project")
class PublishedTrace(unittest.TestCase):
    def solve(self, text, *arguments):
        done = subprocess.run([MEMOPTCTL, "solve", "-", "--json", *arguments], input=text, capture_output=True, text=True, timeout=patience.seconds(100),
                              check=True)
        return json.loads(done.stdout)

    def test_smart_pool_has_the_published_ratio(self):
        with open(TRACE, encoding="utf-8") as file:
            buffers = cut_iteration.cut(file.read().splitlines(), OPERATIONS)
        text = "id,lower,upper,size\n" + "".join(f"{i},{lower},{upper},{size}\n" for i, (lower, upper, size) in enumerate(buffers))
        published = self.solve(text, "--solver", "smartpool-first-fit")
        self.assertAlmostEqual(published["height"] / published["lower_bound"], 1.012, places=3)
        ours = self.solve(text, "--time-limit", "10")
        self.assertEqual(ours["height"], ours["lower_bound"])

    def test_the_planner_needs_no_more_than_the_load(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "buffers.csv")
            done = subprocess.run([MEMOPTCTL, "plan", TRACE, "--buffers", path], capture_output=True, text=True, timeout=patience.seconds(100), check=True)
            with open(path, encoding="utf-8") as file:
                text = file.read()
        footprint = int(done.stdout.split("footprint ")[1].split("(")[1].split(" ")[0])
        again = self.solve(text, "--time-limit", "1")
        self.assertLessEqual(footprint, 1.001 * again["lower_bound"])
        self.assertLessEqual(again["lower_bound"], footprint)


if __name__ == "__main__":
    cases.main()
