"""CUPTI beside memopt: a program is recorded while our injection library counts what CUPTI sees of it (../cupti)."""
import glob
import json
import os
import sys

import libraries
import processes

NAMES = ("libcupti.so.13", "libcupti.so.12")
IN_TOOLKIT = ("extras/CUPTI/lib64", "lib64", "lib", "targets/x86_64-linux/lib")
PROBE = """import ctypes, sys
said = ctypes.create_string_buffer(1000)
usable = ctypes.CDLL(sys.argv[1]).gpu_kit_probe_cupti(sys.argv[2].encode(), said, len(said))
print(usable, said.value.decode(errors="replace"))"""


class Unavailable(Exception):
    """There is no CUPTI that can be used, and why."""
ATTEMPTS = 4


def injection(setting):
    return setting.file("lib", "libcupti_injection.so")


def candidates(setting):
    """Paths, each once. On the simulated driver only what the caller names: NVIDIA's own can't serve a simulated device."""
    found = {}
    for name in NAMES:
        for path in libraries.in_path(name) if setting.simulator else libraries.find(name, IN_TOOLKIT, "cuda_cupti"):
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def choose(setting):
    """(path, version) of the first that can be used; Unavailable otherwise."""
    if not os.path.exists(injection(setting)):
        raise Unavailable("not available: the pack has no lib/libcupti_injection.so (CUPTI's headers were not there when it was built)")
    paths = candidates(setting)
    if not paths:
        where = "LD_LIBRARY_PATH, and NVIDIA's own can't be used on the simulated driver" if setting.simulator else "LD_LIBRARY_PATH, toolkits, Python's packages, ldconfig"
        raise Unavailable(f"not available: no CUPTI ({' or '.join(NAMES)}) was found in {where}")
    reasons = []
    for path in paths:
        # In a process of its own: whatever loading it does is not done to this one.
        probed = processes.run([sys.executable, "-c", PROBE, injection(setting), path], setting.limit(30), setting.environment())
        usable, _, said = probed.output.strip().partition(" ")
        if probed.ok and usable == "1":
            return path, int(said)
        reasons.append(f"{path}: {said if probed.ok else probed.why()}")
    raise Unavailable("not available: no CUPTI that can be used: " + "; ".join(reasons))


class Observed:
    """One program, run once: `seen` is CUPTI's account, `recorded` memopt's (`memoptctl show --json`); `failure` where one is missing."""

    def __init__(self):
        self.seen, self.recorded, self.way, self.failure = None, None, None, None


def _load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _account(prefix, command):
    """What the injection library wrote in that process which ran `command`; others (memoptctl, helpers) may have written too."""
    found = [account for account in map(_load, sorted(glob.glob(glob.escape(prefix) + ".*")))
             if account and account.get("program") == os.path.basename(command[0])]
    return found[-1] if found else None


def observe(setting, name, command, cupti, runtime):
    """The driver is asked to load the library; where it does not, the library is preloaded behind memopt's. The simulated driver loads none."""
    observed = Observed()
    for way in ("preloaded",) if setting.simulator else ("CUDA_INJECTION64_PATH", "preloaded"):
        observed.way = way
        output = os.path.join(setting.scratch, f"cupti-{name}-{way}")
        recording = output + ".recording"
        names = {"GPU_KIT_CUPTI": cupti, "GPU_KIT_CUPTI_OUTPUT": output + ".seen"}
        names.update({"LD_PRELOAD": injection(setting), "GPU_KIT_CUPTI_AT_START": "1"} if way == "preloaded" else {"CUDA_INJECTION64_PATH": injection(setting)})
        environment = setting.environment(names, runtime=runtime)
        # A program that ends within milliseconds of its first call may be gone before its recording has begun.
        for _ in range(ATTEMPTS):
            for before in glob.glob(glob.escape(output + ".seen") + ".*"):
                os.remove(before)
            ended = processes.run([setting.memoptctl, "record", "-o", recording, "--force", "--", *command], setting.limit(setting.run_limit),
                                  environment)
            if not ended.ok or os.path.exists(recording):
                break
        setting.results.log(f"{name}, CUPTI beside memopt, {way}", ended)
        observed.seen = _account(output + ".seen", command)
        if not ended.ok:
            observed.failure = ended.why()
        elif observed.seen is None:
            observed.failure = f"the library was not loaded ({way}), or could not write"
            continue
        elif observed.seen.get("error") or not observed.seen.get("complete"):
            observed.failure = observed.seen.get("error") or "the program ended without its exit handlers: CUPTI's account is not complete"
        else:
            observed.failure = _show(setting, name, recording, observed)
        return observed
    return observed


def _show(setting, name, recording, observed):
    shown = processes.run([setting.memoptctl, "show", "--json", recording], setting.limit(60), setting.environment())
    if os.path.exists(recording):
        os.remove(recording)
    try:
        observed.recorded = json.loads(shown.output)
    except ValueError:
        setting.results.log(f"{name}, memoptctl show", shown)
        return "nothing was recorded: " + shown.why()
    return None
