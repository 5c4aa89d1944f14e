"""Starts a program on the simulated driver, and reads what it and the driver leave; for the tests of programs."""
import contextlib
import json
import os
import signal
import subprocess
import tempfile

# Variables that would make a run something else than the test says.
OURS = ("CUDASIM_", "CACHING_POOL_", "MEMOPT_")


def clean_environment():
    return {key: value for key, value in os.environ.items()
            if not key.startswith(OURS) and key not in ("LD_PRELOAD", "LD_LIBRARY_PATH", "GTEST_OUTPUT")}


class Finished:
    """A process that has run to its end. `files`: variable -> attribute, for each file that it is told to write JSON to; `numbers`: it
    takes --json FILE too."""

    def __init__(self, command, environment, files=(), numbers=False, timeout=3600):
        with tempfile.TemporaryDirectory() as folder:
            files = {"CUDASIM_REPORT": "report", **dict(files)}
            paths = {variable: os.path.join(folder, attribute) for variable, attribute in files.items()}
            json_file = os.path.join(folder, "numbers")
            done = subprocess.run([*map(str, command), *(["--json", json_file] if numbers else [])], env=paths | environment,
                                  capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout)
            for variable, attribute in files.items():
                setattr(self, attribute, self._read(paths[variable]))
            self.numbers = self._read(json_file)
        self.code, self.output, self.errors = done.returncode, done.stdout, done.stderr

    @staticmethod
    def _read(path):
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    @property
    def last_line(self):
        return self.output.splitlines()[-1] if self.output else ""


@contextlib.contextmanager
def ready(command, **options):
    """A program from when it says "ready" until the test is done with it; it ends with its standard input."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
    try:
        line = process.stdout.readline().strip()
        if line != "ready":
            raise AssertionError(f"the program did not start: it said {line!r}")
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.stdin.close()
        process.wait(100)
        process.stdout.close()
