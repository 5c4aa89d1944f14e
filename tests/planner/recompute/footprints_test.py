#!/usr/bin/env python3
"""footprints.py prints what its comparisons say, of a generated network."""
import collections
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

import cases
import footprints
import patience

HERE = os.path.dirname(os.path.abspath(__file__))
NETS = os.path.join(HERE, "..", "..", "..", "integration", "workloads", "nets", "nets.py")
ADDED = (0, 1, 5, 20)


class Footprints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.network = os.path.join(self.folder, "vgg11.json")
        subprocess.run([sys.executable, NETS, "vgg11", "--launches", "--batch", "100", "-o", self.network], check=True)

    def printed(self, *arguments):
        """The rows, and the comparison that they are of."""
        done = subprocess.run([sys.executable, footprints.__file__, os.environ["MEMOPTCTL"], "--added", ",".join(map(str, ADDED)), "--seconds", "0.2",
                               "--refine", "1", "--keep", self.folder, "--patience", str(patience.seconds(60)), *arguments, self.network], capture_output=True, text=True, timeout=patience.seconds(200),
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()]
        self.assertEqual(tuple(heads), footprints.HEADS)
        with open(os.path.join(self.folder, "vgg11-footprints.json"), encoding="utf-8") as file:
            return rows, json.load(file)

    def expected(self, table, wanted, percent):
        """By another way than the script's: all plans, in order of their footprints."""
        plans = sorted((plan["footprint"], plan["added_ns"], name) for row in table["limits"] for name, plan in row["plans"].items() if plan and wanted(name))
        return next(((footprint, name) for footprint, added, name in plans if 100 * added <= percent * table["period_ns"] and footprint < table["peak_load"]),
                    (table["peak_load"], "none"))

    def check(self, rows, table):
        self.assertEqual([row[2] for row in rows], [f"{percent} %" for percent in ADDED])
        peak = table["peak_load"]
        for row, percent in zip(rows, ADDED, strict=True):
            ours, _ = self.expected(table, lambda name: name == "memopt", percent)
            theirs, by = self.expected(table, lambda name: not name.startswith("memopt"), percent)
            self.assertEqual(row, ["vgg11", f"{peak / 2**20:.2f}", f"{percent} %", f"{ours / 2**20:.2f}", f"{100 * ours / peak:.1f} %",
                                   f"{theirs / 2**20:.2f}", f"{100 * theirs / peak:.1f} %", by])
        for column in (3, 5):
            falling = [float(row[column]) for row in rows]
            self.assertEqual(falling, sorted(falling, reverse=True))
            self.assertLess(falling[-1], peak / 2**20)

    def test_the_table_is_that_of_its_comparison(self):
        rows, table = self.printed("--limits", "90,70,60")
        self.check(rows, table)
        self.assertGreater(len(table["limits"]), 1 + 3)  # it was refined
        # What was kept, without asking again; a row for all.
        done = subprocess.run([sys.executable, footprints.__file__, "/no/memoptctl", "--added", ",".join(map(str, ADDED)), "--wide",
                               os.path.join(self.folder, "vgg11-footprints.json")], capture_output=True, text=True, timeout=patience.seconds(60), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        _, _, (name, peak, *cells) = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()]
        self.assertEqual((name, peak), ("vgg11", f"{table['peak_load'] / 2**20:.0f}"))
        self.assertEqual(cells, [f"{row[4][:-2]} / {row[6][:-2]}" for row in rows])

    def test_with_swaps(self):
        rows, table = self.printed("--limits", "70", "--swap", "a100-40g", "--refine", "0")
        self.check(rows, table)
        self.assertEqual(len(table["limits"]), 2)  # of 100 %, too
        self.assertIn("bytes_out", table["limits"][1]["plans"]["memopt"])

    def test_names(self):
        self.assertEqual(footprints.named("/a/BERT-256/kernels.config.gz"), "BERT-256")
        self.assertEqual(footprints.named("dtr/lstm-128.log.gz"), "lstm-128")
        self.assertEqual([footprints.named(name) for name in ("nets:vgg11@100", "dtr:lstm-128", "g10:BERT-256")], ["vgg11@100", "lstm-128", "BERT-256"])

    def test_instances_by_name(self):
        shared = os.path.join(self.folder, "shared")
        for path in ("dtr/b.log.gz", "dtr/a.log.gz", "dtr/README.md", "g10/BERT/kernels.config.gz", "g10/LICENCE"):
            os.makedirs(os.path.dirname(os.path.join(shared, path)), exist_ok=True)
            with open(os.path.join(shared, path), "w", encoding="ascii"):
                pass
        networks = ["nets:" + name for name in footprints.NETWORKS]
        self.assertEqual(footprints.all_instances(shared), ["dtr:a", "dtr:b", "g10:BERT", *networks])
        self.assertEqual(footprints.path_of("dtr:a", shared, self.folder), os.path.join(shared, "dtr", "a.log.gz"))
        self.assertEqual(footprints.path_of("g10:BERT", shared, self.folder), os.path.join(shared, "g10", "BERT", "kernels.config.gz"))
        self.assertEqual(footprints.path_of("dtr/a.log.gz", None, self.folder), "dtr/a.log.gz")
        with open(footprints.path_of("nets:vgg11@100", None, self.folder), encoding="ascii") as ours, open(self.network, encoding="ascii") as theirs:
            self.assertEqual(ours.read(), theirs.read())
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(footprints.all_instances(None), networks)
        self.assertIn("MEMOPT_SHARED, which is not set: left out", said.getvalue())

    def test_several_at_a_time_in_order(self):
        _, table = self.printed("--limits", "70", "--refine", "0")
        done = subprocess.run([sys.executable, footprints.__file__, os.environ["MEMOPTCTL"], "--added", "20", "--limits", "70", "--refine", "0", "--seconds", "0.2", "--jobs", "3",
                               "nets:vgg11@50", self.network, "nets:vgg11@20"], capture_output=True, text=True, timeout=patience.seconds(200), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[2:]]
        self.assertEqual([row[0] for row in rows], ["vgg11@50", "vgg11", "vgg11@20"])
        self.assertEqual(rows[1][1], f"{table['peak_load'] / 2**20:.2f}")
        self.assertEqual(sorted(rows, key=lambda row: float(row[1])), [rows[2], rows[0], rows[1]])

    def test_who_takes_long_is_not_waited_for_nor_asked_again(self):
        """A program in memoptctl's place: hangs without end in one strategy within less than half; adds too much in another."""
        program, asked = os.path.join(self.folder, "memoptctl"), os.path.join(self.folder, "asked")
        with open(program, "w", encoding="ascii") as file:
            file.write(f"""#!{sys.executable}
import json, sys, time
arguments = sys.argv
limit = arguments[arguments.index("--limits") + 1]
size = int(10 * float(limit[:-1])) if limit.endswith("%") else int(limit)
names = arguments[arguments.index("--strategies") + 1].split(",") if "--strategies" in arguments else ["memopt", "hangs", "quick", "worse"]
with open({asked!r}, "a") as file:
    file.write("".join(f"{{name}} {{size}}\\n" for name in names))
if "hangs" in names and size < 500:
    time.sleep(3600)
added = {{"memopt": 1000 - size, "hangs": 1000 - size, "quick": 1200 - size, "worse": 10 * (1000 - size)}}
plans = {{name: {{"added_ns": added[name], "footprint": size}} for name in names}}
with open(arguments[arguments.index("--json") + 1], "w") as file:
    json.dump({{"peak_load": 1000, "period_ns": 10000, "limits": [{{"limit": size, "plans": plans}}]}}, file)
""")
        os.chmod(program, 0o755)
        done = subprocess.run([sys.executable, footprints.__file__, program, "--added", "7,8", "--limits", "80,60,40,30", "--refine", "0", "--patience", str(patience.seconds(1)), "file"],
                              capture_output=True, text=True, timeout=patience.seconds(60), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [[cell.strip() for cell in line.strip("|").split("|")][4:] for line in done.stdout.splitlines()[2:]]
        self.assertEqual(rows, [["30.0 %", "0.00", "60.0 %", "hangs"], ["30.0 %", "0.00", "40.0 %", "quick"]])
        with open(asked, encoding="ascii") as file:
            counts = collections.Counter(file.read().split("\n")[:-1])
        self.assertEqual({line for line in counts if line.startswith("memopt")}, {f"memopt {size}" for size in (1000, 800, 600, 400, 300)})
        self.assertEqual({line for line in counts if line.startswith("hangs")}, {f"hangs {size}" for size in (1000, 800, 600, 400)})
        self.assertEqual({line for line in counts if line.startswith("worse")}, {f"worse {size}" for size in (1000, 800, 600)})
        self.assertEqual(counts["hangs 400"], 2)  # with the others, and by itself

    def test_what_is_refused(self):
        for arguments, message in (((self.network, "--added", "-1"), "expected percents, none below 0"), ((os.path.join(self.folder, "nothing"),), "nothing"),
                                   ((self.network, "--refine", "-1"), "invalid choice"), ((), "expected instances, or --all"), ((self.network, "--all"), "expected instances, or --all"),
                                   (("nets:vgg12@9",), "vgg12"), (("nets:vgg11",), "expected nets:NAME@BATCH"), (("nets:vgg11@0",), "0 is not a number above 0"),
                                   (("dtr:none", "--shared", "/nowhere"), "there is no /nowhere/dtr/none.log.gz"),
                                   ((self.network, self.network, "--keep", self.folder), "several files are called vgg11")):
            done = subprocess.run([sys.executable, footprints.__file__, os.environ["MEMOPTCTL"], *arguments], capture_output=True, text=True,
                                  timeout=patience.seconds(60), check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    cases.main()
