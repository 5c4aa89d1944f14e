#!/usr/bin/env python3
"""`memoptctl plan --compare` and `--plot`: strategies over limits as a table, as JSON and as drawings."""
import json
import os
import re

import cases
import page_data
from plan_case import MIB, SOON, TWO, VGG16, PlanCase, needs_published_trace, trace

GPT = os.path.join(os.environ["TEST_SOURCE"], "tests", "data", "recordings", "gpt.rec")
OURS = ("--strategies", "memopt,none")


def cells(printed, limit, percent):
    """What follows in the line of a limit."""
    return re.search(rf"^ +{re.escape(limit)} +{percent} %(.*)$", printed, re.MULTILINE).group(1)


class Drawings(PlanCase):
    def drawing(self, name="plot.html"):
        """The data of the page."""
        data = page_data.read(self.path(name))
        self.assertEqual(data["format"], "memopt-report-1")
        return data

    def rectangles(self, data):
        """(block, what, from in us, to) of the drawn plan."""
        iteration = data["iteration"]
        blocks, tick = iteration["plans"][0]["drawn"]["blocks"], iteration["tick_ns"]
        return [(int(iteration["blocks"]["number"][block]), ("there", "in", "out")[phase], begin * tick / 1e3, end * tick / 1e3)
                for block, phase, begin, end in zip(blocks["block"], blocks["phase"], blocks["from"], blocks["to"])]


class Compare(Drawings):
    def test_a_table_of_strategies_and_limits(self):
        printed = self.succeed(self.write(trace(), "a.trace"), "--compare", "--limits", "6MiB,70%,1MiB", *OURS, *SOON, "--no-bound")
        self.assertRegex(printed, r"(?m)^peak load +6\.00 MiB, machine gtx1080ti: ")
        self.assertRegex(printed, r"(?m)^times +the trace's, as nanoseconds$")
        self.assertRegex(printed, r"(?m)^iteration +10\.000 ms; ")
        self.assertRegex(printed, r"(?m)^ +limit +memopt +none$")
        self.assertRegex(cells(printed, "6.00 MiB", 100), r"^ +0\.000 \([46]\.0\) +0\.000 \(6\.0\)$")
        self.assertRegex(cells(printed, "4.20 MiB", 70), r"^ +0\.000 \(4\.0\) +-$")
        self.assertRegex(cells(printed, "1.00 MiB", 17), r"^ +- +-$")
        self.assertRegex(printed, r"(?m)^ *least feasible limit +[24]\.00 MiB +6\.00 MiB$")
        self.assertRegex(printed, r"(?m)^ *planning time +[\d.]+ s +[\d.]+ s$")

    def test_everything_by_default(self):
        printed = self.succeed(self.write(TWO), "--compare", *SOON, "--json", self.path("table.json"))
        header = next(line.split() for line in printed.splitlines() if line.split()[:1] == ["limit"])
        self.assertEqual(header[:8], ["limit", "bound", "memopt", "none", "autoswap:doa", "autoswap:aoa", "autoswap:wdoa", "autoswap:swdoa"])
        self.assertIn(header[8:], (["autoswap:tuned"], []))
        table = self.read("table.json")
        self.assertEqual(table["format"], "memopt-compare-1")
        self.assertEqual([row["limit"] for row in table["limits"]], [4 * MIB * part // 100 for part in (100, 90, 80, 70, 60, 50, 40)])
        self.assertEqual((table["period_ns"], table["peak_load"]), (100000, 4 * MIB))
        self.assertEqual(table["machine"], {"out_bytes_per_ns": 200, "in_bytes_per_ns": 200, "out_latency_ns": 0, "in_latency_ns": 0})
        for row in table["limits"]:
            self.assertEqual([plan["strategy"] for plan in row["plans"]], header[2:])
            for plan in row["plans"]:
                self.assertEqual(plan["feasible"], row["limit"] >= (4 if plan["strategy"] == "none" else 2) * MIB, row)
                if plan["feasible"]:
                    self.assertLessEqual(plan["footprint"], row["limit"])
                    self.assertEqual(plan["added_ns"], 0)
                else:
                    self.assertEqual(plan["least_feasible_limit"], (4 if plan["strategy"] == "none" else 2) * MIB)
        if "coinor-libclp-dev" in printed:
            self.assertIsNone(table["least_footprint_bound"])
            self.skipTest("there is no CLP")
        self.assertRegex(printed, r"(?m)^bound: no plan without added time is below 2\.00 MiB$")
        self.assertRegex(cells(printed, "4.00 MiB", 100), r"^ +0\.000 ")
        self.assertRegex(cells(printed, "1.60 MiB", 40), r"^ +infinite +- ")
        self.assertAlmostEqual(table["least_footprint_bound"], 2 * MIB, delta=1)
        self.assertEqual([row["infeasible"] for row in table["limits"]], [False] * 6 + [True])

    def test_plans_that_add_time_are_at_least_the_bound(self):
        slow = dict(TWO, machine={"out_bytes_per_ns": 40, "in_bytes_per_ns": 40})
        printed = self.succeed(self.write(slow), "--compare", "--strategies", "memopt,autoswap:aoa", "--limits", "4MiB,2MiB", *SOON, "--json",
                               self.path("table.json"))
        for row in self.read("table.json")["limits"]:
            for plan in row["plans"]:
                self.assertTrue(plan["feasible"], printed)
                self.assertGreaterEqual(plan["added_ns"], row.get("least_added_ns_bound", 0) - 1)
                self.assertEqual(plan["added_ns"] == 0, row["limit"] == 4 * MIB)
                self.assertIn("%.3f (%.1f)" % (plan["added_ns"] / 1e6, plan["footprint"] / MIB), printed)

    def test_the_drawing_has_what_the_table_has(self):
        slow = dict(TWO, name="<slow> & \u00e9", machine={"out_bytes_per_ns": 40, "in_bytes_per_ns": 40})
        self.succeed(self.write(slow), "--compare", *OURS, "--limits", "4MiB,3MiB,2MiB", *SOON, "--no-bound", "--json", self.path("table.json"),
                     "--plot", self.path("plot.html"))
        data = self.drawing()
        drawn = {(line["name"], point["said"]) for line in data["trade_offs"]["lines"] for point in line["points"]}
        said = {(plan["strategy"], f"{plan['footprint'] / MIB:.2f} MiB, {plan['added_ns'] / 1e6:.3f} ms added")
                for row in self.read("table.json")["limits"] for plan in row["plans"] if plan["feasible"]}
        self.assertEqual(drawn, said)
        self.assertGreaterEqual(len(said), 3)
        for line in data["trade_offs"]["lines"]:
            places = [(point["across"], point["up"]) for point in line["points"]]
            self.assertEqual(places, sorted(places))
        self.assertEqual((data["trade_offs"]["across"], data["trade_offs"]["up"], data["trade_offs"]["most"]), ("footprint, MiB", "added time, ms an iteration", None))
        self.assertEqual(data["title"], "<slow> & \u00e9: 0.100 ms an iteration, peak load 4.00 MiB, copies of 40:40:0:0")

    def test_a_wider_limit_is_never_slower(self):
        """Searches by themselves are, in a twentieth of a second for limits that are so close."""
        self.succeed(GPT, "--machine", "a100-40g", "--compare", "--strategies", "memopt", "--limits", "58%,57.5%,57%,56.5%,56%,55.5%,55%,54.5%",
                     "--time-budget", "0.05", "--no-bound", "--json", self.path("table.json"))
        cells = [row["plans"][0] for row in self.read("table.json")["limits"]]
        added = [cell["added_ns"] if cell["feasible"] else float("inf") for cell in cells]
        self.assertEqual(added, sorted(added))
        self.assertLess(added[0], float("inf"))

    def test_a_problem_without_layout(self):
        load = dict(TWO, layout=False, limit=4 * MIB)
        printed = self.succeed(self.write(load), "--compare", *OURS, "--limits", "100%,50%", *SOON, "--no-bound")
        self.assertRegex(cells(printed, "2.00 MiB", 50), r"^ +0\.000 \(2\.0\) +-$")

    def test_what_is_refused(self):
        path = self.write(TWO)
        for limits in ("much", "50%,-1", "1e99", "nan", "50 %"):
            self.refuse(2, "--limits: expected bytes", path, "--compare", "--limits", limits)
        for arguments, part in ((("--limits", "50%"), "--limits is for --compare"), (("--strategies", "memopt"), "--strategies is for --compare"),
                                (("--compare", "--limit", "50%"), "--limit is not for --compare: it has --limits"),
                                (("--compare", "--strategy", "none"), "--strategy is not for --compare: it has --strategies"),
                                (("--compare", "--objective", "time"), "--objective is not for --compare"),
                                (("--compare", "--strategies", "memopt,best"), "--strategies: expected memopt, none"),
                                (("--compare", "--strategies", "none,none"), "--strategies: none is given twice"),
                                (("--compare", "--strategies", "none,autoswap:aoa", "--threads", "1"), "--threads is for the strategy memopt; none, autoswap:aoa"),
                                (("--compare", "--strategies", "memopt", "--layout-time", "1"), "--layout-time is for none and autoswap")):
            self.refuse(2, part, path, *arguments)
        for option in ("--plot", "--json"):
            # Before it takes time.
            self.refuse(1, "cannot be written", path, "--compare", "--time-budget", "80000", option, self.path("no/such.file"))
            self.refuse(1, "cannot be written", path, "--time-budget", "80000", option, self.folder.name)

    @needs_published_trace
    def test_the_published_trace(self):
        printed = self.succeed(VGG16, "--compare", "--strategies", "memopt,none,autoswap:aoa", "--limits", "110%,80%,5%", "--layout-time", "0.05",
                               *SOON, "--no-bound", "--plot", self.path("plot.html"))
        self.assertRegex(cells(printed, "698.07 MiB", 110), r"^ +0\.000 \(\d+\.\d\) +0\.000 \(6\d\d\.\d\) +0\.000 \(6\d\d\.\d\)$")
        self.assertRegex(cells(printed, "31.73 MiB", 5), r"^ +- +- +-$")
        self.drawing()


class Plot(Drawings):
    def test_a_plan(self):
        self.succeed(self.write(TWO), "--limit", "2MiB", *SOON, "--no-bound", "--plot", self.path("plot.html"))
        data = self.drawing()
        self.assertEqual(sorted(what for block, what, _, _ in self.rectangles(data) if block == 5), ["in", "out", "there", "there"])
        plan, = data["iteration"]["plans"]
        self.assertEqual((plan["footprint"], plan["limit"], plan["moves"]), (2 * MIB, 2 * MIB, 1))
        self.assertEqual(sorted(plan["drawn"]["copies"]["in"]), [0, 1])
        self.assertIn("2.00 MiB of a peak load of 4.00 MiB, 0.000 ms added", data["facts"])

    def test_the_limit_is_in_it(self):
        self.succeed(self.write(TWO), "--limit", "2.3MiB", "--objective", "footprint", *SOON, "--no-bound", "--plot", self.path("plot.html"))
        self.assertEqual(self.drawing()["iteration"]["plans"][0]["limit"], int(2.3 * MIB))

    def test_what_is_refused(self):
        self.refuse(2, "--plot: expected a problem with a layout", self.write(dict(TWO, layout=False, limit=4 * MIB)), "--plot", self.path("plot.html"))
        # Of what used to be a drawing, a page must not take the name.
        self.refuse(2, f"--plot writes a page for a browser (HTML): expected a name such as {self.path('plot.html')}, not {self.path('plot.svg')}",
                    self.write(TWO), "--plot", self.path("plot.svg"))
        self.assertFalse(os.path.exists(self.path("plot.svg")))

    @needs_published_trace
    def test_the_published_trace(self):
        self.succeed(VGG16, *SOON, "--no-bound", "--json", self.path("plan.json"), "--plot", self.path("plot.html"))
        data, plan = self.drawing(), self.read("plan.json")
        self.assertEqual({block for block, _, _, _ in self.rectangles(data)}, {block["id"] for block in plan["blocks"]})
        # Each swap is in the lane of the engine out, cut in two at most where it crosses the end.
        out = list(data["iteration"]["plans"][0]["drawn"]["copies"]["in"]).count(0)
        self.assertGreaterEqual(out, len(plan["swaps"]))
        self.assertLessEqual(out, 2 * len(plan["swaps"]))
        self.assertLess(os.path.getsize(self.path("plot.html")), 1 << 20)


if __name__ == "__main__":
    cases.main()
