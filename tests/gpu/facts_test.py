#!/usr/bin/env python3
"""The questions for a GPU, asked of the simulated driver: each gets its answer, by its virtual clock the right one, and none takes others with it."""
import json
import os
import subprocess
import tempfile
import unittest

import cases
import kit

FACTS = os.path.join(kit.BUILD, "gpu", "facts")


class Facts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = cls.ask("--small")

    @classmethod
    def ask(cls, *options, driver=True, code=0, **more):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "facts.json")
            if driver:
                more = {"LD_LIBRARY_PATH": os.path.join(kit.SIMULATOR, "lib"), "CUDASIM_DEVICE": "h200"} | more
            done = kit.run([FACTS, "--output", path, *options], **more)
            assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
            if not os.path.exists(path):
                return done
            assert os.listdir(folder) == ["facts.json"], os.listdir(folder)
            with open(path, encoding="utf-8") as file:
                return json.load(file)["facts"]

    def values(self, fact):
        return self.all[fact]["values"]

    def test_every_question_is_answered(self):
        listed = {line.split()[0] for line in kit.run([FACTS, "--list"]).stdout.splitlines()}
        self.assertEqual(set(self.all), listed)
        self.assertGreaterEqual(len(listed), 10)
        for name, fact in self.all.items():
            with self.subTest(name=name):
                for key in "question", "how":
                    self.assertGreater(len(fact[key]), 20)
                self.assertNotIn("error", fact)
                self.assertTrue(fact["values"])

    def test_device(self):
        device = self.values("device")
        self.assertIs(device["simulated"], True)
        self.assertEqual((device["compute_capability_major"], device["granularity_minimum"]), (9, 2 << 20))

    def test_costs_are_the_presets(self):
        for case in self.values("vmm_costs").values():
            for call, cost in (("create", 29000), ("map", 2000), ("set_access", 38000), ("unmap", 34000), ("release", 23000)):
                spread = case.get(call + "_ns")
                if spread:
                    self.assertEqual((spread["min"], spread["median"], spread["max"]), (cost, cost, cost), call)
        keys = self.values("vmm_costs").keys()
        self.assertTrue(any(key.startswith("chunks_of_2_mib") for key in keys) and any(key.startswith("aliases") for key in keys))
        self.assertEqual(self.values("host_calls")["cuLaunchKernel"]["median"], 2500)

    def test_bounded_by_memory(self):
        small = self.ask("--small", "--only", "vmm_costs", CUDASIM_CAPACITY="64M")["vmm_costs"]["values"]
        # Nine tenths of 64 MiB, less what the kernels' words take.
        self.assertEqual(small["chunks_of_16_mib_times_20"]["mappings"], 3)
        self.assertEqual(small["chunks_of_16_mib_times_20"]["bounded_by"], "free memory")
        loaded = self.ask("--small", "--only", "vmm_under_load", CUDASIM_CAPACITY="8M")["vmm_under_load"]
        self.assertIn("no room for 4", loaded["values"]["chunks_2_mib"]["error"])
        self.assertNotIn("error", loaded)

    def test_who_waits_for_the_device(self):
        found = self.values("free_drains")
        for key, case in found.items():
            if "error" in case:
                continue
            waits = key.startswith("cuMemFree_of")
            with self.subTest(key=key):
                if waits or key in ("nothing", "cuMemGetInfo") or key.startswith("cuMemAlloc_of"):
                    self.assertEqual(case["kernel_was_over_after_the_call"], case["repeats"] if waits else 0)
        self.assertGreater(found["cuMemFree_of_4096_bytes"]["call_ns"]["min"], 0.9 * found["cuMemFree_of_4096_bytes"]["kernel_ns"])

    def test_aliases_are_coherent(self):
        found = self.values("alias_coherence")
        ordered = [case for key, case in found.items() if key.endswith(("by_stream", "by_event"))]
        self.assertEqual(len(ordered), 14)
        for case in ordered:
            self.assertEqual((case["words_different"], case["words_different_at_first_look"]), (0, 0))
            self.assertGreater(case["rounds"] * case["words_per_round"], 1 << 20)
        self.assertEqual(found["within_one_grid_unordered"]["words_that_looked_old"], 0)

    def test_a_difference_is_counted(self):
        # Kernels that nothing executes do nothing: nothing is written, and nothing counts.
        with tempfile.TemporaryDirectory() as empty:
            found = self.ask("--small", "--only", "alias_coherence", CUDASIM_KERNELS=empty, CUDASIM_PTX="off")["alias_coherence"]["values"]
        self.assertGreater(found["kernel_then_copy_out_by_stream"]["words_different"], 0)
        self.assertEqual(found["kernel_then_copy_out_by_stream"]["rounds_with_a_difference"], 3)

    def test_bandwidth_is_the_presets(self):
        # 52 bytes a nanosecond behind 7 us of latency for each copy; the events and the issuing come on top.
        large = self.values("pinned_bandwidth")["copies_of_2097152_bytes"]
        expected = (2 << 20) / ((2 << 20) / 52 + 7000)
        for way in "in_alone", "out_alone", "in_with_out", "out_with_in":
            self.assertAlmostEqual(large[way]["best_gb_per_s"], expected, delta=2)

    def test_the_clock_of_events(self):
        found = self.values("event_clock")
        self.assertGreaterEqual(found["kernel_of_1000000_ns"]["by_events_ns"]["min"], 1000000)
        self.assertLess(found["kernel_of_1000000_ns"]["by_events_ns"]["max"], 1010000)

    def test_no_driver(self):
        done = self.ask("--small", driver=False, code=kit.NO_GPU)
        self.assertIn("no CUDA driver", done.stderr)

    def test_no_device(self):
        done = self.ask("--small", code=kit.NO_GPU, CUDASIM_INJECT="cuInit:100")
        self.assertIn("cuInit: CUDA_ERROR_NO_DEVICE", done.stderr)

    def test_one_that_fails_takes_no_other_with_it(self):
        found = self.ask("--small", CUDASIM_INJECT="cuMemAddressReserve:2,cuMemHostAlloc:2")
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", found["alias_coherence"]["error"])
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", found["host_memory"]["values"]["of_4096_bytes"]["error"])
        self.assertNotIn("error", found["host_calls"])
        self.assertGreater(len(found["event_clock"]["values"]), 3)

    def test_one_that_hangs_is_ended_and_keeps_what_it_found(self):
        # A driver so slow that the fact's kernels take minutes.
        found = self.ask("--small", "--only", "free_drains", "--only", "tensor_map", "--limit", "6", CUDASIM_PACE="300")
        self.assertRegex(found["free_drains"]["error"], r"^ended after \d+ s")
        self.assertLess(len(found["free_drains"]["values"]), len(self.values("free_drains")))
        self.assertIn("nothing", found["free_drains"]["values"])
        self.assertIn("the time for facts is over", found["tensor_map"]["error"])

    def test_wrong_use(self):
        for arguments, message in ((["--only", "weather"], "there is no fact 'weather'"), (["--limit", "soon"], "expects seconds above 0, not 'soon'"),
                                   (["--limit", "-1"], "not '-1'"), (["--large"], "--large is unknown"), (["--output"], "--output"),
                                   (["--colour", "red"], "unknown option '--colour'")):
            with self.subTest(arguments=arguments):
                done = kit.run([FACTS, *arguments])
                self.assertEqual(done.returncode, 2)
                self.assertIn(message, done.stderr)

    def test_an_output_that_can_not_be_written(self):
        done = kit.run([FACTS, "--small", "--only", "device", "--output", "/nowhere/facts.json"],
                       LD_LIBRARY_PATH=os.path.join(kit.SIMULATOR, "lib"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/facts.json", done.stderr)

    def test_needs_only_libc(self):
        shown = subprocess.run(["readelf", "-dW", FACTS], capture_output=True, text=True, check=True).stdout
        self.assertNotRegex(shown, r"NEEDED.*(libcuda|libstdc)")


if __name__ == "__main__":
    cases.main()
