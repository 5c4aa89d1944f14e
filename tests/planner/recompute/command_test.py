#!/usr/bin/env python3
"""`memoptctl plan --recompute`: its plans, as the judge of these tests sees them, and what it says and refuses."""
import json
import os
import re
import signal
import subprocess
import sys
import time

import cases
import logs_table
import page_data
import patience
import recompute_judge
from plan_case import PlanCase

MEMOPTCTL = os.environ["MEMOPTCTL"]
LOGS = os.path.join(os.environ.get("MEMOPT_SHARED", ""), "dtr")
TABLES = os.path.join(os.environ.get("MEMOPT_SHARED", ""), "g10")
HERE = os.path.dirname(os.path.abspath(__file__))
NETS = os.path.join(HERE, "..", "..", "..", "integration", "workloads", "nets", "nets.py")
# Ours, and what is published. Checkmate's programs take minutes, but for small iterations.
STRATEGIES = logs_table.STRATEGIES
CHECKMATE = ("checkmate", "checkmate:lp")
REPLAY, MADE_AGAIN = 5, 4  # as the page has them


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()


class Commands(PlanCase):
    def layers(self, count):
        """Forward and backward, 1 MiB and 1 ms each; each backward launch reads a layer, and what comes from behind."""
        ops, blocks, launches, now = [], [], [], 0

        def make(reads):
            nonlocal now
            block = len(blocks)
            blocks.append({"id": block, "size": 1 << 20})
            ops.append(["m", block, now])
            launches.append([len(ops), len(reads) + 1])
            ops.extend(["r", read, now] for read in reads)
            ops.append(["w", block, now])
            now += 1000000
            return block

        made = [make([])]
        for _ in range(count - 1):
            made.append(make(made[-1:]))
        gradient = make(made[-1:])
        for layer in reversed(made):
            following = make([layer, gradient])
            ops.extend((["f", layer, now], ["f", gradient, now]))
            gradient = following
        ops.append(["f", gradient, now])
        return {"format": "memopt-plan-2", "layout": False, "limit": count << 20, "period": now, "ops": ops, "blocks": blocks, "launches": launches,
                "machine": {"out_bytes_per_ns": 1, "in_bytes_per_ns": 1}}

    def judged(self, path, shown):
        """The plan that was written, which is the one that was printed."""
        with open(path, encoding="utf-8") as file:
            plan = json.load(file)
        result = recompute_judge.judge(plan)
        self.assertRegex(shown, rf"(?m)^footprint +{result['footprint'] / 2**20:.2f} MiB \(load only\)$")
        self.assertRegex(shown, rf"(?m)^added time +{result['added_ns'] / 1e6:.3f} ms an iteration")
        bound = re.search(r"(?m)^added time .*; bound ([\d.]+) ms, [\d.]+ %$", shown)
        self.assertLessEqual(float(bound.group(1)), result["added_ns"] / 1e6 + 0.001)
        self.assertRegex(shown, rf"(?m)^replays +{result['replays']} of \d+ launches$")
        self.assertRegex(shown, rf"(?m)^drops +{result['drops']}; ")
        return result

    def test_plans_of_all_strategies(self):
        iteration = self.write(self.layers(40))
        added = {}
        for strategy in STRATEGIES:
            out = self.path(f"{strategy}.json")
            budget = ("--time-budget", "0.5") if strategy == "memopt" else ()
            done = self.run_plan(iteration, "--recompute", "--strategy", strategy, "--limit", "14MiB", "--json", out, *budget)
            if strategy == "chen:drop-cheap":  # All launches take as long.
                self.assertEqual(done.returncode, 3, done.stderr)
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            result = self.judged(out, done.stdout)
            self.assertLessEqual(result["footprint"], 14 << 20)
            added[strategy] = result["added_ns"]
            # What was written can be planned again: its own limit holds.
            again = self.run_plan(out, "--recompute", "--strategy", strategy, *budget)
            self.assertRegex(again.stdout, r"(?m)^footprint ")
        self.assertEqual(min(added.values()), added["memopt"])

    def test_plans_that_swap_as_well(self):
        iteration = self.layers(40)
        iteration["machine"] = {"out_bytes_per_ns": 0.4, "in_bytes_per_ns": 0.4, "out_latency_ns": 10000}
        added = {}
        for strategy in ("memopt", "memopt:recompute", "memopt:swap"):
            out = self.path("plan.json")
            done = self.run_plan(self.write(iteration), "--recompute", "--swap", "--strategy", strategy, "--limit", "10MiB", "--json", out,
                             "--time-budget", "1.5")
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out, encoding="utf-8") as file:
                plan = json.load(file)
            result = recompute_judge.judge(plan)
            self.assertLessEqual(result["footprint"], 10 << 20)
            self.assertRegex(done.stdout, rf"(?m)^added time +{result['added_ns'] / 1e6:.3f} ms an iteration of [\d.]+ ms, [\d.]+ %; "
                                          rf"replays {(result['added_ns'] - result['waits_ns']) / 1e6:.3f} ms, [\d.]+ %, "
                                          rf"waits {result['waits_ns'] / 1e6:.3f} ms, ")
            self.assertRegex(done.stdout, rf"(?m)^swaps +{result['swaps']}; ")
            self.assertEqual(result["replays"] > 0, strategy != "memopt:swap")
            self.assertEqual(result["swaps"] > 0, strategy != "memopt:recompute")
            added[strategy] = result["added_ns"]
        self.assertLess(added["memopt"], 0.8 * min(added["memopt:recompute"], added["memopt:swap"]))
        # What can't be made again may be swapped, so that nothing is said of that.
        done = self.run_plan(self.write(iteration), "--recompute", "--swap", "--limit", "1MiB", "--time-budget", "0.2")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"^memoptctl: memopt finds no plan within 1\.00 MiB; the least limit it reaches is \d+\.00 MiB \(\d+ bytes\)$")
        done = self.run_plan(self.write(iteration), "--recompute", "--swap", "--compare", "--limits", "50%", "--strategies",
                         "memopt,memopt:swap,dtr", "--machine", "h200", "--time-budget", "0.5", "--json", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, encoding="utf-8") as file:
            row = json.load(file)["limits"][0]
        self.assertEqual(set(row), {"limit", "plans"})  # there is no bound
        self.assertEqual((row["plans"]["memopt"]["added_ns"], row["plans"]["memopt:swap"]["added_ns"]), (0, 0))  # copies are fast
        self.assertGreater(row["plans"]["dtr"]["added_ns"], 0)

    def with_places(self, path, shown):
        """The plan that was written, which is the one that was printed, as the judge has it."""
        with open(path, encoding="utf-8") as file:
            plan = json.load(file)
        result = recompute_judge.judge(plan)
        self.assertTrue(plan["layout"])
        self.assertLessEqual(result["footprint"], plan["limit"])
        printed = re.search(r"(?m)^footprint +([\d.]+) MiB; load ([\d.]+) MiB$", shown)
        self.assertEqual(printed.group(1), f"{result['footprint'] / 2**20:.2f}")
        if not result["swaps"]:
            self.assertEqual(printed.group(2), f"{result['load'] / 2**20:.2f}")
        self.assertLessEqual(float(printed.group(2)), float(printed.group(1)))
        self.assertRegex(shown, rf"(?m)^added time +{result['added_ns'] / 1e6:.3f} ms an iteration")
        return result

    def test_plans_with_places(self):
        """Each layer takes half as much again as it has, so that no layout is as low as the load."""
        iteration = dict(self.layers(40), align=3 << 19)
        path = self.write(iteration)
        added = {}
        for strategy in STRATEGIES:
            out = self.path(f"{strategy}.json")
            budget = ("--time-budget", "1") if strategy == "memopt" else ("--layout-time", "0.05")
            done = self.run_plan(path, "--recompute", "--places", "--strategy", strategy, "--limit", "21MiB", "--json", out, "--no-bound", *budget)
            if strategy == "chen:drop-cheap":  # All launches take as long.
                self.assertEqual(done.returncode, 3, done.stderr)
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            result = self.with_places(out, done.stdout)
            self.assertLessEqual(result["load"], 14 << 20)  # thirteen steps of one and a half, and one
            self.assertGreater(result["replays"], 0)
            added[strategy] = result["added_ns"]
        if not cases.SANITIZER:  # there, a search of a second may come to nothing
            self.assertEqual(min(added.values()), added["memopt"])
        # What was written can be planned again, by load as well.
        for arguments in (("--places",), ()):
            again = self.run_plan(self.path("memopt.json"), "--recompute", "--time-budget", "0.5", "--no-bound", *arguments)
            self.assertRegex(again.stdout, r"(?m)^footprint ")
        drawing = self.path("plan.html")
        done = self.run_plan(path, "--recompute", "--places", "--strategy", "dtr", "--limit", "21MiB", "--no-bound", "--plot", drawing)
        self.assertEqual(done.returncode, 0, done.stderr)
        data = page_data.read(drawing)
        blocks, steps = data["iteration"]["blocks"], data["iteration"]["steps"]
        self.assertGreater(len(data["iteration"]["plans"][0]["drawn"]["blocks"]["block"]), 60)
        # What is computed again is told apart: launches, and the lives of blocks that they make.
        replays = int(re.search(r"(?m)^replays +(\d+) of", done.stdout).group(1))
        self.assertEqual(list(steps["kind"]).count(REPLAY), replays)
        self.assertGreater(sum(flags & MADE_AGAIN != 0 for flags in blocks["flags"]), 0)
        done = self.run_plan(path, "--recompute", "--places", "--limit", "2MiB", "--time-budget", "0.2")
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_plans_with_places_that_swap_as_well(self):
        iteration = dict(self.layers(40), chunk=1 << 20)
        iteration["machine"] = {"out_bytes_per_ns": 0.4, "in_bytes_per_ns": 0.4, "out_latency_ns": 10000}
        path, out = self.write(iteration), self.path("plan.json")
        added = {}
        for strategy in ("memopt", "memopt:recompute", "memopt:swap"):
            done = self.run_plan(path, "--recompute", "--swap", "--places", "--strategy", strategy, "--limit", "10MiB", "--json", out, "--time-budget", "2")
            self.assertEqual(done.returncode, 0, done.stderr)
            result = self.with_places(out, done.stdout)
            # Both is better than either, if there is time to find that.
            if strategy != "memopt" or not cases.SANITIZER:
                self.assertEqual(result["replays"] > 0, strategy != "memopt:swap")
                self.assertEqual(result["swaps"] > 0, strategy != "memopt:recompute")
            added[strategy] = result["added_ns"]
        if not cases.SANITIZER:
            self.assertLess(added["memopt"], min(added["memopt:recompute"], added["memopt:swap"]))

    def test_a_comparison_with_places(self):
        out = self.path("table.json")
        done = self.run_plan(self.write(dict(self.layers(30), align=3 << 19)), "--recompute", "--places", "--compare", "--limits", "170%,90%,60%,2%",
                         "--time-budget", "0.4", "--json", out, "--strategies", "memopt,dtr,chen:sqrt", "--no-bound")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("within a footprint of", done.stdout)
        with open(out, encoding="utf-8") as file:
            limits = json.load(file)["limits"]
        # There is room for a layout of all, and then less and less.
        self.assertEqual(limits[0]["plans"]["memopt"]["added_ns"], 0)
        mine = [row["plans"]["memopt"]["added_ns"] for row in limits[:3]]
        self.assertEqual(mine, sorted(mine))
        self.assertGreater(mine[1], 0)
        self.assertEqual(limits[3]["plans"], dict.fromkeys(("memopt", "dtr", "chen:sqrt")))
        for row in limits[:3]:
            for plan in row["plans"].values():
                if plan:
                    self.assertLessEqual(plan["load"], plan["footprint"])
                    self.assertLessEqual(plan["footprint"], row["limit"])

    def test_plans_that_a_network_learned_to_make(self):
        iteration = self.layers(16)
        iteration["machine"] = {"out_bytes_per_ns": 0.4, "in_bytes_per_ns": 0.4, "out_latency_ns": 10000}
        path = self.write(iteration)
        out, curve = self.path("plan.json"), self.path("curve.csv")
        for strategy, episodes in (("dqn", 150), ("dqn:transfer", 400)):
            for swaps in ((), ("--swap",)):
                done = self.run_plan(path, "--recompute", *swaps, "--strategy", strategy, "--limit", "12MiB", "--episodes", str(episodes), "--seed", "3",
                                 "--json", out, "--training-curve", curve)
                self.as_built(done)
                self.assertEqual(done.returncode, 0, done.stderr)
                if swaps:
                    with open(out, encoding="utf-8") as file:
                        result = recompute_judge.judge(json.load(file))
                    self.assertRegex(done.stdout, rf"(?m)^added time +{result['added_ns'] / 1e6:.3f} ms an iteration")
                    self.assertRegex(done.stdout, rf"(?m)^swaps +{result['swaps']}; ")
                else:
                    result = self.judged(out, done.stdout)
                self.assertLessEqual(result["footprint"], 12 << 20)
                self.assertGreater(result["replays"] + result.get("swaps", 0), 0)
                self.assertRegex(done.stdout, rf"(?m)^training +{episodes} episodes (on \d+ generated iterations )?in [\d.]+ s")
                with open(curve, encoding="utf-8") as file:
                    lines = file.read().splitlines()
                self.assertEqual(lines[0], "episode,epsilon,return,added_ns,best_added_ns")
                self.assertEqual(len(lines), episodes + 1)
                if strategy == "dqn":
                    number, epsilon = re.search(r"; the best in episode (\d+), epsilon ([\d.]+)$", done.stdout, re.MULTILINE).groups()
                    cells = lines[int(number)].split(",")
                    self.assertEqual((cells[0], f"{float(cells[1]):.2f}", cells[3]), (number, epsilon, cells[4]))
                    self.assertAlmostEqual(float(cells[3]), result["added_ns"], delta=1)
                    self.assertEqual(lines[-1].split(",")[4], cells[3])
        for strategy, option in (("dqn", "--threads"), ("dqn:transfer", "--time-budget")):
            done = self.run_plan(path, "--recompute", "--strategy", strategy, "--limit", "12MiB", option, "3")
            self.assertEqual((done.returncode, done.stderr), (2, f"memoptctl: {option}: {strategy} does not look at it\n"))
        # In a comparison by name only.
        done = self.run_plan(path, "--recompute", "--compare", "--limits", "70%", "--strategies", "dtr,dqn", "--episodes", "100", "--json", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, encoding="utf-8") as file:
            self.assertEqual(set(json.load(file)["limits"][0]["plans"]), {"dtr", "dqn"})

    def test_a_comparison(self):
        out = self.path("table.json")
        done = self.run_plan(self.write(self.layers(30)), "--recompute", "--compare", "--limits", "90%,50%,30%,2%", "--time-budget", "0.3", "--json", out,
                         "--strategies", ",".join(STRATEGIES))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, encoding="utf-8") as file:
            table = json.load(file)
        self.assertEqual(table["format"], "memopt-recompute-compare-1")
        self.assertEqual(len(table["limits"]), 4)
        self.assertEqual(set(table["limits"][0]["plans"]), set(STRATEGIES))
        self.assertEqual(table["limits"][3]["plans"], dict.fromkeys(STRATEGIES))  # none
        mine = [row["plans"]["memopt"]["added_ns"] for row in table["limits"][:3]]
        self.assertEqual(mine, sorted(mine))
        self.assertEqual([row["infeasible"] for row in table["limits"]], [False, False, False, True])
        for row in table["limits"][:3]:
            self.assertLessEqual(row["least_added_ns_bound"], row["plans"]["memopt"]["added_ns"])
            self.assertLessEqual(row["plans"]["memopt"]["added_ns"], min(plan["added_ns"] for plan in row["plans"].values() if plan))

    # Its search has no time for all of these.
    def test_in_a_comparison_ours_begins_with_what_is_published(self):
        out = self.path("table.json")
        done = self.run_plan(self.write(self.layers(300)), "--recompute", "--compare", "--limits", "50%,30%,10%", "--time-budget", "0.05", "--json", out,
                         "--strategies", ",".join(STRATEGIES), "--no-bound")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, encoding="utf-8") as file:
            for row in json.load(file)["limits"]:
                self.assertLessEqual(row["plans"]["memopt"]["added_ns"], min(plan["added_ns"] for plan in row["plans"].values() if plan))

    def test_bounds_are_left_out_if_asked_for(self):
        iteration = self.write(self.layers(10))
        out = self.path("table.json")
        done = self.run_plan(iteration, "--recompute", "--limit", "60%", "--strategy", "dtr:eq", "--no-bound")
        self.assertRegex(done.stdout, r"(?m)^added time +[\d.]+ ms an iteration of [\d.]+ ms, [\d.]+ %$")
        for arguments, asked in ((("--no-bound",), False), (("--bound-time", "2"), True)):
            done = self.run_plan(iteration, "--recompute", "--compare", "--limits", "60%,1%", "--strategies", "dtr:eq", "--json", out, *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(re.search(r"(?m)^ +limit +bound +dtr:eq$", done.stdout) is not None, asked, done.stdout)
            with open(out, encoding="utf-8") as file:
                limits = json.load(file)["limits"]
            for row in limits:
                self.assertEqual({"infeasible", "least_added_ns_bound"} & set(row), {"infeasible", "least_added_ns_bound"} if asked else set())
        self.assertEqual([row["infeasible"] for row in limits], [False, True])

    def as_built(self, done):
        """Skips where the build has not what was asked for."""
        if "is not in this build" in done.stderr:
            self.assertNotEqual(done.returncode, 0)
            self.skipTest(done.stderr.strip())

    def test_checkmate(self):
        iteration = self.write(self.layers(8))
        added = {}
        for strategy in CHECKMATE:
            out = self.path(f"{strategy}.json")
            done = self.run_plan(iteration, "--recompute", "--strategy", strategy, "--limit", "7MiB", "--json", out)
            self.as_built(done)
            self.assertEqual(done.returncode, 0, done.stderr)
            result = self.judged(out, done.stdout)
            self.assertLessEqual(result["footprint"], 7 << 20)
            program = re.search(r"(?m)^program +\d+ columns, \d+ rows, \d+ stages; solved; nothing in it is below ([\d.]+) ms, [\d.]+ %$", done.stdout)
            self.assertLessEqual(float(program.group(1)), result["added_ns"] / 1e6 + 0.001)
            added[strategy] = result["added_ns"]
        self.assertLessEqual(added["checkmate"], added["checkmate:lp"])
        table = self.path("table.json")
        done = self.run_plan(iteration, "--recompute", "--compare", "--strategies", ",".join(CHECKMATE), "--limits", "7MiB,2MiB", "--json", table)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(table, encoding="utf-8") as file:
            rows = json.load(file)["limits"]
        self.assertEqual({name: plan["added_ns"] for name, plan in rows[0]["plans"].items()}, added)
        self.assertEqual(rows[1]["plans"], dict.fromkeys(CHECKMATE))
        done = self.run_plan(iteration, "--recompute", "--strategy", "checkmate", "--limit", "2MiB")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^memoptctl: checkmate finds no plan within 2\.00 MiB: its program has no solution$")

    def test_checkmate_of_what_is_too_large(self):
        done = self.run_plan(self.write(self.layers(400)), "--recompute", "--strategy", "checkmate", "--limit", "50%")
        self.as_built(done)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"checkmate: the iteration is too large for it: its program has more than \d+ columns")

    def test_checkmate_ends_at_an_interrupt(self):
        line = [MEMOPTCTL, "plan", self.write(self.layers(90)), "--recompute", "--strategy", "checkmate", "--limit", "20%"]
        begin = time.monotonic()
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None and not children_of(process.pid):
                time.sleep(0.01)
            time.sleep(0.5)  # it solves
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=patience.seconds(40))
        if "is not in this build" in stderr:
            self.skipTest(stderr.strip())
        # Three seconds for the solver to end, after which it is ended.
        self.assertLess(time.monotonic() - begin, patience.seconds(20))
        self.assertIn("interrupted", stdout + stderr)
        self.assertIn(process.returncode, (0, 1))

    def test_what_is_refused(self):
        iteration = self.layers(5)
        unknown = dict(iteration, format="memopt-plan-1")
        del unknown["launches"]
        for document, arguments, code, message in (
                (iteration, ("--limit", "1MiB"), 3, r"^memoptctl: no plan is within 1\.00 MiB: what can't be made again, or one launch touches, is more$"),
                (iteration, ("--limit", "1MiB"), 3, r"memopt finds no plan within 1\.00 MiB; the least limit it reaches is 3\.00 MiB \(3145728 bytes\)$"),
                (iteration, ("--limit", "2%", "--strategy", "dtr:lru"), 3, r"dtr:lru finds no plan within 0\.14 MiB; the least limit it reaches is \d\.00 MiB"),
                (iteration, ("--limit", "50%", "--strategy", "best"), 2, r"--strategy: expected memopt, dtr, dtr:eq, .*, not best$"),
                (iteration, ("--limit", "50%", "--plot", "x.html"), 2,
                 r"--plot draws what --compare finds; of one plan of --recompute there is no drawing without --places$"),
                (iteration, ("--limit", "50%", "--layout-time", "1"), 2, r"--layout-time is for layouts, and --recompute has none without --places$"),
                (iteration, ("--limit", "50%", "--places", "--strategy", "memopt", "--layout-time", "1"), 2,
                 r"^memoptctl: --layout-time: memopt does not look at it$"),
                (iteration, ("--compare", "--plot", self.path("no/such.html")), 1, r"no/such\.html: cannot be written: "),
                (iteration, ("--limit", "50%", "--machine", "h200"), 2, r"--machine is for swaps, and --recompute plans none without --swap$"),
                (iteration, ("--limit", "50%", "--strategy", "memopt:swap"), 2, r"--strategy: expected memopt, dtr, .*, not memopt:swap$"),
                (iteration, ("--limit", "50%", "--strategy", "dtr", "--time-budget", "3"), 2, r"^memoptctl: --time-budget: dtr does not look at it$"),
                (iteration, ("--limit", "50%", "--strategy", "chen:sqrt", "--seed", "3"), 2, r"^memoptctl: --seed: chen:sqrt does not look at it$"),
                (iteration, ("--limit", "50%", "--strategy", "memopt", "--episodes", "3"), 2, r"^memoptctl: --episodes: memopt does not look at it$"),
                (iteration, ("--compare", "--strategies", "dtr,chen:sqrt"), 2, r"--time-budget: the strategies that are asked for do not look at it$"),
                (iteration, ("--compare", "--json", self.path("problem.json")), 2, r"--json names the file that is read, and would take its place$"),
                (iteration, ("--compare", "--json", self.path("x"), "--plot", self.path("./x")), 2, r"--json and --plot name the same file$"),
                (iteration, ("--limit", "50%", "--strategy", "dtr", "--episodes", "3"), 2, r"^memoptctl: --episodes: dtr does not look at it$"),
                (iteration, ("--compare", "--training-curve", "x.csv"), 2, r"--training-curve is for one plan$"),
                (iteration, ("--limit", "50%", "--limits", "3"), 2, r"--limits is for --compare$"),
                (iteration, ("--compare", "--limit", "50%"), 2, r"--limit is for one plan; --compare takes --limits$"),
                (dict(iteration, lazy_malloc=True), ("--limit", "90%"), 1, r"expected lazy_malloc to be false"),
                (unknown, ("--limit", "50%"), 1, r"what its launches write is not known; --recompute is for recordings, ")):
            done = self.run_plan(self.write(document), "--recompute", *arguments, *(() if "--strategy" in arguments else ("--time-budget", "0.1")))
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertRegex(done.stderr, re.compile(message, re.MULTILINE))

    def accepted(self, limit, *files):
        """How many plans of all strategies for these there are; the judge has accepted each."""
        done = subprocess.run([sys.executable, os.path.join(HERE, "logs_table.py"), MEMOPTCTL, "--limits", limit, "--seconds", "0.5", *files],
                              capture_output=True, text=True, timeout=patience.seconds(200))
        self.assertEqual(done.returncode, 0, done.stderr)
        found = re.search(rf"(?m)^plans that were found, all accepted: (\d+) of {len(STRATEGIES) * len(files)}$", done.stdout)
        self.assertTrue(found, done.stdout)
        return int(found.group(1))

    @cases.in_plain_builds
    def test_published_logs(self):
        if not os.path.isdir(LOGS):
            self.skipTest("MEMOPT_SHARED names no folder with logs for DTR's simulator")
        logs = [os.path.join(LOGS, name + ".log.gz") for name in ("resnet32-56", "tv_densenet121-84", "unroll_gan-512")]
        # All but DenseNet's and the GAN's chen:sqrt, and ResNet's chen:drop-cheap.
        self.assertEqual(self.accepted("50", *logs), 30)

    @cases.in_plain_builds
    def test_generated_networks(self):
        networks = {self.path("vgg16"): "100", self.path("resnet18"): "20"}
        for network, batch in networks.items():
            subprocess.run([sys.executable, NETS, os.path.basename(network), "--launches", "--batch", batch, "-o", network], check=True)
        self.assertEqual(self.accepted("80", *networks), 2 * len(STRATEGIES))

    @cases.in_plain_builds
    def test_published_tables(self):
        if not os.path.isdir(TABLES):
            self.skipTest("MEMOPT_SHARED names no folder with G10's kernel tables")
        self.assertEqual(self.accepted("70", os.path.join(TABLES, "BERT-256", "kernels.config.gz")), len(STRATEGIES))


if __name__ == "__main__":
    cases.main()
