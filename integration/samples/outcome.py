"""One run of a sample: what it printed and wrote, what it says of itself, and what was missing."""
import dataclasses
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile

import page

# samples' own EXIT_WAIVED.
WAIVED = 2
# Says that a sample's own comparison failed, though it may end with code 0.
FAILED = re.compile(r"\bFAILED\b|\bfailed\b(?! to (?:open|find) )|Test failed|\bFAILURE\b|Result = FAIL\b")
# Numbers of such lines are the machine's or the moment's: times, rates, clocks, what is free.
MEASURED = re.compile(r"time|latency|bandwidth|throughput|elapsed|speed|perf|fps|flop|/s\b|per second|\bms\b|msec|usec|\bus\b|seconds|cycles|clock|"
                      r"\bfree\b|available|\bsec\b|options/s|ratio|footprint|process|pid\b", re.IGNORECASE)
NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?|\b(?:inf|nan)\b")
POINTER = re.compile(r"0x[0-9a-fA-F]{6,}")
NOT_IMPLEMENTED = re.compile(r"cudasim: (\w+) is not implemented")
UNKNOWN = re.compile(r"cudasim: no plug-in has kernel (\S+?)(?: and its PTX can't be run \((.+)\))?: its launches take")


@dataclasses.dataclass
class Outcome:
    """What a run has shown."""

    code: int = 0
    output: str = ""
    errors: str = ""
    files: dict = dataclasses.field(default_factory=dict)
    report: dict = dataclasses.field(default_factory=dict)
    timed_out: bool = False

    @property
    def missing(self):
        """Calls without an implementation, and what kernels use that is not executed; the driver names each once."""
        kernels = [re.sub(r"line \d+: ", "", why) or f"machine code of {name[:40]}" for name, why in UNKNOWN.findall(self.errors)]
        return list(dict.fromkeys(NOT_IMPLEMENTED.findall(self.errors) + kernels))

    def failure(self, verdict):
        """Why this run is not a pass; '' for one. `verdict`: what a pass has to print, a regular expression, beside ending with code 0."""
        if self.timed_out:
            return page.TOO_LONG
        if self.report.get("counters", {}).get("unknown_kernels"):
            return "kernels that are not executed: " + "; ".join(self.missing or self.report["unknown_kernels"])
        if self.report.get("counters", {}).get("races"):  # its exit code says so, too
            return f"{self.report['counters']['races']} races"
        if self.code == WAIVED:
            return "waives itself: " + self._last_line()
        if self.code != 0:
            return "; ".join([f"exit code {self.code}" if self.code > 0 else f"signal {-self.code}", *self.missing, self._last_line()])
        if not re.search(verdict, self.output) if verdict else FAILED.search(self.output):
            return "; ".join(["its own check fails", *self.missing, self._last_line()])
        return ""

    def _last_line(self):
        lines = [line.strip() for line in self.errors.splitlines() if line.strip() and not line.startswith(("memopt:", "cudasim: "))]
        lines = lines or [line.strip() for line in self.output.splitlines() if line.strip()]
        return re.sub(r"/\S*/", "", lines[-1])[:160] if lines else "nothing said"


def comparable(text, ignored=""):
    """A run's output without what is another in each run: times, rates, addresses, and lines that match `ignored`."""
    lines = []
    for line in text.splitlines():
        if ignored and re.search(ignored, line):
            continue
        line = POINTER.sub("ADDRESS", line)
        if MEASURED.search(line):
            line = NUMBER.sub("N", line)
        lines.append(re.sub(r"\s+", " ", line).strip())
    return lines


def difference(native, other, ignored=""):
    """What differs between two runs' outputs and files; '' for nothing."""
    for a, b in zip(comparable(native.output, ignored), comparable(other.output, ignored)):
        if a != b:
            return f"`{a[:60]}` / `{b[:60]}`"
    if len(comparable(native.output, ignored)) != len(comparable(other.output, ignored)):
        return "lines of output"
    names = sorted(name for name in native.files.keys() | other.files.keys() if native.files.get(name) != other.files.get(name))
    return "files: " + ", ".join(names) if names else ""


def _digests(folder):
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def run(memoptctl, device, options, program, arguments, environment, limit_s):
    """Runs a compiled sample in a copy of its folder. `files`: digests of what it wrote there."""
    with tempfile.TemporaryDirectory(prefix="sample-") as folder:
        work = os.path.join(folder, "work")
        shutil.copytree(os.path.dirname(program), work, symlinks=True)
        before = _digests(work)
        report = os.path.join(folder, "report")
        command = [memoptctl, "run", "--sim", device, *options, "--", "./" + os.path.basename(program), *arguments]
        outcome = Outcome()
        process = subprocess.Popen(command, cwd=work, env=environment | {"CUDASIM_REPORT": report}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        try:
            outcome.output, outcome.errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            outcome.timed_out = True
            os.killpg(process.pid, 9)
            outcome.output, outcome.errors = process.communicate()
        outcome.code = process.returncode
        if os.path.exists(report):
            with open(report, encoding="utf-8") as file:
                outcome.report = json.load(file)
        after = _digests(work)
        outcome.files = {name: digest for name, digest in after.items() if before.get(name) != digest}
        return outcome
