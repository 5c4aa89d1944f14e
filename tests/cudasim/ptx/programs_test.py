#!/usr/bin/env python3
"""Programs compiled by nvcc, whose kernels no plug-in has: executed from PTX they compute what the host computes, and what plug-ins compute."""
import os
import sys
import tempfile
import unittest

import simulated

PROGRAMS = os.environ["TEST_PROGRAMS"]
WORKLOADS = os.environ["TEST_WORKLOADS"]
SIMULATOR = os.environ["TEST_SIMULATOR"]
SOFTMAX = os.environ["TEST_SOFTMAX"]
PREFIX = os.environ.get("SANITIZER_PRELOAD", "")
NONE = tempfile.gettempdir() + "/no-plug-ins-here"


def run(command, kernels=NONE, **environment):
    clean = simulated.clean_environment() | {"LD_LIBRARY_PATH": SIMULATOR + "/lib", "CUDASIM_KERNELS": kernels}
    if PREFIX:
        clean["LD_PRELOAD"] = PREFIX
    return simulated.Finished(command, clean | environment)


class Programs(unittest.TestCase):
    def test_kernels_compute_what_the_host_computes(self):
        # The device of 2017 takes the machine code, and its PTX from beside it.
        for environment in ({}, {"CUDASIM_INSTRUMENT": "1"}, {"CUDASIM_SEED": "3"}, {"CUDASIM_DEVICE": "gtx1080ti"}):
            done = run([PROGRAMS + "/ptx_kernels"], **environment)
            self.assertEqual(done.code, 0, done.output + done.errors)
            for name in ("divergence", "calls", "heap", "reduce", "transpose", "histogram", "halves", "wide"):
                self.assertIn("ok " + name, done.output.splitlines())
            self.assertIn("thread 1 of 64:  2.50 text x 123456789a%", done.output.splitlines())
            self.assertEqual(done.report["counters"]["unknown_kernels"], 0)
            self.assertEqual(done.report["counters"]["races"], 0)

    def test_without_ptx_they_are_unknown(self):
        done = run([PROGRAMS + "/ptx_kernels"], CUDASIM_PTX="off")
        self.assertEqual(done.code, 1)
        self.assertEqual(done.report["counters"]["unknown_kernels"], 9)

    def test_times_depend_on_the_launch_alone(self):
        ends = {run([PROGRAMS + "/ptx_kernels"], **environment).report["device_end_ns"]
                for environment in ({}, {}, {"CUDASIM_INSTRUMENT": "1"}, {"CUDASIM_SEED": "5"})}
        self.assertEqual(len(ends), 1, ends)
        self.assertGreater(ends.pop(), 9 * 1000)

    def test_races_between_streams_are_found(self):
        self.assertEqual(run([PROGRAMS + "/ptx_kernels", "--race"], CUDASIM_INSTRUMENT="1").code, 86)
        self.assertEqual(run([PROGRAMS + "/ptx_kernels", "--race"]).code, 0)  # plain kernels are not looked at

    def test_asserts_and_faults_have_the_drivers_codes(self):
        failed = run([PROGRAMS + "/ptx_kernels", "--assert"])
        self.assertIn("cudaErrorAssert", failed.output)
        self.assertIn("block: [0,0,0], thread: [0,0,0] Assertion `n == 3` failed.", failed.errors)
        self.assertIn("cudaErrorIllegalAddress", run([PROGRAMS + "/ptx_kernels", "--fault"]).output)


class Workloads(unittest.TestCase):
    def same_as_plug_ins(self, command, plug_ins, kernels=NONE):
        from_ptx = run(command, kernels)
        from_plug_ins = run(command, plug_ins)
        self.assertEqual(from_ptx.code, 0, from_ptx.output + from_ptx.errors)
        self.assertRegex(from_ptx.last_line, r"^checksum [0-9a-f]{16}$")
        self.assertEqual(from_ptx.output, from_plug_ins.output)
        self.assertEqual(from_ptx.report["counters"]["unknown_kernels"], 0)

    def test_vector(self):
        for program in ("vector_runtime", "vector_driver"):
            self.same_as_plug_ins([f"{WORKLOADS}/{program}", "--iterations", "2", "--elements", "65536"], SIMULATOR + "/kernels/vector.so")

    def test_digits(self):
        # Compiled without contraction, as the plug-in is. The device's own expf and logf are not the C library's: the one kernel
        # that calls them comes from a plug-in in both.
        small = [PROGRAMS + "/digits_cnn_unfused", "--epochs", "1", "--batch", "288", "--width", "2", "--data", WORKLOADS + "/data/digits.csv"]
        self.same_as_plug_ins(small, SIMULATOR + "/kernels/digits_cnn.so", SOFTMAX)


if __name__ == "__main__":
    sys.exit(unittest.main())
