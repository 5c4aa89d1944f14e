#!/usr/bin/env python3
"""The recordings of PyTorch's programs: each is listed, whole, and its program's.

usage: recordings_test.py MEMOPTCTL FOLDER [unittest arguments]
"""
import json
import os
import subprocess
import sys
import unittest

import cases
import patience

MEMOPTCTL, FOLDER = os.path.abspath(sys.argv.pop(1)), sys.argv.pop(1)


def listed():
    with open(os.path.join(FOLDER, "recordings.txt"), encoding="utf-8") as file:
        return {line.split()[0]: line.split()[1:] for line in file if line.strip() and not line.startswith("#")}


class Recordings(unittest.TestCase):
    def test_the_list_has_them_all(self):
        self.assertEqual(sorted(listed()), sorted(name[:-4] for name in os.listdir(FOLDER) if name.endswith(".rec")))

    def test_each_is_whole_and_has_its_steps(self):
        for name, (_, steps, *_) in listed().items():
            with self.subTest(name):
                done = subprocess.run([MEMOPTCTL, "show", "--json", os.path.join(FOLDER, name + ".rec")], capture_output=True, text=True,
                                      timeout=patience.seconds(100))
                self.assertEqual(done.returncode, 0, done.stderr)
                shown = json.loads(done.stdout)
                self.assertEqual((shown["whole"], shown["missing"], shown["disordered"]), (True, 0, 0))
                # What a launch touches is known, or nothing could be swapped.
                self.assertEqual(shown["blind_launches"], 0)
                # Every training step allocates, frees and launches: a recurrent network launches least.
                for kind in "malloc", "free", "launch":
                    self.assertGreater(shown["operations"][kind], 20 * int(steps), kind)
                self.assertLess(os.path.getsize(os.path.join(FOLDER, name + ".rec")), 512 << 10)


if __name__ == "__main__":
    cases.main()
