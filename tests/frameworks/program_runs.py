"""Runs programs of PyTorch on the simulated device as frameworks_table.py measures them, and keeps what each run has shown."""
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
import simulated  # noqa: E402

from figures import ROUTES, SEEDS  # noqa: E402

DEVICE = "a100-40g"
METER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "meter.py")
PROGRAMS = os.path.join(ROOT, "integration", "workloads", "pytorch")
COUNTERS = re.compile(r"^MiB allocated ([\d.]+), at peak ([\d.]+), reserved at peak ([\d.]+)$", re.MULTILINE)
STREAM_ORDERED = {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}
# Only times and sizes are looked at: no byte is read or written.
WITHOUT_BYTES = {"LAUNCH_EFFECTS_BYTES": "none", "CUDASIM_LIBRARY_BYTES": "none", "CUDASIM_CHECK": "off", "CUDASIM_POISON": "off"}
WITH_BYTES = {"LAUNCH_EFFECTS_BYTES": "some", "CUDASIM_LIBRARY_BYTES": "some"}
# Decisions without the words that some run for contents did not find as decided: left over in the parameters of every native run, but not
# of all runs. All runs for contents go by the same.
AGREED = "agreed"
# Of a user, or of the shell that this is started from: it would make a run another one.
OTHERS = ("LAUNCH_EFFECTS_", "PYTORCH_", "TORCH_", "CUDA_", "_MEMOPT_")


class Program:
    """A row of the table: a name, the program's file and its arguments but the number of steps."""

    def __init__(self, name, file, arguments):
        self.name, self.file, self.arguments = name, file, arguments

    @property
    def text(self):
        return " ".join([self.file, *self.arguments])


def programs(path):
    """What recordings.txt lists: name, program, steps, arguments."""
    found = []
    with open(path, encoding="utf-8") as file:
        for words in (line.split() for line in file):
            if words and not words[0].startswith("#"):
                found.append(Program(words[0], words[1], words[3:]))
    return found


class Configuration:
    """A way of running a program. `decisions`, `decides`: the files that the instrument goes by and writes, see Runner.file_of."""

    def __init__(self, name, steps, environment, memopt=False, decisions=None, decides=None):
        self.name, self.steps, self.environment, self.memopt = name, steps, environment, memopt
        self.decisions, self.decides = decisions, decides


def deciding(steps):
    """Natively, each block at an address of its own; then at the driver's own addresses, which drops what was there by accident."""
    return [Configuration("decide", steps, STREAM_ORDERED | WITHOUT_BYTES, decides="decided"),
            Configuration("decide-again", steps, STREAM_ORDERED | WITHOUT_BYTES, decisions="decided", decides="decisions")]


def measuring(steps, free_running=False):
    found = [Configuration("pool", steps, WITHOUT_BYTES, decisions="decisions"),
             Configuration("driver", steps, STREAM_ORDERED | WITHOUT_BYTES, decisions="decisions")]
    return found + [Configuration(route, steps, by_route(route, free_running) | WITHOUT_BYTES, memopt=True, decisions="decisions")
                    for route in ROUTES]


def comparing(steps, seed, free_running=False):
    """Contents: natively, and under memopt by both routes, in the nominal order or under an adversary."""
    order = {} if seed == "none" else {"CUDASIM_SEED": seed}
    return [Configuration("contents", steps, STREAM_ORDERED | WITH_BYTES, decisions=AGREED),
            *(Configuration(f"contents-{route}-{seed}", steps, by_route(route, free_running) | WITH_BYTES | order, memopt=True,
                            decisions=AGREED) for route in ROUTES)]


def by_route(route, free_running):
    return {"MEMOPT_FRAMEWORK_ENV": route} | ({"MEMOPT_SYNC_PLAN": "0"} if free_running else {})


def digest_of(paths):
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


class Runner:
    """Keeps each run's result as JSON in `folder`: a run is not repeated as long as what it is made of is the same."""

    def __init__(self, build, python, folder, timeout):
        self.python, self.folder, self.timeout = python, folder, timeout
        self.simulator = os.path.join(build, "cudasim", "lib")
        self.instrument = os.path.join(self.simulator, "liblaunch_effects.so")
        self.shim = os.path.join(build, "lib", "libmemopt.so")
        self.planner = os.path.join(build, "bin", "memoptd")
        self.preloaded, self.defaults = self.stand_ins()
        self.native_digest = digest_of([METER, self.instrument, os.path.join(self.simulator, "libcuda.so.1"), *self.preloaded])
        self.memopt_digest = digest_of([self.shim, self.planner])

    def stand_ins(self):
        """What `memoptctl run --sim` preloads and sets, by the same list; here the instrument comes before memopt."""
        preloaded, defaults = [], {}
        with open(os.path.join(self.simulator, "stand-ins.txt"), encoding="utf-8") as file:
            for kind, _, what in (line.strip().partition(" ") for line in file):
                if kind == "preload":
                    preloaded.append(os.path.join(self.simulator, what))
                elif kind == "default":
                    name, _, value = what.partition("=")
                    defaults[name] = value
        return preloaded, defaults

    def file_of(self, program, name):
        return os.path.join(self.folder, program.name, name)

    def kept(self, program, configuration):
        """The result of a run that was made before and is still of use, or None."""
        try:
            with open(self.file_of(program, configuration.name + ".json"), encoding="utf-8") as file:
                result = json.load(file)
        except (OSError, ValueError):
            return None
        if result["key"] != self.key(program, configuration) or "failed" in result:
            return None
        missing = configuration.decides and not os.path.exists(self.file_of(program, configuration.decides))
        return None if missing else result

    def key(self, program, configuration):
        digest = hashlib.sha256()
        sources = [os.path.join(PROGRAMS, file) for file in (program.file, "training.py")]
        parts = [self.native_digest, self.memopt_digest if configuration.memopt else "", digest_of(sources), self.python,
                 program.text, str(configuration.steps), json.dumps(configuration.environment, sort_keys=True)]
        digest.update("\n".join(parts).encode())
        if configuration.decisions:
            path = self.file_of(program, configuration.decisions)
            digest.update(digest_of([path]).encode() if os.path.exists(path) else b"none")
        return digest.hexdigest()

    def environment(self, configuration):
        clean = {key: value for key, value in simulated.clean_environment().items() if not key.startswith(OTHERS)}
        libraries = [self.instrument, *([self.shim] if configuration.memopt else []), *self.preloaded]
        clean |= self.defaults | {"LD_LIBRARY_PATH": self.simulator, "LD_PRELOAD": ":".join(libraries), "CUDASIM_DEVICE": DEVICE}
        if configuration.memopt:
            # At fixed points of the program, so that runs repeat; a planner of this run's own.
            clean |= {"MEMOPT_SYNC_PLAN": "1", "MEMOPT_PLANNER": self.planner, "MEMOPT_PLANNER_NAME": "table-" + uuid.uuid4().hex[:12]}
        clean |= configuration.environment
        return clean

    def run(self, program, configuration):
        os.makedirs(os.path.join(self.folder, program.name), exist_ok=True)
        key = self.key(program, configuration)
        with tempfile.TemporaryDirectory() as folder:
            result = self.measure(program, configuration, folder)
        path = self.file_of(program, configuration.name + ".json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({"key": key} | result, file)
        os.replace(path + ".new", path)
        return result

    def measure(self, program, configuration, folder):
        files = {"notes": "notes", "CUDASIM_REPORT": "device", "LAUNCH_EFFECTS_REPORT": "effects"}
        paths = {variable: os.path.join(folder, name) for variable, name in files.items()}
        environment = self.environment(configuration) | paths
        if configuration.decisions:
            decisions = self.file_of(program, configuration.decisions)
            if not os.path.exists(decisions):
                return {"failed": "which words count is not decided: that run has failed"}
            environment["LAUNCH_EFFECTS_DECISIONS"] = decisions
        if configuration.decides or configuration.decisions == AGREED:
            environment["LAUNCH_EFFECTS_DECIDE"] = os.path.join(folder, "decided")
        command = [self.python, METER, paths["notes"], os.path.join(PROGRAMS, program.file), str(configuration.steps), *program.arguments]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=self.timeout)
        except subprocess.TimeoutExpired:
            return {"failed": f"not finished after {self.timeout} s"}
        counters = COUNTERS.search(done.stdout)
        if done.returncode != 0 or not counters:
            return {"failed": f"exit code {done.returncode}: {last_words(done.stderr)}", "stderr": done.stderr[-8000:]}
        if configuration.decides:
            copy(environment["LAUNCH_EFFECTS_DECIDE"], self.file_of(program, configuration.decides))
            if configuration.decides == "decisions":
                copy(self.file_of(program, "decisions"), self.file_of(program, AGREED))
            return {"stderr": done.stderr[-2000:]}
        result = {"counters": [float(value) for value in counters.groups()], "stderr": done.stderr[-2000:]}
        for name in files.values():
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                result[name] = json.load(file)
        del result["effects"]["kernels"]
        if configuration.decisions == AGREED and result["effects"]["disagreed"]:
            self.agree(program, environment["LAUNCH_EFFECTS_DECIDE"])
        return result

    def agree(self, program, found):
        """What a run has found takes the place of what was agreed before, launch by launch: words can only become fewer."""
        path = self.file_of(program, AGREED)
        with open(path, encoding="utf-8") as file, open(found, encoding="utf-8") as other:
            text = agreed(file.read(), other.read())
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)


def agreed(decided, found):
    """The text of a file of decisions (integration/launch_effects/decisions.h), with only those words that `found` has, too."""
    words = {tuple(line.split()[1:3]): set(line.split()[6:]) for line in found.splitlines() if line.startswith("launch ")}
    lines = []
    for line in decided.splitlines():
        parts = line.split()
        if line.startswith("launch ") and tuple(parts[1:3]) in words:
            line = " ".join(parts[:6] + [word for word in parts[6:] if word in words[tuple(parts[1:3])]])
        lines.append(line)
    return "\n".join(lines) + "\n"


def copy(source, target):
    with open(source, "rb") as file, open(target + ".new", "wb") as made:
        made.write(file.read())
    os.replace(target + ".new", target)


def last_words(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][-200:] if lines else "nothing on standard error"
