#!/usr/bin/env python3
"""memoptctl solve, from outside: what it prints and writes, what it says to bad input, its exit codes.

usage: solve_test.py MEMOPTCTL [unittest arguments]
"""
import csv
import gzip
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import unittest

import cases
import interrupts
import page_data
import patience
import scratch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "planner", "layout", "portfolio"))
import large_table  # noqa: E402

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "data", "layout")
A = os.path.join(DATA, "minimalloc", "A.1048576.csv")
RESNET = os.path.join(DATA, "idealloc", "resnet50.csv.gz")
FOUND, ERROR, BAD, INFEASIBLE, NOTHING, DOES_NOT_HOLD = range(6)
SMALL = "id,lower,upper,size\na,0,2,3\nb,1,3,4\nc,2,4,3\n"


def run(*arguments, stdin=""):
    if isinstance(stdin, str):
        stdin = stdin.encode()
    done = subprocess.run([MEMOPTCTL, "solve", *arguments], input=stdin, capture_output=True, timeout=patience.seconds(100))
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


def height_of(rows):
    """Of a placement, checked by comparing all pairs."""
    def live(row):
        times, begin = [], int(row["lower"])
        for gap in (row.get("gaps") or "").split():
            from_, to = map(int, gap.split("-"))
            times.append((begin, from_))
            begin = to
        return [*times, (begin, int(row["upper"]))]

    placed = [(int(r["offset"]), int(r["offset"]) + int(r["size"]), live(r)) for r in rows]
    for i, (bottom, top, when) in enumerate(placed):
        assert bottom % int(rows[i].get("alignment") or 1) == 0 or rows[i].get("fixed"), rows[i]
        assert int(rows[i].get("fixed") or bottom) == bottom, rows[i]
        for other_bottom, other_top, other_when in placed[:i]:
            if bottom < other_top and other_bottom < top:
                assert not any(a < d and c < b for a, b in when for c, d in other_when), rows[i]
    return max(top for _, top, _ in placed)


class Solve(scratch.InFolder):
    def test_prints_what_was_asked_for(self):
        done = run("-", stdin=SMALL)
        self.assertEqual(done.returncode, FOUND, done.stderr)
        lines = dict(line.split(None, 1) if not line.startswith("lower bound") else ("lower bound", line.split()[2])
                     for line in done.stdout.splitlines())
        self.assertEqual(lines["buffers"], "3")
        self.assertEqual(lines["lower bound"], "7")
        self.assertEqual(lines["height"], "7")
        self.assertEqual(lines["ratio"], "1.000000")
        self.assertEqual(lines["optimal"], "yes")
        self.assertRegex(lines["time"], r"^\d+\.\d+ s, reading \d+\.\d+ s$")
        self.assertEqual(done.stderr, "")

    def test_json(self):
        done = run("-", "--json", stdin=SMALL)
        report = json.loads(done.stdout)
        self.assertEqual((report["buffers"], report["lower_bound"], report["height"], report["ratio"]), (3, 7, 7, 1.0))
        self.assertEqual((report["optimal"], report["infeasible"], report["capacity"]), (True, False, None))
        self.assertGreaterEqual(report["seconds"], 0)

    def test_output_is_read_again_and_holds(self):
        for source in (A, RESNET):
            out = self.path("out.csv")
            done = run(source, "--output", out, "--time-limit", "0.2", "--json")
            self.assertEqual(done.returncode, FOUND, done.stderr)
            report = json.loads(done.stdout)
            with open(out) as file:
                rows = list(csv.DictReader(file))
            self.assertEqual(len(rows), report["buffers"])
            self.assertEqual(height_of(rows), report["height"])
            checked = run("--check", out, "--json")
            self.assertEqual(checked.returncode, FOUND, checked.stdout)
            self.assertEqual(json.loads(checked.stdout)["height"], report["height"])
            # MiniMalloc's columns, in MiniMalloc's order.
            with open(out) as file:
                self.assertEqual(file.readline(), "id,lower,upper,size,offset\n")

    def test_all_extensions_come_back(self):
        text = ("size,id,gaps,lower,upper,alignment,fixed\n10,w 1,2-5 7-8,0,9,4,\n10,x,,2,5,4,\n3,y,,0,9,1,20\n5,z,3-4,1,9,8,\n")
        for solver in ("auto", "offset-lines", "smartpool-best-fit", "smartpool-first-fit", "online-best-fit", "power-of-two"):
            done = run("-", "--output", "-", "--solver", solver, "--time-limit", "0.1", stdin=text)
            self.assertEqual(done.returncode, FOUND, done.stderr)
            rows = list(csv.DictReader(done.stdout.splitlines()))
            self.assertEqual([row["id"] for row in rows], ["w 1", "x", "y", "z"])
            self.assertEqual(rows[0]["gaps"], "2-5 7-8")
            self.assertEqual(rows[2]["offset"], "20")
            self.assertRegex(done.stderr, rf"height +{height_of(rows)}\n")
            checked = run("--check", "-", stdin=done.stdout)
            self.assertEqual(checked.returncode, FOUND, checked.stdout)

    def test_reads_packed_files_and_standard_input(self):
        packed = gzip.compress(SMALL.encode())
        for arguments, stdin in ((["-"], SMALL), (["-"], packed), ([self.path("a.csv", SMALL)], ""),
                                 ([self.path("a.csv.gz", packed)], ""), ([self.path("misnamed.csv", packed)], "")):
            done = run(*arguments, "--json", stdin=stdin)
            self.assertEqual(done.returncode, FOUND, done.stderr)
            self.assertEqual(json.loads(done.stdout)["height"], 7)

    def test_capacity(self):
        self.assertEqual(run("-", "--capacity", "7", stdin=SMALL).returncode, FOUND)
        done = run("-", "--capacity", "6", stdin=SMALL)
        self.assertEqual(done.returncode, INFEASIBLE)
        self.assertIn("proven that nothing fits", done.stdout)
        # 12 bytes of load at most, but power-of-two rounding needs more.
        text = "id,lower,upper,size\na,0,9,5\nb,0,9,5\n"
        out = self.path("none.csv")
        done = run("-", "--capacity", "12", "--solver", "power-of-two", "--json", "--output", out, stdin=text)
        self.assertEqual(done.returncode, NOTHING)
        report = json.loads(done.stdout)
        self.assertEqual((report["height"], report["infeasible"]), (None, False))
        self.assertIn("nothing that fits into the capacity", report["why_none"])
        self.assertFalse(os.path.exists(out))

    def test_bad_rows_are_named(self):
        header = "id,lower,upper,size\na,0,2,3\n"
        for row, reason in (("b,-1,2,3", "line 3: lower is negative: -1"), ("b,1,2,-3", "line 3: size is negative: -3"),
                            ("b,2,2,3", "line 3: lower must be below upper, but there is 2 and 2"),
                            ("b,1,2,9223372036854775808", "line 3: size is 2^63 or more: 9223372036854775808"),
                            ("b,1,2,9223372036854775807", "line 3: the sizes up to here, aligned, add up to 2^63 or more"),
                            ("a,1,2,3", "line 3: the id 'a' was already in line 2"),
                            ("b,1,2", "line 3: it has 3 columns, the header 4"), ("b,1,2,x", "line 3: size is not an integer: 'x'")):
            done = run("-", stdin=header + row + "\n")
            self.assertEqual(done.returncode, BAD, row)
            self.assertEqual(done.stderr, f"memoptctl: standard input: {reason}\n")
            self.assertEqual(done.stdout, "")
        done = run(self.path("bad.csv", "id,lower,upper,weight\n"))
        self.assertEqual(done.returncode, BAD)
        self.assertIn("bad.csv: line 1: unknown column 'weight'", done.stderr)

    def test_bad_files(self):
        self.assertEqual(run("-").returncode, BAD)
        done = run(self.path("missing.csv"))
        self.assertEqual((done.returncode, "cannot be opened: No such file" in done.stderr), (ERROR, True), done.stderr)
        done = run(self.folder)
        self.assertEqual((done.returncode, "is a folder" in done.stderr), (ERROR, True), done.stderr)
        packed = gzip.compress(SMALL.encode() * 100)
        done = run(self.path("cut.csv.gz", packed[:len(packed) // 2]))
        self.assertEqual((done.returncode, "ends within its packed data" in done.stderr), (ERROR, True), done.stderr)
        done = run("-", "--output", os.path.join(self.folder, "no", "where.csv"), stdin=SMALL)
        self.assertEqual((done.returncode, "cannot be written" in done.stderr), (ERROR, True), done.stderr)

    def test_wrong_use(self):
        for arguments in ([], ["-", "--solver", "none"], ["-", "--capacity", "-5"], ["-", "--time-limit", "-1"], ["-", "--threads", "0"],
                          ["-", "--nothing"], ["-", "--compare", DATA], ["--compare", DATA, "--solvers", "none"],
                          ["--compare", self.folder], ["-", "--check"], ["-", "--keep-offsets"]):
            done = run(*arguments, stdin=SMALL)
            self.assertEqual(done.returncode, BAD, f"{arguments}: {done.stdout}{done.stderr}")
            self.assertNotEqual(done.stderr, "", arguments)
        self.assertIn("there is no solver none", run("-", "--solver", "none", stdin=SMALL).stderr)
        self.assertIn("there is no solver offset-line, did you mean offset-lines?; memoptctl solve --list", run("-", "--solver", "offset-line", stdin=SMALL).stderr)

    def test_check_says_what_does_not_hold(self):
        text = "id,lower,upper,size,alignment,offset\na,0,2,3,1,0\nb,1,3,4,2,{}\n"
        self.assertEqual(run("--check", "-", stdin=text.format(4)).returncode, FOUND)
        done = run("--check", "-", stdin=text.format(2))
        self.assertEqual(done.returncode, DOES_NOT_HOLD)
        self.assertIn("line 2 (id a) and line 3 (id b) share the bytes [2, 3) at time 1", done.stdout)
        done = run("--check", "-", "--json", stdin=text.format(5))
        self.assertEqual(done.returncode, DOES_NOT_HOLD)
        self.assertIn("not aligned to 2", json.loads(done.stdout)["fault"])
        done = run("--check", "-", "--capacity", "7", stdin=text.format(4))
        self.assertIn("above the capacity 7", done.stdout)

    def test_offsets_in_the_input_are_kept_only_when_asked(self):
        text = "id,lower,upper,size,offset\na,0,2,3,100\nb,1,3,4,0\n"
        self.assertEqual(json.loads(run("-", "--json", stdin=text).stdout)["height"], 7)
        self.assertEqual(json.loads(run("-", "--json", "--keep-offsets", stdin=text).stdout)["height"], 103)
        done = run("-", "--keep-offsets", stdin=text.replace("100", "2"))
        self.assertEqual(done.returncode, BAD)
        self.assertIn("share the bytes [2, 4)", done.stderr)

    def test_plot(self):
        out = self.path("plot.html")
        self.assertEqual(run("-", "--plot", out, stdin=SMALL).returncode, FOUND)
        data = page_data.read(out)
        drawn = data["iteration"]["plans"][0]["drawn"]["blocks"]
        self.assertEqual(len(drawn["block"]), 3)
        self.assertTrue(data["plain_units"])
        height = max(offset + data["iteration"]["blocks"]["bytes"][block] for offset, block in zip(drawn["offset"], drawn["block"]))
        self.assertEqual(height, json.loads(run("-", "--json", stdin=SMALL).stdout)["height"])
        done = run("-", "--plot", self.path("plot.SVG"), stdin=SMALL)
        self.assertEqual(done.returncode, BAD)
        self.assertIn("--plot writes a page for a browser (HTML)", done.stderr)

    def test_plot_of_names_and_pieces(self):
        out = self.path("plot.html")
        self.assertEqual(run("-", "--plot", out, stdin="id,lower,upper,size,gaps\n<a&b>,100,110,5,102-106\nsecond,100,110,5,\n").returncode, FOUND)
        data = page_data.read(out)
        drawn = data["iteration"]["plans"][0]["drawn"]["blocks"]
        self.assertEqual(data["iteration"]["blocks"]["name"], ["<a&b>", "second"])
        self.assertEqual(sorted(zip(drawn["block"], drawn["from"], drawn["to"])), [(0, 0, 2), (0, 6, 10), (1, 0, 10)])
        self.assertEqual((data["begins_at"], data["iteration"]["peak"]["load"], sorted(data["iteration"]["peak"]["blocks"])), (100, 10, [0, 1]))

    def test_plot_of_many_buffers_stays_small(self):
        generator = random.Random(3)
        rows = [f"{i},{i},{i + generator.randint(1, 500)},{generator.randint(1, 1 << 20)}" for i in range(60000)]
        out = self.path("plot.html")
        done = run("-", "--plot", out, "--solver", "offset-lines", stdin="id,lower,upper,size\n" + "\n".join(rows))
        self.assertEqual(done.returncode, FOUND, done.stderr)
        self.assertLess(os.path.getsize(out), 5 << 20)
        self.assertEqual(len(page_data.read(out)["iteration"]["blocks"]["bytes"]), 60000)

    def test_the_same_seed_gives_the_same(self):
        outputs = {run(A, "--solver", "smartpool-best-fit", "--seed", "3", "--threads", n, "--output", "-").stdout for n in "123"}
        self.assertEqual(len(outputs), 1)

    def test_no_time_is_enough_for_a_first_layout(self):
        done = run("-", "--time-limit", "0.000001", stdin=large_table.random_lifetimes(20_000))
        self.assertEqual(done.returncode, FOUND, done.stderr)
        self.assertIn("s, in which no more was finished than a first layout", done.stdout)
        self.assertLess(float(re.search(r"ratio +([\d.]+)", done.stdout).group(1)), 1.06)
        self.assertNotIn("no more", run("-", "--solver", "online-best-fit", stdin=SMALL).stdout)

    def test_an_epoch_is_laid_out_as_its_step(self):
        """A step with blocks that live over its end."""
        source = random.Random(2)
        lines = ["id,lower,upper,size,gaps"]
        for number in range(300):
            lower, upper = sorted(source.sample(range(1, 600), 2))
            crosses = number % 10 == 0
            lines.append(f"{number},{0 if crosses else lower},{600 if crosses else upper},{source.randrange(1, 1 << 20)},"
                         + (f"{lower}-{upper}" if crosses else ""))
        step = json.loads(run("-", "--json", "--time-limit", "1", stdin="\n".join(lines)).stdout)
        epoch = json.loads(run("-", "--json", "--time-limit", "2", stdin=large_table.epoch_of("\n".join(lines))).stdout)
        self.assertGreater(epoch["buffers"], 19 * step["buffers"])
        self.assertEqual(epoch["by"], "repetition")
        self.assertLess(epoch["ratio"], step["ratio"] + 0.002)

    def test_an_interrupt_ends_the_search_with_what_was_found(self):
        process = subprocess.Popen([MEMOPTCTL, "solve", os.path.join(DATA, "minimalloc", "D.1048576.csv"), "--time-limit", "0", "--json"],
                                   stdout=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        interrupts.wait_until_caught(process.pid, "memoptctl")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=patience.seconds(60))
        self.assertEqual(process.returncode, FOUND)
        self.assertGreaterEqual(json.loads(output)["height"], 986112)

    def test_list(self):
        listed = run("--list")
        self.assertEqual(listed.returncode, FOUND)
        names = [entry["name"] for entry in json.loads(run("--list", "--json").stdout)]
        self.assertEqual(names[0], "auto")
        self.assertIn("integer-program", names)
        for name in names:
            self.assertRegex(listed.stdout, rf"(?m)^{name} ")

    def integer_program(self):
        entry, = (entry for entry in json.loads(run("--list", "--json").stdout) if entry["name"] == "integer-program")
        if entry["missing"]:
            self.skipTest(f"integer-program: {entry['missing']}")

    def test_integer_program(self):
        self.integer_program()
        done = run("-", "--solver", "integer-program", "--json", stdin=SMALL)
        report = json.loads(done.stdout)  # nothing of CBC's in it
        self.assertEqual((done.returncode, report["height"], report["optimal"]), (FOUND, 7, True))
        done = run("-", "--solver", "integer-program", "--capacity", "6", stdin=SMALL)
        self.assertEqual(done.returncode, INFEASIBLE)
        done = run(RESNET, "--solver", "integer-program")
        self.assertEqual(done.returncode, NOTHING)
        self.assertIn("pairs of buffers", done.stdout)

    def test_compare(self):
        self.path("b.csv", SMALL)
        self.path("a.csv.gz", gzip.compress(b"id,lower,upper,size\na,0,2,3\nb,1,3,5\nc,2,4,3\nd,3,5,5\ne,0,5,1\n"))
        names = ["smartpool-best-fit", "power-of-two"]
        done = run("--compare", self.folder, "--solvers", ",".join(names), "--json")
        self.assertEqual(done.returncode, FOUND, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual([row["file"] for row in report["instances"]], ["a.csv.gz", "b.csv"])
        for i, name in enumerate(names):
            ratios = [row["results"][i]["ratio"] for row in report["instances"]]
            self.assertEqual({row["results"][i]["solver"] for row in report["instances"]}, {name})
            summary = report["summary"][i]
            self.assertEqual((summary["solver"], summary["found"]), (name, 2))
            self.assertTrue(math.isclose(summary["geomean"], math.sqrt(ratios[0] * ratios[1])))
        table = run("--compare", self.folder, "--solvers", "smartpool-best-fit")
        self.assertRegex(table.stdout, r"(?m)^b\.csv +3 +7 +1\.000000\* ")
        self.assertRegex(table.stdout, r"(?m)^geometric mean")

    def test_compare_goes_on_after_a_bad_file(self):
        self.path("a.csv", "nonsense\n")
        self.path("b.csv", SMALL)
        done = run("--compare", self.folder, "--solvers", "offset-lines")
        self.assertEqual(done.returncode, BAD)
        self.assertIn("a.csv: line 1", done.stderr)
        self.assertRegex(done.stdout, r"(?m)^b\.csv ")


if __name__ == "__main__":
    cases.main()
