#!/usr/bin/env python3
"""memoptctl status --watch with real programs on the simulated device.

usage: watch_test.py MEMOPTCTL [unittest arguments]
"""
import json
import os
import signal
import subprocess
import sys
import unittest

import cases
import patience
import simulated

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)
PROGRAM = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
if driver.cuInit(0): sys.exit("no device")
print("ready", flush=True)
sys.stdin.read()
"""


class Watch(unittest.TestCase):
    def setUp(self):
        self.program = subprocess.Popen([MEMOPTCTL, "run", "--sim", "a100-40g", "--", sys.executable, "-S", "-c", PROGRAM], text=True,
                                        env=simulated.clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.end)
        self.assertEqual(self.program.stdout.readline(), "ready\n")

    def end(self):
        self.program.stdin.close()
        self.program.wait(patience.seconds(100))
        self.program.stdout.close()

    def watch(self, *arguments):
        watching = subprocess.Popen([MEMOPTCTL, "status", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True)
        self.addCleanup(lambda: (watching.kill(), watching.wait(), watching.stdout.close(), watching.stderr.close()))
        return watching

    def test_until_the_process_has_ended(self):
        watching = self.watch("--watch", "0.1", "--json", "--pid", str(self.program.pid))
        seen = [json.loads(watching.stdout.readline()) for _ in range(3)]
        for one in seen:
            self.assertEqual((one["format"], [process["pid"] for process in one["processes"]]), (1, [self.program.pid]))
        self.end()
        rest, errors = watching.communicate(timeout=patience.seconds(100))
        for line in rest.splitlines():
            json.loads(line)
        self.assertEqual((watching.returncode, errors), (0, ""))

    def test_until_it_is_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            watching = self.watch("--watch=0.1")
            self.assertRegex(watching.stdout.readline(), r"^\d\d:\d\d:\d\d$")
            tables = 0
            while tables < 3:
                line = watching.stdout.readline()
                self.assertTrue(line)
                tables += line.lstrip().startswith("PID ")
            watching.send_signal(number)
            _, errors = watching.communicate(timeout=patience.seconds(100))
            self.assertEqual((watching.returncode, errors), (0, ""))

    def test_until_its_reader_goes_away(self):
        watching = self.watch("--watch", "0.1")
        self.assertTrue(watching.stdout.readline())
        watching.stdout.close()
        self.assertEqual(watching.wait(patience.seconds(100)), 0)
        self.assertEqual(watching.stderr.read(), "")

    def test_no_such_process(self):
        done = subprocess.run([MEMOPTCTL, "status", "--watch", "--pid", str(os.getpid())], capture_output=True, text=True,
                              timeout=patience.seconds(100))
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn(f"process {os.getpid()} does not run under memopt", done.stderr)

    def test_intervals_that_are_none(self):
        for value in ("0", "-1", "nan", "1e9", "soon"):
            done = subprocess.run([MEMOPTCTL, "status", f"--watch={value}"], capture_output=True, text=True, timeout=patience.seconds(100))
            self.assertEqual((done.returncode, done.stdout), (2, ""), value)
            self.assertIn(f"expected a duration from 100ms to 1h (a plain number is seconds), not '{value}'", done.stderr)


if __name__ == "__main__":
    cases.main()
