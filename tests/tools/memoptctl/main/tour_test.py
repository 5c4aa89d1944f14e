#!/usr/bin/env python3
"""Every command of docs/tour.md does what the page says: exit code 0, and the lines that are shown, in this order, but for numbers.

usage: tour_test.py MEMOPTCTL PAGE [unittest arguments]
"""
import os
import re
import subprocess
import sys
import unittest

import cases
import patience
import scratch
import simulated

MEMOPTCTL, PAGE = (os.path.abspath(sys.argv.pop(1)) for _ in range(2)) if len(sys.argv) > 2 else sys.exit(__doc__)
BUILD = os.path.dirname(os.path.dirname(MEMOPTCTL))


def commands():
    """(command, lines of output) as the page has them."""
    with open(PAGE, encoding="utf-8") as file:
        blocks = re.findall(r"(?ms)^```console\n(.*?)^```$", file.read())
    found = []
    for line in "".join(blocks).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def pattern(lines):
    """Of the whole output. Numbers are any; an address or a checksum is one; a line "…" is any number of lines, and "…" in one any text."""
    parts = []
    for line in lines:
        if line == "…":
            parts.append(r"(?:.*\n)*?")
            continue
        text = re.sub(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{16}\b|[0-9]+(?:[.,][0-9]+)*", "\0", line)
        text = re.escape(text).replace("…", ".*").replace("\0", r"(?:[0-9a-f]{16}|[0-9]+(?:[.,][0-9]+)*)")
        # Columns are as wide as their numbers.
        parts.append(re.sub(r"(?:\\ ){2,}", r" +", text) + r"\n")
    return "".join(parts)


class Tour(scratch.InFolder):
    def test_what_it_says(self):
        environment = simulated.clean_environment() | {"PWD": os.path.dirname(os.path.dirname(BUILD)), "XDG_RUNTIME_DIR": self.folder}
        environment["PATH"] = f"{BUILD}/bin:{BUILD}/workloads:{environment['PATH']}"
        printed = {}
        for command, lines in commands():
            with self.subTest(command):
                # Beside other work the program would be over before there is a plan.
                waits = {"MEMOPT_SYNC_PLAN": patience.WAIT} if command.startswith("memoptctl run ") else {}
                done = subprocess.run(["bash", "-c", command], env=environment | waits, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, timeout=patience.seconds(200), check=False)
                # The page's device is too small in every way, which fit says by its exit code, too.
                self.assertEqual(done.returncode, 3 if command.startswith("memoptctl fit ") else 0, done.stdout)
                self.assertRegex(done.stdout, rf"\A{pattern(lines)}\Z")
                printed[command] = done.stdout
        checksums = [re.search(r"checksum (\w+)", text)[1] for command, text in printed.items() if "--epochs 4" in command]
        self.assertEqual(len(checksums), 2)
        self.assertEqual(checksums[0], checksums[1])
        self.assertGreater(os.path.getsize(self.path("digits.html")), 100_000)


class Pattern(unittest.TestCase):
    def test_what_differs_is_found(self):
        lines = ["a 1.5 MiB", "…", "end"]
        self.assertRegex("a 27 MiB\nx\ny\nend\n", rf"\A{pattern(lines)}\Z")
        for text in ("a 27 KiB\nend\n", "a 27 MiB\nx\n", "a MiB\nend\n", "a 27 MiB\nend\nmore\n"):
            self.assertNotRegex(text, rf"\A{pattern(lines)}\Z")


if __name__ == "__main__":
    cases.main()
