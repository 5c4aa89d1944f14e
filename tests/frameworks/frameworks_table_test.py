#!/usr/bin/env python3
"""One row of each table from beginning to end: its runs, the page, and what is kept of them. Skipped without PyTorch."""
import os
import subprocess
import sys
import tempfile
import unittest

import cases

FRAMEWORKS = os.environ.get("MEMOPT_FRAMEWORKS") or os.environ["TEST_FRAMEWORKS"]
PYTHON = os.path.join(FRAMEWORKS, "bin", "python")
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frameworks_table.py")


def table(kept, *arguments):
    return subprocess.run([sys.executable, TABLE, "--python", PYTHON, "--programs", "resnet18", "--steps", "12", "--contents-steps", "8",
                           "--kept", kept, *arguments], capture_output=True, text=True, timeout=1500, stdin=subprocess.DEVNULL)


@unittest.skipUnless(os.path.exists(PYTHON), f"PyTorch is not in {FRAMEWORKS}: tools/fetch-frameworks")
class FrameworksTable(unittest.TestCase):
    def test_a_row(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.md")
            done = table(folder, "--jobs", "2", "--output", path)
            self.assertEqual(done.returncode, 0, done.stdout[-8000:] + done.stderr[-4000:])
            with open(path, encoding="utf-8") as file:
                page = file.read()
            again = table(folder, "--from-kept")
        self.assertTrue(done.stdout.endswith(page + "\n"))
        self.assertNotIn("less sure", page)
        for wanted in ("A plan is live", "Of the allocations", "Contents are equal"):
            [line] = [line for line in page.splitlines() if line.startswith(f"- {wanted}")]
            self.assertTrue(line.endswith(": 2 of 2."), page)
        self.assertEqual(again.stdout.split("# PyTorch's")[1], done.stdout.split("# PyTorch's")[1])
        self.assertNotIn(" s\n", again.stdout.split("# PyTorch's")[0])

    def test_batches_of_any_size(self):
        """Without a plan, or beside one that is not kept to: less is held than by the caching allocator, and contents are equal."""
        rows = ["--also", "graph graph.py", "--also", "detection detection.py"]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, TABLE, "--python", PYTHON, "--programs", *rows, "--steps", "30", "--contents-steps", "4",
                                   "--jobs", "2", "--kept", folder], capture_output=True, text=True, timeout=1500, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout[-8000:] + done.stderr[-4000:])
        for wanted in ("In the steady state no more is held", "The largest of the whole run", "Contents are equal"):
            [line] = [line for line in done.stdout.splitlines() if line.startswith(f"- {wanted}")]
            self.assertTrue(line.endswith(": 4 of 4.") or line.endswith(": 2 of 2."), done.stdout)

    def test_what_is_refused(self):
        for arguments in (["--steps", "3"], ["--programs", "none"], ["--python", "/nowhere"], ["--jobs", "0"]):
            self.assertEqual(table("/nowhere", *arguments).returncode, 2)


@unittest.skipUnless(os.path.exists(PYTHON), f"PyTorch is not in {FRAMEWORKS}: tools/fetch-frameworks")
class LimitsTable(unittest.TestCase):
    def table(self, *arguments):
        return subprocess.run([sys.executable, TABLE.replace("frameworks_table", "limits_table"), "--python", PYTHON, *arguments],
                              capture_output=True, text=True, timeout=1500, stdin=subprocess.DEVNULL)

    def test_a_row(self):
        with tempfile.TemporaryDirectory() as folder:
            chosen = ["--programs", "vit_adam_single", "--parts", "75", "--steps", "12", "--contents-steps", "8", "--seeds", "none", "--kept", folder]
            done = self.table(*chosen, "--jobs", "2")
            again = self.table(*chosen, "--from-kept")
        self.assertEqual(done.returncode, 0, done.stdout[-8000:] + done.stderr[-4000:])
        self.assertIn("Nothing: all runs ended, kept to their limits, and had equal contents.", done.stdout)
        [row] = [line for line in done.stdout.splitlines() if line.startswith("| vit_adam_single")]
        self.assertTrue(row.rstrip().endswith("1 of 1 |"), row)
        self.assertEqual(again.stdout.split("# PyTorch's")[1], done.stdout.split("# PyTorch's")[1])

    def test_what_is_refused(self):
        for arguments in (["--parts", "0"], ["--parts", "75,100"], ["--steps", "3"], ["--programs", "none"]):
            self.assertEqual(self.table(*arguments).returncode, 2)


@unittest.skipUnless(os.path.exists(PYTHON), f"PyTorch is not in {FRAMEWORKS}: tools/fetch-frameworks")
class OpponentsTable(unittest.TestCase):
    def test_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, TABLE.replace("frameworks_table", "opponents_table"), "--python", PYTHON, "--programs", "vit",
                                   "--steps", "16", "--kept", folder], capture_output=True, text=True, timeout=1500, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout[-8000:] + done.stderr[-4000:])
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line.startswith("| vit")]
        self.assertEqual([row[1] for row in rows], ["save_on_cpu", "checkpointing"])
        for row in rows:
            native, offered, held = (float(row[column].replace(",", "")) for column in (2, 4, 6))
            self.assertLess(offered, native)
            self.assertLessEqual(held, offered + 2)


if __name__ == "__main__":
    cases.main()
