"""Starts programs that are to hold less of the device than they need; for the tests of the limit."""
import functools
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "planning"))

import patience
from runs import BUILD, PlanningCase, Run  # noqa: E402 (it is in the neighbouring room)

PROGRAM = os.path.join(BUILD, "tests", "limit_cases")
MIB = 1 << 20
CHUNK = 2 * MIB
LIMIT = 48 * MIB  # of limit_cases
# A run that hangs ends in subprocess.TimeoutExpired. The longest one takes seconds.
DEADLINE = patience.seconds(120)
UNITS = {"B": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class LimitRun(Run):
    def __init__(self, command, limit, timeout=DEADLINE, **options):
        super().__init__(command, timeout=timeout, MEMOPT_LIMIT=str(limit), **options)
        self.limit = limit

    @property
    def held(self):
        """Of the device, at most, by the driver's count."""
        return self.report["counters"]["bytes_held_peak"]

    @property
    def last_words(self):
        """What is said at the end about the limit; "" if there was nothing to say."""
        found = re.search(r"^memopt: (limit .*)$", self.errors, re.MULTILINE)
        return found.group(1) if found else ""

    @property
    def passed_by(self):
        """By how many bytes the limit was passed, as is said at the end; to a tenth of the unit."""
        found = re.search(r"; passed by ([\d.]+) ?(\w+): ", self.last_words)
        return float(found.group(1)) * UNITS[found.group(2)] if found else 0

    def copied(self, reference):
        """Bytes to the host and back beside those of the program."""
        return tuple(self.report["counters"][which] - reference.report["counters"][which]
                     for which in ("bytes_copied_out", "bytes_copied_in"))


@functools.cache
def native(*command, **options):
    run = Run(command, planned=False, timeout=DEADLINE, **options)
    assert run.code == 0, run.output + run.errors
    assert run.report is None or run.report["counters"]["unknown_kernels"] == 0, run.output + run.errors
    return run


class LimitCase(PlanningCase):
    def limited(self, command, limit, **options):
        """A run that must succeed, without a race that the simulator's checker sees."""
        run = LimitRun(command, limit, **options)
        self.assertEqual(run.code, 0, run.output + run.errors)
        # A process that ends by _exit leaves no report.
        if run.report is not None:
            self.assertEqual(run.report["counters"]["unknown_kernels"], 0)
            self.assertEqual(run.report["counters"]["races"], 0, run.report["last_race"])
        return run

    def assert_kept(self, run, beside=0):
        """The limit, by the driver's count and by our own words. `beside`: bytes that the program holds itself."""
        self.assertLessEqual(run.held, run.limit + CHUNK + beside, run.errors)
        self.assertNotIn("passed", run.last_words)
