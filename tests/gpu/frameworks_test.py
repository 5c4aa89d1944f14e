#!/usr/bin/env python3
"""The frameworks' scripts against stand-ins for the frameworks: what they ask for, and what they tell."""
import json
import os
import py_compile
import subprocess
import sys
import tempfile
import unittest

import cases
import kit

STEPS = {"torch_resnet50": "step", "torch_gpt": "step", "torch_lstm": "step", "triton_kernel": "triton.residuals", "jax_mlp": "value_and_grad",
         "cupy_mlp": "cupy.maximum"}



class Script(unittest.TestCase):
    def start(self, case, *options, stubs=True, **more):
        with tempfile.TemporaryDirectory() as folder:
            calls = os.path.join(folder, "calls")
            if stubs:
                more |= {"PYTHONPATH": kit.STUBS, "STUB_CALLS": calls}
            done = kit.run([sys.executable, os.path.join(kit.FRAMEWORKS, case + ".py"), *options], **more)
            self.calls = []
            if os.path.exists(calls):
                with open(calls, encoding="utf-8") as file:
                    self.calls = file.read().split("\n")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return done, events

    def test_compiles(self):
        scripts = [name for name in os.listdir(kit.FRAMEWORKS) if name.endswith(".py")]
        self.assertEqual(len(scripts), len(kit.CASES) + 2)
        with tempfile.TemporaryDirectory() as folder:
            for name in scripts:
                py_compile.compile(os.path.join(kit.FRAMEWORKS, name), cfile=os.path.join(folder, "compiled"), doraise=True)

    def test_tells_each_iteration_and_the_end(self):
        for case in kit.CASES:
            for options in [], ["--small"]:
                with self.subTest(case=case, options=options):
                    done, events = self.start(case, "--iterations", "12", *options)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual([event["event"] for event in events], ["start"] + ["iteration"] * 12 + ["done"])
                    losses = [float.fromhex(event["loss"]) for event in events[1:-1]]
                    self.assertEqual(len(set(losses)), 12)
                    last = sorted(event["seconds"] for event in events[3:-1])
                    self.assertAlmostEqual(events[-1]["seconds_per_iteration"], (last[4] + last[5]) / 2)
                    self.assertTrue(events[-1]["checksum"])
                    self.assertTrue(events[-1]["framework_memory"])
                    self.assertIn("driver_memory", events[-1])
                    self.assertEqual(self.calls.count(STEPS[case]), 12)

    def test_repeats(self):
        for case in kit.CASES:
            first, second = ([(event.get("loss"), event.get("checksum")) for event in self.start(case, "--iterations", "3")[1]] for _ in range(2))
            self.assertEqual(first, second, case)

    def test_torch_is_set_to_repeat(self):
        for case in "torch_resnet50", "torch_gpt", "torch_lstm", "triton_kernel":
            self.start(case, "--iterations", "1")
            for call in "torch.manual_seed", "torch.use_deterministic_algorithms":
                self.assertLess(self.calls.index(call), self.calls.index(STEPS[case]), case)

    def test_a_missing_framework_is_told(self):
        for case in kit.CASES:
            with self.subTest(case=case):
                done, events = self.start(case, stubs=False, PYTHONPATH="/nowhere")
                if not events or events[0]["event"] != "missing":
                    self.skipTest("this machine has the framework")
                self.assertEqual((done.returncode, len(events)), (77, 1))
                self.assertIn("No module named", events[0]["what"])

    def test_a_missing_device_is_told(self):
        done, events = self.start("torch_gpt", STUB_NO_DEVICE="1")
        self.assertEqual((done.returncode, events[0]["what"]), (77, "PyTorch finds no CUDA device"))

    def test_holds_its_memory_until_it_is_told(self):
        process = subprocess.Popen([sys.executable, os.path.join(kit.FRAMEWORKS, "cupy_mlp.py"), "--iterations", "1", "--hold"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=kit.environment(PYTHONPATH=kit.STUBS))
        with process:
            lines = [process.stdout.readline() for _ in range(3)]
            self.assertEqual(json.loads(lines[-1])["event"], "done")
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(0.3)
            process.stdin.write("\n")
            process.stdin.close()
            self.assertEqual(process.wait(60), 0)

    def test_cupys_pool_can_be_taken_away(self):
        for setting, calls in (("off", 1), ("on", 0)):
            self.start("cupy_mlp", "--iterations", "1", GPU_KIT_CUPY_POOL=setting)
            self.assertEqual(self.calls.count("cupy.set_allocator"), calls)

    def test_what_pytorch_offers_is_used_where_it_is_asked_for(self):
        for case in "torch_resnet50", "torch_gpt":
            for offer, call in (("", None), ("save_on_cpu", "torch.save_on_cpu"), ("checkpointing", "torch.checkpoint")):
                with self.subTest(case=case, offer=offer):
                    done, _ = self.start(case, "--iterations", "2", "--small", GPU_KIT_OFFER=offer)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    used = {each: self.calls.count(each) for each in ("torch.save_on_cpu", "torch.checkpoint")}
                    self.assertEqual({each for each, count in used.items() if count}, {call} - {None})
        self.assertEqual(used["torch.checkpoint"], 2 * 2, "each block of each iteration")
        done, _ = self.start("torch_gpt", GPU_KIT_OFFER="swapping")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "GPU_KIT_OFFER: expected save_on_cpu or checkpointing, not 'swapping'\n")

    def test_wrong_use(self):
        for options in (["--iterations", "0"], ["--iterations", "many"]):
            self.assertEqual(self.start("jax_mlp", *options)[0].returncode, 2)


if __name__ == "__main__":
    cases.main()
