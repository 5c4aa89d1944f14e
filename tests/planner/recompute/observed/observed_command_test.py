#!/usr/bin/env python3
"""`memoptctl plan --recompute` of recordings and text traces: its plans, as the judge of these tests sees them, and what it says and refuses."""
import json
import os
import re
import subprocess

import cases
import patience
import recompute_judge
from plan_case import PlanCase

MEMOPTCTL = os.environ["MEMOPTCTL"]
HERE = os.path.dirname(os.path.abspath(__file__))
RECORDINGS = os.path.join(HERE, "..", "..", "..", "data", "recordings")
VGG16 = os.path.join(os.environ.get("MEMOPT_SHARED", ""), "traces", "vec_block_fresh_vgg.csv")
GPT = os.path.join(RECORDINGS, "gpt_save.rec")
VIT = os.path.join(RECORDINGS, "vit.rec")


class Observed(PlanCase):
    def judged(self, *arguments):
        """What the judge says of the plan that was written, which is the one that was printed; and what was printed."""
        done = self.run_plan(*arguments, "--recompute", "--json", self.path("plan.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("plan.json"), encoding="utf-8") as file:
            plan = json.load(file)
        result = recompute_judge.judge(plan)
        self.assertLessEqual(result["footprint"], plan["limit"])
        self.assertRegex(done.stdout, rf"(?m)^added time +{result['added_ns'] / 1e6:.3f} ms an iteration")
        self.assertRegex(done.stdout, rf"(?m)^drops +{result['drops']}; ")
        return result, done.stdout

    def test_a_recording_of_which_nothing_is_known_has_hardly_anything_to_make_again(self):
        done = self.run_plan(GPT, "--recompute", "--limit", "80%", "--strategy", "dtr")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^assumed +launches may have changed all blocks that they name and did not make$")
        self.assertRegex(done.stdout, r"(?m)^made again +0\.\d\d MiB of 13\d\d\.\d\d MiB, \d+ of \d+ blocks")
        self.assertRegex(done.stdout, r"(?m)^not made again +13\d\d\.\d\d MiB in \d+ blocks: a launch changes what it makes no new block of, or may have$")
        self.assertRegex(done.stdout, r"(?m)^ +[\d.]+ MiB in \d+: cudasim_matrix_product$")
        self.assertIn("dtr finds no plan", done.stderr)

    def test_plans_of_recordings(self):
        for file in (GPT, VIT):
            result, text = self.judged(file, "--assume", "reads", "--limit", "80%", "--strategy", "memopt", "--time-budget", "0.5")
            self.assertGreater(result["replays"], 0)
            self.assertIn("that is not known", text)
            result, _ = self.judged(file, "--assume", "reads", "--limit", "85%", "--strategy", "dtr")
            self.assertGreater(result["replays"], 0)
        # A list may say the same.
        kernels = self.write("# of all kernels\n*: reads\n", "kernels.txt")
        listed = self.run_plan(GPT, "--recompute", "--kernels", kernels, "--limit", "80%", "--strategy", "dtr")
        assumed = self.run_plan(GPT, "--recompute", "--assume", "reads", "--limit", "80%", "--strategy", "dtr")
        added = [re.search(r"(?m)^added time .*$", done.stdout).group() for done in (listed, assumed)]
        self.assertEqual(added[0], added[1])
        self.assertNotIn("that is not known", listed.stdout)
        # Products that may have changed what they read can't be run again, and are named.
        kernels = self.write("*: reads\ncudasim_matrix*: never\nno such kernel: reads\n", "kernels.txt")
        done = self.run_plan(GPT, "--recompute", "--kernels", kernels, "--limit", "95%", "--strategy", "dtr")
        self.assertRegex(done.stdout, r"(?m)^list +1 of its 3 patterns say nothing of a launch of the iteration: line 3$")
        self.assertRegex(done.stdout, r"MiB in \d+ blocks: the list says never\n +[\d.]+ MiB in \d+: cudasim_matrix_product\n")

    def test_plans_that_swap_as_well(self):
        asked = (GPT, "--assume", "reads", "--swap", "--time-budget", "0.5", "--limit")
        result, text = self.judged(*asked, "90%", "--strategy", "memopt:swap")
        self.assertGreater(result["swaps"], 0)
        self.assertEqual(result["replays"], 0)
        self.assertRegex(text, rf"(?m)^swaps +{result['swaps']}; ")
        # Copies that are slow, so that both are of use; whether both are found is a matter of time.
        result, text = self.judged(*asked, "75%", "--machine", "3:3")
        self.assertGreater(result["replays"] + result["swaps"], 0)
        self.assertRegex(text, rf"(?m)^swaps +{result['swaps']}; ")

    def test_a_comparison(self):
        out = self.path("compare.json")
        done = self.run_plan(VIT, "--recompute", "--assume", "reads", "--compare", "--limits", "90%,80%", "--strategies", "memopt,dtr,chen:drop-cheap",
                         "--time-budget", "0.3", "--json", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^replayable +\d+ of \d+ launches")
        with open(out, encoding="utf-8") as file:
            limits = json.load(file)["limits"]
        for row in limits:
            self.assertGreaterEqual(row["plans"]["memopt"]["added_ns"], row["least_added_ns_bound"] - 1e-6)

    def test_a_trace_that_was_written_of_a_recording(self):
        trace = self.path("trace.txt")
        subprocess.run([MEMOPTCTL, "show", os.path.join(RECORDINGS, "lstm_sgd.rec"), "--trace", trace], check=True, capture_output=True, timeout=patience.seconds(60))
        done = self.run_plan(trace, "--recompute", "--limit", "100%", "--strategy", "dtr")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^assumed +what is read and written without another line between is one launch: \d+ launches$")

    @cases.in_plain_builds
    def test_a_published_trace(self):
        if not os.path.exists(VGG16):
            self.skipTest("MEMOPT_SHARED names no folder with published traces")
        done = self.run_plan(VGG16, "--recompute", "--limit", "90%", "--strategy", "dtr", "--json", self.path("plan.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^replayable +67 of 132 launches")
        result, text = self.judged(VGG16, "--assume", "writes", "--limit", "80%", "--time-budget", "0.5")
        self.assertGreater(result["replays"], 5)
        self.assertRegex(text, r"(?m)^replayable +111 of 132 launches")
        self.assertRegex(text, r"(?m)^ +a Mutable right before the Free of its block is part of that: 489 lines$")

    def test_what_is_refused(self):
        bad = self.write("# a list\ngemm\n", "bad.txt")
        iteration = self.write({
            "format": "memopt-plan-2", "layout": False, "limit": 9, "period": 2, "ops": [["m", 0, 0], ["w", 0, 0], ["f", 0, 1]],
            "blocks": [{"id": 0, "size": 1}], "launches": [[1, 1]], "machine": {"out_bytes_per_ns": 1, "in_bytes_per_ns": 1}})
        trace = self.write("".join(f"Malloc 0x1 4096 {9 * k}\nMutable 0x1 4096 {9 * k + 2}\nRead 0x1 4096 {9 * k + 3}\n"
                                                f"Free 0x1 4096 {9 * k + 5}\n" for k in range(40)), "trace.txt")
        for arguments, code, message in (
                ((GPT, "--kernels", bad, "--recompute"), 1, r'bad\.txt: line 2: expected PATTERN: USE, found "gemm"$'),
                ((GPT, "--kernels", self.path("none.txt"), "--recompute"), 1, r"none\.txt"),
                ((GPT, "--assume", "writes", "--recompute"), 2, r"--assume: expected reads, for a recording, not writes$"),
                ((GPT, "--assume", "reads"), 2, r"--kernels and --assume are for --recompute$"),
                ((iteration, "--assume", "reads", "--recompute"), 2, r"--assume is for recordings and text traces; "),
                ((iteration, "--kernels", bad, "--recompute"), 2, r"--kernels is for recordings, as nothing else names kernels$"),
                ((trace, "--kernels", bad, "--recompute"), 2, r"--kernels is for recordings, as nothing else names kernels$"),
                ((trace, "--assume", "reads", "--recompute"), 2, r"--assume: expected writes, for a text trace, not reads$")):
            done = self.run_plan(*arguments, "--limit", "90%")
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertRegex(done.stderr, message)


if __name__ == "__main__":
    cases.main()
