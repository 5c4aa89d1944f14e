#!/usr/bin/env python3
"""footprints.py prints what its comparisons say, of a generated network."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import cases
import footprints
import patience

HERE = os.path.dirname(os.path.abspath(__file__))
NETS = os.path.join(HERE, "..", "..", "..", "integration", "workloads", "nets", "nets.py")
ADDED = (0, 1, 5, 20)


class Footprints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.network = os.path.join(self.folder, "vgg11.json")
        subprocess.run([sys.executable, NETS, "vgg11", "--launches", "--batch", "100", "-o", self.network], check=True)

    def printed(self, *arguments):
        """The rows, and the comparison that they are of."""
        done = subprocess.run([sys.executable, footprints.__file__, os.environ["MEMOPTCTL"], "--added", ",".join(map(str, ADDED)), "--seconds", "0.2",
                               "--refine", "1", "--keep", self.folder, *arguments, self.network], capture_output=True, text=True, timeout=patience.seconds(200),
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()]
        self.assertEqual(tuple(heads), footprints.HEADS)
        with open(os.path.join(self.folder, "vgg11-footprints.json"), encoding="utf-8") as file:
            return rows, json.load(file)

    def expected(self, table, wanted, percent):
        """By another way than the script's: all plans, in order of their footprints."""
        plans = sorted((plan["footprint"], plan["added_ns"], name) for row in table["limits"] for name, plan in row["plans"].items() if plan and wanted(name))
        return next(((footprint, name) for footprint, added, name in plans if 100 * added <= percent * table["period_ns"] and footprint < table["peak_load"]),
                    (table["peak_load"], "none"))

    def check(self, rows, table):
        self.assertEqual([row[2] for row in rows], [f"{percent} %" for percent in ADDED])
        peak = table["peak_load"]
        for row, percent in zip(rows, ADDED, strict=True):
            ours, _ = self.expected(table, lambda name: name == "memopt", percent)
            theirs, by = self.expected(table, lambda name: not name.startswith("memopt"), percent)
            self.assertEqual(row, ["vgg11", f"{peak / 2**20:.2f}", f"{percent} %", f"{ours / 2**20:.2f}", f"{100 * ours / peak:.1f} %",
                                   f"{theirs / 2**20:.2f}", f"{100 * theirs / peak:.1f} %", by])
        for column in (3, 5):
            falling = [float(row[column]) for row in rows]
            self.assertEqual(falling, sorted(falling, reverse=True))
            self.assertLess(falling[-1], peak / 2**20)

    def test_the_table_is_that_of_its_comparison(self):
        rows, table = self.printed("--limits", "90,70,60")
        self.check(rows, table)
        self.assertGreater(len(table["limits"]), 3)  # it was refined

    def test_with_swaps(self):
        rows, table = self.printed("--limits", "70", "--swap", "a100-40g", "--refine", "0")
        self.check(rows, table)
        self.assertEqual(len(table["limits"]), 1)
        self.assertIn("memopt:swap", table["limits"][0]["plans"])

    def test_names(self):
        self.assertEqual(footprints.named("/a/BERT-256/kernels.config.gz"), "BERT-256")
        self.assertEqual(footprints.named("dtr/lstm-128.log.gz"), "lstm-128")

    def test_what_is_refused(self):
        for arguments, message in (((self.network, "--added", "-1"), "expected percents, none below 0"), ((os.path.join(self.folder, "nothing"),), "nothing"),
                                   ((self.network, "--refine", "-1"), "invalid choice"),
                                   ((self.network, self.network, "--keep", self.folder), "several files are called vgg11")):
            done = subprocess.run([sys.executable, footprints.__file__, os.environ["MEMOPTCTL"], *arguments], capture_output=True, text=True,
                                  timeout=patience.seconds(60), check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    cases.main()
