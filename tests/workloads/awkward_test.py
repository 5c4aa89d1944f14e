#!/usr/bin/env python3
"""Awkward programs (integration/workloads/awkward), one behaviour each: under memopt they print and return what they do natively, with a
limit too, in any order that the declared edges allow, and what they held of the device is back at their end. With --full: more orders, and
many rounds in one process, so that a plan is followed."""
import concurrent.futures
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "planning"))

import cases  # noqa: E402
import patience  # noqa: E402
from runs import FULL, SHIM, WITHOUT_A_PLANNER, WORKLOADS, Run  # noqa: E402 (it is in a neighbouring room)

PROGRAMS = ["awkward", "awkward_runtime", "awkward_runtime_static"]
SETTINGS = {"CUDASIM_CAPACITY": "256M", "CUDASIM_PTX_CACHE": os.path.join(WORKLOADS, "awkward-cache")}
# Ask how much of the device there is: under a limit the answer is another one.
AMOUNTS = {"probed-for-memory", "free-bytes-followed"}
# Uses that nothing shows before they happen: under a limit the block may be away then. docs/pointers.md has the reasons.
UNSEEN = {"pointers-biased-by-a-row", "table-in-managed-memory", "pointer-stored-in-a-global", "blocks-by-distance", "pointers-in-disguise"}
# Seen before the next block leaves, and not by a launch before that, if its block is away already.
LATE = {"table-in-halves", "table-filled"}
# With the static runtime; all of them with --full.
STATIC = {"first-on-a-thread", "device-reset", "entry-points", "destructors"}
# As they end natively; all others by 0.
CODES = {"exit": 5, "exit-at-once": 6, "exit-quickly": 7, "exit-frees": 8, "exit-within-exit": 9, "exit-leaves-threads": 4, "abort": -6, "killed": -9}


def run(command, **options):
    return Run(command, timeout=patience.seconds(120), **(SETTINGS | options))


def listed(program):
    done = run([program, "--list"], planned=False)
    return [(program, *line.split()) for line in done.output.splitlines()]


class Awkward(unittest.TestCase):
    """The runs of a case, and what is wrong with them."""

    def problems(self, program, name, kind):
        native = run([program, name], planned=False)
        found = []

        def compare(mode, reference, done):
            if done.code != reference.code:
                found.append(f"{mode}: ends by {done.code} instead of {reference.code}")
            if done.output != reference.output:
                differ = [f"{a!r} instead of {b!r}" for a, b in zip(done.output.splitlines(), reference.output.splitlines()) if a != b]
                found.append(f"{mode}: prints {'; '.join(differ[:3]) or 'more or less'}")
            if (done.report is None) != (reference.report is None):
                found.append(f"{mode}: {'no report' if done.report is None else 'a report'}")
            elif done.report is not None:
                counters = done.report["counters"]
                if counters["races"] != 0:
                    found.append(f"{mode}: {done.report['last_race']}")
                # The context is gone then, and all that memopt has held with it.
                if name != "destructors" and reference.report["counters"]["bytes_held"] == 0 and counters["bytes_held"] != 0:
                    found.append(f"{mode}: {counters['bytes_held']} bytes are held at the end")
            if found and found[-1].startswith(mode) and done.errors:
                found.append(f"{mode} says: {done.errors[-600:]}")

        if native.code != CODES.get(name, 0) or native.report is not None and native.report["counters"]["unknown_kernels"] != 0:
            return [f"natively: ends by {native.code}: {native.output[-200:]}{native.errors[-600:]}"]
        if program.endswith("awkward") and native.code == 0 and not native.output.endswith("balance: 0\n"):
            return [f"natively: {native.output[-200:]}"]
        if native.report is not None and native.report["counters"]["races"] != 0:
            return [f"natively: {native.report['last_race']}"]
        compare("memopt", native, run([program, name], CUDASIM_SEED="2", **WITHOUT_A_PLANNER))
        if native.report is not None:
            peak = native.report["counters"]["bytes_held_peak"]
            if peak != 0 and name not in AMOUNTS | UNSEEN | LATE:
                limited = WITHOUT_A_PLANNER | {"MEMOPT_LIMIT": str(peak * 6 // 10)}
                for seed in ["3", "4", None] if FULL else ["3"]:
                    compare("with a limit", native, run([program, name], CUDASIM_SEED=seed, **limited))
        if FULL and kind == "repeats" and name not in AMOUNTS:
            again = run([program, name, "12"], planned=False)
            compare("a plan", again, run([program, name, "12"], CUDASIM_SEED="5"))
        return found

    def test_awkward_programs(self):
        programs = [os.path.join(WORKLOADS, name) for name in PROGRAMS if os.path.exists(os.path.join(WORKLOADS, name))]
        self.assertEqual([os.path.basename(program) for program in programs], PROGRAMS)
        all_cases = [case for program in programs for case in listed(program) if FULL or program != programs[2] or case[1] in STATIC]
        self.assertGreater(len(all_cases), 100)
        self.assertLessEqual(UNSEEN | LATE | AMOUNTS | set(CODES), {name for _, name, _ in all_cases})
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for case, found in zip(all_cases, pool.map(lambda case: self.problems(*case), all_cases)):
                with self.subTest(program=os.path.basename(case[0]), case=case[1]):
                    self.assertEqual(found, [], "\n".join(found))

    def test_what_is_not_seen(self):
        """The list above is exact: each of them fails, or reads something else, where its block is away. Without a limit none does."""
        program = os.path.join(WORKLOADS, "awkward")
        for name in sorted(UNSEEN):
            with self.subTest(case=name):
                native = run([program, name], planned=False)
                limit = str(native.report["counters"]["bytes_held_peak"] * 3 // 10)
                limited = run([program, name], MEMOPT_LIMIT=limit, **WITHOUT_A_PLANNER)
                self.assertNotEqual((limited.code, limited.output), (native.code, native.output))

    def test_attached_by_the_driver(self):
        """CUDA_INJECTION64_PATH in place of LD_PRELOAD: a program that is linked with the driver is seen as ever; one that has looked its calls up before
        the driver was initialised runs unchanged."""
        for program, name in (("awkward", "table-copied"), ("awkward", "freed-while-in-use"), ("awkward", "driver-opened-again"), ("awkward_runtime", "symbols")):
            with self.subTest(program=program, case=name):
                command = [os.path.join(WORKLOADS, program), name]
                native = run(command, planned=False)
                limit = str(native.report["counters"]["bytes_held_peak"] * 6 // 10)
                injected = run(command, planned=False, CUDA_INJECTION64_PATH=SHIM, MEMOPT_LIMIT=limit, **WITHOUT_A_PLANNER)
                self.assertEqual((injected.code, injected.output), (native.code, native.output), injected.errors)
                self.assertEqual(injected.report["counters"]["races"], 0)
                if program == "awkward":
                    self.assertRegex(injected.errors, r"memopt: limit .* MiB held at most")
                # With both, it is attached once.
                both = run(command, CUDA_INJECTION64_PATH=SHIM, MEMOPT_LIMIT=limit, **WITHOUT_A_PLANNER)
                self.assertEqual((both.code, both.output), (native.code, native.output), both.errors)

    def test_a_library_that_cannot_be_injected(self):
        native = run([os.path.join(WORKLOADS, "awkward"), "pitched"], planned=False)
        missing = run([os.path.join(WORKLOADS, "awkward"), "pitched"], planned=False, CUDA_INJECTION64_PATH="/nonexistent/tool.so")
        self.assertEqual((missing.code, missing.output), (native.code, native.output))
        self.assertIn("CUDA_INJECTION64_PATH: /nonexistent/tool.so", missing.errors)


if __name__ == "__main__":
    cases.main()
