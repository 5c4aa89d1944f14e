#!/usr/bin/env python3
"""PyTorch's programs on the simulated device, natively and under memopt, each by one command; and what its libraries ask of ours.

usage: pytorch_test.py MEMOPTCTL FRAMEWORKS NM [unittest arguments]

FRAMEWORKS is the folder that tools/fetch-frameworks fills (MEMOPT_FRAMEWORKS names another); without it everything is skipped.
"""
import glob
import os
import re
import subprocess
import sys
import unittest

MEMOPTCTL, FRAMEWORKS, NM = sys.argv[1:4]
del sys.argv[1:4]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
import cases  # noqa: E402
import patience

FRAMEWORKS = os.environ.get("MEMOPT_FRAMEWORKS") or FRAMEWORKS
PYTHON = os.path.join(FRAMEWORKS, "bin", "python")
PROGRAMS = os.path.join(ROOT, "integration", "workloads", "pytorch")
SIMULATOR = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(MEMOPTCTL))), "cudasim", "lib")

# Program and arguments: each program once, then what makes a difference.
RUNS = ["gpt.py 3", "llama.py 3", "bert.py 3", "vit.py 3", "resnet.py 3", "resnet.py 3 --depth 50", "unet.py 3", "lstm.py 4", "gan.py 3",
        "gpt.py 3 --layers 2 --autocast bfloat16 --kernels fused", "gpt.py 3 --layers 2 --accumulate 4 --checkpointing",
        "gpt.py 4 --layers 2 --evaluate-every 2 --save-every 2", "resnet.py 4 --side-stream --epoch 2 --optimizer sgd",
        "resnet.py 3 --layout last --autocast float16 --kernels fused", "lstm.py 3 --cell GRU"]
RESULT = re.compile(r"^MiB allocated ([\d.]+), at peak ([\d.]+), reserved at peak ([\d.]+)$", re.MULTILINE)


def run(program, *options, **environment):
    """Allocated, peak and reserved MiB by PyTorch's own counters, and what the program said on standard error."""
    name, *arguments = program.split()
    done = subprocess.run([MEMOPTCTL, "run", "--sim", "a100-40g", *options, "--", PYTHON, os.path.join(PROGRAMS, name), *arguments],
                          capture_output=True, text=True, timeout=patience.seconds(600), stdin=subprocess.DEVNULL,
                          env={**os.environ, "CUDASIM_LIBRARY_BYTES": "some", **environment})
    found = RESULT.search(done.stdout)
    if done.returncode or not found:
        raise AssertionError(f"{program} {options}: exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return [float(value) for value in found.groups()], done.stderr


@unittest.skipUnless(os.path.exists(PYTHON), f"PyTorch is not in {FRAMEWORKS}: tools/fetch-frameworks")
class PyTorch(unittest.TestCase):
    def test_programs_run_natively_and_under_memopt(self):
        for program in RUNS:
            with self.subTest(program):
                (allocated, peak, _), said = run(program, "--native")
                # Nothing that a program of this kind calls is missing, and no edge between its streams.
                for word in ("not there on the simulated device", "not implemented", "race"):
                    self.assertNotIn(word, said)
                (with_memopt, peak_with_memopt, _), said = run(program)
                self.assertNotIn("not there on the simulated device", said)
                # PyTorch's counters: its allocator rounds, the driver's pool does not.
                self.assertAlmostEqual(with_memopt, allocated, delta=0.1 * allocated)
                self.assertAlmostEqual(peak_with_memopt, peak, delta=0.05 * peak)

    def test_what_its_caching_allocator_would_have_reserved(self):
        """By PyTorch's own counter, natively."""
        for program in ("gpt.py 8 --layers 2", "resnet.py 12 --batch 4"):
            with self.subTest(program):
                (_, _, reserved), _ = run(program, "--native")
                # Said with the plan, which may be later than so short a program's end.
                _, said = run(program, MEMOPT_SYNC_PLAN=patience.WAIT)
                self.assertIn(f"; PyTorch's caching allocator: {reserved:.1f} MiB\n", said)

    def test_the_plain_route(self):
        for program in ("gpt.py 3 --layers 2", "resnet.py 3", "lstm.py 3"):
            with self.subTest(program):
                run(program, MEMOPT_FRAMEWORK_ENV="plain")

    def test_a_graph_is_captured_and_launched_again(self):
        program = ("import torch\nx, y = torch.zeros(1 << 20, device='cuda'), torch.empty(1 << 20, device='cuda')\n"
                   "graph = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(graph): y.copy_(x)\n"
                   "for i in range(3):\n  x.copy_(torch.full((1 << 20,), float(i)))\n  graph.replay()\n  print(bool((y.cpu() == i).all()))\n")
        for options in (["--native"], []):
            done = subprocess.run([MEMOPTCTL, "run", "--sim", "a100-40g", *options, "--", PYTHON, "-c", program],
                                  capture_output=True, text=True, timeout=patience.seconds(600), stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, done.stderr[-4000:])
            self.assertEqual(done.stdout.split(), ["True"] * 3, done.stderr[-4000:])

    def test_its_libraries_find_all_their_symbols(self):
        wanted = {}
        [folder] = glob.glob(os.path.join(FRAMEWORKS, "lib", "python3*", "site-packages", "torch", "lib"))
        for library in ("libc10_cuda.so", "libtorch_cuda.so", "libtorch_cuda_linalg.so", "libtorch_python.so"):
            out = subprocess.run([NM, "-D", "--undefined-only", "--with-symbol-versions", os.path.join(folder, library)], check=True,
                                 capture_output=True, text=True).stdout
            for symbol in (line.split()[-1] for line in out.splitlines()):
                name, _, version = symbol.partition("@")
                wanted.setdefault(version.lstrip("@"), set()).add(name)
        for version in ("libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libcusparse.so.12", "libcusolver.so.12",
                        "libcufft.so.12"):
            with self.subTest(version):
                self.assertTrue(wanted.get(version))
                out = subprocess.run([NM, "-D", "--defined-only", "--with-symbol-versions", os.path.join(SIMULATOR, version)], check=True,
                                     capture_output=True, text=True).stdout
                exported = {line.split()[-1] for line in out.splitlines()}
                self.assertEqual(sorted(n for n in wanted[version] if f"{n}@@{version}" not in exported), [])
        listed = os.path.join(ROOT, "tests", "cudasim", "libraries", "runtime_names.txt")
        with open(listed, encoding="utf-8") as file:
            names = {line.split()[0] for line in file if line.strip() and not line.startswith("#")}
        self.assertEqual(sorted(wanted["libcudart.so.13"] - names), [], f"not in {listed}")


if __name__ == "__main__":
    cases.main()
