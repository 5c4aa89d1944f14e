"""What tests of `memoptctl plan` with swaps have in common: small iterations, and an independent judge of plans."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import cases
import patience

SHARED = os.environ.get("MEMOPT_SHARED", "")
MEMOPTCTL = os.environ["MEMOPTCTL"]
CHECKER = os.path.join(SHARED, "tools", "check_plan.py")
VGG16 = os.path.join(SHARED, "traces", "vec_block_fresh_vgg.csv")
MIB = 1 << 20
SOON = ("--time-budget", "0.3")  # of a search for these

# Block 0 is idle while block 1 lives: 2 MiB suffice, at 0.1 MiB a microsecond even in time.
TWO = {"format": "memopt-plan-1", "period": 100000, "machine": {"out_bytes_per_ns": 200, "in_bytes_per_ns": 200},
       "blocks": [{"id": 5, "size": 2 * MIB}, {"id": 9, "size": 2 * MIB}],
       "ops": [["m", 5, 0], ["w", 5, 1000], ["x", -1, 2000], ["m", 9, 40000], ["w", 9, 41000], ["f", 9, 50000], ["x", -1, 51000], ["r", 5, 90000],
               ["f", 5, 91000]]}



def needs_published_trace(case):
    """Some of these solve for a minute together: in the plain build only."""
    where = unittest.skipUnless(os.path.exists(CHECKER) and os.path.exists(VGG16), "MEMOPT_SHARED names no folder with the checker and the trace")
    return cases.in_plain_builds(where(case))


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=patience.seconds(100))


def trace(iterations=6):
    """The same as TWO, as a text trace, beside weights that were there before: 4 MiB of 6 suffice, 10 ms an iteration."""
    lines, now = [], 1000
    for _ in range(iterations):
        for operation, pointer, size, length in (
                ("Malloc", 0xa0, 2 * MIB, 10), ("Read", 0xc0, 2 * MIB, 100), ("Mutable", 0xa0, 2 * MIB, 2000), ("Malloc", 0xb0, 2 * MIB, 10),
                ("Mutable", 0xb0, 2 * MIB, 2000), ("Free", 0xb0, 2 * MIB, 1880), ("Read", 0xa0, 2 * MIB, 1000), ("Free", 0xa0, 2 * MIB, 3000)):
            lines.append(f"{operation} {pointer:#x} {size} {now * 1000}\n")
            now += length
    return "".join(lines)


def soon(strategy):
    """Only our own search has a budget."""
    return SOON if strategy == "memopt" else ()


class PlanCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, plan, name="problem.json"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(plan if isinstance(plan, str) else json.dumps(plan))
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def run_plan(self, *arguments):
        return run(MEMOPTCTL, "plan", *arguments)

    def succeed(self, *arguments):
        """What `memoptctl plan` prints."""
        done = self.run_plan(*arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def refuse(self, code, part, *arguments):
        done = self.run_plan(*arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn(part, done.stderr)

    def judge(self, plan, base, printed):
        """The checker accepts the plan for the base, and says of it what was printed."""
        judged = run(sys.executable, CHECKER, "check", plan, "--base", base, "--no-early", "--json")
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
        result = json.loads(judged.stdout)
        added = float(re.search(r"^added time +([\d.]+) ms", printed, re.MULTILINE).group(1))
        self.assertAlmostEqual(added, result["added_ns"] / 1e6, delta=max(6e-4, 1e-3 * added))
        footprint = float(re.search(r"^footprint +([\d.]+) MiB", printed, re.MULTILINE).group(1))
        self.assertAlmostEqual(footprint, result["footprint"] / MIB, delta=0.006)
        return result
