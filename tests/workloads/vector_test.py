#!/usr/bin/env python3
"""The vector programs on the simulated driver: right results, the same through every API, runtime and order, and nothing left behind."""
import json
import os
import re
import tempfile
import unittest

import cases
import simulated

PROGRAMS = os.environ["TEST_WORKLOADS"]
SIMULATOR = os.environ["TEST_SIMULATOR"]
PRESETS = os.environ["TEST_PRESETS"]
SHIM = os.environ.get("TEST_SHIM", "")
PREFIX = os.environ.get("SANITIZER_PRELOAD", "")
MIB = 1 << 20

RUNTIME = ["vector_runtime", "vector_runtime_static"]
ASYNC = ["vector_async", "vector_async_static"]
DRIVER = ["vector_driver"]
FEW_BYTES = ["--elements", "40000"]
SMALL = ["--iterations", "6", *FEW_BYTES]


def run(program, *arguments, kernels="kernels", preload="", **environment):
    clean = simulated.clean_environment()
    if PREFIX or preload:
        clean["LD_PRELOAD"] = (PREFIX + preload).rstrip(":")
    clean["LD_LIBRARY_PATH"] = os.path.join(SIMULATOR, "lib")
    clean["CUDASIM_KERNELS"] = os.path.join(SIMULATOR, kernels, "vector.so")
    return simulated.Finished([os.path.join(PROGRAMS, program), *arguments], clean | environment)


class VectorPrograms(unittest.TestCase):
    def succeed(self, program, *arguments, **options):
        done = run(program, *arguments, **options)
        self.assertEqual(done.code, 0, done.output + done.errors)
        self.assertRegex(done.last_line, r"^checksum [0-9a-f]{16}$")
        counters = done.report["counters"]
        # A kernel that no plug-in has would be found by the verification, but say so at once.
        self.assertEqual(counters["unknown_kernels"], 0)
        self.assertEqual(counters["races"], 0)
        self.assertEqual(counters["bytes_live"], 0, "everything is freed at the end")
        self.assertEqual(counters["bytes_held"], 0, "and given back")
        return done

    @cases.not_under_tsan
    def test_all_find_the_same(self):
        for arguments in FEW_BYTES if PREFIX else [], SMALL, ["--iterations", "1", "--elements", "16"]:
            found = {program: self.succeed(program, *arguments).last_line for program in RUNTIME + ASYNC + DRIVER}
            self.assertEqual(len(set(found.values())), 1, found)
        self.assertNotEqual(self.succeed("vector_driver", *SMALL).last_line, self.succeed("vector_driver", *FEW_BYTES).last_line)

    @cases.in_plain_builds
    def test_runs_repeat_to_the_nanosecond(self):
        for program in "vector_runtime", "vector_async", "vector_driver":
            with self.subTest(program=program):
                first, second = self.succeed(program, *SMALL), self.succeed(program, *SMALL)
                self.assertEqual(first.output, second.output)
                self.assertEqual(first.report["host_end_ns"], second.report["host_end_ns"])

    @cases.not_under_tsan
    def test_adversarial_order(self):
        for program in "vector_runtime", "vector_async", "vector_driver":
            reference = self.succeed(program, *SMALL)
            for seed in range(1, 7):
                with self.subTest(program=program, seed=seed):
                    done = self.succeed(program, *SMALL, CUDASIM_SEED=str(seed))
                    self.assertEqual(done.output, reference.output, "pools choose by declared order and virtual time alone")
                    self.assertEqual(done.report["host_end_ns"], reference.report["host_end_ns"])

    @cases.in_plain_builds
    def test_the_checker_changes_nothing(self):
        for program in "vector_async", "vector_driver":
            with self.subTest(program=program):
                on, off = self.succeed(program, *SMALL), self.succeed(program, *SMALL, CUDASIM_CHECK="off")
                self.assertEqual(on.output, off.output)
                self.assertEqual(on.report["host_end_ns"], off.report["host_end_ns"])

    def test_every_access_is_ordered(self):
        if PREFIX:
            self.skipTest("the plug-in's callbacks carry the sanitizer's names: the plain build runs this")
        for program in "vector_runtime", "vector_async", "vector_driver":
            for seed in None, "1", "2":
                with self.subTest(program=program, seed=seed):
                    done = self.succeed(program, *SMALL, kernels="kernels-instrumented", CUDASIM_INSTRUMENT="1",
                                        **({"CUDASIM_SEED": seed} if seed else {}))
                    self.assertTrue(done.report["kernels_instrumented"])

    def test_shim(self):
        if not SHIM:
            self.skipTest("the shim is not part of this build")
        # Sanitizers find nothing in large vectors that they don't in small ones; nor in the runtime's other form.
        programs, arguments = (("vector_runtime", "vector_async", "vector_driver"), FEW_BYTES) if PREFIX else (RUNTIME + ASYNC + DRIVER, [])
        for program in programs:
            reference = self.succeed(program, *arguments)
            for seed in (None,) if program.endswith("_static") else (None, "1") if PREFIX else (None, "1", "2"):
                with self.subTest(program=program, seed=seed):
                    done = run(program, *arguments, preload=SHIM, MEMOPT_PLANNER_NAME=f"vector-{os.getpid()}",
                               **({"CUDASIM_SEED": seed} if seed else {}))
                    self.assertEqual(done.code, 0, done.output + done.errors)
                    self.assertEqual(done.last_line, reference.last_line)
                    self.assertEqual(done.report["counters"]["races"], 0)

    @cases.in_plain_builds
    def test_footprint_of_pools(self):
        done = self.succeed("vector_async")
        self.assertEqual(done.report["counters"]["bytes_held_peak"], 2 * 32 * MIB, "a step for each of the two pools")
        self.assertEqual(done.report["counters"]["bytes_live_peak"], 3 * 4 * MIB)
        own = re.findall(r"^own pool: (\d+) bytes in use at most, (\d+) reserved$", done.output, re.MULTILINE)
        self.assertEqual(own, [(str(4 * MIB), str(32 * MIB))] * 2)
        self.assertGreater(done.report["calls"]["cuMemFreeAsync"], 300)

    @cases.not_under_tsan
    def test_out_of_memory_is_named(self):
        for program, code in (("vector_runtime", 1), ("vector_async", 1), ("vector_driver", 3)):
            with self.subTest(program=program):
                done = run(program, CUDASIM_CAPACITY="6M")
                self.assertEqual(done.code, code, done.errors)
                self.assertRegex(done.errors, "cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY")

    @cases.not_under_tsan
    def test_a_device_without_pools(self):
        with open(os.path.join(PRESETS, "gtx1080ti.json"), encoding="utf-8") as file:
            device = json.loads("\n".join(line for line in file.read().splitlines() if not line.lstrip().startswith("//")))
        device["attributes"]["memory_pools_supported"] = 0
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(device, file)
            file.flush()
            done = run("vector_async", CUDASIM_DEVICE=file.name)
            self.assertEqual(done.code, 1)
            self.assertIn("no memory pools", done.errors)
            self.succeed("vector_runtime", *SMALL, CUDASIM_DEVICE=file.name)

    @cases.not_under_tsan
    def test_bad_arguments(self):
        for program in "vector_runtime", "vector_async", "vector_driver":
            for arguments, message in ((["--iterations", "0"], "--iterations expects a number from 1"), (["--elements", "15"], "from 16"),
                                       (["--elements", "many"], "not 'many'"), (["--iterations"], "--iterations expects a value"),
                                       (["--depth", "3"], "unknown option '--depth'")):
                with self.subTest(program=program, arguments=arguments):
                    done = run(program, *arguments)
                    self.assertEqual(done.code, 2)
                    self.assertEqual(done.output, "")
                    self.assertIn(message, done.errors)


if __name__ == "__main__":
    cases.main()
