#!/usr/bin/env python3
"""Prints the processor seconds of each test of a build, most first, and their sum: what tests cost a machine that has other work, where
their time says how long they waited.

usage: test_seconds.py BUILD [--jobs N] [CTEST-ARGUMENT...]

CTEST-ARGUMENT chooses tests, for example -R limit; without one, all but those labelled full and frameworks. N of them at once (default 1). What processes
use that outlive the test is not counted."""
import json
import os
import queue
import subprocess
import sys
import threading
import time

DEFAULT = ["--label-exclude", "^(full|frameworks)$"]


def tests_of(build, arguments):
    done = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", *(arguments or DEFAULT)], capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout.startswith("{"):
        sys.exit(f"test_seconds.py: {build}: expected a build folder with tests: {done.stderr.strip() or done.stdout.strip()}")
    return [test for test in json.loads(done.stdout)["tests"] if "command" in test]


def run(test):
    """(processor seconds, seconds, whether it passed or was skipped)"""
    properties = {one["name"]: one["value"] for one in test["properties"]}
    environment = os.environ | dict(variable.split("=", 1) for variable in properties.get("ENVIRONMENT", []))
    began = time.monotonic()
    process = subprocess.Popen(test["command"], cwd=properties.get("WORKING_DIRECTORY"), env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    passed = process.returncode in (0, properties.get("SKIP_RETURN_CODE"))
    return used.ru_utime + used.ru_stime, time.monotonic() - began, passed


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(__doc__)
    build, arguments, jobs = arguments[0], arguments[1:], 1
    if arguments[:1] == ["--jobs"]:
        if not (len(arguments) > 1 and arguments[1].isdigit() and int(arguments[1]) > 0):
            sys.exit("test_seconds.py: --jobs: expected a number above 0")
        jobs, arguments = int(arguments[1]), arguments[2:]
    waiting, results = queue.SimpleQueue(), []
    for test in tests_of(build, arguments):
        waiting.put(test)

    def work():
        while True:
            try:
                test = waiting.get_nowait()
            except queue.Empty:
                return
            results.append((*run(test), test["name"]))

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("processor   seconds  test")
    for used, took, passed, name in sorted(results, reverse=True):
        print(f"{used:9.1f} {took:9.1f}  {name}{'' if passed else '  FAILED'}")
    print(f"{sum(one[0] for one in results):9.1f} {sum(one[1] for one in results):9.1f}  {len(results)} tests")


if __name__ == "__main__":
    main()
