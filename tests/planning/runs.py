"""Starts programs on the simulated driver, with and without memopt; for the tests of planning."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
import uuid

import patience
import simulated

BUILD = os.environ["TEST_BUILD"]
SIMULATOR = os.path.join(BUILD, "cudasim")
SHIM = os.path.join(BUILD, "lib", "libmemopt.so")
MEMOPTCTL = os.path.join(BUILD, "bin", "memoptctl")
PLANNER = os.path.join(BUILD, "bin", "memoptd")
WORKLOADS = os.path.join(BUILD, "workloads")
LOOP = os.path.join(BUILD, "tests", "loop")
ORDER = os.path.join(BUILD, "tests", "order_cases")
POOLS = os.path.join(BUILD, "tests", "pools")
SOURCE = os.environ["TEST_SOURCE"]
NETS = os.path.join(SOURCE, "integration", "workloads", "nets", "nets.py")
SHARED = os.environ.get("MEMOPT_SHARED") or os.path.join(os.path.dirname(SOURCE), "shared")
PREFIX = os.environ.get("SANITIZER_PRELOAD", "")
FULL = "--full" in sys.argv
if FULL:
    sys.argv.remove("--full")
# A planner of this test's own: nobody else's programs, and gone when it is idle.
PLANNER_NAME = "test-" + uuid.uuid4().hex[:12]
# Nor of the planner that an earlier run has left.
WITHOUT_A_PLANNER = {"MEMOPT_PLANNER": "/bin/false", "MEMOPT_PLANNER_NAME": PLANNER_NAME + "-none", "MEMOPT_SYNC_PLAN": "0"}


def environment(shim=None, planned=True, **more):
    clean = simulated.clean_environment() | {"LD_LIBRARY_PATH": os.path.join(SIMULATOR, "lib")}
    libraries = PREFIX + (shim or SHIM if planned else "")
    if libraries:
        clean["LD_PRELOAD"] = libraries
    if planned:
        clean |= {"MEMOPT_PLANNER_NAME": PLANNER_NAME, "MEMOPT_SYNC_PLAN": patience.WAIT}
    clean |= more
    return {key: value for key, value in clean.items() if value is not None}


class Run(simulated.Finished):
    def __init__(self, command, timeout=1200, numbers=False, **options):
        super().__init__(command, environment(**options), numbers=numbers, timeout=timeout)

    @property
    def live_at(self):
        """The iteration at which the plan went live, by the line for people; None if it never did."""
        found = re.search(r"^memopt: plan live at iteration (\d+)", self.errors, re.MULTILINE)
        return int(found.group(1)) if found else None

    @property
    def plan_bytes(self):
        """What the plan itself comes to: the slab and what stays beside it, by the line for people."""
        units = {"MiB": 1 << 20, "GiB": 1 << 30}
        found = re.search(r"laid out in ([\d.]+) (MiB|GiB) beside ([\d.]+) (MiB|GiB) that stays", self.errors)
        return found and float(found.group(1)) * units[found.group(2)] + float(found.group(3)) * units[found.group(4)]

    @property
    def steady_footprint(self):
        pieces = self.report["held_history"]["peaks"]
        return max(pieces[2 * len(pieces) // 3:])


class PlanningCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    def succeed(self, command, **options):
        run = Run(command, **options)
        self.assertEqual(run.code, 0, run.output + run.errors)
        counters = run.report["counters"]
        # A kernel that no plug-in has would change nothing, and nothing would be equal to anything.
        self.assertEqual(counters["unknown_kernels"], 0)
        self.assertEqual(counters["races"], 0, run.report["last_race"])
        return run

    def net(self, name, *arguments):
        path = os.path.join(self.folder, "-".join([name, *map(str, arguments)]))
        if not os.path.exists(path):
            subprocess.run([sys.executable, NETS, name, "-o", path, *map(str, arguments)], check=True)
        return path

    def shared(self, name):
        path = os.path.join(SHARED, "traces", name)
        if not os.path.exists(path):
            self.skipTest(f"{path} is not here: the published traces have no licence and are not part of the project")
        return path
