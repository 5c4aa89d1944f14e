"""Starts programs of which nothing is expected: each may fail, hang or print without end, and the rest goes on."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

OURS = ("CUDASIM_", "MEMOPT_", "CACHING_POOL_")
BURIAL = 10  # seconds in which a killed process should be gone; one that the driver holds may never be
LOOK = 0.1  # seconds between two looks at a program that runs
MOST_TEXT = 200_000  # of each stream, kept


def clean_environment(extra=None, without=()):
    """This process's environment without what would make a run something else than it is called. A value of None takes a name away."""
    names = {key: value for key, value in os.environ.items()
             if not key.startswith(OURS) and key not in ("LD_PRELOAD", "GTEST_OUTPUT") and key not in without}
    for key, value in (extra or {}).items():
        if value is None:
            names.pop(key, None)
        else:
            names[key] = str(value)
    return names


_running = False  # a program is there, or being started or ended: run() looks whether it is asked to end, and ends both
_asked_to_end = None  # by which signal


def end_on(number):
    """Lets a signal end this process by SystemExit. An exception can come between any two lines, also between the start of a program and the
    statement that would end it; so none is raised while there is one."""
    def handle(*_):
        global _asked_to_end
        _asked_to_end = number
        if not _running:
            sys.exit(128 + number)

    signal.signal(number, handle)


class Ended:
    """A program that has run. `code` is None where it had to be killed, or never started (`failure` says why)."""

    def __init__(self):
        self.code, self.output, self.errors, self.seconds, self.failure = None, "", "", 0.0, None
        self.events = []
        self.at_done = {}

    @property
    def ok(self):
        return self.code == 0

    def why(self):
        """One line: what went wrong; empty if nothing did."""
        if self.failure:
            return self.failure
        if self.code == 0:
            return ""
        what = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        lines = [line for line in (self.errors or self.output).strip().splitlines() if line.strip()]
        return f"{what}: {lines[-1][:300]}" if lines else what

    def event(self, name):
        found = [event for event in self.events if event.get("event") == name]
        return found[-1] if found else None


def end_group(process):
    """Ends a process and all that it started; does not wait for one that can't be ended."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    try:
        process.wait(BURIAL)
    except subprocess.TimeoutExpired:
        pass


def run(command, limit, environment=None, folder=None, at_done=None, watch=None):
    """Runs `command` for at most `limit` seconds. Lines of its output that are JSON objects with an "event" are collected; at the event "done"
    `at_done(pid)` is asked (its answer is kept) and a line is written to the program's standard input. `watch(pid)` is called again
    and again while it runs."""
    global _running
    ended = Ended()
    begin = time.monotonic()
    if limit <= 0:
        ended.failure = "not run: no time left"
        return ended
    with tempfile.TemporaryFile() as errors:
        _running = True
        process = None
        try:
            process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                       env=environment, cwd=folder, start_new_session=True)
        except OSError as error:
            ended.failure = f"could not be started: {error}"

        output, kept = [], [0]

        def read():
            for raw in process.stdout:
                line = raw.decode(errors="replace")
                if kept[0] < MOST_TEXT:
                    output.append(line)
                    kept[0] += len(line)
                if not line.startswith("{"):
                    continue
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                if not isinstance(event, dict) or "event" not in event:
                    continue
                ended.events.append(event)
                if event["event"] == "done":
                    if at_done:
                        ended.at_done = at_done(process.pid) or {}
                    try:
                        process.stdin.write(b"\n")
                        process.stdin.flush()
                    except (OSError, ValueError):
                        pass

        reader = threading.Thread(target=read, daemon=True)
        last = 0.0
        try:
            if process is not None:
                reader.start()
            while process is not None and process.poll() is None and not _asked_to_end:
                now = time.monotonic()
                if now - begin > limit:
                    ended.failure = f"killed after {limit:.0f} s"
                    break
                if watch and now - last > LOOK:
                    last = now
                    watch(process.pid)
                time.sleep(0.02)
        finally:
            if process is not None:
                end_group(process)
            _running = False
        if _asked_to_end:
            sys.exit(128 + _asked_to_end)
        if process is None:
            return ended
        reader.join(BURIAL)
        if ended.failure is None:
            ended.code = process.returncode
        ended.seconds = time.monotonic() - begin
        ended.output = "".join(output)
        errors.seek(0, os.SEEK_END)
        errors.seek(max(0, errors.tell() - MOST_TEXT))
        ended.errors = errors.read().decode(errors="replace")
    return ended
