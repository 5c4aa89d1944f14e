#!/usr/bin/env python3
"""Sums up what ctest and GoogleTest reported: one line a preset, skipped and failed cases by name, and the total as the last line.

A GoogleTest binary is one ctest; its cases are counted from its own report, so that a case skipped inside a passing binary is
seen. Everything that can't be read counts as a failure: a missing report must not look like success. A preset that was left out counts as
one that was skipped.

usage: test_totals.py BUILD-ROOT PRESET... [--left-out=PRESET]...
"""
import os
import sys
import xml.etree.ElementTree as ElementTree


class Totals:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []  # (name, reason)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def line(self):
        return f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"


def gtest_cases(path):
    """Totals of one GoogleTest report."""
    totals = Totals()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            totals.failed.append(name)
        elif skip is not None:
            totals.skipped.append((name, (skip.get("message") or "").strip().split("\n")[-1]))
        elif case.get("status") == "run":
            totals.passed += 1
    return totals


def ctest_skip_reason(case):
    """The last line that a skipped program printed: by convention why it was skipped."""
    lines = [line for line in (case.findtext("system-out") or "").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason given"


def preset_totals(results):
    totals = Totals()
    junit = os.path.join(results, "ctest.junit")
    try:
        cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        totals.failed.append(f"no report of ctest ({error})")
        return totals
    if not cases:
        totals.failed.append("no test was run")
    for case in cases:
        name, status = case.get("name"), case.get("status")
        inside = Totals()
        report = os.path.join(results, name + ".xml")
        if os.path.exists(report):
            try:
                inside = gtest_cases(report)
            except ElementTree.ParseError as error:
                inside.failed.append(f"unreadable report ({error})")
        inside.failed = [f"{name}: {failed}" for failed in inside.failed]
        inside.skipped = [(f"{name}: {skipped}", reason) for skipped, reason in inside.skipped]
        counted = inside.passed + len(inside.failed) + len(inside.skipped)
        if status == "run" and not counted:
            inside.passed += 1
        elif status == "fail" and not inside.failed:
            inside.failed.append(name)  # crashed, timed out, or a program that is no GoogleTest binary
        elif status not in ("run", "fail") and not counted:
            inside.skipped.append((name, ctest_skip_reason(case)))
        totals.add(inside)
    return totals


def slowest(results, count=8):
    """What took longest, for those who wait: (seconds, name)."""
    try:
        tests = ElementTree.parse(os.path.join(results, "ctest.junit")).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return []
    return sorted(((float(test.get("time") or 0), test.get("name")) for test in tests), reverse=True)[:count]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    total = Totals()
    mark = "--left-out="
    for preset in sys.argv[2:]:
        if preset.startswith(mark):
            print(f"   skipped: {preset.removeprefix(mark)}: neither built to its end nor tested: the time of this run was over")
            total.skipped.append((preset.removeprefix(mark), ""))
            continue
        results = os.path.join(sys.argv[1], preset, "test-results")
        totals = preset_totals(results)
        print(f"   {preset}: {totals.line()}")
        print("      longest: " + ", ".join(f"{name} {seconds:.0f} s" for seconds, name in slowest(results)))
        for name, reason in totals.skipped:
            print(f"      skipped: {name}: {reason}")
        for name in totals.failed:
            print(f"      FAILED: {name}")
        total.add(totals)
    print(total.line())
    sys.exit(1 if total.failed else 0)


if __name__ == "__main__":
    main()
