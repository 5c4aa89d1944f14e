#!/usr/bin/env python3
"""The instrument on programs whose kernels no plug-in has: contents and order are the same natively and above the shim, and what breaks
them is seen."""
import os
import tempfile
import unittest
import uuid

import cases
import patience
import simulated

PROGRAM = os.environ["TEST_PROGRAM"]
INSTRUMENT = os.environ["TEST_INSTRUMENT"]
SIMULATOR = os.environ["TEST_SIMULATOR"]
WORKLOADS = os.environ["TEST_WORKLOADS"]
SHIM = os.environ.get("TEST_SHIM", "")
RACE = 86
# A planner of this test's own, gone when it is idle.
PLANNER = {"MEMOPT_PLANNER_NAME": "test-" + uuid.uuid4().hex[:12], "MEMOPT_SYNC_PLAN": patience.WAIT}
FOUND = "uses_checksum", "live_checksum", "launches", "effects", "live_blocks", "live_bytes", "allocated", "freed", "kernels"
# Bytes a nanosecond, and the time that any kernel takes (driver/presets/a100-40g.json).
RATE, LATENCY = 1555, 3000


def run(*arguments, program=(PROGRAM,), shim=False, instrument=True, **environment):
    clean = {key: value for key, value in simulated.clean_environment().items() if not key.startswith("LAUNCH_EFFECTS_")}
    clean["LD_LIBRARY_PATH"] = os.path.join(SIMULATOR, "lib")
    clean["CUDASIM_DEVICE"] = "a100-40g"
    clean["LD_PRELOAD"] = ":".join(([INSTRUMENT] if instrument else []) + ([SHIM] if shim else []))
    if shim:
        clean |= PLANNER
    return simulated.Finished([*program, *arguments], clean | environment, files={"LAUNCH_EFFECTS_REPORT": "effects"}, timeout=patience.seconds(300))


class LaunchEffects(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.decisions = os.path.join(folder.name, "decisions")

    def succeed(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.code, 0, done.output + done.errors)
        self.assertEqual(done.report["races"], 0)
        self.assertEqual(done.report["unknown_kernels"], {})
        return done

    def decide(self, *arguments):
        self.succeed(*arguments, LAUNCH_EFFECTS_DECIDE=self.decisions)
        with open(self.decisions, encoding="utf-8") as file:
            return file.read()

    def same(self, first, second):
        self.assertEqual(first.output, second.output)
        for name in FOUND:
            self.assertEqual(first.effects[name], second.effects[name], name)

    def test_a_launch_has_an_effect(self):
        without = run("8", instrument=False)
        effect = self.succeed("8")
        self.assertNotEqual(effect.output, without.output)
        self.assertEqual(effect.effects["launches"], 4 * 8)
        self.assertEqual(effect.effects["effects"], 4 * 8)
        self.assertEqual(effect.effects["allocated"] - effect.effects["freed"], effect.effects["live_blocks"])
        self.assertNotEqual(self.succeed("9").output, effect.output)

    def test_a_launch_takes_the_roofline_of_its_blocks(self):
        for kernel in self.succeed("1").effects["kernels"]:
            with self.subTest(kernel=kernel["name"]):
                self.assertAlmostEqual(kernel["ns"], kernel["launches"] * LATENCY + kernel["bytes"] / RATE, delta=kernel["launches"])
        bytes_named = {kernel["name"]: kernel["bytes"] for kernel in self.succeed("1").effects["kernels"]}
        self.assertEqual(bytes_named["scale"], 3 << 20)

    def test_the_same_natively_and_above_the_shim(self):
        if not SHIM:
            self.skipTest("no shim in this build")
        for arguments in ["--plain"], ["--async"]:
            native = self.succeed("30", *arguments)
            for seed in (None, "1", "2", "3", "4"):
                with self.subTest(arguments=arguments, seed=seed):
                    order = {} if seed is None else {"CUDASIM_SEED": seed}
                    self.same(self.succeed("30", *arguments, **order), native)
                    shimmed = self.succeed("30", *arguments, shim=True, **order)
                    self.same(shimmed, native)
                    self.assertIn("plan live at iteration", shimmed.errors)
                    self.assertLess(shimmed.report["calls"].get("cuMemAlloc_v2", 0) + shimmed.report["calls"].get("cuMemAllocAsync", 0),
                                    native.effects["allocated"], "the shim has served them")

    def test_stale_words_do_not_count(self):
        """Padding of structs holds addresses of freed blocks, which are other blocks' by then."""
        decided = self.decide("30", "--async", "--stale")
        named = [line.split()[6:] for line in decided.splitlines() if line.startswith("launch")]
        plain = self.decide("30", "--async")
        self.assertEqual([line.split()[6:] for line in plain.splitlines() if line.startswith("launch")], named)
        self.assertNotEqual(run("30", "--async", "--stale").effects["uses_checksum"],
                            run("30", "--async").effects["uses_checksum"], "they name blocks where nothing is decided")
        self.decide("30", "--async", "--stale")
        native = self.succeed("30", "--async", "--stale", LAUNCH_EFFECTS_DECISIONS=self.decisions)
        self.assertEqual(native.effects["disagreed"], 0)
        self.assertEqual(native.effects["undecided"], 0)
        for seed in ("1", "2") if SHIM else ():
            shimmed = self.succeed("30", "--async", "--stale", shim=True, CUDASIM_SEED=seed, LAUNCH_EFFECTS_DECISIONS=self.decisions)
            self.same(shimmed, native)
            self.assertEqual(shimmed.effects["disagreed"], 0)

    def test_decisions_of_a_shorter_run_say_what_is_new(self):
        self.decide("4")
        longer = self.succeed("6", LAUNCH_EFFECTS_DECISIONS=self.decisions)
        self.assertEqual(longer.effects["undecided"], 2 * 4)

    def test_a_run_that_decides_may_be_long(self):
        """A thousand blocks of addresses of their own are what a process of 12 GB has; these are three times as many."""
        limited = ["sh", "-c", 'ulimit -v 12000000 && exec "$0" "$@"', PROGRAM]
        self.succeed("800", "--async", program=limited, LAUNCH_EFFECTS_DECIDE=self.decisions)
        with open(self.decisions, encoding="utf-8") as file:
            decided = file.read()
        self.assertEqual(decided, self.decide("800", "--async"))

    def test_a_second_run_that_decides_keeps_what_it_agrees_with(self):
        first = self.decide("4")
        # One word more than the program has.
        lines = first.splitlines()
        lines[-1] += " 24:0.0+8"
        with open(self.decisions, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        again = self.decisions + ".again"
        done = self.succeed("4", LAUNCH_EFFECTS_DECISIONS=self.decisions, LAUNCH_EFFECTS_DECIDE=again)
        self.assertEqual(done.effects["disagreed"], 1)
        with open(again, encoding="utf-8") as file:
            self.assertEqual(file.read(), first)

    def test_a_file_of_something_else_is_refused(self):
        with open(self.decisions, "w", encoding="utf-8") as file:
            file.write("launch-effects 2\n")
        done = self.succeed("2", LAUNCH_EFFECTS_DECISIONS=self.decisions)
        self.assertIn("is no file of decisions", done.errors)
        self.assertEqual(done.output, self.succeed("2").output)

    def test_a_missing_dependency_is_found(self):
        """By the checker in any order, and by the contents under an adversary."""
        right = self.succeed("12").output
        broken = run("12", "--no-edge")
        self.assertEqual(broken.code, RACE, broken.errors)
        self.assertIn("not ordered: 'kernel", broken.errors)
        for shim in [False, True] if SHIM else [False]:
            outputs = {run("12", "--no-edge", shim=shim, CUDASIM_CHECK="off", CUDASIM_SEED=str(seed)).output for seed in range(6)}
            self.assertTrue(outputs - {right}, "no order was wrong")

    def test_the_first_launch_that_finds_other_bytes_is_named(self):
        uses = [self.decisions + name for name in (".right", ".wrong")]
        self.succeed("4", LAUNCH_EFFECTS_USES=uses[0])
        run("4", "--no-edge", CUDASIM_CHECK="off", CUDASIM_SEED="3", LAUNCH_EFFECTS_USES=uses[1])
        right, wrong = ([line.split() for line in open(path, encoding="utf-8")] for path in uses)
        self.assertEqual([line[3] for line in right], ["scale", "_Z7add_rowPKfS0_Pfi", "gather", "_Z7add_rowPKfS0_Pfi"] * 4)
        differing = [one[3] for one, other in zip(right, wrong) if one != other]
        self.assertEqual(differing[:1], ["gather"])

    def test_less_of_the_bytes(self):
        some = [self.succeed("8", LAUNCH_EFFECTS_BYTES="some", shim=shim and bool(SHIM)) for shim in (False, True)]
        for name in ("uses_checksum", "live_checksum", "kernels"):
            self.assertEqual(some[0].effects[name], some[1].effects[name])
        self.assertNotEqual(some[0].effects["uses_checksum"], self.succeed("8").effects["uses_checksum"])
        none = self.succeed("8", LAUNCH_EFFECTS_BYTES="none")
        self.assertEqual(none.effects["effects"], 0)
        self.assertEqual(none.effects["kernels"], some[0].effects["kernels"], "the times are the same")
        self.assertEqual(none.output, run("8", instrument=False).output, "and no byte has changed")

    def test_programs_that_look_functions_up(self):
        """Through a runtime: dlopen, dlsym, cuGetProcAddress."""
        program = os.path.join(WORKLOADS, "vector_runtime")
        if not os.path.exists(program):
            self.skipTest("no program for the runtime in this build")
        for shim in [False, True] if SHIM else [False]:
            done = run(program=[program], shim=shim, CUDASIM_KERNELS="/nowhere")
            self.assertGreater(done.effects["launches"], 0, done.errors)
            self.assertEqual(done.effects["launches"], done.report["launches"])
            self.assertEqual(done.report["unknown_kernels"], {})

    def test_it_wants_to_come_first(self):
        if not SHIM:
            self.skipTest("no shim in this build")
        self.assertNotIn("stands in front", self.succeed("1", shim=True).errors)
        done = run("1", instrument=False, LD_PRELOAD=f"{SHIM}:{INSTRUMENT}")
        self.assertIn("another library stands in front", done.errors)


if __name__ == "__main__":
    cases.main()
