"""Runs replay and the networks' generator on the simulated driver; for the tests of replay."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = os.environ["TEST_WORKLOADS"]
SIMULATOR = os.environ["TEST_SIMULATOR"]
NETS = os.path.join(os.environ["TEST_NETS"], "nets.py")
SHARED = os.environ.get("MEMOPT_SHARED") or os.environ["TEST_SHARED"]
PREFIX = os.environ.get("SANITIZER_PRELOAD", "")


class Run:
    """A finished replay: what it printed, wrote as JSON, and what the simulator reports."""

    def __init__(self, *arguments, kernels="kernels", **environment):
        clean = {key: value for key, value in os.environ.items()
                 if not key.startswith(("CUDASIM_", "MEMOPT_")) and key not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
        with tempfile.TemporaryDirectory() as folder:
            report, numbers = os.path.join(folder, "report.json"), os.path.join(folder, "numbers.json")
            clean |= {"LD_LIBRARY_PATH": os.path.join(SIMULATOR, "lib"), "CUDASIM_REPORT": report,
                      "CUDASIM_KERNELS": os.path.join(SIMULATOR, kernels, "replay.so")}
            if kernels == "kernels-instrumented":
                clean["CUDASIM_INSTRUMENT"] = "1"
            command = [os.path.join(PROGRAMS, "replay"), *map(str, arguments), "--json", numbers]
            done = subprocess.run(command, env=clean | environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            self.report, self.numbers = self._read(report), self._read(numbers)
        self.code, self.output, self.errors = done.returncode, done.stdout, done.stderr

    @staticmethod
    def _read(path):
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    @property
    def last_line(self):
        return self.output.splitlines()[-1] if self.output else ""


class ReplayCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    def net(self, name, *arguments):
        path = os.path.join(self.folder, "-".join([name, *map(str, arguments)]))
        if not os.path.exists(path):
            subprocess.run([sys.executable, NETS, name, "-o", path, *map(str, arguments)], check=True)
        return path

    def trace(self, text):
        with tempfile.NamedTemporaryFile("w", dir=self.folder, delete=False) as file:
            file.write(text)
        return file.name

    def shared(self, name):
        path = os.path.join(SHARED, "traces", name)
        if not os.path.exists(path):
            self.skipTest(f"{path} is not here: the published traces have no licence and are not part of the project")
        return path

    def succeed(self, *arguments, **options):
        run = Run(*arguments, **options)
        self.assertEqual(run.code, 0, run.output + run.errors)
        self.assertRegex(run.last_line, r"^checksum [0-9a-f]{16}$")
        self.assertEqual(run.numbers["mismatches"], 0)
        # A kernel that no plug-in has would stamp nothing and find nothing wrong.
        counters = run.report["counters"]
        self.assertEqual(counters["unknown_kernels"], 0)
        self.assertEqual(counters["races"], 0)
        self.assertEqual(counters["bytes_live"], 0, "everything is freed at the end")
        return run
