#!/usr/bin/env python3
"""memoptctl fit: what it says a program needs is what the program then holds under memopt on the simulated device.

usage: fit_test.py MEMOPTCTL [unittest arguments]
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import unittest

import cases
import patience
import simulated

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)
BUILD = os.path.dirname(os.path.dirname(MEMOPTCTL))
WORKLOADS = os.path.join(BUILD, "workloads")
DIGITS = os.path.join(WORKLOADS, "digits_cnn")
RECORDINGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "data", "recordings")
GPT, GRU = (os.path.join(RECORDINGS, name) for name in ("gpt.rec", "gru.rec"))
MIB = 1 << 20
TRAINING = ("--epochs", "4", "--batch", "{batch}", "--quiet")
AGREE = 0.02


def run(*arguments, **environment):
    return subprocess.run([MEMOPTCTL, *arguments], capture_output=True, text=True, timeout=patience.seconds(300), stdin=subprocess.DEVNULL,
                          env=simulated.clean_environment() | environment)


def fit(*arguments, **environment):
    done = run("fit", "--json", "--time-budget", "200ms", *arguments, **environment)
    if not done.stdout:
        raise AssertionError(f"fit {arguments}: {done.returncode}: {done.stderr}")
    return done.returncode, json.loads(done.stdout)


def held(command, **environment):
    """The median of what the driver holds for the program under memopt, in the last third of its run."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        done = run("run", "--sim", "a100-40g", "--", *command, CUDASIM_REPORT=report, MEMOPT_SYNC_PLAN="60s", **environment)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        with open(report, encoding="utf-8") as file:
            peaks = json.load(file)["held_history"]["peaks"]
    return statistics.median(peaks[2 * len(peaks) // 3:])


class Agreement(unittest.TestCase):
    def check(self, said, found):
        self.assertLess(abs(said - found), AGREE * found, f"said {said / MIB:.1f} MiB, held {found / MIB:.1f} MiB")

    def test_a_training_program(self):
        command = [DIGITS, "--epochs", "5", "--batch", "720", "--quiet"]
        code, said = fit("--device", "1GiB", "--no-swaps", "--", *command)
        self.assertEqual(code, 0)
        self.check(said["rows"][0]["ways"]["layout"]["bytes"], held(command))

    def test_a_recording(self):
        """The same from a recording, and what a replay of its iteration holds under memopt."""
        with tempfile.TemporaryDirectory() as folder:
            whole, reduced = (os.path.join(folder, name) for name in ("whole.rec", "reduced.rec"))
            command = [DIGITS, "--epochs", "4", "--batch", "720", "--quiet"]
            self.assertEqual(run("record", "-o", whole, "--sim", "a100-40g", "--", *command).returncode, 0)
            self.assertEqual(run("reduce", whole, "-o", reduced).returncode, 0)
            _, said = fit("--no-swaps", reduced)
            self.check(said["rows"][0]["ways"]["layout"]["bytes"], held([os.path.join(WORKLOADS, "replay"), reduced, "--iterations", "16", "--quiet"]))

    def test_pytorch_programs(self):
        """Recordings of PyTorch's programs against what docs/results/frameworks.md says that the same programs held, less what the driver has for
        the process by itself: natively, that is what it counts beyond what PyTorch's caching allocator has reserved. Half of them within 1 %, all
        but three within 2 %, these within 4 %; the caching allocator's bytes are PyTorch's own count."""
        with open(os.path.join(RECORDINGS, "..", "..", "..", "docs", "results", "frameworks.md"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        begin = next(at for at, line in enumerate(lines) if "reserved" in line and "async: steady" in line)
        end = next(at for at in range(begin, len(lines)) if not lines[at].startswith("|"))
        head, _, *rows = ([cell.strip(" *").replace(",", "") for cell in line[1:-1].split("|")] for line in lines[begin:end])
        apart = []
        for row in rows:
            values = dict(zip(head, row))
            recording = os.path.join(RECORDINGS, row[0] + ".rec")
            if not os.path.exists(recording):
                continue
            _, said = fit("--no-swaps", recording)
            ways = {way: value["bytes"] / MIB for way, value in said["rows"][0]["ways"].items() if value["bytes"]}
            held = float(values["async: steady"]) - (float(values["its largest"]) - float(values["reserved"]))
            apart.append(abs(ways["layout"] / held - 1))
            print(f"{row[0]:32} held {held:8.1f} MiB, said {ways['layout']:6.0f} MiB; reserved {values['reserved']:>8}, said {ways['caching_allocator']:6.0f}")
            self.assertLess(apart[-1], 0.04, row[0])
            self.assertLess(abs(ways["caching_allocator"] / float(values["reserved"]) - 1), 0.05, row[0])
        self.assertGreater(len(apart), 20)
        self.assertLess(statistics.median(apart), AGREE / 2)
        self.assertGreaterEqual(sum(one <= AGREE for one in apart), len(apart) - 3)


class Ways(unittest.TestCase):
    def bytes_of(self, row):
        ways = row["ways"]
        order = ("caching_allocator", "layout", "swaps_0_percent", "swaps_1_percent", "swaps_5_percent", "swaps_20_percent")
        return [ways[key]["bytes"] for key in order]

    def test_each_needs_no_more_than_the_one_before(self):
        for recording in (GPT, GRU):
            code, said = fit("--device", "2GiB", recording)
            needs = self.bytes_of(said["rows"][0])
            self.assertEqual((code, needs), (0, sorted(needs, reverse=True)), recording)
            self.assertEqual(said["capacity"], 2 << 30)
            self.assertIn("is a recording of a run on simulated a100-40g", said["simulated"])

    def test_what_is_planned_within_its_limits_holds(self):
        """By the command that plans swaps, within what fit says, which adds no more time than that."""
        _, said = fit("--device", "2GiB", GPT)
        needs = said["rows"][0]["ways"]["swaps_20_percent"]["bytes"]
        done = run("plan", GPT, "--limit", str(needs), "--machine", "a100-40g", "--time-budget", "1s", "--no-bound")
        self.assertEqual(done.returncode, 0, done.stderr)
        added, period = (float(word) for word in done.stdout.split("added time")[1].split("ms")[:2] for word in [word.split()[-1]])
        self.assertLessEqual(added, 0.25 * period, done.stdout)

    def test_exit_codes(self):
        self.assertEqual(fit("--no-swaps", "--device", "64GiB", GRU)[0], 0)
        self.assertEqual(fit("--no-swaps", "--device", "1MiB", GRU)[0], 3)

    def test_devices(self):
        for device, capacity in (("24GiB", 24 << 30), ("24G", 24 << 30), ("h200", 144384 * MIB)):
            _, said = fit("--no-swaps", "--device", device, GRU)
            if device != "h200":
                self.assertEqual(said["capacity"], capacity)
            else:
                self.assertGreater(said["capacity"], 100 << 30)
        for arguments, message in ((("--device", "24GB"), "--device: expected a size, such as 24GiB, or a simulated device"),
                                   (("--device", "60%"), "--device: expected a size"), (("--sim", "a10"), "--sim: a10 is no simulated device"),
                                   (("--device", "h20"), "did you mean h200")):
            done = run("fit", *arguments, GRU)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)

    def test_text(self):
        done = run("fit", "--time-budget", "200ms", "--device", "64MiB", GRU)
        self.assertRegex(done.stdout, r"(?m)^device     64\.0 MiB, as given$")
        self.assertRegex(done.stdout, r"(?m)^memopt, layout +\S+ MiB +(yes|no)$")
        self.assertRegex(done.stdout, r"(?m)^memopt, \+20 % time +\S+ MiB +(yes|no)$")


class Scaled(unittest.TestCase):
    def test_a_row_for_each_value(self):
        code, said = fit("--device", "64MiB", "--no-swaps", "--scale", "batch=96,288", "--", DIGITS, *TRAINING)
        self.assertEqual((code, [row["value"] for row in said["rows"]]), (0, ["96", "288"]))
        loads = [row["ways"]["plain"]["bytes"] for row in said["rows"]]
        self.assertGreater(loads[1], 2.5 * loads[0])
        self.assertEqual(said["largest"]["caching_allocator"], "96")

    def test_a_range_is_searched(self):
        code, said = fit("--device", "40MiB", "--no-swaps", "--scale", "batch=48..240:48", "--", DIGITS, *TRAINING, "--width", "2")
        self.assertEqual(code, 0)
        for way, largest in said["largest"].items():
            # Of all that were tried; swaps were not.
            fits = [int(row["value"]) for row in said["rows"] if row["ways"][way]["fits"]]
            self.assertEqual(largest, str(max(fits)) if fits else None, way)
            self.assertEqual(bool(fits), not way.startswith("swaps"), way)

    def test_wrong_use(self):
        for arguments, message in ((("--scale", "batch", "--", "true"), "--scale: expected NAME=V,V,..."),
                                   (("--scale", "batch=1,2", "--", "true"), "--scale: expected {batch} in the command"),
                                   (("--scale", "batch=1,2", GRU), "--scale is for a command"),
                                   ((GRU, "--", "true"), "fit takes one recording, or a command"), ((), "fit needs a command or a recording"),
                                   (("--time-buget", "5s", GRU), "did you mean --time-budget")):
            done = run("fit", *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(message, done.stderr)


class Failing(unittest.TestCase):
    def refuse(self, code, pattern, *arguments):
        done = run("fit", *arguments)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertRegex(done.stderr, pattern)

    def test_programs_that_do_not_run(self):
        self.refuse(1, "the program did not run on the simulated device: exit code 127", "--", "/no/such/program")
        self.refuse(1, "no call of CUDA was seen", "--", "true")
        self.refuse(1, r"(?s)exit code 3\n  one\n  two", "--", "sh", "-c", "echo one; echo two; exit 3")
        self.refuse(1, "it needs Python's module no_such_module: install it", "--", sys.executable, "-c", "import no_such_module")
        self.refuse(1, "it needs libnosuch.so.7, which neither this machine nor the simulated device has", "--", sys.executable, "-c",
                    "import ctypes; ctypes.CDLL('libnosuch.so.7')")

    def test_one_that_does_not_end(self):
        done = run("fit", "--no-swaps", "--run-time", "5s", "--", DIGITS, "--epochs", "100000", "--batch", "288", "--width", "2", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("it was ended after 5 s", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^memopt, layout +\S+ MiB")

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            text = os.path.join(folder, "text")
            with open(text, "w", encoding="utf-8") as file:
                file.write("no recording\n")
            self.refuse(1, "expected a recording", text)
            self.refuse(1, "absent: cannot be opened", os.path.join(folder, "absent"))
            with open(GRU, "rb") as file:
                whole = file.read()
            cut = os.path.join(folder, "cut.rec")
            # What was read is said, and is no answer: what is missing may need more.
            for length, plain in ((len(whole) - 30, "379.8 MiB +yes"), (len(whole) // 2, "- +-")):
                with open(cut, "wb") as file:
                    file.write(whole[:length])
                done = run("fit", "--no-swaps", cut)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("damaged: ", done.stdout)
                self.assertRegex(done.stdout, rf"(?m)^plain allocation +{plain}$")

    def test_no_accesses_are_no_swaps(self):
        with tempfile.TemporaryDirectory() as folder:
            snapshot = os.path.join(folder, "snapshot.pickle")
            self.assertEqual(run("export", GRU, "--format", "pytorch-snapshot", "-o", snapshot).returncode, 0)
            code, said = fit(snapshot)
            ways = said["rows"][0]["ways"]
            self.assertEqual((code, ways["swaps_0_percent"]["bytes"]), (0, None))
            self.assertGreater(ways["layout"]["bytes"], MIB)
            self.assertIn("it does not say when blocks are accessed", said["rows"][0]["notes"][0])


if __name__ == "__main__":
    cases.main()
