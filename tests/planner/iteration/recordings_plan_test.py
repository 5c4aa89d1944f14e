#!/usr/bin/env python3
"""The recordings of PyTorch's programs: the outermost iteration is found, soon, and laid out in hardly more than its peak load.

usage: recordings_plan_test.py FOLDER [unittest arguments]
"""
import os
import re
import subprocess
import sys
import unittest

import patience

MEMOPTCTL, FOLDER = os.environ["MEMOPTCTL"], sys.argv.pop(1)
# Of reduced recordings: operations of the iteration.
REDUCED = {"resnet18_sample_loops": 6424, "elementwise_alike": 146}
MOST = 1.005  # of the peak load


def planned(path):
    done = subprocess.run([MEMOPTCTL, "plan", path], capture_output=True, text=True, timeout=patience.seconds(300))
    if done.returncode != 0:
        raise AssertionError(f"{path}: {done.stdout}{done.stderr}")

    def value(label):
        return re.search(rf"^{label} +(.*)$", done.stdout, re.MULTILINE).group(1)

    found, records = re.fullmatch(r"record (\d+) of (\d+)", value("iteration found at")).groups()
    return {"operations": int(value("operations per iteration")), "found": int(found), "records": int(records),
            "ratio": float(value("footprint / peak load")), "plans": int(value("plans found"))}


def listed():
    path = os.path.join(FOLDER, "recordings.txt")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return {line.split()[0]: line.split()[1:] for line in file if line.strip() and not line.startswith("#")}


class RecordingsArePlanned(unittest.TestCase):
    def test_reduced_ones(self):
        for name, operations in REDUCED.items():
            with self.subTest(name):
                plan = planned(os.path.join(FOLDER, "reduced", name + ".rec"))
                self.assertEqual(plan["operations"], operations)
                self.assertLessEqual(plan["ratio"], MOST)

    def test_whole_ones(self):
        for name, (_, steps, *options) in listed().items():
            with self.subTest(name):
                plan = planned(os.path.join(FOLDER, name + ".rec"))
                self.assertLessEqual(plan["ratio"], MOST)
                self.assertLessEqual(plan["plans"], 3)
                # A step at least: no loop in one. The rest is a start, and records of other kinds.
                self.assertGreater(plan["operations"] * (int(steps) + 3), plan["records"] * 0.8)
                if not {"--accumulate", "--epoch", "--lengths"} & set(options):
                    # The optimizer makes its state in the first step; two more are alike.
                    self.assertLess(plan["found"], plan["records"] * 5 / int(steps))


if __name__ == "__main__":
    unittest.main()
