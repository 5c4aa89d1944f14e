#!/usr/bin/env python3
"""The runner of NVIDIA's samples, on a made-up checkout of three."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOM = os.path.join(ROOT, "integration", "samples")
sys.path.insert(0, ROOM)
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
import cases  # noqa: E402
import checkout  # noqa: E402
import kept  # noqa: E402
import outcome  # noqa: E402
import page  # noqa: E402

# Doubles numbers on the device, checks them, writes a file and a time that is another one in each run.
GOOD = r"""
#include <cstdio>
#include <ctime>
#include <sample.h>
__global__ void twice(float* x) { x[threadIdx.x] *= FACTOR; }
int main(int argc, char**) {
  float host[32], *device = nullptr;
  for (int i = 0; i < 32; ++i) host[i] = i;
  cudaMalloc(&device, sizeof host);
  cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
  twice<<<1, 32>>>(device);
  cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
  bool good = true;
  for (int i = 0; i < 32; ++i) good &= host[i] == 2.0f * i;
  FILE* file = fopen("out.bin", "w");
  fwrite(host, 1, sizeof host, file);
  fclose(file);
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("elapsed %ld ns, %d arguments\nTest %s\n", now.tv_nsec, argc - 1, good ? "PASSED" : "failed");
  return good ? 0 : 1;
}
"""
# Ends with code 0 though it says that it has failed.
BAD = """
#include <cstdio>
int main() { printf("Test failed\\n"); }
"""
LIST = """
[[sample]]
path = "0_Tiny/good"
runs = [["1"], ["1", "2"]]
verdict = "Test PASSED"
options = ["-DFACTOR=2.0f"]
note = "checks each number"

[[sample]]
path = "0_Tiny/bad"

[[sample]]
path = "0_Tiny/drawn"
left_out = "graphics"
"""


def make_checkout(folder):
    for name, text in (("good", GOOD), ("bad", BAD), ("drawn", BAD)):
        sample = os.path.join(folder, "Samples", "0_Tiny", name)
        os.makedirs(sample)
        with open(os.path.join(sample, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(f"project({name})\n  add_executable({name} {name}.cu)\n")
        with open(os.path.join(sample, f"{name}.cu"), "w", encoding="utf-8") as file:
            file.write(text)
    os.makedirs(os.path.join(folder, "Common"))
    with open(os.path.join(folder, "Common", "sample.h"), "w", encoding="utf-8") as file:
        file.write("// found\n")


class Runner(unittest.TestCase):
    def test_a_checkout_of_three(self):
        with tempfile.TemporaryDirectory() as folder:
            make_checkout(folder)
            listed = os.path.join(folder, "list.toml")
            with open(listed, "w", encoding="utf-8") as file:
                file.write(LIST)
            written = os.path.join(folder, "page.md")
            with open(written, "w", encoding="utf-8") as file:
                file.write("# Before\n\n<!-- The rows are printed by integration/samples/run. -->\nold\n")
            command = [sys.executable, os.path.join(ROOM, "run"), "--samples", folder, "--list", listed, "--work", os.path.join(folder, "work"),
                       "--output", written, "--least", "1"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=500)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            rows = [line for line in done.stdout.splitlines() if line.startswith("| 0_")]
            self.assertEqual(rows, ["| 0_Tiny/good | yes | yes | - | yes | checks each number |",
                                    "| 0_Tiny/bad | no | - | - | - | its own check fails; Test failed |",
                                    "| 0_Tiny/drawn | - | - | - | - | graphics |"])
            self.assertIn("3 samples: 1 pass natively and under memopt", done.stdout)
            with open(written, encoding="utf-8") as file:
                text = file.read()
            self.assertIn(rows[0], text)
            self.assertNotIn("old", text)
            # Fewer than asked for is a failure; what is compiled is not compiled again.
            again = subprocess.run([*command[:-1], "2", "--native", "good"], capture_output=True, text=True, timeout=300)
            self.assertEqual(again.returncode, 1, again.stdout + again.stderr)
            self.resumes(os.path.join(folder, "work", "rows", "0_Tiny.bad.json"), command[:-2], written, rows)

    def resumes(self, kept, command, written, rows):
        """Rows that are there are not run again, unless they are of another build; the page has all of them, and says which those are."""

        def run(*options):
            done = subprocess.run([*command, "--resume", *options], capture_output=True, text=True, timeout=300)
            with open(written, encoding="utf-8") as file:
                return done.stdout, file.read()

        def change(**values):
            with open(kept, encoding="utf-8") as file:
                value = json.load(file)
            value["row"]["native"] = "kept"
            with open(kept, "w", encoding="utf-8") as file:
                json.dump(value | values, file)

        change()
        printed, text = run("bad")
        self.assertIn("| 0_Tiny/bad | no | - | - | - | kept |", printed)
        self.assertIn(rows[0], text)  # not asked for by this command
        change(build="another")
        printed, text = run("--for", "0")
        self.assertNotIn("0_Tiny/bad", printed)
        self.assertIn("| 0_Tiny/bad | no | - | - | - | kept; of another build |", text)
        self.assertIn("1 rows are of another build", text)
        printed, text = run("bad")
        self.assertIn(rows[1], printed)
        self.assertNotIn("another build", text)
        os.remove(kept)
        self.assertIn("| 0_Tiny/bad | - | - | - | - | not run yet |", run("--for", "0")[1])


# A program of its own, as functions of preloaded libraries are found: in the order of loading.
COMPILES = r"""
import ctypes, sys
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
nvrtc = ctypes.CDLL(None)
def code(architecture):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), b'extern "C" __global__ void one(int* a) { *a = 1; }', b'one.cu', 0, None, None) == 0
    assert nvrtc.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(b'--gpu-architecture=' + architecture)) == 0
    assert nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0
    text = ctypes.create_string_buffer(size.value)
    assert size.value == 0 or nvrtc.nvrtcGetCUBIN(program, text) == 0
    return text.raw
print('.visible .entry one' in code(b'sm_80').decode(), code(b'compute_80') == b'')
"""


class Nvrtc(unittest.TestCase):
    def test_machine_code_is_ptx(self):
        toolkit = subprocess.run([os.path.join(ROOT, "tools", "lib", "find-cuda")], capture_output=True, text=True, check=True).stdout.strip()
        found = [path for path in (os.path.join(toolkit, folder, "libnvrtc.so.13") for folder in ("lib64", "lib")) if os.path.exists(path)]
        if not found:
            self.skipTest(f"{toolkit} has no libnvrtc.so.13")
        preloaded = os.path.join(os.environ["TEST_BUILD"], "cudasim", "lib", "libcudasim_nvrtc.so")
        done = subprocess.run([sys.executable, "-c", COMPILES, found[0]], env=os.environ | {"LD_PRELOAD": preloaded}, capture_output=True, text=True, timeout=100)
        self.assertEqual(done.stdout, "True True\n", done.stderr)


class Comparison(unittest.TestCase):
    def test_times_and_addresses_do_not_count(self):
        a = outcome.Outcome(output="Kernel time: 1.25 ms\nat 0x7f0012345678\nsum 5\n")
        b = outcome.Outcome(output="Kernel time: 13.5 ms\nat 0x7f0087654321\nsum 5\n")
        self.assertEqual(outcome.difference(a, b), "")
        self.assertIn("sum 6", outcome.difference(a, outcome.Outcome(output=b.output.replace("sum 5", "sum 6"))))
        self.assertIn("lines", outcome.difference(a, outcome.Outcome(output=b.output + "more\n")))
        self.assertEqual(outcome.difference(a, outcome.Outcome(output=b.output.replace("sum 5", "sum 6")), "^sum"), "")

    def test_files_count(self):
        a, b = outcome.Outcome(files={"a": "1", "b": "2"}), outcome.Outcome(files={"a": "1", "b": "3"})
        self.assertEqual(outcome.difference(a, b), "files: b")
        self.assertEqual(outcome.difference(a, outcome.Outcome(files={"a": "1"})), "files: b")

    def test_what_is_missing_is_named(self):
        run = outcome.Outcome(code=1, errors="cudasim: cuIpcGetMemHandle is not implemented; it returns CUDA_ERROR_NOT_SUPPORTED\n")
        self.assertIn("cuIpcGetMemHandle", run.failure(""))
        run = outcome.Outcome(report={"counters": {"unknown_kernels": 1}},
                              errors="cudasim: no plug-in has kernel _Z1kv and its PTX can't be run (line 12: wgmma.fence): its launches take 5 ns\n")
        self.assertEqual(run.failure(""), "kernels that are not executed: wgmma.fence")

    def test_verdicts(self):
        self.assertEqual(outcome.Outcome(output="Test PASSED").failure("PASSED"), "")
        self.assertIn("own check", outcome.Outcome(output="done").failure("PASSED"))
        self.assertIn("own check", outcome.Outcome(output="comparison FAILED").failure(""))
        self.assertIn("waives", outcome.Outcome(code=outcome.WAIVED, output="no second device").failure(""))
        self.assertIn("signal 11", outcome.Outcome(code=-11).failure(""))
        self.assertIn("races", outcome.Outcome(code=86, report={"counters": {"unknown_kernels": 0, "races": 2}}).failure(""))


class Rows(unittest.TestCase):
    def test_the_list_is_well_formed(self):
        samples = checkout.read_list()
        self.assertGreater(len(samples), 150)
        for sample in samples:
            self.assertTrue(sample.left_out or sample.runs, sample.path)

    def test_counts(self):
        rows = [page.Row("a", "", "", "", limit_mib=8), page.Row("b", "", "", None), page.Row("c", "", "", None, differs="x"),
                page.Row("d", "no", None, None), page.Row("e", left_out="graphics")]
        self.assertEqual(page.summary(rows), "5 samples: 2 pass natively and under memopt, 1 of 1 within a limit too; 1 differ; 2 do not pass, 0 take longer "
                                             "than their limit, 0 have not been run, 1 left out")

    def test_a_row_that_ran_out_of_its_limit_is_run_again_with_a_larger_one(self):
        sample = checkout.Sample("0_Tiny/slow")
        with tempfile.TemporaryDirectory() as folder:
            rows = kept.Kept(folder, "this")
            self.assertTrue(rows.wants(sample, 10))
            rows.write(sample, page.Row(sample.path, native=page.TOO_LONG, limit_s=10, date="2026-01-01"))
            self.assertEqual([rows.wants(sample, 10), rows.wants(sample, 20)], [False, True])
            self.assertIn("takes longer than its limit (10 s)", rows.read(sample).text)
            # Another way to run it, another row.
            self.assertTrue(rows.wants(checkout.Sample("0_Tiny/slow", verdict="OK"), 10))
            self.assertTrue(kept.Kept(folder, "that").wants(sample, 10))


if __name__ == "__main__":
    sys.exit(cases.main())
