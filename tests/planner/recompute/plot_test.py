#!/usr/bin/env python3
"""`memoptctl plan --recompute --compare --plot`: the drawing has what the comparison has."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import cases
import patience

HERE = os.path.dirname(os.path.abspath(__file__))
NETS = os.path.join(HERE, "..", "..", "..", "integration", "workloads", "nets", "nets.py")
SVG = "{http://www.w3.org/2000/svg}"
LIMITS = "90%,80%,65%,2%"


def titles(root):
    return sorted(title.text for title in root.iter(SVG + "title"))


def texts(root):
    return [text.text for text in root.iter(SVG + "text")]


class Plot(unittest.TestCase):
    def drawn(self, *arguments):
        """The comparison as JSON, and the drawing of it."""
        with tempfile.TemporaryDirectory() as folder:
            iteration, out, drawing = (os.path.join(folder, name) for name in ("iteration.json", "table.json", "plot.svg"))
            written = subprocess.run([sys.executable, NETS, "vgg11", "--launches", "--batch", "400"], check=True, capture_output=True, text=True)
            with open(iteration, "w", encoding="utf-8") as file:
                json.dump(dict(json.loads(written.stdout), name="<vgg11> layers"), file)
            done = subprocess.run([os.environ["MEMOPTCTL"], "plan", iteration, "--recompute", "--compare", "--limits", LIMITS, "--strategies",
                                   "memopt,dtr,chen:sqrt,chen:drop-cheap", "--time-budget", "0.2", "--json", out, "--plot", drawing, *arguments],
                                  capture_output=True, text=True, timeout=patience.seconds(100), check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out, encoding="utf-8") as file:
                return json.load(file), ElementTree.parse(drawing).getroot()

    def test_it_has_what_the_comparison_has(self):
        table, root = self.drawn()
        self.assertEqual([row["infeasible"] for row in table["limits"]], [False, False, False, True])
        expected = []
        for row in table["limits"]:
            points = [(name, plan["added_ns"]) for name, plan in row["plans"].items() if plan]
            if not row["infeasible"]:
                points.append(("no plan is below", row["least_added_ns_bound"]))
            expected += (f"{name}: within {100 * row['limit'] / table['peak_load']:.1f} %, {100 * added / table['period_ns']:.2f} % added"
                         for name, added in points)
        self.assertGreater(len(expected), 8)
        self.assertEqual(titles(root), sorted(expected))
        said = texts(root)
        self.assertTrue(said[0].startswith("<vgg11> layers: "), said[0])
        self.assertIn(f"peak load {table['peak_load'] / 2**20:.2f} MiB", said[0])
        self.assertIn("limit, % of the peak load", said)
        self.assertIn("added time, % of an iteration", said)
        for name in ("memopt", "dtr", "chen:sqrt", "chen:drop-cheap"):
            found = any(row["plans"][name] for row in table["limits"])
            self.assertIn(name if found else name + " (no plan)", said)
        self.assertIn("prefers-color-scheme:dark", root.find(SVG + "style").text)
        # What is drawn of lines lies between the axes.
        lines = [point for line in root.iter(SVG + "polyline") for point in line.get("points").split()]
        self.assertGreater(len(lines), 8)
        for point in lines:
            across, up = (float(part) for part in point.split(","))
            self.assertTrue(100 <= across <= 820 and 60 <= up <= 570, point)

    def test_with_swaps_it_has_no_bound(self):
        table, root = self.drawn("--swap", "--machine", "h200")
        self.assertEqual(len(titles(root)), sum(plan is not None for row in table["limits"] for plan in row["plans"].values()))
        self.assertNotIn("no plan is below", texts(root))


if __name__ == "__main__":
    cases.main()
