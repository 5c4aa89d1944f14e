#!/usr/bin/env python3
"""The whole kit from an unpacked pack on the simulated driver: it comes to its end and to a table, whatever fails or hangs on the way."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cases
import kit

sys.path.insert(0, os.path.join(kit.SOURCE, "integration", "gpu", "kit"))
import processes  # noqa: E402
import results  # noqa: E402

LIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}
MOST_FILES = 8


def only(*names):
    return [word for name in names for word in ("--case", name)]


class WithFolder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name


class Pack(WithFolder):
    def elf_files(self):
        for folder, _, names in os.walk(kit.pack()):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    if file.read(4) == b"\x7fELF":
                        yield os.path.relpath(path, kit.pack()), path

    def test_is_small_and_says_what_it_is(self):
        sizes = [os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(kit.pack()) for name in names]
        self.assertLess(sum(sizes), 64 << 20)
        with open(os.path.join(kit.pack(), "manifest.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        self.assertEqual(sum(manifest["files"].values()), manifest["bytes"])
        self.assertIn("bin/facts", manifest["files"])
        self.assertIn("lib/libunwind.so.8", manifest["files"])
        self.assertRegex(kit.pack_output(), r"needs glibc 2\.\d+")

    def test_needs_nothing_that_other_machines_lack(self):
        carried = set(os.listdir(os.path.join(kit.pack(), "lib", "compat")))
        seen = 0
        for name, path in self.elf_files():
            shown = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
            needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", shown))
            with self.subTest(name=name):
                self.assertEqual(needed - LIBC - {"libcuda.so.1", "libcudart.so.13"} - carried, set())
                # What a program is started with decides, not where it was built.
                self.assertNotRegex(shown, "RPATH|RUNPATH")
                if name in ("bin/memoptctl", "bin/memoptd", "bin/facts", "lib/libmemopt.so", "workloads/replay"):
                    self.assertEqual(needed - LIBC - {"libcuda.so.1"}, set())
                    seen += 1
        self.assertEqual(seen, 5)

    def test_is_stripped(self):
        for name, path in self.elf_files():
            sections = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
            self.assertNotIn(".debug_info", sections, name)

    def test_replaces_a_pack_and_nothing_else(self):
        precious = os.path.join(self.folder, "precious")
        os.makedirs(precious)
        with open(os.path.join(precious, "file"), "w", encoding="utf-8"):
            pass
        done = kit.make_pack(precious)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is there, and no pack", done.stderr)
        self.assertTrue(os.path.exists(os.path.join(precious, "file")))
        for _ in range(2):
            self.assertEqual(kit.make_pack(os.path.join(self.folder, "pack")).returncode, 0)

    def test_a_build_that_is_not_there_is_named(self):
        done = kit.run([sys.executable, kit.PACK_PROGRAM, "--source", kit.SOURCE, "--build", "/nowhere", "--output", os.path.join(self.folder, "x")])
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/bin/memoptctl is missing", done.stderr)


class Whole(WithFolder):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.run_all = kit.RunAll(folder.name, PYTHONPATH=kit.STUBS)

    def test_comes_to_its_end(self):
        self.assertEqual(self.run_all.code, 0, self.run_all.output + self.run_all.errors)
        self.assertTrue(all(part["failure"] is None for part in self.run_all.results["parts"]), self.run_all.output)
        self.assertEqual(len(self.run_all.results["parts"]), 7)

    def test_writes_few_small_files_of_plain_names(self):
        self.assertEqual([name for name in self.run_all.files if not name.endswith(".rec")],
                         ["facts.json", "log.txt", "results.json", "table.txt"])
        self.assertLessEqual(len(self.run_all.files), MOST_FILES)
        for name in self.run_all.files:
            self.assertRegex(name, r"^[A-Za-z0-9._-]+$")
            self.assertLess(os.path.getsize(os.path.join(self.run_all.folder, name)), 16 << 20)

    def test_facts_are_there(self):
        with open(os.path.join(self.run_all.folder, "facts.json"), encoding="utf-8") as file:
            facts = json.load(file)["facts"]
        self.assertGreaterEqual(len(facts), 11)
        self.assertIn("not available: ", facts["access_completeness"]["error"])
        self.assertTrue(facts["device"]["values"]["simulated"])
        self.assertTrue(self.run_all.results["environment"]["simulated"])
        self.assertTrue(self.run_all.results["environment"]["doctor"])

    def test_own_programs_repeat_and_stay_the_same_under_memopt(self):
        for case in "digits_cnn", "train.py", "replay vgg11":
            with self.subTest(case=case):
                native, shimmed = self.run_all.row(case, "native"), self.run_all.row(case, "memopt")
                self.assertEqual((native["bits"], native["remark"]), ("repeats", ""))
                self.assertEqual(shimmed["bits"], "same", shimmed["remark"])
                self.assertGreater(native["footprint_peak"], 0)
                self.assertGreater(shimmed["footprint_peak"], 0)
        # Long enough to be asked while it runs, on any machine; whether it has allocated by then is the machine's business.
        replayed = self.run_all.row("replay vgg11", "memopt")
        self.assertIn(replayed["state"], ("passthrough", "bootstrap", "recording", "planned", "deviating"))
        self.assertIn("state", replayed["status"])
        if replayed["status"]["state"] != "passthrough":
            self.assertIn("plan", replayed["status"])
            self.assertGreater(replayed["allocation_calls"]["cuMemAlloc_v2"], 0)

    def test_frameworks_are_run_in_all_their_ways(self):
        for case in kit.CASES:
            with self.subTest(case=case):
                self.assertEqual(self.run_all.row(case, "native")["bits"], "repeats")
                shimmed = self.run_all.row(case, "memopt")
                self.assertEqual((shimmed["bits"], shimmed["iterations"]), ("same", 3))
        for case in "torch_resnet50", "torch_gpt", "torch_lstm":
            offered = ["save_on_cpu", "checkpointing", "memopt, no limit"] if case != "torch_lstm" else []
            self.assertEqual([row["variant"] for row in self.run_all.rows(case) if not row["variant"].startswith("recording")],
                             ["native", "memopt", *offered, "expandable segments", "cudaMallocAsync", "memopt, no caching"])
            for offer in offered:
                self.assertEqual(self.run_all.row(case, offer)["bits"], "same")
            self.assertEqual(self.run_all.row(case, "cudaMallocAsync")["start"]["allocator"], "cudaMallocAsync")
            self.assertEqual(self.run_all.row(case, "native")["start"]["allocator"], "native")
            self.assertEqual(len(self.run_all.rows(case, "recording")), 1)
        self.assertEqual(self.run_all.row("cupy_mlp", "no pool")["start"]["allocator"], "none")

    def test_a_program_keeps_to_a_limit(self):
        run = self.run_all.row("replay vgg11", "memopt, 60 %")
        self.assertEqual(run["bits"], "same", run["remark"])
        swaps = run["swaps"]
        self.assertLessEqual(swaps["held_peak"], swaps["limit"] + (2 << 20))
        self.assertGreater(swaps["copied_out"], 0)
        self.assertRegex(run["remark"], rf"^limit {swaps['limit'] >> 20} MiB, \d+ held at most")
        whole = self.run_all.row("replay vgg11", "memopt, no limit")["status"]["plan"]["peak_load"]
        self.assertEqual(swaps["limit"], whole * 60 // 100 // (2 << 20) * (2 << 20))

    def test_a_recording_is_reduced_and_can_be_read(self):
        path = os.path.join(self.run_all.folder, "digits_cnn.rec")
        self.assertIn("digits_cnn.rec", self.run_all.files, self.run_all.row("digits_cnn", "recording")["remark"])
        self.assertLess(os.path.getsize(path), 300 << 10)
        self.assertIn("planned to 1.", self.run_all.row("digits_cnn", "recording")["remark"])
        memoptctl = os.path.join(kit.pack(), "bin", "memoptctl")
        shown = json.loads(kit.run([memoptctl, "show", "--json", path]).stdout)
        self.assertTrue(shown["whole"])
        self.assertEqual(shown["operations"].get("stack", 0), 0)

    def test_the_table_comes_last_and_is_kept(self):
        with open(os.path.join(self.run_all.folder, "table.txt"), encoding="utf-8") as file:
            table = file.read().rstrip()
        self.assertIn(table, self.run_all.output)
        self.assertRegex(self.run_all.output.splitlines()[-1], r"^\d+ s; results in ")
        self.assertEqual(table.splitlines()[0].split()[:3], ["case", "variant", "bits"])
        for row in self.run_all.results["rows"]:
            self.assertTrue(any(line.startswith(row["case"]) for line in table.splitlines()), row["case"])


class Trouble(WithFolder):
    def test_no_gpu(self):
        # A machine may have one: its driver is hidden by a library path that has none that works.
        fake = os.path.join(self.folder, "lib")
        os.makedirs(fake)
        with open(os.path.join(fake, "libcuda.so.1"), "w", encoding="utf-8") as file:
            file.write("no library")
        ran = kit.RunAll(self.folder, simulated_driver=False, LD_LIBRARY_PATH=fake)
        self.assertEqual(ran.code, kit.NO_GPU, ran.output + ran.errors)
        self.assertIn("no GPU here: ", ran.output)

    def test_a_simulated_driver_is_no_gpu(self):
        ran = kit.RunAll(self.folder, simulated_driver=False, LD_LIBRARY_PATH=os.path.join(kit.SIMULATOR, "lib"))
        self.assertEqual(ran.code, kit.NO_GPU)
        self.assertIn("--simulated runs on it", ran.output)

    def test_what_hangs_is_killed_and_what_crashes_is_named(self):
        ran = kit.RunAll(self.folder, "--only", "frameworks", *only("torch_gpt", "jax_mlp", "cupy_mlp"), "--run-limit", "20", PYTHONPATH=kit.STUBS, STUB_HANG="jax", STUB_CRASH="cupy")
        self.assertEqual(ran.code, 0, ran.output + ran.errors)
        self.assertEqual(ran.row("jax_mlp", "native")["remark"], "killed after 20 s")
        self.assertRegex(ran.row("cupy_mlp", "native")["remark"], "^signal 11")
        self.assertEqual(ran.row("torch_gpt", "native")["bits"], "repeats")
        self.assertIn("killed after 20 s", ran.output[ran.output.index("\ncase "):])

    def test_what_does_not_repeat_is_told(self):
        cases_ = "torch_lstm", "jax_mlp"
        ran = kit.RunAll(self.folder, "--only", "frameworks", *only(*cases_), PYTHONPATH=kit.STUBS, STUB_NOISE="1")
        for case in cases_:
            self.assertEqual(ran.row(case, "native")["bits"], "differ", case)

    def test_time_that_is_over(self):
        ran = kit.RunAll(self.folder, "--limit", "2.5")
        self.assertEqual(ran.code, 0, ran.output + ran.errors)
        self.assertTrue(any("not begun, the time is over" in note for note in ran.results["notes"]))
        self.assertIn("\ncase ", ran.output)

    def test_missing_frameworks_are_rows(self):
        ran = kit.RunAll(self.folder, "--only", "frameworks", PYTHONPATH="/nowhere")
        self.assertEqual(ran.code, 0)
        for case in kit.CASES:
            if "missing" not in ran.row(case, "native")["remark"]:
                self.skipTest("this machine has a framework")

    def hung(self, wait=0):
        """Processes of the pack's jax_mlp.py, which never gets past its import here."""
        script = os.path.join(kit.pack(), "frameworks", "jax_mlp.py").encode()
        deadline = time.monotonic() + wait
        while True:
            found = []
            for name in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{name}/cmdline", "rb") as file:
                        if script in file.read().split(b"\0"):
                            found.append(name)
                except OSError:
                    pass
            if found or time.monotonic() >= deadline:
                return found
            time.sleep(0.05)

    def test_ended_from_outside_it_still_shows_the_table(self):
        output = os.path.join(self.folder, "results")
        process = subprocess.Popen([os.path.join(kit.pack(), "run-all"), "--simulated", "--simulator", kit.SIMULATOR, "--small", "--only",
                                    "frameworks", *only("torch_lstm", "jax_mlp"), "--output", output], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=kit.environment(PYTHONPATH=kit.STUBS, STUB_HANG="jax"))
        with process:
            while "torch_lstm memopt" not in (line := process.stdout.readline()):
                self.assertTrue(line, "it ended before")
            self.assertTrue(self.hung(wait=60), "the next program hangs")
            process.send_signal(signal.SIGTERM)
            rest = process.stdout.read()
            self.assertEqual(process.wait(60), 128 + signal.SIGTERM)
        self.assertEqual(self.hung(), [], "what it had started is gone with it")
        self.assertIn("case ", rest)
        with open(os.path.join(output, "results.json"), encoding="utf-8") as file:
            self.assertEqual([row["variant"] for row in json.load(file)["rows"]], ["native", "memopt"])

    def test_asked_to_end_at_any_line_it_leaves_no_program_behind(self):
        program = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import processes
processes.end_on(signal.SIGTERM)
line = int(sys.argv[2])
def trace(frame, event, _):
    if frame.f_code is not processes.run.__code__:
        return None
    if event == "line" and frame.f_lineno == line:
        sys.settrace(None)
        frame.f_trace = None
        os.kill(os.getpid(), signal.SIGTERM)
    return trace
sys.settrace(trace)
processes.run(["sleep", "600"], 0.3, os.environ)
"""
        lines = sorted({number for _, _, number in processes.run.__code__.co_lines() if number})
        ended = 0
        for line in lines:
            # Found by its environment, as it has a session of its own.
            mark = f"RUN_ALL_TEST_LINE={os.getpid()}-{line}"
            name, value = mark.split("=")
            done = subprocess.run([sys.executable, "-c", program, os.path.dirname(processes.__file__), str(line)], timeout=120,
                                  env=os.environ | {name: value}, check=False)
            with self.subTest(line=line):
                self.assertIn(done.returncode, (0, 128 + signal.SIGTERM))
                self.assertEqual(self.marked(mark), [], "what it had started is gone with it")
            ended += done.returncode != 0
        self.assertGreater(ended, len(lines) // 2, "most lines are come to")

    @staticmethod
    def marked(mark):
        """Processes with that in their environment."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark.encode() in file.read().split(b"\0"):
                        found.append(name)
            except OSError:
                pass
        return found

    def test_wrong_use(self):
        for options, message in ((["--limit", "0"], "above 0"), (["--only", "weather"], "weather"), (["--simulated", "--simulator", "/nowhere"], "/nowhere"),
                                 (["--pack", "/nowhere"], "is no pack of tools/pack-gpu")):
            with self.subTest(options=options):
                ran = kit.RunAll(self.folder, *options, simulated_driver=False)
                self.assertEqual(ran.code, 2, ran.output)
                self.assertIn(message, ran.errors)

    def test_results_that_can_not_be_written(self):
        done = kit.run([os.path.join(kit.pack(), "run-all"), "--output", "/proc/nowhere"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("the results can't be written", done.stderr)


# run-all, told that it has found a GPU: everything then takes the ways that it takes on one.
PRETEND = """
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.SourceFileLoader("run_all", sys.argv[1])
run_all = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_all", loader))
loader.exec_module(run_all)
run_all.find_device = lambda where: {"name": "pretended"}
sys.argv[1:] = sys.argv[2:]
sys.exit(run_all.main())
"""
MEASURE = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import measured, memory, results, setting
found = results.Results(sys.argv[2], 60)
where = setting.Setting(sys.argv[3], found)
os.truncate(os.environ["FAKE_NVML_FILE"], 5 << 20)
ran = measured.measure(where, "grow", ["sh", "-c", sys.argv[4]], 60, where.environment())
print(json.dumps([ran.peak, ran.end, where.nvml.failure, where.runtime]))
"""


class AsOnAGpu(WithFolder):
    CASES = "digits_cnn", "digits_cnn_static", "train.py", "replay vgg11", "torch_gpt"

    def setUp(self):
        super().setUp()
        self.used = os.path.join(self.folder, "used")
        with open(self.used, "w", encoding="utf-8"):
            pass
        # Driver and runtime are the simulator's, NVML is ours; nobody tells the kit.
        self.libraries = os.path.join(kit.SIMULATOR, "lib")
        self.machine = {"LD_LIBRARY_PATH": self.libraries + ":" + os.path.join(kit.BUILD, "tests", "fake_nvml"), "FAKE_NVML_FILE": self.used}

    def test_own_programs_and_frameworks(self):
        output = os.path.join(self.folder, "results")
        done = kit.run([sys.executable, "-c", PRETEND, os.path.join(kit.pack(), "run-all"), "--small", "--only", "programs", "--only", "frameworks",
                        "--limit", "3000", "--run-limit", "400", *only(*self.CASES), "--output", output], PYTHONPATH=kit.STUBS, **self.machine)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(output, "results.json"), encoding="utf-8") as file:
            found = json.load(file)
        self.assertEqual(found["environment"]["cudart_folder"], self.libraries)
        self.assertEqual(found["environment"]["nvml"], "there")
        self.assertTrue(all(part["failure"] is None for part in found["parts"]), done.stdout)
        rows = {(row["case"], row["variant"]): row for row in found["rows"]}
        self.assertEqual({case for case, _ in rows}, set(self.CASES))
        for case in self.CASES:
            self.assertEqual(rows[case, "native"]["bits"], "repeats", rows[case, "native"])
            self.assertEqual(rows[case, "memopt"]["bits"], "same", rows[case, "memopt"])
            self.assertIsNotNone(rows[case, "native"]["footprint_peak"])
        self.assertEqual(rows["torch_gpt", "native"]["footprint_end"], 0)

    def measure(self, program):
        done = kit.run([sys.executable, "-c", MEASURE, os.path.join(kit.pack(), "kit"), os.path.join(self.folder, "results"), kit.pack(), program],
                       **self.machine)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_footprints_are_the_increase_by_nvml(self):
        # What is there before the program, 5 MiB, is not the program's.
        program = 'truncate -s 55M "$FAKE_NVML_FILE"; sleep 1; truncate -s 25M "$FAKE_NVML_FILE"; sleep 1; echo \'{"event":"done"}\'; read line'
        self.assertEqual(self.measure(program), [50 << 20, 20 << 20, None, self.libraries])

    def test_nvml_that_does_not_work_is_told(self):
        self.machine["FAKE_NVML_BROKEN"] = "1"
        self.assertEqual(self.measure("true"), [None, None, "NVML: error 9", self.libraries])


class Results(WithFolder):
    def test_what_can_not_be_carried_is_left_out(self):
        found = results.Results(self.folder, 10)
        for index in range(10):
            with open(found.path(f"recording{index}.rec"), "w", encoding="utf-8") as file:
                file.write("x")
        with open(os.path.join(self.folder, "odd name"), "w", encoding="utf-8"):
            pass
        with open(found.path("a-large-one"), "wb") as file:
            file.truncate(results.MOST_BYTES + 1)
        found.save()
        found.check()
        names = os.listdir(self.folder)
        self.assertLessEqual(len(names), MOST_FILES)
        self.assertTrue({"results.json", "table.txt", "log.txt"} <= set(names))
        self.assertFalse({"odd name", "a-large-one"} & set(names))
        self.assertRaises(ValueError, found.path, "../elsewhere")

    def test_the_log_ends_before_it_is_too_large(self):
        found = results.Results(self.folder, 10)
        ended = processes.Ended()
        ended.code, ended.output, ended.errors = 0, "line\n" * 100000, "\udcff" * 10
        for _ in range(400):
            found.log("much", ended)
        self.assertLess(os.path.getsize(found.path("log.txt")), results.MOST_LOG + (1 << 20))


class Processes(unittest.TestCase):
    def test_a_program_and_all_that_it_started_are_killed(self):
        ended = processes.run(["sh", "-c", "sleep 1000 & echo $!; sleep 1000"], 1)
        self.assertEqual((ended.code, ended.why()), (None, "killed after 1 s"))
        child = int(ended.output)
        for _ in range(200):
            try:
                with open(f"/proc/{child}/stat", encoding="ascii") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                        return
            except OSError:
                return
            time.sleep(0.05)
        self.fail("the program's child lives on")

    def test_output_without_end_is_bounded(self):
        ended = processes.run(["sh", "-c", "yes & yes >&2"], 1)
        self.assertLess(len(ended.output) + len(ended.errors), 3 * processes.MOST_TEXT)
        self.assertEqual(ended.failure, "killed after 1 s")

    def test_what_is_said_about_an_end(self):
        for command, why in ((["sh", "-c", "echo no luck >&2; exit 3"], "exit code 3: no luck"), (["sh", "-c", "kill -9 $$"], "signal 9"),
                             (["/nowhere/program"], "could not be started: ")):
            self.assertTrue(processes.run(command, 30).why().startswith(why))
        self.assertEqual(processes.run(["true"], 30).why(), "")
        self.assertEqual(processes.run(["true"], 0).failure, "not run: no time left")


if __name__ == "__main__":
    cases.main()
