#!/usr/bin/env python3
"""memoptctl reduce: what is left of a recording has the same iteration, is small, and is read by everything that reads recordings.

usage: reduce_test.py MEMOPTCTL [unittest arguments]
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import cases
import patience
import simulated

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)
BUILD = os.path.dirname(os.path.dirname(MEMOPTCTL))
WORKLOADS = os.path.join(BUILD, "workloads")
LONGEST_NAME = 56


def run(*arguments, program=MEMOPTCTL, **more):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=patience.seconds(300), stdin=subprocess.DEVNULL,
                          env=simulated.clean_environment() | more)


class Reduce(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = scratch.name
        cls.whole = os.path.join(cls.folder, "whole")
        done = run("record", "-o", cls.whole, "--sim", "a100-40g", "--", os.path.join(WORKLOADS, "digits_cnn"), "--epochs", "2", "--batch", "96",
                   "--width", "2")
        assert done.returncode == 0, done.stderr

    def reduced(self, *options, whole=None):
        path = os.path.join(self.folder, "reduced")
        done = run("reduce", whole or self.whole, "-o", path, "--force", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = run("show", "--json", path)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        return path, json.loads(shown.stdout), done.stdout

    def planned(self, path):
        done = run("plan", path)
        self.assertEqual(done.returncode, 0, done.stdout)
        found = {key: re.search(rf"^{key}\s+(.*)", done.stdout, re.MULTILINE).group(1) for key in
                 ("operations per iteration", "allocations", "peak load", "persistent", "slab")}
        return found

    def test_has_the_same_iteration(self):
        path, shown, _ = self.reduced()
        plan, whole = self.planned(path), self.planned(self.whole)
        for key in "allocations", "peak load", "slab", "operations per iteration":
            self.assertEqual(plan[key], whole[key], key)
        self.assertEqual((shown["whole"], shown["missing"], shown["disordered"]), (True, 0, 0))
        self.assertEqual(shown["first_sequence"], 1)
        self.assertEqual(shown["iteration"]["operations"], int(plan["operations per iteration"]))
        # It is that iteration and little else.
        self.assertLess(shown["records"], 4 * shown["iteration"]["operations"])
        self.assertLess(os.path.getsize(path), 300 << 10)

    def test_more_iterations_are_more_records(self):
        _, one, _ = self.reduced("--iterations", "1")
        _, three, _ = self.reduced("--iterations", "3")
        self.assertEqual(three["operations"]["launch"] - one["operations"]["launch"], 2 * one["operations"]["launch"] // 3)

    def test_whole_keeps_every_record_and_the_same_plan(self):
        path, shown, _ = self.reduced("--whole", "--hash-names")
        before = json.loads(run("show", "--json", self.whole).stdout)
        self.assertEqual(self.planned(path), self.planned(self.whole))
        for key in "malloc", "free", "launch":
            self.assertEqual(shown["operations"][key], before["operations"][key], key)
        self.assertLess(os.path.getsize(path), os.path.getsize(self.whole))

    def test_can_be_replayed(self):
        path, _, _ = self.reduced("--hash-names")
        done = run(path, "--iterations", "4", program=os.path.join(WORKLOADS, "replay"), LD_LIBRARY_PATH=os.path.join(BUILD, "cudasim", "lib"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout.splitlines()[-1], r"^checksum [0-9a-f]{16}$")

    def test_hashed_names_tell_nothing_large(self):
        _, plain, _ = self.reduced()
        _, hashed, _ = self.reduced("--hash-names")
        self.assertGreater(plain["operations"].get("stack", 0), 0)
        self.assertGreater(len(plain["arguments"]), 1)
        for kind in "stack", "module":
            self.assertEqual(hashed["operations"].get(kind, 0), 0, kind)
        self.assertEqual(hashed["arguments"], ["digits_cnn"])
        self.assertEqual(len(plain["kernels"]), len(hashed["kernels"]))
        self.assertTrue(all(0 < len(kernel["name"]) <= LONGEST_NAME for kernel in hashed["kernels"]))

    def test_parameters_are_kept_on_demand(self):
        _, without, _ = self.reduced()
        _, kept, _ = self.reduced("--parameters")
        self.assertEqual(without["operations"].get("parameters", 0), 0)
        self.assertEqual(kept["operations"]["parameters"], kept["operations"]["launch"])

    def test_a_reduced_one_can_be_reduced(self):
        path, once, _ = self.reduced("--iterations", "3")
        _, twice, _ = self.reduced("--iterations", "1", whole=path)
        self.assertEqual(twice["iteration"]["operations"], once["iteration"]["operations"])
        self.assertLess(twice["records"], once["records"])

    def test_a_file_that_is_there_stays(self):
        path = os.path.join(self.folder, "precious")
        with open(path, "w", encoding="utf-8") as file:
            file.write("precious")
        done = run("reduce", self.whole, "-o", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is there already (--force overwrites it)", done.stderr)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "precious")

    def test_what_can_not_be_reduced_leaves_nothing(self):
        short = os.path.join(self.folder, "short")
        # One step: nothing repeats.
        self.assertEqual(run("record", "-o", short, "--force", "--sim", "a100-40g", "--",
                             os.path.join(WORKLOADS, "digits_cnn"), "--epochs", "1",
                             "--batch", "1000", "--width", "1").returncode, 0)
        text = os.path.join(self.folder, "text")
        with open(text, "w", encoding="utf-8") as file:
            file.write("no recording\n" * 20)
        for path, code, message in ((short, 4, "no iteration was found"), (text, 1, "text"), (os.path.join(self.folder, "absent"), 1, "absent"),
                                    (self.whole, 1, "/nowhere/")):
            with self.subTest(path=path):
                folder = "/nowhere" if path == self.whole else self.folder
                output = os.path.join(folder, "nothing")
                done = run("reduce", path, "-o", output)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(message, done.stderr)
                self.assertFalse(os.path.exists(output) or os.path.exists(output + ".partial"))

    def test_wrong_use(self):
        for arguments in (["reduce"], ["reduce", self.whole], ["reduce", self.whole, "-o", "x", "--iterations", "0"]):
            self.assertEqual(run(*arguments).returncode, 2, arguments)


if __name__ == "__main__":
    cases.main()
