#!/usr/bin/env python3
"""paper_tables.py still prints its tables, of small instances, and what it prints holds together."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import cases
import paper_tables
import patience


def tables(*arguments):
    """The rows of each paper, by the heading."""
    done = subprocess.run([sys.executable, paper_tables.__file__, *arguments], capture_output=True, text=True, timeout=patience.seconds(280), check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    found = {}
    for text in done.stdout.split("### ")[1:]:
        heading, *lines = text.splitlines()
        heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
        found[heading] = [dict(zip(heads, row, strict=True)) for row in rows]
    return found


def percents(cell):
    """Of what is added; infinite where there is no plan."""
    return [float("inf") if "no plan" in text else float(text) for text in re.findall(r"\+([\d.]+) %|(no plan)", cell) for text in text if text]


class PaperTables(unittest.TestCase):
    def test_small_instances(self):
        found = tables("--quick")
        self.assertEqual(list(found), [heading for heading, _ in paper_tables.PAPERS.values()])
        chen, monet, dtr, checkmate, zhang, sekiyama = found.values()
        for rows in found.values():
            for row in rows:
                self.assertEqual(tuple(row), paper_tables.HEADS)
                self.assertTrue(all(row.values()), row)
                if row["why they differ"] != "as above":
                    self.assertEqual(row["ours"] == "-", row["why they differ"].startswith("not reproduced: "), row)
        self.assertIn("left out by --quick", dtr[0]["why they differ"])
        self.published(dtr[1:], zhang)
        self.assertEqual(sum(row["ours"] != "-" for row in chen), 3)
        self.assertEqual(len(checkmate), 1)
        self.assertRegex(checkmate[0]["published algorithm here"], r"^Checkmate's programme: (too large here, more than \d+ columns|not in this build); ")
        # Nothing adds less than the bound; less room costs more.
        added = []
        for row in monet:
            ours, bound = percents(row["ours"])
            self.assertLessEqual(bound, ours + 0.01)
            self.assertLessEqual(bound, percents(row["published algorithm here"])[0] + 0.01)
            added.append(ours)
        self.assertEqual(len(added), 4)
        self.assertEqual(added, sorted(added))
        self.assertLess(added[0], 20)
        printed, smart_pool, ours = (float(re.search(r"1\.\d+", zhang[0][head]).group()) for head in ("printed", "published algorithm here", "ours"))
        self.assertEqual(printed, 1.013)
        self.assertLessEqual(1, ours)
        self.assertLessEqual(ours, smart_pool)
        self.assertLess(smart_pool, 1.05)
        self.sekiyama(sekiyama)

    def sekiyama(self, rows):
        """Ours needs no more than theirs, theirs no more than pools, of which one that cuts and merges needs no more than the other."""
        loads, less = rows[:2], [row for row in rows if "% less" in row["ours"]]
        for row, printed in zip(loads, ("10,169,344 B", "12,202,496 B"), strict=True):
            for head in ("printed", "published algorithm here", "ours"):
                self.assertIn(printed, row[head])
        self.assertEqual(len(less), 4)
        for row in less:
            exact, cut = (float(number) for number in re.findall(r"([\d.]+) MiB \(", row["set beside"]))
            theirs, ours = (float(re.match(r"([\d.]+) MiB", row[head]).group(1)) for head in ("published algorithm here", "ours"))
            self.assertLessEqual(ours, theirs)
            self.assertLessEqual(theirs, cut)
            self.assertLessEqual(cut, exact)
            of_exact, of_cut = (float(number) for number in re.search(r"([\d.]+) % and ([\d.]+) % less", row["ours"]).groups())
            self.assertAlmostEqual(of_exact, 100 * (1 - ours / exact), delta=0.2)
            self.assertAlmostEqual(of_cut, 100 * (1 - ours / cut), delta=0.2)
        pools = [tuple(int(number) for number in pair) for pair in re.findall(r"(\d+), or (\d+) giving back \(", rows[-1]["set beside"])]
        self.assertEqual(len(pools), 2)
        theirs, ours = (int(re.match(r"batch (\d+)", rows[-1][head]).group(1)) for head in ("published algorithm here", "ours"))
        for keeping, giving_back in pools:
            self.assertGreater(keeping, 0)
            self.assertGreaterEqual(giving_back, keeping)
            self.assertGreaterEqual(theirs, giving_back)
        self.assertGreaterEqual(ours, theirs)

    def test_the_largest_that_fits(self):
        for most in (0, 1, 2, 7, 100, 163):
            for guess in (0, 1, 2, 50, 99, 100, 101, 300):
                asked = []

                def fits(number, most=most, asked=asked):
                    asked.append(number)
                    return number <= most
                self.assertEqual(paper_tables.largest(fits, guess), most)
                self.assertGreaterEqual(min(asked), 1)
                if guess == most:
                    self.assertLessEqual(len(asked), 2)

    def published(self, dtr, zhang):
        """Of what is published and not shipped, as far as it is there."""
        if os.path.isdir(os.path.join(paper_tables.SHARED, "dtr")):
            self.assertEqual(len(dtr), 2)
            for row in dtr[1:]:
                ours, bound = percents(row["ours"])
                self.assertLessEqual(bound, ours + 0.01)
                self.assertLessEqual(bound, percents(row["published algorithm here"])[0] + 0.01)
        if os.path.isdir(os.path.join(paper_tables.SHARED, "traces")):
            (figure,) = [row for row in zhang if row["printed"].startswith("Figure 9")]
            ours, theirs = (float(re.match(r"([\d.]+) ms", figure[head]).group(1)) for head in ("ours", "published algorithm here"))
            self.assertLess(ours, theirs)

    @unittest.skipUnless(os.path.isdir(os.path.join(paper_tables.SHARED, "dtr")) and os.path.isdir(os.path.join(paper_tables.SHARED, "traces")),
                         "MEMOPT_SHARED names no folder with published logs and traces: rows of them are not looked at")
    def test_rows_of_what_is_published_are_looked_at(self):
        self.assertTrue(os.listdir(os.path.join(paper_tables.SHARED, "dtr")))

    def test_what_is_missing_is_said(self):
        (rows,) = tables("--rows", "dtr", "--shared", "/nonexistent").values()
        self.assertEqual([(row["ours"], row["why they differ"]) for row in rows],
                         [("-", "not reproduced: the log is not there"), ("-", "as above"), ("-", "as above")])
        done = subprocess.run([sys.executable, paper_tables.__file__, "--rows", "dtr,none"], capture_output=True, text=True, check=False)
        self.assertIn("unknown rows 'none'", done.stderr)

    def test_what_stays(self):
        iteration = {"ops": [["m", 1, 0], ["f", 2, 0, 1], ["m", 2, 0], ["r", 0, 0, 0], ["f", 1, 0]],
                     "blocks": [{"id": 0, "size": 10, "persistent": True}, {"id": 1, "size": 100}, {"id": 2, "size": 1000}]}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "iteration.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(iteration, file)
            self.assertEqual(paper_tables.what_stays(path), 1010)


if __name__ == "__main__":
    cases.main()
