"""Runs replay and the networks' generator on the simulated driver; for the tests of replay."""
import os
import subprocess
import sys
import tempfile
import unittest

import simulated

PROGRAMS = os.environ["TEST_WORKLOADS"]
SIMULATOR = os.environ["TEST_SIMULATOR"]
NETS = os.path.join(os.environ["TEST_NETS"], "nets.py")
SHARED = os.environ.get("MEMOPT_SHARED") or os.environ["TEST_SHARED"]
PREFIX = os.environ.get("SANITIZER_PRELOAD", "")


class Run(simulated.Finished):
    """A finished replay: what it printed, wrote as JSON, and what the simulator reports."""

    def __init__(self, *arguments, kernels="kernels", **environment):
        clean = simulated.clean_environment()
        clean |= {"LD_LIBRARY_PATH": os.path.join(SIMULATOR, "lib"), "CUDASIM_KERNELS": os.path.join(SIMULATOR, kernels, "replay.so")}
        if kernels == "kernels-instrumented":
            clean["CUDASIM_INSTRUMENT"] = "1"
        super().__init__([os.path.join(PROGRAMS, "replay"), *arguments], clean | environment, numbers=True)


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
