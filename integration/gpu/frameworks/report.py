"""What a framework's script tells: one JSON object a line on standard output, and its memory as others count it.

Events: start, iteration (loss as a hexadecimal float, seconds), done (median of the last ten, memory), missing (the framework is not there).
With --hold the script waits at its end for a line on standard input, so that it can be looked at while it holds its memory.
"""
import argparse
import ctypes
import json
import os
import statistics
import sys
import time

MISSING = 77
LAST = 10  # iterations whose median is the time per iteration


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--iterations", type=int, default=30, help="training steps (default 30)")
    parser.add_argument("--small", action="store_true", help="a tiny model: to see that it works, not to measure")
    parser.add_argument("--hold", action="store_true", help="at the end wait for a line on standard input")
    parsed, _ = parser.parse_known_args()
    if parsed.iterations < 1:
        parser.error("--iterations expects a number from 1")
    return parsed


def say(event, **values):
    print(json.dumps({"event": event, **values}), flush=True)


def missing(what):
    """Ends the script: a framework that it needs is not there."""
    say("missing", what=str(what))
    sys.exit(MISSING)


def driver_memory():
    """(free, total) as cuMemGetInfo says in this process, or the reason why not. Needs a current context; frameworks make one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return {"error": str(error)}
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    code = driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    if code:
        return {"error": f"cuMemGetInfo: error {code}"}
    return {"free": free.value, "total": total.value, "used": total.value - free.value}


class Loop:
    """Times iterations and tells of each; `step` is called with the iteration's number and returns its loss as a Python float."""

    def __init__(self, name, options, **facts):
        self.name, self.options = name, options
        say("start", name=name, pid=os.getpid(), python=sys.version.split()[0], **facts)

    def run(self, step, statistics_of=dict, checksum_of=None):
        seconds = []
        for iteration in range(self.options.iterations):
            begin = time.perf_counter()
            loss = float(step(iteration))
            seconds.append(time.perf_counter() - begin)
            say("iteration", n=iteration, loss=loss.hex(), seconds=seconds[-1])
        checksum = None if checksum_of is None else checksum_of()
        say("done", name=self.name, seconds_per_iteration=statistics.median(seconds[-LAST:]), checksum=checksum,
            framework_memory=statistics_of(), driver_memory=driver_memory())
        if self.options.hold:
            sys.stdin.readline()
