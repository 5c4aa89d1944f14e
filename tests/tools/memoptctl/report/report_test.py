#!/usr/bin/env python3
"""`memoptctl report`: what is in the page, and what it says where there is something wrong.

usage: report_test.py MEMOPTCTL [unittest arguments]
"""
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import unittest

import cases
import patience
import page_data
import scratch
import traces

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)
RECORDINGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "data", "recordings")
MIB = 1 << 20


def recording(name):
    return os.path.join(RECORDINGS, f"{name}.rec")


def run(*arguments, **options):
    return subprocess.run([MEMOPTCTL, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience.seconds(100), **options)


class Case(scratch.InFolder):
    def setUp(self):
        super().setUp()
        self.page = self.path("report.html")

    def report(self, file, *arguments, code=0):
        done = run("report", file, "-o", self.page, *(arguments or ("--time-budget", "0")))
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        with open(self.page, encoding="utf-8") as page:
            self.text = page.read()
        self.stderr = done.stderr
        return page_data.of(self.text)


def table(text):
    return dict(re.findall(r"(?m)^ *(\S.*?)  +(\S.*)$", text))


def in_bytes(text):
    return int(re.search(r"\((\d+) bytes\)", text).group(1))


class Numbers(Case):
    """Those of `plan` and `show`."""

    def test_are_those_of_plan(self):
        for name in ("gpt", "resnet50_sgd", "lstm_sgd"):
            with self.subTest(name):
                planned = self.report(recording(name))["planned"]
                rows = table(run("plan", recording(name)).stdout)
                for row, key in {"peak load": "peak_load", "slab": "slab", "lower bound of the slab": "lower_bound", "footprint": "footprint"}.items():
                    self.assertEqual(planned[key], in_bytes(rows[row]), row)
                self.assertEqual(str(planned["operations"]), rows["operations per iteration"])
                self.assertEqual(f"record {planned['found_at']} of {page_data.of(self.text)['program']['records']}", rows["iteration found at"])

    def test_are_those_of_show(self):
        data = self.report(recording("gpt"))
        shown = json.loads(run("show", "--json", recording("gpt")).stdout)
        text = run("show", recording("gpt")).stdout
        self.assertEqual(data["program"]["records"], shown["records"])
        for key in ("malloc", "free", "launch", "copy", "memset"):
            named = {"malloc": "mallocs", "free": "frees", "launch": "launches", "copy": "copies", "memset": "memsets"}[key]
            self.assertRegex(text, rf"(?m)^ +{data['program'][named]}  {key}$")
        self.assertRegex(text, rf"in {data['peak']['blocks']} blocks at record {data['peak']['record']};")
        self.assertIn(f"peak load {data['peak']['load'] / MIB / 1024:.1f} GiB", text)

    def test_columns_belong_together(self):
        data = self.report(recording("gpt"))
        iteration, blocks = data["iteration"], data["iteration"]["blocks"]
        count = len(blocks["bytes"])
        for key in ("number", "flags", "stack", "born_ns", "freed_ns", "accesses"):
            self.assertEqual(len(blocks[key]), count, key)
        self.assertEqual(len(blocks["use_start"]), count + 1)
        self.assertEqual(blocks["use_start"][count], len(blocks["use"]))
        self.assertEqual(sum(blocks["bytes"][block] for block in iteration["peak"]["blocks"]), iteration["peak"]["load"])
        drawn = iteration["plans"][0]["drawn"]["blocks"]
        top = max(offset + blocks["bytes"][block] for offset, block in zip(drawn["offset"], drawn["block"]))
        self.assertEqual(top, iteration["plans"][0]["footprint"])
        self.assertLess(max(iteration["steps"]["name"]), len(data["operations"]))
        self.assertEqual(max(data["load"]["most"]), data["peak"]["load"])
        self.assertEqual(iteration["left_out_limits"], 0)

    def test_of_a_plan_within_a_limit_hold(self):
        data = self.report(recording("gpt"), "--time-budget", "2", "--limit", "1000MiB", "--machine", "h200")
        iteration = data["iteration"]
        self.assertIn("h200", iteration["machine"])
        wanted = [plan for plan in iteration["plans"] if plan["wanted"]]
        self.assertEqual([plan["limit"] for plan in wanted], [1000 * MIB])
        self.assertTrue(wanted[0]["feasible"])
        self.assertLessEqual(wanted[0]["footprint"], 1000 * MIB)
        self.assertIn("drawn", wanted[0])
        for plan in iteration["plans"]:
            if plan["feasible"]:
                self.assertAlmostEqual(plan["drawn"]["length_ns"], iteration["period_ns"] + plan["added_ns"], delta=1)


    def test_a_limit_without_a_plan_is_told(self):
        data = self.report(recording("gpt"), "--time-budget", "1", "--limit", "100MiB", code=3)
        self.assertIn("no plan was found within 100.00 MiB", self.stderr)
        wanted = [plan for plan in data["iteration"]["plans"] if plan["wanted"]]
        self.assertEqual([plan["feasible"] for plan in wanted], [False])


class Stacks(Case):
    # Native code down to where the interpreter calls it, and from there on Python's own frames.
    def test_python_in_the_place_of_its_interpreter(self):
        workloads = os.path.join(os.path.dirname(os.path.dirname(MEMOPTCTL)), "workloads")
        program, file = os.path.join(workloads, "train.py"), self.path("train.rec")
        if not os.path.exists(program):
            self.skipTest("the workloads are not built")
        done = run("record", "-o", file, "--sim", "a100-40g", "--", sys.executable, program, "--epochs", "1",
                   env={key: value for key, value in os.environ.items() if not key.startswith("MEMOPT_")})
        self.assertEqual(done.returncode, 0, done.stderr)
        data = self.report(file)
        frames, start = data["frames"], data["stacks"]["start"]
        stacks = [[frames[frame] for frame in data["stacks"]["frame"][start[i]:start[i + 1]]] for i in range(len(start) - 1)]
        deepest = max(stacks, key=len)
        self.assertRegex(deepest[-1], r"^<module> \(.*/train\.py:\d+\)$")
        self.assertRegex(deepest[-2], r"^main \(.*/train\.py:\d+\)$")
        self.assertTrue(any(re.search(r"^Network\.\w+ \(.*/train\.py:\d+\)$", frame) for frame in deepest), deepest)
        self.assertNotRegex("\n".join(frames), r"(?m)^_?Py\w+ |^main \(python")


class Text(Case):
    """What comes from files is text, and never markup."""

    def test_hostile_names_are_escaped(self):
        name = "<img src=x onerror=alert(1)>&\"'.trace"
        trace = "".join(f"{line} {1000 * at}\n" for at, line in enumerate(
            8 * (f"Malloc 0xa0 {MIB}", f"Mutable 0xa0 {MIB}", f"Malloc 0xb0 {2 * MIB}", f"Read 0xa0 {MIB}", f"Free 0xb0 {2 * MIB}", f"Free 0xa0 {MIB}")))
        data = self.report(self.path(name, trace.encode()))
        self.assertEqual(data["file"], name)
        self.assertNotIn("<img", self.text)
        self.assertIn("<title>&lt;img src=x onerror=alert(1)&gt;&amp;&quot;'.trace", self.text)

    def test_the_page_needs_nothing_else(self):
        self.report(recording("lstm_sgd"))
        self.assertNotRegex(self.text, r"(?i)<(script|img|iframe|link|object|embed)[^>]*\b(src|href)=(?!\"data:,)")
        self.assertNotRegex(self.text, r"(?i)url\((?!data:|#)|@import|<base")
        self.assertIn("default-src 'none'", self.text)
        # Each of its parts was put in, and none of them ends its element.
        self.assertNotIn("memopt:", self.text)
        self.assertEqual(len(re.findall(r"</script>", self.text)), 4)


class Files(Case):
    def test_standard_output(self):
        done = run("report", recording("lstm_sgd"), "-o", "-", "--time-budget", "0")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(page_data.of(done.stdout)["file"], "lstm_sgd.rec")

    def test_damaged_recordings_are_shown_as_far_as_they_go(self):
        with open(recording("gpt"), "rb") as file:
            whole = file.read()
        broken = bytearray(whole)
        broken[len(whole) // 2] ^= 1
        for content in (whole[:-100], bytes(broken)):
            data = self.report(self.path("run.rec", content), code=1)
            shown = run("show", self.path("run.rec"))
            self.assertEqual(shown.returncode, 1)
            self.assertEqual(self.stderr, shown.stderr)
            self.assertIn(data["program"]["damage"], shown.stderr)

    def test_foreign_files_are_refused(self):
        for content, expected in ((b"", "empty|nothing|expected|no operation"), (b"\x7fELF" + bytes(1000), "expected|line|text"), (b'{"format": "memopt-plan-1"}', "period")):
            done = run("report", self.path("file", content), "-o", self.page)
            self.assertIn(done.returncode, (1, 2, 4), done.stderr)
            self.assertRegex(done.stderr, expected)

    def test_no_iteration(self):
        data = self.report(self.path("once.trace", f"Malloc 0xa0 {MIB} 0\nMutable 0xa0 {MIB} 1\nFree 0xa0 {MIB} 2\n".encode()), code=4)
        self.assertIsNone(data["iteration"])
        self.assertEqual(data["peak"]["load"], MIB)
        self.assertTrue(data["no_iteration"])
        self.assertIn("no iteration", self.stderr)

    def test_where_it_cant_be_written(self):
        gone = os.path.join(self.folder, "gone", "report.html")
        for out, pattern in ((gone, "cannot be written: No such file"), (self.folder, "Is a directory"), ("/dev/full", "No space left")):
            done = run("report", recording("lstm_sgd"), "-o", out, "--time-budget", "0")
            self.assertEqual(done.returncode, 1, out)
            self.assertRegex(done.stderr, pattern)
        with open("/dev/full", "w") as full:
            done = subprocess.run([MEMOPTCTL, "report", recording("lstm_sgd"), "-o", "-", "--time-budget", "0"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=patience.seconds(60))
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output: cannot be written: No space left", done.stderr)

    def test_the_file_that_is_read_is_not_overwritten(self):
        trace = self.path("a.trace", b"Malloc 0xa0 16 0\n")
        done = run("report", trace, "-o", os.path.join(self.folder, ".", "a.trace"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("the file that is read", done.stderr)
        with open(trace, "rb") as file:
            self.assertEqual(file.read(), b"Malloc 0xa0 16 0\n")

    def test_wrong_use(self):
        for arguments, pattern in ((("--limit", "much"), "--limit: expected bytes"), (("--limit", "0"), "--limit: expected more than 0"), (("--machine", "toaster"), "--machine: "), (("--time-budget", "soon"), "expected a duration from 0s"),
                                   (("--threads", "-1"), "a whole number")):
            done = run("report", recording("lstm_sgd"), "-o", self.page, *arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, pattern)
            self.assertFalse(os.path.exists(self.page))
        self.assertEqual(run("report", recording("lstm_sgd")).returncode, 2)


# Block 5 leaves its place to block 9.
PLAN = {"format": "memopt-plan-1", "name": "<two>", "period": 100000, "limit": 2 * MIB, "machine": {"out_bytes_per_ns": 200, "in_bytes_per_ns": 200},
        "blocks": [{"id": 5, "size": 2 * MIB, "offset": 0, "window": "own", "name": "a&b"}, {"id": 9, "size": 2 * MIB, "offset": 0}],
        "ops": [["m", 5, 0], ["w", 5, 1000], ["x", -1, 2000], ["m", 9, 40000], ["w", 9, 41000], ["f", 9, 50000], ["x", -1, 51000], ["r", 5, 90000],
                ["f", 5, 91000]],
        "swaps": [{"block": 5, "out_after": 1, "in_after": 5, "need": 7}]}
KERNEL = """Kernel ID: {0}, Name: {1}
Parent OP ID:{0}; Name: {1}
Execution Time: 1200000
Input Tensors:
tensor{2} Is weight (global)?: 0, Size in byte: 4194304
Output Tensors:
tensor{3} Is weight (global)?: 0, Size in byte: 4194304
____
"""


def layers(count):
    """Forward and backward of a chain, each layer of which reads what the one before has written: a memopt-plan-2 with launches."""
    blocks = [{"id": i, "size": MIB} for i in range(count + 1)]
    ops, launches, time = [["m", 0, 0], ["w", 0, 0]], [[1, 1]], 1000
    for i in range(1, count):
        ops += [["m", i, time], ["r", i - 1, time], ["w", i, time]]
        launches.append([len(ops) - 2, 2])
        time += 1000
    for i in range(count - 1, -1, -1):
        ops += [["r", i, time], ["f", i, time + 1000]]
        launches.append([len(ops) - 2, 1])
        time += 1000
    return {"format": "memopt-plan-2", "name": "chain", "period": time, "machine": {"out_bytes_per_ns": 1, "in_bytes_per_ns": 1}, "blocks": blocks[:count],
            "ops": ops, "launches": launches}


class Iterations(Case):
    """Files that are one iteration: plans, logs for DTR's simulator, G10's tables."""

    def json(self, name, document):
        return self.path(name, json.dumps(document).encode())

    def drawn(self, data, plan):
        iteration = data["iteration"]
        blocks = iteration["plans"][plan]["drawn"]["blocks"]
        return sorted((int(iteration["blocks"]["number"][block]), phase, offset) for block, phase, offset in zip(blocks["block"], blocks["phase"], blocks["offset"]))

    def test_the_plan_of_a_file_is_shown_as_it_is(self):
        data = self.report(self.json("plan.json", PLAN))
        plans = data["iteration"]["plans"]
        self.assertEqual([(plan["of_file"], plan["swaps"], plan["wanted"], plan["footprint"]) for plan in plans],
                         [(False, False, False, 4 * MIB), (True, True, True, 2 * MIB)])
        self.assertEqual(self.drawn(data, 1), [(5, 0, 0), (5, 0, 0), (5, 1, 0), (5, 2, 0), (9, 0, 0)])
        self.assertEqual(data["iteration"]["blocks"]["name"], ["a&b", ""])
        self.assertEqual((data["peak_load"], data["facts"]), (4 * MIB, "<two> · plan, 9 operations, 2 blocks, 0.100 ms an iteration"))

    def test_an_iteration_without_a_plan_gets_plans(self):
        bare = dict(PLAN, swaps=[], limit=None, blocks=[{"id": 5, "size": 2 * MIB}, {"id": 9, "size": 2 * MIB}])
        data = self.report(self.json("bare.json", bare), "--time-budget", "0.3", "--limit", "50%")
        wanted, = (plan for plan in data["iteration"]["plans"] if plan["wanted"])
        self.assertEqual((wanted["footprint"], wanted["limit"], wanted["of_file"]), (2 * MIB, 2 * MIB, False))

    def test_what_is_computed_again_is_shown(self):
        planned = self.path("planned.json")
        done = run("plan", self.json("chain.json", layers(16)), "--recompute", "--places", "--limit", "60%", "--time-budget", "0.3", "--no-bound", "--json", planned)
        self.assertEqual(done.returncode, 0, done.stderr)
        data = self.report(planned)
        replays = int(re.search(r"(?m)^replays +(\d+) of", done.stdout).group(1))
        self.assertGreater(replays, 0)
        self.assertEqual(list(data["iteration"]["steps"]["kind"]).count(5), replays)
        self.assertGreater(sum(flags & 4 for flags in data["iteration"]["blocks"]["flags"]), 0)
        plan, = data["iteration"]["plans"]
        self.assertTrue(plan["of_file"])
        self.assertLessEqual(plan["footprint"], 0.6 * 16 * MIB)
        self.assertEqual(data["peak_load"], 16 * MIB)

    def test_logs_and_tables(self):
        log = [{"INSTRUCTION": "ANNOTATE", "ANNOTATION": "START"}]
        for name, arguments in (("a", []), ("b", ["a"]), ("c", ["b"])):
            log += [{"INSTRUCTION": "CALL", "NAME": "op", "ARGS": arguments, "RESULT": [name], "TIME": "1000000"}, {"INSTRUCTION": "MEMORY", "MEMORY": str(MIB)},
                    {"INSTRUCTION": "ALIAS", "ALIAS": "-1"}]
        log += [{"INSTRUCTION": "RELEASE", "NAME": name} for name in "abc"]
        for path, load, times in ((self.path("run.log", "".join(json.dumps(line) + "\n" for line in log).encode()), 3 * MIB, "the log's; calls one after the other"),
                                  (self.path("kernels.config", (KERNEL.format(0, "One", 1, 2) + KERNEL.format(1, "Two", 2, 3)).encode()), 8 * MIB,
                                   "the table's, cycles at 1.2 GHz; kernels one after the other")):
            data = self.report(path)
            self.assertEqual((data["iteration"]["peak"]["load"], data["iteration"]["times"]), (load, times))
            self.assertEqual(data["iteration"]["plans"][0]["footprint"], load)

    def test_what_does_not_hold_is_told(self):
        broken = dict(PLAN, swaps=[{"block": 5, "out_after": 1, "in_after": 7, "need": 8}])
        done = run("report", self.json("broken.json", broken), "-o", self.page)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"broken\.json: the plan in it does not hold: ")
        load = dict(PLAN, layout=False, swaps=[], blocks=[{"id": 5, "size": 2 * MIB}, {"id": 9, "size": 2 * MIB}])
        data = self.report(self.json("load.json", load), code=4)
        self.assertIn("its blocks have no addresses", data["no_iteration"])


class Long(Case):
    def test_an_interrupt_keeps_what_there_is(self):
        process = subprocess.Popen([MEMOPTCTL, "report", recording("gpt"), "-o", self.page, "--time-budget", "600"], stderr=subprocess.PIPE, text=True)
        time.sleep(patience.seconds(1))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=patience.seconds(60))
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("interrupted", errors)
        with open(self.page) as page:
            self.assertTrue(page_data.of(page.read())["iteration"]["interrupted"])

    def test_progress_is_one_line_of_a_terminal(self):
        lead, end = pty.openpty()
        process = subprocess.Popen([MEMOPTCTL, "report", recording("gpt"), "-o", self.page, "--time-budget", "4"], stderr=end)
        os.close(end)
        shown = b""
        while True:
            try:
                read = os.read(lead, 4096)
            except OSError:  # the other end was closed
                break
            if not read:
                break
            shown += read
        os.close(lead)
        self.assertEqual(process.wait(patience.seconds(60)), 0)
        self.assertRegex(shown, rb"memoptctl report: +\d+ s  ")
        self.assertNotIn(b"\n", shown)
        self.assertTrue(shown.endswith(b"\r\x1b[K"))

    def test_a_hundred_thousand_blocks(self):
        trace = self.path("big.trace")
        traces.write(trace, 100_000)
        data = self.report(trace)
        self.assertEqual(len(data["iteration"]["blocks"]["bytes"]), 100_000)
        self.assertGreaterEqual(len(data["iteration"]["plans"][0]["drawn"]["blocks"]["block"]), 100_000)
        self.assertLessEqual(os.path.getsize(self.page), 15_000_000)
        print(f"100,000 blocks: {os.path.getsize(self.page)} bytes")


if __name__ == "__main__":
    cases.main()
