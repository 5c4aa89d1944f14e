#!/usr/bin/env python3
"""The Python package, from the tree and with the programs of the build.

usage: memopt_test.py BUILD SOURCE [unittest arguments]
"""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import cases
import patience
import simulated

BUILD, SOURCE = [os.path.abspath(sys.argv.pop(1)) for _ in range(2)] if len(sys.argv) > 2 else sys.exit(__doc__)
FOLDER = tempfile.TemporaryDirectory()
shutil.copytree(os.path.join(SOURCE, "tools/python/memopt"), os.path.join(FOLDER.name, "memopt"), ignore=shutil.ignore_patterns("__pycache__"))
os.makedirs(os.path.join(FOLDER.name, "memopt/_files"))
for part in ("bin", "lib"):
    os.symlink(os.path.join(BUILD, part), os.path.join(FOLDER.name, "memopt/_files", part))
with open(os.path.join(FOLDER.name, "memopt/_version.py"), "w", encoding="utf-8") as version:
    version.write('__version__ = "0.1.0"\n')
sys.path.insert(0, FOLDER.name)
import memopt  # noqa: E402
from memopt import __main__ as main  # noqa: E402

CUDA = """
import ctypes, json, sys, memopt
before = memopt.status()
driver = ctypes.CDLL("libcuda.so.1")
if driver.cuInit(0): sys.exit("no device")
print(json.dumps([before, memopt.status()]), flush=True)
sys.stdin.read()
"""


class Line(unittest.TestCase):
    def test_where_the_program_begins(self):
        python = sys.executable
        for words, expected in ((["train.py", "--limit", "x"], ([], [python, "train.py", "--limit", "x"])),
                                (["--limit", "6GiB", "train.py"], (["--limit", "6GiB"], [python, "train.py"])),
                                (["--limit=6GiB", "--disable", "train.py", "--", "a"], (["--limit=6GiB", "--disable"], [python, "train.py", "--", "a"])),
                                (["--sim", "h200", "-m", "a.b", "-c"], (["--sim", "h200"], [python, "-m", "a.b", "-c"])),
                                (["-c", "pass"], ([], [python, "-c", "pass"])), (["--sim", "h200", "--", "sh", "-c", "x"], (["--sim", "h200"], ["sh", "-c", "x"])),
                                (["--help"], (["--help"], [])), ([], ([], []))):
            self.assertEqual(main.split(words), expected, words)

    def test_it_knows_the_options_of_run(self):
        listed = subprocess.run([memopt.memoptctl(), "run", "--help"], check=True, capture_output=True, text=True).stdout
        theirs = {name: bool(value) for name, value in re.findall(r"(?m)^  (?:-\w,)?(--[a-z-]+)( [A-Z]{2,}\b)?", listed)}
        ours = {option: action.nargs is None for action in main.run_parser()._actions for option in action.option_strings if option != "-h"}
        self.assertEqual(ours, theirs)

    def test_what_is_no_installation(self):
        os.rename(os.path.join(FOLDER.name, "memopt/_files"), os.path.join(FOLDER.name, "memopt/_gone"))
        try:
            with self.assertRaisesRegex(FileNotFoundError, "is missing: this is no installed memopt"):
                memopt.memoptctl()
        finally:
            os.rename(os.path.join(FOLDER.name, "memopt/_gone"), os.path.join(FOLDER.name, "memopt/_files"))


class Status(unittest.TestCase):
    def test_of_a_program_and_of_none(self):
        self.assertIsNone(memopt.status())
        self.assertIsNone(memopt.status(1 << 22))
        process = subprocess.Popen([sys.executable, "-m", "memopt", "run", "--sim", "a100-40g", "-c", CUDA], stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, env={**simulated.clean_environment(), "PYTHONPATH": FOLDER.name})
        self.addCleanup(lambda: (process.stdin.close(), process.wait(patience.seconds(60)), process.stdout.close()))
        before, here = json.loads(process.stdout.readline())
        self.assertIsNone(before, "no call was seen yet")
        self.assertEqual(here["pid"], process.pid)
        there = memopt.status(process.pid)
        self.assertEqual((there["pid"], there["format"], there["driver"]), (process.pid, 1, here["driver"]))

    def answer(self, text, user=None):
        """What status() makes of a process that answers so."""
        name = f"\0memopt-{os.geteuid() if user is None else user}-{os.getpid()}-{os.urandom(8).hex()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            server.bind(name)
            server.listen()

            def serve():
                connection, _ = server.accept()
                with connection:
                    if text is None:
                        connection.recv(64)
                        threading.Event().wait(1)
                    else:
                        try:
                            connection.recv(64)
                            connection.sendall(text)
                        except OSError:
                            pass
            thread = threading.Thread(target=serve)
            thread.start()
            try:
                return memopt.status(timeout=0.3 if text is None else patience.seconds(30))
            finally:
                thread.join()

    def test_answers_that_are_none(self):
        for text, why in ((b"", "closed the connection"), (b"nonsense", "not JSON"), (b"[1]", "format that is not known"), (b'{"format": 2}', "format that is not known"),
                          (b'{"format": 1, "error": "no"}', "refused: no"), (b"x" * (2 << 20), "longer than 1 MiB"), (None, "gave no answer")):
            with self.subTest(text=text and text[:20]), self.assertRaisesRegex(memopt.StatusError, why):
                self.answer(text)
        with self.assertRaisesRegex(memopt.StatusError, "another user"):
            self.answer(b"{}", user=os.geteuid() + 1)
        self.assertEqual(self.answer(b'{"format": 1, "state": "planned"}')["state"], "planned")


if __name__ == "__main__":
    cases.main()
