#!/usr/bin/env python3
"""Runs a PyTorch program as `python PROGRAM` would, and notes what the simulated device holds and what time it is there whenever an
optimizer has taken a step.

usage: meter.py NOTES PROGRAM [ARGUMENT]...

Nothing is asked of CUDA: the simulator's counters and memopt's status cost no virtual time. NOTES is JSON: `marks`, one for each
optimizer's step, and `end`, when the program has come to its end. Bytes held at most and live at most are since the mark before. `memopt`
is there where memopt answers: what its status says of the plan, and how many allocations it has seen.

What the optimizers hold (parameters, gradients, state) is still there when the process ends, so that what looks at the device then finds it."""
import ctypes
import json
import os
import re
import runpy
import socket
import sys

COUNTERS = ("bytes_held bytes_held_peak bytes_live bytes_live_peak blocks_live blocks_live_at_peak blocks_2mib_live_at_peak capacity "
            "host_now_ns device_now_ns calls launches copies bytes_copied_in bytes_copied_out host_synchronizations vmm_calls "
            "unknown_kernels races").split()
ALLOCATIONS = re.compile(r"cuMemAlloc(?:_v2|Async.*|FromPoolAsync.*)?$")


class Counters(ctypes.Structure):
    """CudasimCounters of integration/cudasim/include/cudasim/cudasim.h."""
    _fields_ = [("struct_size", ctypes.c_uint32), ("interface_version", ctypes.c_uint32)] + [(n, ctypes.c_uint64) for n in COUNTERS]


class Meter:
    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.marks = []
        self.optimizers = {}
        self.status_socket = None
        self.has_memopt = "libmemopt" in os.environ.get("LD_PRELOAD", "")

    def find_status_socket(self):
        mine = f"memopt-{os.geteuid()}-{os.getpid()}-"
        with open("/proc/net/unix", encoding="ascii", errors="replace") as file:
            names = [line.split()[-1] for line in file]
        return next(("\0" + name[1:] for name in names if name.startswith("@" + mine)), None)

    def status(self):
        """What memopt says (docs/formats/status.md); None before its first call."""
        self.status_socket = self.status_socket or self.find_status_socket()
        if not self.status_socket:
            return None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(60)
            link.connect(self.status_socket)
            link.sendall(b"status 1\n")
            answer = b""
            while piece := link.recv(1 << 16):
                answer += piece
        return json.loads(answer)

    def memopt(self):
        status = self.status() if self.has_memopt else None
        if not status:
            return None
        calls = status["calls"]["entry_points"]
        plan = status.get("plan", {})
        wanted = ("iterations", "iteration_at_live", "generation", "deviations", "displaced", "dropped_events", "waits",
                  "host_synchronizations", "vmm_calls", "slab", "persistent", "peak_load", "note")
        return {"version": status["version"], "state": status["state"], "reason": status["reason"],
                "allocations": sum(count for name, count in calls.items() if ALLOCATIONS.match(name)),
                **{name: plan.get(name) for name in wanted}}

    def step_taken(self, optimizer):
        self.optimizers[id(optimizer)] = optimizer
        self.marks.append(self.mark())

    def mark(self):
        now = Counters(struct_size=ctypes.sizeof(Counters))
        if self.driver.cudasim_counters(ctypes.byref(now)) != 0:
            sys.exit("meter: the simulator doesn't answer")
        self.driver.cudasim_reset_peaks()
        return {name: getattr(now, name) for name in ("bytes_held", "bytes_held_peak", "bytes_live_peak", "host_now_ns", "device_now_ns",
                                                      "host_synchronizations", "vmm_calls", "races")} | {"memopt": self.memopt()}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    notes, program = sys.argv[1:3]
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    from torch.optim.optimizer import register_optimizer_step_post_hook
    meter = Meter()
    register_optimizer_step_post_hook(lambda optimizer, *_: meter.step_taken(optimizer))
    runpy.run_path(program, run_name="__main__")
    found = {"marks": meter.marks, "end": meter.mark()}
    with open(notes, "w", encoding="utf-8") as file:
        json.dump(found, file)
    sys.stdout.flush()
    sys.stderr.flush()
    # The process's own exit, not the interpreter's, which would free all that the program holds before.
    ctypes.CDLL(None).exit(0)


if __name__ == "__main__":
    main()
