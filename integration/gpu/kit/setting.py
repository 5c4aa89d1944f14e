"""Where everything lies, and the environment in which programs are started."""
import json
import os
import subprocess
import sys
import tempfile
import uuid

import libraries
import memory
import processes

SIMULATED_DEVICE = "h200"
RUN_LIMIT = 60  # seconds for one program


class PackError(Exception):
    pass


def _loads(name):
    return subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL({name!r})"], capture_output=True).returncode == 0


class Setting:
    def __init__(self, pack, results, simulator=None, small=False, run_limit=RUN_LIMIT, cases=None, python=sys.executable):
        self.pack, self.results, self.simulator = os.path.abspath(pack), results, simulator
        self.small, self.run_limit, self.python = small, run_limit, python
        self._cases = cases
        try:
            with open(os.path.join(self.pack, "manifest.json"), encoding="utf-8") as file:
                self.manifest = json.load(file)
        except (OSError, ValueError) as error:
            raise PackError(f"{self.pack} is no pack of tools/pack-gpu: {error}") from error
        self._make_executable()
        self.nvml = None if simulator else memory.Nvml()
        # A planner of this run's own, whatever else runs here.
        self.planner = "kit-" + uuid.uuid4().hex[:12]
        self._scratch = tempfile.TemporaryDirectory(prefix="gpu-run-all-")
        self.scratch = self._scratch.name
        self._compat = self._lacking()
        self.runtime = None
        if not simulator:
            self.runtime = next(map(os.path.dirname, libraries.find("libcudart.so.13", ("lib64", "targets/x86_64-linux/lib"), "cuda_runtime")), None)

    def file(self, *parts):
        return os.path.join(self.pack, *parts)

    def has(self, *parts):
        return os.path.exists(self.file(*parts))

    def _make_executable(self):
        """Not every way of carrying files keeps the run bits."""
        for name in self.manifest.get("files", {}):
            path = self.file(name)
            try:
                with open(path, "rb") as file:
                    program = file.read(4) == b"\x7fELF" and "lib" not in name.split("/")
                if program and not os.access(path, os.X_OK):
                    os.chmod(path, 0o755)
            except OSError as error:
                raise PackError(f"{path}: {error}") from error

    def _lacking(self):
        """A folder of those carried libraries that this machine does not have, if there are any: its own are never replaced."""
        folder = self.file("lib", "compat")
        lacking = [name for name in sorted(os.listdir(folder)) if not _loads(name)] if os.path.isdir(folder) else []
        if not lacking:
            return []
        beside = os.path.join(self.scratch, "compat")
        os.makedirs(beside)
        for name in lacking:
            os.symlink(os.path.join(folder, name), os.path.join(beside, name))
        return [beside]

    @property
    def library(self):
        return self.file("lib", "libmemopt.so")

    def wants(self, case):
        return not self._cases or case in self._cases

    def limit(self, most):
        """Seconds that a program which starts now may take."""
        return min(most, self.run_limit, self.results.left())

    @property
    def memoptctl(self):
        return self.file("bin", "memoptctl")

    @property
    def report(self):
        """Where the simulated driver leaves its own account of a program."""
        return os.path.join(self.scratch, "simulated")

    def environment(self, extra=None, shim=False, runtime=False):
        names = dict(extra or {})
        folders = [os.environ.get("LD_LIBRARY_PATH", "")]
        if self.simulator:
            folders.insert(0, os.path.join(self.simulator, "lib"))
            names.setdefault("CUDASIM_DEVICE", SIMULATED_DEVICE)
            names.setdefault("CUDASIM_REPORT", self.report)
        elif runtime and self.runtime:
            folders.insert(0, self.runtime)
        folders += self._compat
        names["LD_LIBRARY_PATH"] = ":".join(filter(None, folders)) or None
        names["MEMOPT_PLANNER_NAME"] = self.planner
        names["PYTHONDONTWRITEBYTECODE"] = "1"
        if shim:
            names["LD_PRELOAD"] = self.library
        return processes.clean_environment(names)

    def close(self):
        self._scratch.cleanup()
