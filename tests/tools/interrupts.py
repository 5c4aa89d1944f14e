"""When a program that was started is ready to be interrupted."""
import re
import signal
import time


def wait_until_caught(pid, name):
    """Until the process runs the program `name`, which catches SIGINT: that shows in the mask of caught signals."""
    while True:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            caught = int(re.search(r"SigCgt:\s*([0-9a-f]+)", status.read()).group(1), 16)
        with open(f"/proc/{pid}/comm", encoding="utf-8") as comm:
            if comm.read().strip() == name and caught >> (signal.SIGINT - 1) & 1:
                return
        time.sleep(0.001)
