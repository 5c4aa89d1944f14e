#!/usr/bin/env python3
"""Recordings of each version of the format are read as they were when they were written.

usage: golden_test.py MEMOPTCTL [unittest arguments]
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

import cases
import patience

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "data", "golden")
HEADER = struct.Struct("<8sII")  # magic, format, version of the records


def run(*arguments):
    return subprocess.run([MEMOPTCTL, *arguments], capture_output=True, text=True, timeout=patience.seconds(100))


def golden():
    return sorted(name[:-4] for name in os.listdir(FOLDER) if name.endswith(".rec"))


def versions(path):
    with open(path, "rb") as file:
        magic, version, records = HEADER.unpack(file.read(HEADER.size))
    return magic, version, records


class Golden(unittest.TestCase):
    def test_each_is_read_as_it_was(self):
        for name in golden():
            with self.subTest(name), open(os.path.join(FOLDER, name + ".csv"), encoding="utf-8") as file:
                done = run("export", os.path.join(FOLDER, name + ".rec"), "--format", "csv")
                self.assertEqual((done.returncode, done.stdout), (0, file.read()), done.stderr)
                self.assertEqual(versions(os.path.join(FOLDER, name + ".rec"))[:2], (b"MMPTREC1", int(re.fullmatch(r"recording-(\d+)", name).group(1))))

    def test_each_is_shown(self):
        for name in golden():
            with open(os.path.join(FOLDER, name + ".csv"), encoding="utf-8") as file:
                rows = [line.split(",")[3] for line in file][1:]
            shown = json.loads(run("show", "--json", os.path.join(FOLDER, name + ".rec")).stdout)
            self.assertEqual((shown["whole"], shown["operations"]["malloc"], shown["operations"]["launch"]), (True, rows.count("malloc"), rows.count("launch")))

    def test_the_present_version_has_one(self):
        with tempfile.TemporaryDirectory() as folder:
            now = os.path.join(folder, "now.rec")
            self.assertEqual(run("import", os.path.join(FOLDER, golden()[-1] + ".csv"), "-o", now).returncode, 0)
            self.assertIn(versions(now), [versions(os.path.join(FOLDER, name + ".rec")) for name in golden()])


if __name__ == "__main__":
    cases.main()
