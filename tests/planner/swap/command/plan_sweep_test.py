#!/usr/bin/env python3
"""Swap plans of every trace and network there is, by every strategy, within limits from the least one that is met to the peak load (by tuned
weights, within two of them): each is accepted by a checker that shares no code, with the same footprint and added time. Takes an hour; a
name as an argument is one input only."""
import os
import re
import subprocess
import sys

import cases
from plan_case import CHECKER, MEMOPTCTL, SHARED, PlanCase

NETS = os.path.join(os.environ["TEST_SOURCE"], "integration", "workloads", "nets", "nets.py")
TRACES = ("vec_block_fresh_vgg.csv", "blockInfo_VGG_315.text", "blockInfo_resnet_315.text", "blockInfo_Alex_316.text")
NETWORKS = ("vgg11", "vgg13", "vgg16", "vgg19", "resnet18", "resnet34", "resnet50", "resnet101")
STRATEGIES = {"memopt": ("--time-budget", "3"), "none": (), "autoswap:doa": ("--layout-time", "0.05"), "autoswap:aoa": ("--layout-time", "0.05"),
              "autoswap:wdoa": ("--layout-time", "0.05"), "autoswap:swdoa": ("--layout-time", "0.05")}
PARTS = (50, 60, 70, 80, 90, 100)
TUNED = "autoswap:tuned"
TUNED_PARTS = (70, 90)  # a minute or more each
INFEASIBLE = 3


class Sweep(PlanCase):
    def setUp(self):
        super().setUp()
        if not os.path.exists(CHECKER):
            self.skipTest("MEMOPT_SHARED names no folder with tools/check_plan.py")
        self.judged = 0

    def plan(self, *arguments):
        return subprocess.run([MEMOPTCTL, "plan", *arguments], capture_output=True, text=True, timeout=3600)

    def sweep(self, trace):
        self.succeed(trace, "--json", self.path("base.json"))
        for strategy, options in STRATEGIES.items():
            least = self.plan(trace, "--strategy", strategy, *options, "--no-bound", "--limit", "1")
            self.assertEqual(least.returncode, INFEASIBLE, least.stdout + least.stderr)
            named = int(re.search(r"the least feasible limit it reaches is .* \((\d+) bytes\)", least.stderr).group(1))
            for limit in (str(named + named // 50), *(f"{part}%" for part in PARTS)):
                with self.subTest(strategy=strategy, limit=limit):
                    plan = self.path("plan.json")
                    done = self.plan(trace, "--strategy", strategy, *options, "--no-bound", "--limit", limit, "--json", plan)
                    # Searches and layouts are over when their time is, and need not reach again what was reached once.
                    if done.returncode == INFEASIBLE:
                        continue
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.judge(plan, self.path("base.json"), done.stdout)
                    self.judged += 1
        for part in TUNED_PARTS:
            with self.subTest(strategy=TUNED, part=part):
                plan = self.path("plan.json")
                done = self.plan(trace, "--strategy", TUNED, "--layout-time", "0.05", "--no-bound", "--limit", f"{part}%", "--json", plan)
                if done.returncode == INFEASIBLE:
                    continue
                if "libeigen3-dev" in done.stderr:
                    break
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.judge(plan, self.path("base.json"), done.stdout)
                self.judged += 1
        print(f"{os.path.basename(trace)}: {self.judged} plans judged", flush=True)
        self.assertGreater(self.judged, len(STRATEGIES))


def of_trace(name):
    def test(self):
        path = os.path.join(SHARED, "traces", name)
        if not os.path.exists(path):
            self.skipTest(f"MEMOPT_SHARED has no {name}")
        self.sweep(path)
    return test


def of_network(name):
    def test(self):
        path = self.path(name + ".trace")
        subprocess.run([sys.executable, NETS, name, "-o", path], check=True)
        self.sweep(path)
    return test


for each in TRACES:
    setattr(Sweep, "test_" + re.sub(r"\W", "_", each), of_trace(each))
for each in NETWORKS:
    setattr(Sweep, "test_" + each, of_network(each))

if __name__ == "__main__":
    cases.main()
