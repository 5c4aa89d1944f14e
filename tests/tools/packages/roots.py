"""Roots in which packages are tried: this system without our build folder and sources, and with nothing of ours in the environment."""
import os
import shutil
import subprocess

import patience
import simulated

# The training program that is run with the installed files.
WORKLOAD = ("workloads/digits_cnn", "workloads/data/digits.csv")
KERNELS = "cudasim/kernels/digits_cnn.so"


def copy_workload(build, folder):
    """The program, its data and its simulated kernels, as a user might have them in a folder of theirs."""
    for path in WORKLOAD:
        target = os.path.join(folder, os.path.relpath(path, "workloads"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(os.path.join(build, path), target)
    os.makedirs(os.path.join(folder, "kernels"), exist_ok=True)
    shutil.copy(os.path.join(build, KERNELS), os.path.join(folder, "kernels"))


def can_hide():
    return bool(shutil.which("bwrap")) and subprocess.run(["bwrap", "--dev-bind", "/", "/", "true"], capture_output=True).returncode == 0


def hidden(folders):
    """What stands before a command that must not see these folders."""
    return ["bwrap", "--dev-bind", "/", "/", *(word for folder in folders for word in ("--tmpfs", folder)), "--"]


def run(command, folder, name, wrapper=(), **variables):
    """Runs it with a planner of its own; `variables` over a clean environment."""
    environment = {**simulated.clean_environment(), "MEMOPT_PLANNER_NAME": name, **variables}
    environment.pop("PYTHONPATH", None)
    return subprocess.run([*wrapper, *map(str, command)], cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=patience.seconds(300))
