#!/usr/bin/env python3
"""memoptctl record and show as a person uses them: real processes that record by the wire protocol, and CUDA programs on the
simulated driver.

usage: record_test.py MEMOPTCTL [unittest arguments]
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cases
import patience

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)
BUILD = os.path.dirname(os.path.dirname(MEMOPTCTL))
AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_agent.py")
LATE_CONNECT = os.path.join(BUILD, "tests", "liblate_connect.so")
VECTOR = os.path.join(BUILD, "workloads", "vector_runtime")
DIGITS = os.path.join(BUILD, "workloads", "digits_cnn")
KILLS = 2 if cases.SANITIZER else 6  # of each kind: what is killed has nothing to report


def run(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([MEMOPTCTL, *arguments], capture_output=True, text=True, timeout=patience.seconds(100), **options)


class WithFolder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.file = os.path.join(self.folder, "recording")

    def record(self, *words, **options):
        return run("record", "-o", self.file, "--", sys.executable, AGENT, *words, **options)

    def show(self, path=None, code=0):
        shown = run("show", "--json", path or self.file)
        self.assertEqual(shown.returncode, code, shown.stderr)
        return json.loads(shown.stdout)

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.005)


class Record(WithFolder):
    def test_everything_is_there(self):
        done = self.record("records=30001", "kernel=gemm")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertRegex(done.stderr, r"^memoptctl: recorded 30001 records of .* in \S+, [\d.]+ KiB\n$")
        shown = self.show()
        self.assertEqual((shown["records"], shown["missing"], shown["whole"]), (30001, 0, True))
        self.assertEqual(shown["arguments"][1:], [AGENT, "records=30001", "kernel=gemm"])
        self.assertEqual(shown["operations"]["malloc"], 10000)
        self.assertEqual([(k["name"], k["launches"]) for k in shown["kernels"]], [("gemm", 10000)])
        self.assertEqual((shown["peak_load"], shown["live_blocks"]), (4096, 0))

    def test_dropped_records_are_told(self):
        done = self.record("records=300", "drop=20")
        self.assertIn("100 were dropped", done.stderr)
        shown = self.show()
        self.assertEqual((shown["missing"], shown["gaps"], shown["whole"]), (100, 1, True))

    def test_a_stream_that_makes_no_sense_is_no_whole_recording(self):
        done = self.record("records=300", "corrupt", "exit=3")
        self.assertEqual(done.returncode, 3)
        self.assertIn("lane 0", done.stderr)
        shown = self.show(code=1)
        self.assertFalse(shown["whole"])
        self.assertIn("its end is missing", shown["damage"]["reason"])

    def test_input_output_and_arguments_pass_through(self):
        done = run("record", "-o", self.file, "--", "sh", "-c", 'cat; echo "$@" >&2', "x", "a b", "--force", "-o", stdin=None,
                   input="through\n")
        self.assertEqual(done.stdout, "through\n")
        self.assertTrue(done.stderr.startswith("a b --force -o\n"), done.stderr)

    def test_exit_code_is_the_programs(self):
        for code in (0, 3, 255):
            self.assertEqual(run("record", "-o", self.file, "--", "sh", "-c", f"exit {code}").returncode, code)
        self.assertEqual(self.record("exit=7").returncode, 7)

    def test_a_killed_program_is_recorded_to_its_last_record(self):
        # A sanitizer makes an exit code of its own of a segmentation fault.
        for number in (signal.SIGKILL, signal.SIGTERM, *([] if os.environ.get("SANITIZER_PRELOAD") else [signal.SIGSEGV])):
            with self.subTest(number=number):
                self.file = os.path.join(self.folder, number.name)
                done = self.record("records=3001", f"kill={int(number)}")
                self.assertEqual(done.returncode, 128 + number, done.stderr)
                self.assertEqual(self.show()["records"], 3001)

    def test_signals_are_passed_on_once(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
            with self.subTest(number=number):
                program = (f"import signal,sys,time\ngot=[]\nsignal.signal({int(number)},lambda n,f:got.append(n))\n"
                           "print('ready',flush=True)\nwhile not got: time.sleep(0.01)\ntime.sleep(0.1)\nsys.exit(40+len(got))")
                process = subprocess.Popen([MEMOPTCTL, "record", "-o", self.file, "--", sys.executable, "-c", program],
                                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                self.assertEqual(process.stdout.readline(), "ready\n")
                process.send_signal(number)
                self.assertEqual(process.wait(60), 41)
                process.stdout.close()

    def test_the_program_gets_default_signals(self):
        program = "import signal;print([n for n in (2,13,15,25) if signal.getsignal(n)==signal.SIG_IGN], signal.pthread_sigmask(0,[]))"
        plain = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=patience.seconds(100)).stdout
        self.assertEqual(run("record", "-o", self.file, "--", sys.executable, "-c", program).stdout, plain)

    def test_nothing_recorded_leaves_no_file_and_says_why(self):
        done = run("record", "-o", self.file, "--", "true")
        self.assertEqual(done.returncode, 0)
        self.assertIn("no CUDA call was seen", done.stderr)
        self.assertFalse(os.path.exists(self.file))

    def test_a_file_that_is_there_stays(self):
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("precious")
        ran = os.path.join(self.folder, "ran")
        done = run("record", "-o", self.file, "--", "touch", ran)
        self.assertEqual(done.returncode, 125)
        self.assertIn("is there already (--force overwrites it)", done.stderr)
        self.assertFalse(os.path.exists(ran))
        # Even with --force it is lost only to a recording.
        self.assertEqual(run("record", "-o", self.file, "--force", "--", "true").returncode, 0)
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), "precious")
        done = run("record", "-o", self.file, "--force", "--", sys.executable, AGENT)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.show()["records"], 10)

    def test_a_file_that_can_not_be_written_is_an_error_before_the_start(self):
        ran = os.path.join(self.folder, "ran")
        for path in (self.folder, self.folder + "/absent/file", ""):
            done = run("record", "-o", path, "--force", "--", "touch", ran)
            self.assertIn(done.returncode, (125, 2), path)
            self.assertTrue(done.stderr)
            self.assertFalse(os.path.exists(ran))

    def test_a_full_disk_is_told_once_and_the_program_goes_on(self):
        done = run("record", "-o", "/dev/full", "--force", "--", sys.executable, AGENT, "records=30001", "exit=5")
        self.assertEqual(done.returncode, 5)
        self.assertEqual(done.stderr.count("No space left on device"), 1, done.stderr)
        self.assertIn("30001 could not be written", done.stderr)

    def test_a_size_limit_leaves_what_fitted(self):
        done = subprocess.run(["sh", "-c", f"ulimit -S -f 40; exec {MEMOPTCTL} record -o {self.file} -- "
                               f"sh -c 'ulimit -S -f unlimited; exec {sys.executable} {AGENT} records=300001'"],
                              capture_output=True, text=True, timeout=patience.seconds(100))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("File too large"), 1, done.stderr)
        shown = self.show(code=1)
        self.assertFalse(shown["whole"])
        self.assertIn("its end is missing", shown["damage"]["reason"])

    def test_further_processes_have_files_of_their_own(self):
        done = self.record("records=100", "fork")
        self.assertEqual(done.stderr.count("recorded 100 records"), 2, done.stderr)
        files = sorted(os.listdir(self.folder))
        self.assertEqual(len(files), 2)
        pids = {self.show(os.path.join(self.folder, name))["pid"] for name in files}
        self.assertEqual(len(pids), 2)
        self.assertIn(int(files[1].rpartition(".")[2]), pids)

    def test_no_such_program(self):
        done = run("record", "-o", self.file, "--", "no-such-program")
        self.assertEqual((done.returncode, done.stderr), (127, "memoptctl: no-such-program: no such program\n"))
        self.assertFalse(os.path.exists(self.file))

    def test_wrong_use(self):
        for arguments in (["record"], ["record", "-o", self.file], ["record", "-o", self.file, "--"], ["record", "--", "true"], ["show"],
                          ["show", self.file, "--operations", "x"], ["show", self.file, "--operations", "5:1"]):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertTrue(done.stderr)

    def killed(self, whom, seed):
        """A recording in which one of both was killed; what show says."""
        chance = random.Random(seed)
        file, ready = os.path.join(self.folder, f"{whom}{seed}"), os.path.join(self.folder, f"ready{seed}")
        process = subprocess.Popen([MEMOPTCTL, "record", "-o", file, "--", "sh", "-c", 'echo $$; exec "$@"', "x", sys.executable, AGENT,
                                    "forever", f"ready={ready}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        program = int(process.stdout.readline())
        try:
            self.wait_for(lambda: os.path.exists(ready), "the program did not begin")
            time.sleep(chance.random() * 1.2)
            os.kill(process.pid if whom == "recorder" else program, signal.SIGKILL)
            process.wait(60)
        finally:
            try:
                os.kill(program, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.stdout.close()
        return self.show(file, code=1 if whom == "recorder" else 0)

    def test_killed_programs_leave_whole_files(self):
        for seed in range(KILLS):
            shown = self.killed("program", seed)
            self.assertGreater(shown["records"], 0)
            self.assertEqual((shown["missing"], shown["last_sequence"]), (0, shown["records"]))

    def test_killed_recorders_leave_readable_files(self):
        records = 0
        for seed in range(KILLS):
            shown = self.killed("recorder", seed)
            self.assertEqual((shown["missing"], shown["last_sequence"]), (0, shown["records"]))
            records += shown["records"]
        self.assertGreater(records, 0)


class Show(WithFolder):
    def test_summary_for_people(self):
        self.record("records=301", "kernel=gemm\x1b[31m")
        shown = run("show", self.file)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        for word in ("program:", "301; no record is missing; the file is whole", "100  malloc", "peak load 4.0 KiB", "gemm?[31m",
                     "largest blocks:\n  4.0 KiB × 100"):
            self.assertIn(word, shown.stdout)
        self.assertNotIn("\x1b", shown.stdout)

    def test_operations(self):
        self.record("records=301", "drop=50", "kernel=gemm")
        lines = run("show", self.file, "--operations", "2:4").stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["2", "3", "4"])
        self.assertIn("block 1, 4096 bytes", lines[0])
        self.assertIn("gemm <<<1x1x1, 32x1x1>>> 1", lines[1])
        self.assertIn("100 records are missing", run("show", self.file, "--operations", "140:").stdout)

    def test_plain_trace(self):
        self.record("records=7")
        trace = os.path.join(self.folder, "trace")
        self.assertEqual(run("show", self.file, "--trace", trace).returncode, 0)
        with open(trace, encoding="utf-8") as file:
            words = [line.split() for line in file]
        self.assertEqual([row[0] for row in words], ["Malloc", "Mutable", "Free"] * 2)
        self.assertEqual([row[1:3] for row in words[:3]], [["0x700000001000", "4096"]] * 3)
        times = [int(row[3]) for row in words]
        self.assertEqual(times, sorted(times))

    def test_damage_is_shown_and_told(self):
        self.record("records=30001")
        with open(self.file, "rb") as file:
            whole = file.read()
        for cut, reason in ((len(whole) - 1, "it is cut within a block"), (len(whole) - 56, "its end is missing")):
            with open(self.file, "wb") as file:
                file.write(whole[:cut])
            shown = run("show", self.file)
            self.assertEqual(shown.returncode, 1)
            self.assertIn(reason, shown.stderr)
            self.assertIn("records up to number", shown.stderr)
            self.assertIn("malloc", shown.stdout)

    def test_what_is_no_recording(self):
        newer = b"MMPTREC1" + (9).to_bytes(4, "little") + (1).to_bytes(4, "little") + bytes(16)
        for content, reason in ((b"", "it is empty"), (b"hello", "no recording"), (newer, "it has format 9")):
            with open(self.file, "wb") as file:
                file.write(content)
            shown = run("show", self.file)
            self.assertEqual((shown.returncode, shown.stdout), (1, ""))
            self.assertIn(reason, shown.stderr)
        self.assertIn("No such file", run("show", self.folder + "/absent").stderr)
        self.assertEqual(run("show", self.folder).returncode, 1)


@unittest.skipUnless(os.path.exists(DIGITS), "the workloads were not built")
class OnTheSimulator(WithFolder):
    @cases.in_plain_builds
    def test_a_training_program(self):
        plain = run("run", "--sim", "a100-40g", "--disable", "--", DIGITS, "--epochs", "1", "--quiet")
        self.assertEqual(plain.returncode, 0, plain.stderr)
        done = run("record", "-o", self.file, "--sim", "a100-40g", "--", DIGITS, "--epochs", "1", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = self.show()
        self.assertEqual((shown["whole"], shown["missing"], shown["device"]), (True, 0, "simulated a100-40g"))
        self.assertGreater(shown["operations"]["malloc"], 0)
        self.assertGreater(shown["operations"]["launch"], 0)
        self.assertGreater(shown["accesses"], 0)
        self.assertGreater(len(shown["kernels"]), 3)
        self.assertTrue(all(kernel["name"] for kernel in shown["kernels"]), shown["kernels"])
        trace = os.path.join(self.folder, "trace")
        self.assertEqual(run("show", self.file, "--trace", trace).returncode, 0)
        self.assertGreater(os.path.getsize(trace), 0)

    def vector(self, script="", **names):
        """Records a program of a few milliseconds, which the shell starts behind `script`."""
        return run("record", "-o", self.file, "--sim", "a100-40g", "--", "sh", "-c", script + ' exec "$@"', "sh", VECTOR,
                   env=os.environ | names)

    def test_a_program_that_ends_before_its_link_is_connected(self):
        done = self.vector(f"LD_PRELOAD=$LD_PRELOAD:{LATE_CONNECT};", LATE_CONNECT="1")
        self.assertEqual(done.returncode, 0, done.stderr)
        late = self.show()
        self.assertEqual((late["whole"], late["missing"]), (True, 0))
        os.unlink(self.file)
        self.assertEqual(self.vector().returncode, 0)
        # One library more, and else the same.
        self.assertEqual(late["operations"], self.show()["operations"] | {"module": late["operations"]["module"]})

    def test_a_recorder_that_is_held_up(self):
        done = self.vector("kill -STOP $PPID; (sleep 0.5; kill -CONT $PPID) &")
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = self.show()
        self.assertEqual((shown["whole"], shown["missing"], shown["operations"]["launch"] > 0), (True, 0, True))

    def test_a_program_outlives_its_recorder(self):
        # The program's own end is told by its output: whoever started it is no more.
        done = self.vector("kill -KILL $PPID;")
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.assertIn("checksum", done.stdout)


if __name__ == "__main__":
    cases.main()
