"""Starts order_fuzzer; for the tests of order."""
import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import uuid

import patience
import simulated

BUILD = os.environ["TEST_BUILD"]
LIBRARIES = os.path.join(BUILD, "cudasim", "lib")
SCHEDULE = os.path.join(LIBRARIES, "libcudasim_schedule.so")
SHIM = os.path.join(BUILD, "lib", "libmemopt.so")
PLANNER = os.path.join(BUILD, "bin", "memoptd")
FUZZER = os.path.join(BUILD, "tests", "order_fuzzer")
KERNELS = os.path.join(BUILD, "tests", "planted_kernels.fatbin")
FULL = "--full" in sys.argv
if FULL:
    sys.argv.remove("--full")
PLANNER_NAME = "test-" + uuid.uuid4().hex[:12]
PER_PROCESS = 5


@dataclasses.dataclass(frozen=True)
class Seeds:
    programs: int  # the first one's
    count: int
    schedule: int
    adversary: int | None
    barrier: bool = True  # threads rely on cuMemFree having waited for the device
    threads: int = 4  # at most; with more, a plain free waits where many of them free
    at: str | None = None  # the driver call at which threads are preempted; None: at all

    @classmethod
    def batches(cls, programs):
        """The schedules with few preemptions come first; some runs change bytes in nominal order."""
        for index in range(-(-programs // PER_PROCESS)):
            yield cls(index * PER_PROCESS, PER_PROCESS, index // 2, None if index % 8 in (6, 7) else index, index % 2 == 0,
                      8 if index % 3 == 2 else 4)


class Run:
    def __init__(self, seeds, memopt, shim=SHIM, iterations=8, arguments=(), report=False, timeout=patience.seconds(300)):
        words = [FUZZER, KERNELS, str(seeds.programs), "--programs", str(seeds.count), "--iterations", str(iterations),
                 *([] if seeds.barrier else ["--without", "barrier"]), "--threads", str(seeds.threads), *arguments]
        variables = {"LD_LIBRARY_PATH": LIBRARIES, "LD_PRELOAD": SCHEDULE + (":" + shim if memopt else ""),
                     "CUDASIM_SCHEDULE": str(seeds.schedule), "CUDASIM_INSTRUMENT": "1"}
        if seeds.at is not None:
            variables["CUDASIM_SCHEDULE_AT"] = seeds.at
        if seeds.adversary is not None:
            variables["CUDASIM_SEED"] = str(seeds.adversary)
        if memopt:
            # The planner is looked for beside the library, and a mutant stands alone.
            variables |= {"MEMOPT_SYNC_PLAN": patience.WAIT, "MEMOPT_PLANNER": PLANNER, "MEMOPT_PLANNER_NAME": PLANNER_NAME}
        self.command = " ".join([*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.join(words)])
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as file:
            if report:
                variables["CUDASIM_REPORT"] = file.name
            try:
                done = subprocess.run(words, env=simulated.clean_environment() | variables, capture_output=True, text=True,
                                      stdin=subprocess.DEVNULL, timeout=timeout)
                self.code, self.output, self.errors = done.returncode, done.stdout, done.stderr
            except subprocess.TimeoutExpired as expired:
                self.code, self.output = "a timeout", ""
                self.errors = (expired.stderr or b"").decode(errors="replace")
            text = file.read()
        self.schedule = json.loads(text)["schedule"] if text else None

    @property
    def plans_live(self):
        return len(re.findall(r"^memopt: plan live", self.errors, re.MULTILINE)) > 0

    @property
    def summary(self):
        """What went wrong first, in a line."""
        kind = r"cudasim: deadlock.*" if self.code == 87 else r"order_fuzzer: .*|cudasim: race: .*"
        found = re.search(f"^({kind})$", self.errors, re.MULTILINE)
        words = found.group(1) if found else (self.errors.strip().splitlines() or ["nothing was said"])[-1]
        return f"exit code {self.code}: {words[:400]}"
