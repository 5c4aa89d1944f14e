#!/usr/bin/env python3
"""CuPy's, Numba's and tinygrad's programs on the simulated device, natively and under memopt: prints a row for each.

What a row says: device memory held at most, whether a plan went live, and whether contents are equal. Digests of what copies alone make are
always compared; those of what kernels make where every kernel has a host version or is executed, else they are '-'.
TEST_BUILD names the build folder (default: build/release of this checkout). Exit code 1: a program failed, or its contents were not equal."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TEST_BUILD") or os.path.join(ROOT, "build", "release")
PYTHON = os.path.join(os.environ.get("MEMOPT_ARRAYS") or os.path.join(ROOT, "build", "arrays"), "bin", "python")
WORKLOADS = os.path.join(ROOT, "integration", "workloads")
DEVICE = "a100-40g"
# Name, program and arguments, environment.
ROWS = [("cupy, its own pool", "cupy/arrays.py 8", {}), ("cupy, no pool", "cupy/arrays.py 8 --pool off", {}),
        ("cupy, stream-ordered", "cupy/arrays.py 8 --pool async", {}), ("cupy, graph", "cupy/arrays.py 8 --graph", {}),
        ("cupy, graph, no pool", "cupy/arrays.py 8 --graph --pool off", {}), ("numba", "numba/arrays.py 8", {}),
        ("tinygrad, convolutions", "tinygrad/convnet.py 6", {"JIT": "2"}), ("tinygrad, convolutions, graphs", "tinygrad/convnet.py 6", {"JIT": "1"}),
        ("tinygrad, no cache", "tinygrad/convnet.py 6", {"JIT": "2", "LRU": "0"}),
        ("tinygrad, GPT", "tinygrad/gpt.py 6", {"JIT": "2"}), ("tinygrad, GPT, graphs", "tinygrad/gpt.py 6", {"JIT": "1"})]
# CuPy's modules of CUB and Thrust have NVIDIA's static runtime inside. It asks NVRTC for machine code unless told otherwise, which is read here, not run.
EVERYWHERE = {"DEV": "CUDA", "CUPY_ACCELERATORS": "", "CUPY_COMPILE_WITH_PTX": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class Finished:
    """One run: its digests, the driver's counters, what memopt said."""

    def __init__(self, text, environment, options=(), timeout=600):
        program, *arguments = text.split()
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report")
            command = [os.path.join(BUILD, "bin", "memoptctl"), "run", "--sim", DEVICE, *options, "--", PYTHON, os.path.join(WORKLOADS, program), *arguments]
            done = subprocess.run(command, env=os.environ | EVERYWHERE | environment | {"CUDASIM_REPORT": report}, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=timeout)
            self.code, self.errors = done.returncode, done.stderr
            self.report = {}
            if os.path.exists(report):
                with open(report, encoding="utf-8") as file:
                    self.report = json.load(file)
        self.digests = dict(re.findall(r"^(copied|computed) ([0-9a-f]+)$", done.stdout, re.MULTILINE))

    @property
    def failure(self):
        """What is wrong with it; '' for nothing."""
        if self.code != 0 or len(self.digests) != 2:
            lines = [line for line in self.errors.splitlines() if line.strip()]
            return f"exit code {self.code}: {lines[-1][:150] if lines else 'nothing said'}"
        missing = sorted(set(re.findall(r"cudasim: (\w+) is not implemented", self.errors)))
        if missing:
            return "missing: " + ", ".join(missing)
        return f"{self.report['counters']['races']} races" if self.report["counters"]["races"] else ""

    @property
    def held(self):
        return self.report["counters"]["bytes_held_peak"] / 2**20

    @property
    def computes(self):
        return self.report["counters"]["unknown_kernels"] == 0

    @property
    def planned(self):
        return "memopt: plan live" in self.errors


def compare(native, run):
    """Whether contents are equal: 'yes', 'no', or 'copies' where kernels compute nothing."""
    if native.digests["copied"] != run.digests["copied"]:
        return "no"
    if not (native.computes and run.computes):
        return "copies"
    return "yes" if native.digests == run.digests else "no"


def row(name, text, environment):
    """The row's text, and whether it is as it must be."""
    native = Finished(text, environment, ["--native"])
    run = Finished(text, environment | {"MEMOPT_SYNC_PLAN": "1"})
    for which, finished in (("natively", native), ("under memopt", run)):
        if finished.failure:
            return f"| {name} | {which}: {finished.failure} | | | |", False
    equal = compare(native, run)
    return f"| {name} | {native.held:,.0f} | {run.held:,.0f} | {'yes' if run.planned else 'no'} | {equal} |", equal != "no"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="those whose names begin so (default: all)")
    options = parser.parse_args()
    if not os.path.exists(PYTHON):
        parser.error(f"{PYTHON} is not there: tools/fetch-arrays")
    chosen = [one for one in ROWS if not options.rows or any(one[0].startswith(name) for name in options.rows)]
    if not chosen:
        parser.error(f"no such row; there are: {'; '.join(name for name, _, _ in ROWS)}")
    print("| program | held at most (MiB), natively | under memopt | planned | contents equal |\n|---|---|---|---|---|", flush=True)
    good = True
    for one in chosen:
        text, fine = row(*one)
        good = good and fine
        print(text, flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
