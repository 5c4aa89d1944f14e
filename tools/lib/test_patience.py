#!/usr/bin/env python3
"""Prints how many times as long as on a usual machine tests wait here for what must come before they fail: a whole number from 1 to 20.

Measured by starting a process, which is what tests do most, and what suffers most where page faults are slow (virtual machines within virtual
machines): the quickest of a few starts, so that other work on the machine counts little."""
import math
import subprocess
import sys
import time

USUAL = 0.02  # seconds, to start Python and end; 0.01 to 0.02 where processors are their own
STARTS = 9
MOST = 20


def start():
    began = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
    return time.perf_counter() - began


def times(seconds):
    """Of the quickest start."""
    return min(max(math.ceil(seconds / USUAL), 1), MOST)


def main():
    print(times(min(start() for _ in range(STARTS))))


if __name__ == "__main__":
    main()
