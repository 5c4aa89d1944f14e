#!/usr/bin/env python3
"""`memoptctl plan --recompute --compare --plot`: the drawing has what the comparison has."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import cases
import page_data
import patience

HERE = os.path.dirname(os.path.abspath(__file__))
NETS = os.path.join(HERE, "..", "..", "..", "integration", "workloads", "nets", "nets.py")
LIMITS = "90%,80%,65%,2%"


def drawn_points(data):
    return sorted(f"{line['name']}: {point['said']}" for line in data["trade_offs"]["lines"] for point in line["points"] if point["up"] is not None)


class Plot(unittest.TestCase):
    def drawn(self, *arguments):
        """The comparison as JSON, and the drawing of it."""
        with tempfile.TemporaryDirectory() as folder:
            iteration, out, drawing = (os.path.join(folder, name) for name in ("iteration.json", "table.json", "plot.html"))
            written = subprocess.run([sys.executable, NETS, "vgg11", "--launches", "--batch", "400"], check=True, capture_output=True, text=True)
            with open(iteration, "w", encoding="utf-8") as file:
                json.dump(dict(json.loads(written.stdout), name="<vgg11> layers"), file)
            done = subprocess.run([os.environ["MEMOPTCTL"], "plan", iteration, "--recompute", "--compare", "--limits", LIMITS, "--strategies",
                                   "memopt,dtr,chen:sqrt,chen:drop-cheap", "--time-budget", "0.2", "--json", out, "--plot", drawing, *arguments],
                                  capture_output=True, text=True, timeout=patience.seconds(100), check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out, encoding="utf-8") as file:
                return json.load(file), page_data.read(drawing)

    def test_it_has_what_the_comparison_has(self):
        table, data = self.drawn()
        self.assertEqual([row["infeasible"] for row in table["limits"]], [False, False, False, True])
        expected = []
        for row in table["limits"]:
            points = [(name, plan["added_ns"]) for name, plan in row["plans"].items() if plan]
            if not row["infeasible"]:
                points.append(("no plan is below", row["least_added_ns_bound"]))
            expected += (f"{name}: within {100 * row['limit'] / table['peak_load']:.1f} %, {100 * added / table['period_ns']:.2f} % added"
                         for name, added in points)
        self.assertGreater(len(expected), 8)
        self.assertEqual(drawn_points(data), sorted(expected))
        self.assertTrue(data["title"].startswith("<vgg11> layers: "), data["title"])
        self.assertIn(f"peak load {table['peak_load'] / 2**20:.2f} MiB", data["title"])
        drawn = data["trade_offs"]
        self.assertEqual((drawn["across"], drawn["up"]), ("limit, % of the peak load", "added time, % of an iteration"))
        for line in drawn["lines"]:
            if not line["bound"]:  # a gap where there is no plan
                self.assertEqual([point["up"] is not None for point in line["points"]],
                                 [bool(row["plans"][line["name"]]) for row in sorted(table["limits"], key=lambda row: row["limit"])], line["name"])
        # It ends at twice the most that the best strategy has to add.
        best = [min(plan["added_ns"] for plan in row["plans"].values() if plan) for row in table["limits"] if any(row["plans"].values())]
        self.assertAlmostEqual(drawn["most"], 200 * max(best) / table["period_ns"], delta=1e-6)

    def test_with_swaps_it_has_no_bound(self):
        table, data = self.drawn("--swap", "--machine", "h200")
        self.assertEqual(len(drawn_points(data)), sum(plan is not None for row in table["limits"] for plan in row["plans"].values()))
        self.assertFalse(any(line["bound"] for line in data["trade_offs"]["lines"]))


if __name__ == "__main__":
    cases.main()
