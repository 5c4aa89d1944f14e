#!/usr/bin/env python3
"""What goes wrong around a limit: a program reads what it must, or is given the driver's error; it never reads wrong bytes,
never hangs, and the reason is told. With --full: more calls fail, each at more places."""
import itertools
import json
import os
import signal
import subprocess
import time
import unittest

import cases
import patience
from limit_runs import DEADLINE, LIMIT, MIB, PROGRAM, LimitCase, LimitRun, native
from runs import FULL, LOOP, MEMOPTCTL, ORDER, PLANNER_NAME, POOLS, WORKLOADS, environment

TURNS = [PROGRAM, "turns", "60" if FULL else "30"]  # steps: 12 blocks are 72 MiB
SWAPPED = [PROGRAM, "longer-launches", "40" if FULL else "16"]  # by a plan, from iteration 4 on
SWAPPED_LIMIT = 28 * MIB
OUT_OF_MEMORY, FAILED, NOT_SUPPORTED = 2, 719, 801
# Of the driver, by the agent; which of them fails.
CALLS = ("cuMemHostAlloc", "cuMemHostRegister_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuMemCreate",
         "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease", "cuStreamCreate", "cuEventCreate", "cuEventRecord",
         "cuStreamWaitEvent", "cuStreamSynchronize", "cuEventSynchronize", "cuEventQuery")
PLACES = ("@1", "@2", "@3", "@5", "@9", "@17", "@33", "") if FULL else ("@9", "")
ERRORS = (OUT_OF_MEMORY, FAILED, NOT_SUPPORTED) if FULL else (OUT_OF_MEMORY,)
# So many different calls fail in one run, each once; an error that ends the program hides those behind it.
TOGETHER = 1 if FULL else 4
SMALL_LIMITS = [(limit * MIB, {"CUDASIM_SEED": seed} if seed else {}) for limit, seed in ((12, None), (16, "1"), (12, "1"), (16, None))]
if not FULL:
    SMALL_LIMITS = SMALL_LIMITS[:2]
PATIENCE = patience.seconds(60)


def together(injected, count):
    """What CUDASIM_INJECT is in each of as few runs."""
    runs = (len(injected) + count - 1) // count
    return [",".join(injected[k::runs]) for k in range(runs)]


class Failures(LimitCase):
    def test_a_call_of_the_driver_fails(self):
        """On demand. Where the error reaches the program, it names it."""
        reference = native(*TURNS)
        for place, error in itertools.product(PLACES, ERRORS):
            # Once each; a call that always fails is alone.
            for inject in together([f"{call}:{error}{place}" for call in CALLS], TOGETHER if place else 1):
                with self.subTest(inject=inject):
                    run = self.fails(TURNS, LIMIT, reference, inject)
                    if run.code == 3:
                        self.assertRegex(run.errors, r"limit_cases: \w+: error \d+")

    def fails(self, command, limit, reference, inject):
        """Code 3: the driver's error reached the program."""
        run = LimitRun(command, limit, CUDASIM_INJECT=inject)
        self.assertIn(run.code, (0, 3), run.output + run.errors)
        self.assertEqual(run.report["counters"]["races"], 0, run.report["last_race"])
        if run.code == 0:
            self.assertEqual(run.output, reference.output)
        return run

    def test_a_call_fails_while_a_plan_swaps(self):
        """Once in the run, in its middle or at several places, or again and again."""
        reference = native(*SWAPPED)
        calm = self.limited(SWAPPED, SWAPPED_LIMIT)
        self.assertIn("swaps as planned", calm.last_words, calm.errors)
        places = 24 if FULL else 1
        for error in ERRORS:
            injected = []
            for call in CALLS:
                count = calm.report["calls"].get(call, 0)
                injected += [f"{call}:{error}@{number}"
                             for number in sorted({max(1, count * (2 * k + 1) // (2 * places)) for k in range(places)}) if count]
            for inject in together(injected, TOGETHER):
                with self.subTest(inject=inject):
                    self.fails(SWAPPED, SWAPPED_LIMIT, reference, inject)
        # Of a block that is to leave some pieces have been queued when one fails: whoever has its bytes next is behind these.
        for call in CALLS if FULL else ("cuMemcpyDtoHAsync_v2",):
            count = calm.report["calls"].get(call, 0)
            for first, step in itertools.product((10, 14, 18, 22), (7, 10, 11, 19, 37)) if FULL else ((10, 10), (14, 10)):
                with self.subTest(call=call, first=first, step=step):
                    self.fails(SWAPPED, SWAPPED_LIMIT, reference, ",".join(f"{call}:{OUT_OF_MEMORY}@{k}" for k in range(first, 2 * count + first + 1, step)))

    def test_no_page_locked_memory(self):
        """It may be refused at once or later: nothing leaves then, the limit is passed, and that is said."""
        reference = native(*TURNS)
        inject = ",".join(f"{call}:{OUT_OF_MEMORY}" for call in ("cuMemHostAlloc", "cuMemHostRegister_v2"))
        run = self.limited(TURNS, LIMIT, CUDASIM_INJECT=inject)
        self.assertEqual(run.output, reference.output)
        self.assertGreater(run.passed_by, 0, run.errors)

    def test_host_memory_is_short(self):
        reference = native(*TURNS)
        for size in ("8MiB", "20MiB"):
            with self.subTest(size=size):
                run = self.limited(TURNS, LIMIT, MEMOPT_HOST_LIMIT=size)
                self.assertEqual(run.output, reference.output)
                self.assertGreater(run.passed_by, 0, run.errors)
                self.assertIn("MEMOPT_HOST_LIMIT", run.errors)
                self.assertLess(len(run.errors.splitlines()), 12, "it is said once or twice, not each time")

    def test_it_has_no_effect_and_says_so(self):
        reference = native(*TURNS)
        for options in ({"MEMOPT_PLAN": "0"}, {"CUDASIM_INJECT": "cuMemAddressReserve:801"}):
            with self.subTest(options=options):
                run = self.limited(TURNS, LIMIT, **options)
                self.assertEqual(run.output, reference.output)
                self.assertRegex(run.errors, "MEMOPT_LIMIT has no effect: .+")
                self.assertGreater(run.held, LIMIT)

    def test_memopt_is_switched_off(self):
        run = self.limited(TURNS, LIMIT, MEMOPT_DISABLE="1")
        self.assertEqual(run.output, native(*TURNS).output)
        self.assertEqual(run.errors, "")
        self.assertGreater(run.held, LIMIT)

    def test_values_that_are_no_sizes(self):
        for name in ("MEMOPT_LIMIT", "MEMOPT_HOST_LIMIT"):
            for value in ("banana", "-1", "0%", "101%", "1e99GiB", "99999999999999999999"):
                if name == "MEMOPT_HOST_LIMIT" and "%" in value:
                    continue
                with self.subTest(name=name, value=value):
                    limit, more = (value, {}) if name == "MEMOPT_LIMIT" else (LIMIT, {name: value})
                    run = self.limited(TURNS, limit, **more)
                    self.assertEqual(run.output, native(*TURNS).output)
                    self.assertIn(name, run.errors)

    def test_the_planner_is_killed_meanwhile(self):
        command = [PROGRAM, "iterations", "40" if FULL else "20"]
        reference = native(*command)
        name = PLANNER_NAME + "-limit"
        variables = environment(MEMOPT_LIMIT=str(LIMIT), MEMOPT_SYNC_PLAN="0", MEMOPT_PLANNER_NAME=name)
        process = subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + DEADLINE
        killed = 0
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
            killed += kill_planners(name)
        if process.poll() is None:
            process.kill()
        output, errors = process.communicate()
        self.assertEqual((process.returncode, output), (0, reference.output), errors)
        self.assertGreater(killed, 0)

    def test_status(self):
        """Asked while the program sleeps between iterations."""
        limit = 16 * MIB
        process = subprocess.Popen([LOOP, "100000", "--pause", "2000", "--keep"], stdin=subprocess.DEVNULL,
                                   env=environment(MEMOPT_LIMIT=str(limit)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        end = time.monotonic() + PATIENCE
        swaps = None
        while time.monotonic() < end and (swaps is None or swaps["swapped_in"] == 0):
            answer = subprocess.run([MEMOPTCTL, "status", "--json", "--pid", str(process.pid)], capture_output=True,
                                    text=True, timeout=PATIENCE)
            try:
                swaps = json.loads(answer.stdout)["processes"][0]["agent"]["swaps"]
            except (ValueError, KeyError, IndexError, TypeError):
                time.sleep(0.05)
        self.assertIsNotNone(swaps, answer.stdout)
        self.assertEqual(swaps["limit"], limit)
        self.assertGreater(swaps["swapped_in"], 0, swaps)
        self.assertGreaterEqual(swaps["swapped_out"], swaps["swapped_in"])
        self.assertLessEqual(swaps["held"], swaps["held_peak"])
        self.assertEqual(max(swaps["held_peak"] - limit, 0), swaps["beyond"])
        self.assertEqual(swaps["beyond"] > 0, swaps["beyond_why"] != "")
        self.assertGreaterEqual(swaps["host"], swaps["away"])
        self.assertEqual((swaps["pinned"], swaps["pinned_bytes"], swaps["note"]), (0, 0, ""))

    def test_other_programs(self):
        """Those of tests/planning, which have blocks of a few MiB: the same, within 12 to 16 MiB."""
        for command in ([LOOP, "12", "--keep", "--odd", "5", "--streams", "2"], [LOOP, "12", "--threads"],
                        [LOOP, "12", "--reset", "5"], [LOOP, "12", "--leave", "5"], [POOLS, "10"],
                        [POOLS, "10", "--plain", "--odd", "4"], [ORDER, "streams", "64"], [ORDER, "other-thread", "20"],
                        [ORDER, "host-function", "5"], [ORDER, "threads", "8"], [ORDER, "barrier"],
                        [os.path.join(WORKLOADS, "vector_driver")]):
            reference = native(*command)
            for limit, more in SMALL_LIMITS:
                with self.subTest(command=command, limit=limit, **more):
                    run = self.limited(command, limit, **more)
                    self.assertEqual(run.output, reference.output, run.errors)


def kill_planners(name):
    killed = 0
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
            if "memoptd" in os.path.basename(words[0]) and name in words:
                os.kill(int(entry), signal.SIGKILL)
                killed += 1
        except OSError:
            continue
    return killed


if __name__ == "__main__":
    cases.main()
