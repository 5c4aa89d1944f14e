#!/usr/bin/env python3
"""`memoptctl plan` with swaps on recordings, text traces, logs for DTR's simulator, G10's kernel tables and machines by name."""
import gzip
import json
import os
import re
import sys
import unittest

import cases
from plan_case import CHECKER, MEMOPTCTL, MIB, SHARED, SOON, TWO, VGG16, PlanCase, needs_published_trace, run, soon, trace

SOURCE = os.environ["TEST_SOURCE"]
PRESETS = os.path.join(SOURCE, "integration", "cudasim", "driver", "presets")
FAKE_AGENT = os.path.join(SOURCE, "tests", "tools", "memoptctl", "recording", "fake_agent.py")
FAST = (*SOON, "--no-bound")
NONE = ("--strategy", "none", "--no-bound")
DTR = os.path.join(SHARED, "dtr")
G10 = os.path.join(SHARED, "g10")


def preset(name):
    with open(os.path.join(PRESETS, name + ".json"), encoding="utf-8") as file:
        return json.loads(re.sub(r"^\s*//.*", "", file.read(), flags=re.MULTILINE))


class Inputs(PlanCase):
    def test_a_trace_has_its_layout_planned_unless_it_is_asked_for_swaps(self):
        path = self.write(trace(), "a.trace")
        plain = self.succeed(path)
        self.assertRegex(plain, r"(?m)^persistent +1 blocks, 2\.0 MiB")
        time = re.compile(r"(?m)^planning time.*$")
        self.assertEqual(time.sub("", plain), time.sub("", self.succeed(path, "--strategy", "layout")))
        for asked in (("--limit", "100%"), ("--strategy", "none"), ("--objective", "footprint"), ("--machine", "h200"), ("--seed", "3"), ("--no-bound",)):
            self.assertRegex(self.succeed(path, *asked, *soon("none" if "none" in asked else "memopt")), r"(?m)^added time +0\.000 ms an iteration of 10\.000 ms")

    def test_a_block_of_a_trace_makes_room_for_another(self):
        path = self.write(trace(), "a.trace")
        printed = self.succeed(path, *FAST, "--json", self.path("plan.json"))
        # The weights are read while the first of the two is there.
        self.assertRegex(printed, r"(?m)^footprint +4\.00 MiB$")
        self.assertRegex(printed, r"(?m)^added time +0\.000 ms an iteration of 10\.000 ms$")
        self.assertRegex(printed, r"(?m)^times +the trace's, as nanoseconds$")
        self.assertRegex(printed, r"(?m)^machine +gtx1080ti: 13\.23 GB/s and 47\.2 us out, 12\.15 GB/s and 9\.7 us in$")
        plan = self.read("plan.json")
        self.assertEqual(plan["name"], "a.trace")
        self.assertEqual(plan["period"], 10_000_000)
        if os.path.exists(CHECKER):
            self.succeed(path, "--json", self.path("base.json"))
            self.assertEqual(self.judge(self.path("plan.json"), self.path("base.json"), printed)["footprint"], 4 * MIB)

    def test_a_recording(self):
        recording = self.path("recording")
        done = run(MEMOPTCTL, "record", "-o", recording, "--", sys.executable, FAKE_AGENT, "records=3000")
        self.assertEqual(done.returncode, 0, done.stderr)
        printed = self.succeed(recording, *FAST, "--json", self.path("plan.json"))
        self.assertRegex(printed, r"(?m)^times +host's calls; what the device did is not recorded$")
        self.assertNotIn("not seen", printed)
        self.assertEqual([op[0] for op in self.read("plan.json")["ops"]].count("m"), 1)
        if os.path.exists(CHECKER):
            self.succeed(recording, "--json", self.path("base.json"))
            self.judge(self.path("plan.json"), self.path("base.json"), printed)
        # Of one that is cut, what is left of it is planned, and it is said.
        self.assertNotIn("damaged", printed)
        os.truncate(recording, os.path.getsize(recording) - 10)
        damaged = r"(?m)^damaged +it is cut within a block \(at byte \d+; records up to number 3001 are there\)$"
        for asked in ((), FAST, ("--compare", "--strategies", "none", "--limits", "100%", "--no-bound")):
            self.assertRegex(self.succeed(recording, *asked), damaged)

    def test_whatever_the_file_is_called(self):
        path = os.path.join(os.fsencode(self.folder.name), b'\xff "a\\\n\xc3\xa9.trace')
        with open(path, "w", encoding="ascii") as file:
            file.write(trace())
        self.succeed(path, *FAST, "--json", self.path("plan.json"))
        self.assertEqual(self.read("plan.json")["name"], '? "a\\?\u00e9.trace')

    def test_what_can_not_be_planned(self):
        bare = "".join(line for line in trace().splitlines(True) if line.startswith(("Malloc", "Free")))
        self.refuse(1, "it does not say when blocks are accessed", self.write(bare, "bare.trace"), *FAST)
        still = re.sub(r"\d+$", "7", trace(), flags=re.MULTILINE)
        self.refuse(1, "all its operations happen at the same time", self.write(still, "still.trace"), *FAST)
        self.refuse(1, "cannot be opened", self.path("missing"), *FAST)
        self.refuse(1, "expected Malloc, Free, Read", self.write("nonsense\n", "nonsense"), *FAST)
        # Freed nine iterations later.
        long, now = [], 0
        for k in range(60):
            for line in (f"Malloc {0x1000 + k:#x} {MIB}", f"Mutable {0x1000 + k:#x} {MIB}", *([f"Free {0x1000 + k - 9:#x} {MIB}"] if k >= 9 else [])):
                now += 1000
                long.append(f"{line} {now}\n")
        self.assertIn("footprint", self.succeed(self.write("".join(long), "long.trace")))
        self.refuse(1, "swaps can't be planned for its iteration, whose blocks must live for at most 7 more", self.path("long.trace"), *FAST)
        short = run(MEMOPTCTL, "plan", self.write(trace(1), "short.trace"), *FAST)
        self.assertEqual(short.returncode, 4, short.stdout + short.stderr)
        self.assertIn("no iteration found", short.stdout)

    def test_what_does_not_go_together(self):
        path = self.write(trace(), "a.trace")
        self.refuse(2, "--buffers is of the layout without swaps, and --limit asks for swaps", path, "--limit", "50%", "--buffers", self.path("out"))
        self.refuse(2, "--machine is for swaps, and --strategy layout plans none", path, "--strategy", "layout", "--machine", "h200")
        self.refuse(1, "cannot be written", path, *FAST, "--json", self.path("no/such/folder.json"))

    @needs_published_trace
    def test_the_published_trace(self):
        base, out = self.path("base.json"), self.path("plan.json")
        self.succeed(VGG16, "--json", base)
        # Without a limit there is a plan however slow the machine is.
        for arguments in (FAST, ("--strategy", "none", "--no-bound"),
                          ("--strategy", "autoswap:aoa", "--limit", "80%", "--layout-time", "0.05", "--no-bound")):
            self.judge(out, base, self.succeed(VGG16, *arguments, "--json", out))

    @needs_published_trace
    def test_a_published_trace_without_accesses(self):
        self.refuse(1, "it does not say when blocks are accessed", os.path.join(SHARED, "traces", "memInfo_vgg_20itr_100size.text"), *FAST)


def instruction(kind, **members):
    return json.dumps({"INSTRUCTION": kind} | members) + "\n"


def call(name, arguments, result, size):
    return (instruction("CALL", NAME=name, ARGS=arguments, RESULT=[result], TIME="10000000") +
            instruction("MEMORY", NAME=result, MEMORY=str(size)) + instruction("ALIAS", NAME=result, ALIAS="-1"))


# `big` is idle while `other` lives, beside 1 MiB of weights: 6 MiB of 9 suffice.
LOG = (instruction("ANNOTATE", ANNOTATION="START") + instruction("CONSTANT", NAME="w") + instruction("MEMORY", NAME="w", MEMORY=str(MIB)) +
       call("first", ["w"], "big", 4 * MIB) + call("second", ["w"], "small", MIB) + instruction("RELEASE", NAME="small") +
       call("third", ["w"], "other", 4 * MIB) + instruction("RELEASE", NAME="other") + call("fourth", ["w"], "none", 0) +
       call("fifth", ["w", "big"], "end", 0) + instruction("RELEASE", NAME="big"))


class OtherFormats:
    """Of a TEXT of some format that is this iteration, with its own time and machine."""
    TEXT = TIMES = None

    def test_plain_or_packed(self):
        path = self.write(self.TEXT, "plain")
        with gzip.open(self.path("packed"), "wt", encoding="ascii") as packed:
            packed.write(self.TEXT)
        time = re.compile(r"(?m)^planning time.*$")
        plain, unpacked = (time.sub("", self.succeed(file, *NONE)) for file in (path, self.path("packed")))
        self.assertEqual(plain, unpacked)
        self.assertRegex(plain, rf"(?m)^times +{self.TIMES}$")
        self.assertRegex(plain, r"(?m)^footprint +9\.00 MiB$")
        self.assertRegex(plain, r"(?m)^added time +0\.000 ms an iteration of 50\.000 ms$")
        self.assertRegex(plain, r"(?m)^peak load +9\.00 MiB live, 9\.00 MiB resident$")
        self.assertRegex(plain, r"(?m)^machine +gtx1080ti: ")
        self.assertRegex(self.succeed(path, "--machine", "h200", *NONE), r"(?m)^machine +h200: ")

    def test_swaps_without_being_asked(self):
        path = self.write(self.TEXT, "plain")
        printed = self.succeed(path, *FAST, "--json", self.path("plan.json"))
        self.assertRegex(printed, r"(?m)^footprint +6\.00 MiB$")
        if os.path.exists(CHECKER):
            self.succeed(path, *NONE, "--json", self.path("base.json"))
            self.judge(self.path("plan.json"), self.path("base.json"), printed)


class Logs(OtherFormats, PlanCase):
    TEXT = LOG
    TIMES = "the log's; calls one after the other"

    def test_what_is_wrong_is_told_with_its_line(self):
        path = self.write(LOG.replace('["w", "big"]', '["w", "small"]'), "a.log")
        self.refuse(1, "a.log: line 18: expected a tensor that there is, found small", path, *NONE)

    @cases.in_plain_builds
    @unittest.skipUnless(os.path.isdir(DTR), "MEMOPT_SHARED names no folder with the published logs")
    def test_the_published_logs(self):
        for name, peak, length in (("resnet32-56", "9595.09", "291.905"), ("tv_densenet121-84", "10510.21", "355.299"), ("lstm-128", "5335.93", "769.459"),
                                   ("treelstm-6", "162.29", "120.491"), ("unroll_gan-512", "240.97", "125.451")):
            with self.subTest(name):
                printed = self.succeed(os.path.join(DTR, name + ".log.gz"), *NONE, "--layout-time", "0.2")
                self.assertRegex(printed, rf"(?m)^peak load +{re.escape(peak)} MiB live")
                self.assertRegex(printed, rf"(?m)^added time +0\.000 ms an iteration of {re.escape(length)} ms$")


def kernel(name, inputs, outputs):
    lines = [f"Kernel ID: 0, Name: {name}", f"Parent OP ID:0; Name: {name}", "Execution Time: 12000000", "Input Tensors:", *inputs, "Output Tensors:",
             *outputs, "_" * 68]
    return "".join(line + "\n" for line in lines)


def tensor(number, size, weight=0):
    return f"tensor{number} Is weight (global)?: {weight}, Size in byte: {size}, Range:0--{size}"


# As LOG.
W, BIG, OTHER = tensor(0, MIB, 1), tensor(1, 4 * MIB), tensor(3, 4 * MIB)
TABLE = (kernel("first", [W], [BIG]) + kernel("second", [W], [tensor(2, MIB)]) + kernel("third", [W], [OTHER]) + kernel("fourth", [W], []) +
         kernel("fifth", [W, BIG], []))


class Tables(OtherFormats, PlanCase):
    TEXT = TABLE
    TIMES = r"the table's, cycles at 1\.2 GHz; kernels one after the other"

    def test_what_is_wrong_is_told_with_its_line(self):
        path = self.write(TABLE.replace(OTHER, tensor(1, MIB)), "kernels.config")
        self.refuse(1, r"kernels.config: line 23: expected tensor1 as on line 7, found tensor1 Is", path, *NONE)
        self.refuse(2, "--buffers is for recordings and text traces", self.write(TABLE, "kernels.config"), "--buffers", self.path("out"))

    @cases.in_plain_builds
    @unittest.skipUnless(os.path.isdir(G10), "MEMOPT_SHARED names no folder with G10's tables")
    def test_the_published_tables(self):
        for name, peak, length in (("BERT-256", "48906.56", "7285.466"), ("ViT-1280", "58771.65", "3715.951")):
            with self.subTest(name):
                printed = self.succeed(os.path.join(G10, name, "kernels.config.gz"), *NONE, "--layout-time", "0.2")
                self.assertRegex(printed, rf"(?m)^peak load +{re.escape(peak)} MiB live")
                self.assertRegex(printed, rf"(?m)^added time +0\.000 ms an iteration of {re.escape(length)} ms$")


class Machines(PlanCase):
    def machine(self, name, problem=None):
        self.succeed(problem or self.write(TWO), "--machine", name, "--strategy", "none", "--no-bound", "--json", self.path("plan.json"))
        return self.read("plan.json")["machine"]

    def test_presets_are_those_of_the_simulated_device(self):
        for name in ("gtx1080ti", "a100-40g", "h200"):
            machine, device = self.machine(name), preset(name)
            for way in ("in", "out"):
                rate, latency = machine[way + "_bytes_per_ns"], machine[way + "_latency_ns"]
                if name == "gtx1080ti":
                    rate = round(rate, 2)  # the device's are rounded
                self.assertEqual({"bytes_per_ns": rate, "latency_ns": latency}, device["copy_" + way], name)
        self.assertEqual(sorted(file[:-5] for file in os.listdir(PRESETS) if file.endswith(".json")), ["a100-40g", "gtx1080ti", "h200"])

    def test_what_has_no_machine_gets_the_published_one(self):
        path = self.write(trace(), "a.trace")
        self.succeed(path, "--json", self.path("base.json"))
        published = self.machine("gtx1080ti", path)
        self.assertEqual(published, {"out_bytes_per_ns": 1 / 0.0756, "in_bytes_per_ns": 1 / 0.0823, "out_latency_ns": 47200, "in_latency_ns": 9700})
        self.assertEqual(self.read("base.json")["machine"], published)

    def test_numbers(self):
        rates = {"out_bytes_per_ns": 50, "in_bytes_per_ns": 0.5}
        self.assertEqual(self.machine("50:0.5"), rates)
        self.assertEqual(self.machine("50:.5:7e3:1.5"), rates | {"out_latency_ns": 7000, "in_latency_ns": 1.5})
        slow = self.succeed(self.write(TWO), "--machine", "0.001:0.001", "--limit", "100%", *FAST)
        self.assertRegex(slow, r"(?m)^machine +0\.001:0\.001:0:0: ")

    def test_the_machine_decides(self):
        path = self.write(trace(), "a.trace")
        self.assertRegex(self.succeed(path, "--machine", "0.5:0.5", *FAST), r"(?m)^footprint +6\.00 MiB$")
        self.assertRegex(self.succeed(path, "--machine", "h200", *FAST), r"(?m)^footprint +4\.00 MiB$")

    def test_what_is_no_machine(self):
        for text in ("h100", "50", "50:", ":50", "50:50:3", "50:50:3:4:5", "0:50", "50:-1", "50:50:-1:0", "nan:50", "inf:1", "50:50 ", "1e999:1"):
            self.refuse(2, "--machine: expected gtx1080ti, a100-40g, h200, or OUT:IN or ", self.write(TWO), "--machine", text)


if __name__ == "__main__":
    cases.main()
