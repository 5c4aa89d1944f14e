#!/usr/bin/env python3
"""What goes wrong around a program must not be seen in it: same output, same exit code, and the reason is told. With --full: more
programs at once, and more kills."""
import errno
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cases
import patience
from runs import BUILD, FULL, LOOP, MEMOPTCTL, PLANNER_NAME, SHIM, PlanningCase, Run, environment

SHORT_MEMORY = os.path.join(BUILD, "tests", "libshort_memory.so")
KILLS = 1000 if FULL else 60
TOGETHER = 50 if FULL else 25
PATIENCE = patience.seconds(60)  # seconds for something that must come


def planners(name):
    """Processes of the planner of that name."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "memoptd" in os.path.basename(words[0]) and name in words:
            found.append(int(entry))
    return found


def leftovers():
    return {os.path.join(folder, name) for folder in ("/dev/shm", "/tmp") for name in os.listdir(folder) if "memopt" in name.lower()}


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not after {PATIENCE} s")
        time.sleep(0.02)


class ControlGroup:
    """A group of its own for memory, of version 1 or 2, whichever is mounted."""

    def __init__(self, name):
        first = os.path.isdir("/sys/fs/cgroup/memory")
        self.folder = os.path.join("/sys/fs/cgroup/memory" if first else "/sys/fs/cgroup", name)
        self.limits = ("memory.limit_in_bytes", "memory.max_usage_in_bytes") if first else ("memory.max", "memory.peak")
        self.procs = os.path.join(self.folder, "cgroup.procs")
        try:
            os.mkdir(self.folder)
        except OSError:
            self.usable = False
            return
        self.usable = all(os.path.exists(os.path.join(self.folder, name)) for name in self.limits)

    def limit(self, size):
        with open(os.path.join(self.folder, self.limits[0]), "w", encoding="ascii") as file:
            file.write(str(size))

    def peak(self):
        with open(os.path.join(self.folder, self.limits[1]), encoding="ascii") as file:
            return int(file.read())

    def members(self):
        with open(self.procs, encoding="ascii") as file:
            return [int(line) for line in file]

    def empty(self):
        """A planner that was started from within is a member too, and lives on for a while."""
        def gone():
            for pid in self.members():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            return not self.members()
        wait_until(gone, "the control group is not empty")

    def remove(self):
        self.empty()
        os.rmdir(self.folder)


class BadDays(PlanningCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.command = [LOOP, "12", "--keep", "--odd", "5"]
        cls.reference = Run(cls.command, planned=False)
        cls.random = random.Random(7)
        assert cls.reference.code == 0, cls.reference.errors

    def assert_same(self, run):
        self.assertEqual(run.output, self.reference.output, run.errors)
        self.assertEqual(run.code, 0, run.errors)

    def status_during(self, condition, **options):
        """The agent's status, asked while the program sleeps between iterations, as soon as it is as wanted."""
        process = subprocess.Popen([LOOP, "100000", "--pause", "2000"], env=environment(**options), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        last = []

        def holds():
            answer = subprocess.run([MEMOPTCTL, "status", "--json", "--pid", str(process.pid)], capture_output=True, text=True)
            try:
                status = json.loads(answer.stdout)["processes"][0]["agent"]
            except (ValueError, KeyError, IndexError, TypeError):
                return False
            if status is None:
                return False  # it has not begun yet
            last[:] = [status]
            return condition(status)
        try:
            wait_until(holds, "status is as expected")
        except AssertionError as error:
            raise AssertionError(f"{error}; last: {last}") from error
        finally:
            process.kill()
            process.wait()
        return last[0]

    def test_all_is_well(self):
        run = Run(self.command)
        self.assert_same(run)
        self.assertIsNotNone(run.live_at, run.errors)

    def test_status_tells_the_plan(self):
        status = self.status_during(lambda status: status["state"] == "planned")
        self.assertGreater(status["plan"]["iteration_at_live"], 0)
        self.assertGreater(status["plan"]["slab"], 0)

    def test_no_planner(self):
        nowhere = os.path.join(self.folder, "nowhere", "memoptd")
        without = {"MEMOPT_PLANNER": nowhere, "MEMOPT_PLANNER_NAME": PLANNER_NAME + "-missing"}
        self.assert_same(Run(self.command, **without))
        status = self.status_during(lambda status: nowhere in json.dumps(status.get("plan") or {}), **without)
        self.assertEqual(status["state"], "bootstrap")

    def test_a_planner_that_is_no_planner(self):
        for program in ("/bin/true", "/bin/false", "/etc/hostname", "/"):
            with self.subTest(program):
                self.assert_same(Run(self.command, MEMOPT_PLANNER=program, MEMOPT_PLANNER_NAME=PLANNER_NAME + "-none"))

    def test_unknown_values_in_the_environment(self):
        run = Run(self.command, MEMOPT_RING="banana", MEMOPT_SYNC_PLAN="3601", MEMOPT_PLANNER_NAME="a/b", MEMOPT_FLAVOUR="sweet")
        self.assert_same(run)
        for word in ("banana", "MEMOPT_SYNC_PLAN", "a/b", "MEMOPT_FLAVOUR"):
            self.assertIn(word, run.errors)

    def test_home_is_missing_or_unwritable(self):
        for home in (None, "/nonexistent", "/proc"):
            with self.subTest(home=home):
                run = Run(self.command, HOME=home)
                self.assert_same(run)
                self.assertIsNotNone(run.live_at, run.errors)

    def test_output_into_a_pipe_ends(self):
        """A planner that kept the pipe open would keep its reader waiting."""
        name = PLANNER_NAME + "-pipe"
        process = subprocess.run(f"'{LOOP}' 12 --keep --odd 5 | cat", shell=True, env=environment(MEMOPT_PLANNER_NAME=name),
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(process.stdout, self.reference.output)

    def test_shared_memory_is_short(self):
        for what in ("memfd", "fallocate"):
            for code in (errno.ENOSPC, errno.ENOMEM, errno.EMFILE):
                with self.subTest(what=what, errno=errno.errorcode[code]):
                    run = Run(self.command, shim=SHORT_MEMORY + ":" + SHIM, SHORT_MEMORY=f"{what}:{code}")
                    self.assert_same(run)
                    self.assertIsNone(run.live_at)
        status = self.status_during(lambda status: (status.get("plan") or {}).get("note"), shim=SHORT_MEMORY + ":" + SHIM,
                                    SHORT_MEMORY=f"memfd:{errno.ENOSPC}")
        self.assertIn(os.strerror(errno.ENOSPC), json.dumps(status["plan"]))

    def test_a_small_control_group(self):
        """Beyond the limit of a control group the kernel kills, and the process killed may be the program: rings are made small there, or
        not at all, and the planner is killed first. The simulated device's memory counts as the program's too."""
        group = self.control_group()
        inside = ["bash", "-c", f'echo $$ > {group.procs}; exec "$@"', "inside", *self.command]
        self.assert_same(Run(inside, MEMOPT_RING="128K", MEMOPT_PLANNER="/nonexistent"))
        needed = group.peak()
        self.assertGreater(needed, 32 << 20)
        for spare in (64, 16):
            with self.subTest(mebibytes_beside_the_programs_need=spare):
                group.limit(needed + (spare << 20))
                self.assert_same(Run(inside, MEMOPT_PLANNER_NAME=f"{PLANNER_NAME}-group-{spare}"))
                group.empty()

    def control_group(self):
        group = ControlGroup(f"memopt-test-{os.getpid()}")
        if not group.usable:
            self.skipTest("control groups for memory can't be made here: root, and the memory controller, are needed")
        self.addCleanup(group.remove)
        return group

    def test_no_descriptors_left(self):
        limited = ["bash", "-c", 'ulimit -n 12; exec "$@"', "limited", *self.command]
        self.assert_same(Run(limited))

    def test_the_driver_refuses_memory(self):
        """Each of the driver's calls that the agent makes fails once, in turn, and then for good."""
        for symbol in ("cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease", "cuEventCreate",
                       "cuEventRecord", "cuStreamWaitEvent", "cuMemGetAllocationGranularity"):
            for which in ("@1", "@3", "@40", ""):
                with self.subTest(symbol=symbol, call=which):
                    self.assert_same(Run(self.command, CUDASIM_INJECT=f"{symbol}:2{which}"))

    def test_planner_is_killed_at_any_moment(self):
        reference = Run([LOOP, "40", "--pause", "500", "--keep"], planned=False)
        before = leftovers()
        killed = 0
        name = PLANNER_NAME + "-kill"
        while killed < KILLS:
            process = subprocess.Popen([LOOP, "40", "--pause", "500", "--keep"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True, env=environment(MEMOPT_PLANNER_NAME=name, MEMOPT_SYNC_PLAN="0"))
            while process.poll() is None:
                time.sleep(self.random.uniform(0, 0.03))
                for planner in planners(name):
                    try:
                        os.kill(planner, signal.SIGKILL)
                        killed += 1
                    except ProcessLookupError:
                        pass
            self.assertEqual(process.stdout.read(), reference.output)
            process.stdout.close()
            self.assertEqual(process.returncode, 0)
        self.assertEqual(leftovers() - before, set())

    def test_program_is_killed_at_any_moment(self):
        before = leftovers()
        name = PLANNER_NAME + "-orphan"
        for _ in range(KILLS):
            process = subprocess.Popen([LOOP, "100000", "--keep"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env=environment(MEMOPT_PLANNER_NAME=name, MEMOPT_SYNC_PLAN="0"))
            time.sleep(self.random.uniform(0, 0.15))
            process.kill()
            process.wait()
        self.assertEqual(leftovers() - before, set())
        # The one planner has outlived them all, and serves the next program.
        self.assertLessEqual(len(planners(name)), 1)
        run = Run(self.command, MEMOPT_PLANNER_NAME=name)
        self.assert_same(run)
        self.assertIsNotNone(run.live_at, run.errors)

    def test_many_programs_at_once(self):
        name = PLANNER_NAME + "-many"
        processes = [subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      env=environment(MEMOPT_PLANNER_NAME=name, MEMOPT_RING="256K", CUDASIM_POISON="off"))
                     for _ in range(TOGETHER)]
        live = 0
        for process in processes:
            output, errors = process.communicate(timeout=10 * PATIENCE)
            self.assertEqual(output, self.reference.output, errors)
            self.assertEqual(process.returncode, 0)
            live += "plan live" in errors
        self.assertLessEqual(len(planners(name)), 1, "one planner serves all")
        self.assertEqual(live, TOGETHER)

    def test_idle_planner_goes_away(self):
        name = PLANNER_NAME + "-idle"
        self.assert_same(Run(self.command, MEMOPT_PLANNER_NAME=name))
        wait_until(lambda: not planners(name), "the planner without programs is gone")


if __name__ == "__main__":
    cases.main()
