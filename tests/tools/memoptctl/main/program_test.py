#!/usr/bin/env python3
"""memoptctl as a person uses it: the built program, real processes, the simulated driver.

usage: program_test.py MEMOPTCTL [unittest arguments]
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import cases
import patience
import simulated

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)
BUILD = os.path.dirname(os.path.dirname(MEMOPTCTL))
LIBRARY = os.path.join(BUILD, "lib", "libmemopt.so")
SIMULATOR = os.path.join(BUILD, "cudasim", "lib")

# A CUDA program in a few lines: loads the driver, does what it is told, says "ready", ends with its standard input.
PROGRAM = """
import ctypes, os, sys
driver = ctypes.CDLL("libcuda.so.1")
def check(code):
    if code: sys.exit(f"CUDA error {code}")
def allocate(size):
    device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    check(driver.cuInit(0))
    check(driver.cuDeviceGet(ctypes.byref(device), 0))
    check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    check(driver.cuCtxSetCurrent(context))
    check(driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)))
    return pointer
"""


def ctl(*arguments, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([MEMOPTCTL, *arguments], capture_output=True, text=True, timeout=patience.seconds(100), **options)


def program(text, *run_options):
    """A Python program under memopt on the simulated driver, from when it says "ready" until the test is done with it."""
    return simulated.ready([MEMOPTCTL, "run", "--sim", "a100-40g", *run_options, "--", sys.executable, "-c",
                            PROGRAM + text + "\nprint('ready', flush=True)\nsys.stdin.read()"])


class Run(unittest.TestCase):
    def test_exit_code_is_the_programs(self):
        for code in (0, 1, 7, 255):
            self.assertEqual(ctl("run", "--", "sh", "-c", f"exit {code}").returncode, code)

    def test_signal_is_the_programs(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            done = ctl("run", "--", sys.executable, "-S", "-c", f"import os,signal;signal.signal({int(number)},signal.SIG_DFL) "
                       f"if {int(number)}!=9 else 0;os.kill(os.getpid(),{int(number)})")
            self.assertEqual(done.returncode, -number)

    def test_it_becomes_the_program(self):
        process = subprocess.Popen([MEMOPTCTL, "run", "--", "sh", "-c", "echo $$"], stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.communicate(timeout=patience.seconds(100))[0].strip(), str(process.pid))

    def test_arguments_and_input_arrive_unchanged(self):
        words = ["", "a b", "--", "--sim", "x", "--help", "-", "*"]
        shown = ctl("run", "--", sys.executable, "-c", "import sys;print(sys.argv[1:])", *words)
        self.assertEqual(shown.stdout.strip(), str(words))
        self.assertEqual(ctl("run", "--", "cat", stdin=None, input="through\n").stdout, "through\n")

    def test_without_the_separator(self):
        self.assertEqual(ctl("run", "sh", "-c", 'echo "$@"', "x", "--sim", "y", "--", "z").stdout, "--sim y -- z\n")

    def preload(self, *arguments, **environment):
        shown = ctl("run", *arguments, "--", "sh", "-c", 'echo "$LD_PRELOAD|$MEMOPT_DISABLE|$LD_LIBRARY_PATH|$CUDASIM_DEVICE"',
                    env={**{k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}, **environment})
        preload, *rest = shown.stdout.strip().split("|")
        # A sanitised build puts the sanitizer's runtime first.
        entries = [entry for entry in preload.split(":") if not os.path.basename(entry).startswith(("libasan", "libtsan"))]
        return entries, rest

    def test_its_library_comes_before_what_is_preloaded_already(self):
        self.assertEqual(self.preload(), ([LIBRARY], ["", "", ""]))
        first, other = os.environ.get("SANITIZER_PRELOAD", ""), "libm.so.6"
        self.assertEqual(self.preload(LD_PRELOAD=first + other)[0], [LIBRARY, other])
        self.assertEqual(self.preload(LD_PRELOAD=f"{first}{other}:{LIBRARY}")[0], [LIBRARY, other])

    def test_disable(self):
        self.assertEqual(self.preload("--disable"), ([LIBRARY], ["1", "", ""]))

    def limits(self, *arguments, **environment):
        """MEMOPT_LIMIT and MEMOPT_HOST_LIMIT, as a program finds them."""
        done = ctl("run", *arguments, "--", "sh", "-c", 'echo "${MEMOPT_LIMIT-unset}|${MEMOPT_HOST_LIMIT-unset}"',
                   env={**os.environ, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return tuple(done.stdout.strip().split("|"))

    def test_limits(self):
        self.assertEqual(self.limits(), ("unset", "unset"))
        self.assertEqual(self.limits("--limit", "8GiB"), ("8GiB", "unset"))
        self.assertEqual(self.limits("--limit=12.5%", "--host-limit=1.5G"), ("12.5%", "1.5G"))
        self.assertEqual(self.limits("--host-limit", "1048576"), ("unset", "1048576"))
        environment = {"MEMOPT_LIMIT": "1G", "MEMOPT_HOST_LIMIT": "2G"}
        self.assertEqual(self.limits(**environment), ("1G", "2G"))
        self.assertEqual(self.limits("--limit", "60%", **environment), ("60%", "2G"))
        shown = ctl("run", "sh", "-c", 'echo "$@"', "x", "--limit", "no limit")
        self.assertEqual((shown.returncode, shown.stdout), (0, "--limit no limit\n"), "it is the program's own")

    def test_limits_that_are_not_understood(self):
        for value in ("8GB", "8g", "0", "101%", "-1G", "99999999T", "none", ""):
            done = ctl("run", "--limit", value, "--", "echo", "started")
            self.assertEqual((done.returncode, done.stdout), (2, ""), value)
            self.assertIn(f"'{value}': expected a size (8GiB, 500M) or a part of the device (60%)", done.stderr)
            self.assertIn("--limit", done.stderr)
        done = ctl("run", "--host-limit", "60%", "--", "echo", "started")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("'60%': expected a size in bytes, or with K, M, G or T (8GiB, 500M)", done.stderr)
        for wrong in (["run", "--sim", "h200", "--native", "--limit", "8G"], ["run", "--limit"],
                      ["record", "-o", "/nonexistent/file", "--limit", "8G"]):
            done = ctl(*wrong, "--", "echo", "started")
            self.assertNotEqual(done.returncode, 0, wrong)
            self.assertEqual(done.stdout, "", wrong)

    def test_sim_sets_library_path_and_preset(self):
        self.assertEqual(self.preload("--sim", "h200")[1], ["", SIMULATOR, "h200"])
        self.assertEqual(self.preload("--sim", "h200", LD_LIBRARY_PATH="/a:/b c")[1], ["", f"{SIMULATOR}:/a:/b c", "h200"])

    def stand_ins(self):
        """What the simulated device brings along, whole paths."""
        with open(os.path.join(SIMULATOR, "stand-ins.txt"), encoding="utf-8") as file:
            named = [line.split()[1] for line in file if line.startswith("preload ")]
        self.assertIn("libcublas.so.13", named)
        return [os.path.join(SIMULATOR, name) for name in named]

    def test_sim_preloads_the_stand_ins_behind_all_else(self):
        other, paths = "libm.so.6", self.stand_ins()
        first = os.environ.get("SANITIZER_PRELOAD", "")
        self.assertEqual(self.preload("--sim", "h200")[0], [LIBRARY, *paths])
        self.assertEqual(self.preload("--sim", "h200", LD_PRELOAD=first + other)[0], [LIBRARY, other, *paths])
        nested = ctl("run", "--sim", "h200", "--", MEMOPTCTL, "run", "--sim", "h200", "--", "sh", "-c", "echo $LD_PRELOAD").stdout
        self.assertEqual([entry for entry in nested.strip().split(":") if entry in paths], paths, "each once")

    def test_native_leaves_memopt_out(self):
        self.assertEqual(self.preload("--native", "--sim", "h200"), (self.stand_ins(), ["", SIMULATOR, "h200"]))
        done = ctl("run", "--native", "--", "true")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--sim", done.stderr)

    def test_frameworks_are_told_what_the_simulated_device_needs(self):
        for given, expected in ((None, "1"), ("0", "0")):
            environment = {**os.environ, **({} if given is None else {"TORCH_CUDNN_V8_API_DISABLED": given})}
            shown = ctl("run", "--native", "--sim", "h200", "--", "sh", "-c",
                        "echo $TORCH_CUDNN_V8_API_DISABLED $PYTORCH_ALLOC_CONF", env=environment)
            self.assertEqual(shown.stdout.strip(), expected)
        shown = ctl("run", "--sim", "h200", "--", "sh", "-c", "echo $TORCH_CUDNN_V8_API_DISABLED $PYTORCH_ALLOC_CONF")
        self.assertEqual(shown.stdout.split(), ["1", "backend:cudaMallocAsync"])

    def test_a_moved_build_uses_its_own_files(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = os.path.realpath(folder)
            for part in ("bin", "lib"):
                os.mkdir(os.path.join(folder, part))
            moved = shutil.copy(MEMOPTCTL, os.path.join(folder, "bin"))
            library = shutil.copy(LIBRARY, os.path.join(folder, "lib"))
            shown = subprocess.run([moved, "run", "--", "sh", "-c", "echo $LD_PRELOAD"], capture_output=True, text=True, timeout=patience.seconds(100))
            self.assertEqual(shown.stdout.strip().split(":")[-1], library)

    def test_no_such_program_and_not_executable(self):
        with tempfile.TemporaryDirectory() as folder:
            plain, orphan = os.path.join(folder, "plain"), os.path.join(folder, "orphan")
            for path, text, mode in ((plain, "text", 0o644), (orphan, "#!/nonexistent/interpreter\n", 0o755)):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                os.chmod(path, mode)
            for command, code, word in (("no-such-program", 127, "no such program"), (folder + "/absent", 127, "no such program"),
                                        (orphan, 127, "interpreter"), (plain, 126, "Permission denied"), (folder, 126, "denied")):
                done = ctl("run", "--", command)
                self.assertEqual((done.returncode, done.stdout), (code, ""), command)
                self.assertIn(word, done.stderr)

    @cases.in_plain_builds
    def test_an_unknown_simulated_device_is_an_error_at_once(self):
        for name in ("h20", "/nonexistent/device.json", "a100-40G"):
            for command in (["run"], ["record", "-o", "/nonexistent/file"], ["doctor"]):
                done = ctl(*command, "--sim", name, "--", "/bin/echo", "started")
                self.assertEqual((done.returncode, done.stdout), (2, ""), command)
                for word in (name, "a100-40g", "gtx1080ti", "h200", "device file"):
                    self.assertIn(word, done.stderr)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write("{}")
            self.assertEqual(ctl("run", "--sim", path, "--", "/bin/echo", "started").stdout, "started\n")

    def test_an_unknown_subcommand_gets_a_suggestion(self):
        for wrong, meant in (("stauts", "status"), ("docter", "doctor"), ("recrod", "record"), ("pan", "plan")):
            done = ctl(wrong, "--json")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"no subcommand {wrong}, did you mean {meant}?", done.stderr)
        done = ctl("bogus")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no subcommand bogus; memoptctl --help lists them", done.stderr)
        self.assertNotIn("probe", ctl("prob").stderr)

    def test_wrong_use(self):
        for arguments in ([], ["run"], ["run", "--"], ["run", "--sim"], ["bogus"], ["status", "--pid", "x"], ["status", "--pid", "0"],
                          ["status", "--", "x"], ["status", "x"]):
            done = ctl(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertRegex(done.stderr, r"(?m)\Amemoptctl: .+$", arguments)
        for arguments, wrong in ((["show"], "file is required"), (["show", "a", "b", "c"], "not expected: c b"), (["limit", "x", "5GiB"], "pid: expected a whole number"),
                                 (["show", "x", "--operations"], "--operations: .* missing"), (["status", "--pid"], "--pid: .* missing")):
            with self.subTest(arguments=arguments):
                done = ctl(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, rf"\Amemoptctl: .*{wrong}.*; memoptctl {arguments[0]} --help says what it takes\n\Z")


class Status(unittest.TestCase):
    def status(self, pid):
        """Exit code and the one entry of that process; a second look at it as a person sees it."""
        done = ctl("status", "--json", "--pid", str(pid))
        processes = json.loads(done.stdout)["processes"]
        seen = ctl("status", "--pid", str(pid))
        self.assertEqual(seen.returncode, done.returncode)
        return done.returncode, processes[0] if processes else None, seen.stdout + seen.stderr

    def test_counts_what_a_program_did(self):
        with program("pointer = allocate(3 << 20)") as process:
            code, entry, seen = self.status(process.pid)
            self.assertEqual(code, 0, entry)
            self.assertIn(entry["state"], ("bootstrap", "recording"))
            self.assertEqual(entry["pid"], process.pid)
            self.assertGreaterEqual(entry["calls"], 5)
            self.assertEqual(entry["live_bytes"], 3 << 20)
            self.assertEqual(entry["peak_bytes"], 3 << 20)
            self.assertEqual(entry["problems"], [])
            self.assertEqual(entry["agent"]["calls"]["entry_points"]["cuMemAlloc_v2"], 1)
            self.assertIn("3.0 MiB", seen)
            self.assertRegex(seen, "bootstrap|recording")

    def test_attached_but_no_call_seen_is_a_problem(self):
        with program("") as process:
            code, entry, seen = self.status(process.pid)
            self.assertEqual(code, 4)
            self.assertIn("attached, but no call seen", entry["problems"][0])
            self.assertIn("problem: attached, but no call seen", seen)

    def test_disabled_is_shown_and_no_problem(self):
        with program("pointer = allocate(1 << 20)", "--disable") as process:
            code, entry, _ = self.status(process.pid)
            self.assertEqual((code, entry["state"]), (0, "disabled"))

    def test_a_forked_child_without_calls_is_no_problem(self):
        with program("pointer = allocate(1 << 20)\nend, hold = os.pipe()\nchild = os.fork()\n"
                     "if not child:\n  os.close(hold)\n  os.read(end, 1)\n  os._exit(0)\n"
                     "open(os.environ['CHILD_FILE'], 'w').write(str(child))") as process:
            with open(os.environ["CHILD_FILE"], encoding="utf-8") as file:
                child = int(file.read())
            code, entry, _ = self.status(child)
            self.assertEqual((code, entry["state"]), (0, "idle"))
            self.assertIn(str(process.pid), entry["why"])

    def test_a_stopped_process_is_a_problem_and_no_hang(self):
        with program("pointer = allocate(1 << 20)") as process:
            process.send_signal(signal.SIGSTOP)
            # A signal is delivered when a thread gets to it: until all have stopped, the agent may still answer.
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            code, entry, _ = self.status(process.pid)
            self.assertEqual((code, entry["state"]), (4, "?"))
            self.assertIn("did not answer in time", entry["problems"][0])

    def test_a_process_without_memopt_is_none(self):
        code, entry, seen = self.status(os.getpid())
        self.assertEqual((code, entry), (3, None))
        self.assertIn(f"process {os.getpid()} does not run under memopt", seen)

    def test_an_ended_process_leaves_nothing(self):
        with program("pointer = allocate(1 << 20)") as process:
            pid = process.pid
        self.assertEqual(self.status(pid)[0], 3)


class Rest(unittest.TestCase):
    def test_version_and_help(self):
        self.assertRegex(ctl("--version").stdout, r"^memoptctl \d+\.\d+\.\d+\n$")
        self.assertIn("--host-limit VALUE", ctl("run", "--help").stdout)
        for arguments in (["--help"], ["run", "--help"], ["status", "--help"], ["options", "--help"]):
            done = ctl(*arguments)
            self.assertEqual(done.returncode, 0)
            self.assertIn("Usage", done.stdout)

    def test_options_are_listed(self):
        shown = ctl("options")
        self.assertEqual(shown.returncode, 0)
        self.assertIn("MEMOPT_DISABLE", shown.stdout)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["CHILD_FILE"] = os.path.join(scratch, "child")
        cases.main()
