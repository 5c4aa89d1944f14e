#!/usr/bin/env python3
"""Whole programs with the shim preloaded and without: output, error output and exit code are the same.

Where a program uses CUDA, its status is asked for while it runs.
"""
import glob
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import cases
import patience

SHIM = os.environ["TEST_SHIM"]
PREFIX = os.environ.get("TEST_PRELOAD_PREFIX", "")
FAKE = os.environ["TEST_FAKE_DRIVER"]
PROGRAMS = os.environ["TEST_PROGRAMS"]
SANITIZED = bool(PREFIX)
# Cases that a sanitizer's runtime alone changes.
UNSANITIZED = ("dlmopen", "descriptors", "few-descriptors", "detached", "vfork", "signals")


def environment(preload=(SHIM,), driver=True, **more):
    clean = {key: value for key, value in os.environ.items()
             if not key.startswith(("MEMOPT_", "TEST_")) and key not in ("LD_PRELOAD", "LD_LIBRARY_PATH", "GTEST_OUTPUT")}
    libraries = PREFIX + ":".join(preload)
    if libraries:
        clean["LD_PRELOAD"] = libraries
    if driver:
        clean["LD_LIBRARY_PATH"] = FAKE
    if "TSAN_OPTIONS" in clean:
        clean["TSAN_OPTIONS"] += ":die_after_fork=0"  # a child makes its own status thread
    return clean | more


def run(command, env):
    done = subprocess.run(command, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=patience.seconds(120))
    return done.returncode, done.stdout, done.stderr


def program(name):
    return os.path.join(PROGRAMS, name)


def sockets_of(pid):
    prefix = f"@memopt-{os.geteuid()}-{pid}-"
    with open("/proc/net/unix", encoding="utf-8") as listing:
        return {line.split()[-1] for line in listing if prefix in line}


def status_of(pid, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for name in sockets_of(pid):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(5)
                try:
                    connection.connect("\0" + name[1:])
                    connection.sendall(b"status 1\n")
                    answer = b"".join(iter(lambda: connection.recv(65536), b""))
                except OSError:
                    continue
            if answer:
                return json.loads(answer)
        time.sleep(0.02)
    raise AssertionError(f"process {pid} serves no status")


class Unchanged(unittest.TestCase):
    def assert_unchanged(self, command, driver=True, **more):
        without = run(command, environment((), driver, **more))
        if SANITIZED and (without[0] < 0 or without[0] == 139):
            self.skipTest(f"{command[0]} does not survive the sanitizer's runtime alone")
        with_shim = run(command, environment((SHIM,), driver, **more))
        self.assertEqual(with_shim, without)
        return without

    def test_programs_without_cuda(self):
        self.assertEqual(self.assert_unchanged(["/bin/true"], driver=False), (0, "", ""))
        self.assertEqual(self.assert_unchanged(["bash", "-c", "echo hi; exit 7"], driver=False), (7, "hi\n", ""))
        self.assertEqual(self.assert_unchanged([sys.executable, "-c", "print(3)"], driver=False), (0, "3\n", ""))

    def test_a_pipe_ends(self):
        self.assertEqual(self.assert_unchanged(["bash", "-c", "echo hi | cat | tee /dev/null"], driver=False), (0, "hi\n", ""))

    def test_a_setuid_program(self):
        # The loader ignores the preload: what matters is that the program runs.
        if os.geteuid() == 0 and shutil.which("setpriv"):
            with tempfile.TemporaryDirectory() as folder:
                os.chmod(folder, 0o755)
                copy = os.path.join(folder, "id")
                shutil.copy(shutil.which("id"), copy)
                os.chmod(copy, 0o4755)
                command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", copy, "-u"]
                if os.statvfs(folder).f_flag & os.ST_NOSUID:
                    self.skipTest(f"{folder} is mounted nosuid")
                self.assertEqual(self.assert_unchanged(command, driver=False)[:2], (0, "0\n"))
            return
        for name in ("su", "mount", "passwd"):
            found = shutil.which(name)
            if found and os.stat(found).st_mode & stat.S_ISUID:
                without = run([found, "--help"], environment((), False))
                # The loader may say that it ignores the library; nothing else may change.
                self.assertEqual(run([found, "--help"], environment((SHIM,), False))[:2], without[:2])
                return
        self.skipTest("no setuid program here, and not root to make one")

    def test_awkward_programs(self):
        listed = run([program("awkward"), "--list"], environment(()))[1].split()
        self.assertGreaterEqual(len(listed), 14)
        for case in listed:
            with self.subTest(case):
                if SANITIZED and case in UNSANITIZED:
                    self.skipTest("not under a sanitizer: its own runtime does not survive this, or complains of it")
                code, output, errors = self.assert_unchanged([program("awkward"), case])
                self.assertNotEqual(output, "", errors)

    def test_awkward_programs_with_the_shim_disabled(self):
        for case in ("absent", "global-scope", "fork", "reopen", "threads"):
            with self.subTest(case):
                self.assert_unchanged([program("awkward"), case], MEMOPT_DISABLE="1")

    def test_without_a_driver(self):
        self.assertEqual(self.assert_unchanged([program("awkward"), "absent"], driver=False)[1], "1 1 1 1 0\n")
        self.assertEqual(self.assert_unchanged([program("awkward"), "fork"], driver=False)[0], 3)

    def test_python_with_ctypes(self):
        script = "import ctypes; d = ctypes.CDLL('libcuda.so.1'); print(d.cuInit(0), hasattr(d, 'cuNoSuchFunction'))"
        self.assertEqual(self.assert_unchanged([sys.executable, "-c", script])[:2], (0, "0 False\n"))


class Coexistence(unittest.TestCase):
    """A second preloaded library, before ours and after."""

    def test_another_dlsym_is_called_in_its_turn(self):
        if SANITIZED:
            self.skipTest("the sanitizer's runtime calls the other library before it can run")
        other = program("libother_hook.so")
        for order in ((other, SHIM), (SHIM, other)):
            with self.subTest(order=order):
                code, output, errors = run([program("awkward"), "fork"], environment(order))
                self.assertEqual((code, output), (0, "child 5\n"))
                self.assertIn("other hook: cuInit was looked up", errors)

    def test_what_goes_through_another_dlsym_is_seen(self):
        """Also where it is before ours, and asks for libc's by version or handle: it gets ours, which hands on."""
        if SANITIZED:
            self.skipTest("the sanitizer's runtime calls the other library before it can run")
        other = program("libother_hook.so")
        for way, before in (("version", True), ("handle", True), ("version", False), ("handle", False)):
            with self.subTest(way=way, before=before):
                order = (other, SHIM) if before else (SHIM, other)
                child = subprocess.Popen([program("open_plugin"), program("libplugin.so")], env=environment(order, OTHER_HOOK=way),
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertEqual(child.stdout.readline(), "ready\n")
                status = status_of(child.pid)
                self.assertEqual(status["calls"]["entry_points"], {"cuInit": 1, "cuStreamSynchronize": 1})
                self.assertEqual(status["problems"], [])
                output, errors = child.communicate("\n", timeout=patience.seconds(60))
                self.assertEqual((child.returncode, output), (0, ""))
                self.assertIn("other hook: cuInit was looked up", errors)

    def test_another_dlsym_that_goes_past_ours_is_a_problem(self):
        if SANITIZED:
            self.skipTest("the sanitizer refuses RTLD_DEEPBIND")
        child = subprocess.Popen([program("open_plugin"), program("libplugin.so")],
                                 env=environment((program("libother_hook.so"), SHIM), OTHER_HOOK="past:" + program("liblibc_dlsym.so")),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.communicate, timeout=patience.seconds(60))
        self.assertEqual(child.stdout.readline(), "ready\n")
        status = status_of(child.pid)  # what is linked is seen
        self.assertEqual(status["calls"]["entry_points"], {"cuStreamSynchronize": 1})
        problems = {problem["code"]: problem["text"] for problem in status["problems"]}
        self.assertIn("libother_hook.so", problems["other-dlsym"])

    def test_another_interposer_of_the_driver_does_not_run_in_circles(self):
        other = program("libother_interposer.so")
        for order in ((other, SHIM), (SHIM, other)):
            with self.subTest(order=order):
                child = subprocess.Popen([program("linked")], env=environment(order), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True)
                self.assertEqual(child.stdout.readline(), "0 0 0\n")
                self.assertEqual(status_of(child.pid)["calls"]["entry_points"].get("cuInit"), 1)
                output, errors = child.communicate("\n", timeout=patience.seconds(60))
                self.assertEqual((child.returncode, output, errors), (0, "0\n", "other interposer: cuInit\n"))


class Status(unittest.TestCase):
    def start(self, *command, **more):
        child = subprocess.Popen(command, env=environment(**more), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.communicate, timeout=patience.seconds(60))
        self.first_line = child.stdout.readline()
        return child

    def test_a_directly_linked_program_is_counted_from_before_main(self):
        child = self.start(program("linked"))
        self.assertEqual(self.first_line, "0 0 0\n")
        status = status_of(child.pid)
        self.assertEqual(status["calls"]["entry_points"], {"cuDevicePrimaryCtxRetain": 1, "cuInit": 1, "cuMemAlloc_v2": 1})
        self.assertEqual(status["calls"]["total"], 3)
        self.assertEqual(status["memory"], {"live_bytes": 12345, "peak_bytes": 12345, "live_blocks": 1, "untracked": 0})
        self.assertEqual(status["executable"], os.path.realpath(program("linked")))
        self.assertEqual(status["driver"], os.path.join(FAKE, "libcuda.so.1"))
        self.assertEqual(status["problems"], [])

    def test_deepbind_is_a_problem_that_status_names(self):
        plugin = program("libplugin.so")
        child = self.start(program("open_plugin"), plugin)
        status = status_of(child.pid)
        self.assertEqual(status["problems"], [])
        self.assertEqual(status["calls"]["entry_points"].get("cuStreamSynchronize"), 1)
        if SANITIZED:
            return  # the sanitizer refuses RTLD_DEEPBIND
        child = self.start(program("open_plugin"), plugin, "deepbind")
        status = status_of(child.pid)
        self.assertNotIn("cuStreamSynchronize", status["calls"]["entry_points"])
        self.assertEqual([problem["code"] for problem in status["problems"]], ["bypass"])
        self.assertIn("libplugin.so", status["problems"][0]["text"])

    def test_a_driver_of_another_namespace_is_left_alone(self):
        if SANITIZED:
            self.skipTest("the sanitizer's runtime does not survive dlmopen")
        for arguments in ([], ["own-first"]):
            with self.subTest(arguments=arguments):
                child = self.start(program("two_drivers"), *arguments)
                self.assertEqual(self.first_line, "own: 2 1 2 4; other: 1 3 1 1; \n")
                status = status_of(child.pid)
                self.assertEqual(status["calls"]["entry_points"],
                                 {"cuInit": 2, "cuStreamSynchronize": 1, "cuCtxSynchronize": 2, "cuCtxGetDevice": 4})
                self.assertEqual(status["driver"], os.path.join(FAKE, "libcuda.so.1"))
                self.assertEqual([problem["code"] for problem in status["problems"]], ["second-driver"])
                self.assertIn("libcuda.so.1 is a second driver", status["problems"][0]["text"])

    def test_disabled_there_is_no_socket_and_no_thread(self):
        child = self.start(program("linked"), MEMOPT_DISABLE="1")
        self.assertEqual(self.first_line, "0 0 0\n")
        names = [open(path, encoding="utf-8").read().strip() for path in glob.glob(f"/proc/{child.pid}/task/*/comm")]
        self.assertNotIn("memopt-status", names)
        self.assertEqual(sockets_of(child.pid), set())

    def test_programs_without_cuda_calls_have_no_thread_and_no_socket(self):
        child = self.start(sys.executable, "-c", "print(1, flush=True); input()", driver=False)
        self.assertEqual(self.first_line, "1\n")
        names = [open(path, encoding="utf-8").read().strip() for path in glob.glob(f"/proc/{child.pid}/task/*/comm")]
        self.assertNotIn("memopt-status", names)
        self.assertEqual(sockets_of(child.pid), set())

    def test_the_child_of_a_fork_counts_for_itself(self):
        script = ("import ctypes, os, sys\n"
                  "d = ctypes.CDLL('libcuda.so.1'); d.cuInit(0); d.cuInit(0)\n"
                  "child = os.fork()\n"
                  "if child == 0:\n"
                  "    d.cuInit(0)\n"
                  "    sys.stdin.readline(); os._exit(0)\n"
                  "print(child, flush=True); os.waitpid(child, 0)\n")
        parent = self.start(sys.executable, "-c", script)
        child = int(self.first_line)
        self.assertEqual(status_of(child)["calls"]["entry_points"], {"cuInit": 1})
        self.assertEqual(status_of(parent.pid)["calls"]["entry_points"], {"cuInit": 2})

    def test_a_program_that_closed_our_socket_gets_another(self):
        script = ("import ctypes, os, sys\n"
                  "d = ctypes.CDLL('libcuda.so.1'); d.cuInit(0)\n"
                  "print(1, flush=True); sys.stdin.readline()\n"
                  "os.closerange(3, 2000); d.cuInit(0)\n"
                  "print(2, flush=True); sys.stdin.readline()\n")
        child = self.start(sys.executable, "-c", script)
        status_of(child.pid)
        child.stdin.write("\n")
        child.stdin.flush()
        self.assertEqual(child.stdout.readline(), "2\n")
        self.assertGreaterEqual(status_of(child.pid)["calls"]["entry_points"]["cuInit"], 2)
        child.stdin.write("\n")
        child.stdin.flush()
        child.wait(timeout=patience.seconds(60))
        self.assertEqual(child.returncode, 0)


class Log(unittest.TestCase):
    def test_mistakes_in_the_environment_are_named_once(self):
        code, output, errors = run([program("awkward"), "exceptions"], environment(MEMOPT_NO_SUCH="1", MEMOPT_LOG="loud"))
        self.assertEqual((code, output), (0, "thrown\n"))
        self.assertEqual(errors.count("MEMOPT_NO_SUCH is not an option"), 1)
        self.assertEqual(errors.count("MEMOPT_LOG=loud: expected off, error, warn, info or debug; using warn"), 1)
        self.assertEqual(len(errors.splitlines()), 2)

    def test_messages_go_to_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "log")
            code, output, errors = run([program("awkward"), "exceptions"],
                                       environment(MEMOPT_LOG="debug", MEMOPT_LOG_FILE=path))
            self.assertEqual((code, output, errors), (0, "thrown\n", ""))
            with open(path, encoding="utf-8") as log:
                self.assertIn("the driver is", log.read())

    def test_a_file_that_cannot_be_written_is_named(self):
        code, output, errors = run([program("awkward"), "exceptions"], environment(MEMOPT_LOG_FILE="/nonexistent/log"))
        self.assertEqual((code, output), (0, "thrown\n"))
        self.assertIn("MEMOPT_LOG_FILE=/nonexistent/log: No such file or directory", errors)

    def test_a_program_without_standard_error_gets_no_message_into_its_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "own")
            code, output, errors = run(["/bin/sh", "-c", "exec 2>&-; exec \"$@\"", "sh", program("awkward"), "own-file"],
                                       environment(MEMOPT_NO_SUCH="1", MEMOPT_LOG="debug", OWN_FILE=path))
            self.assertEqual((code, output, errors), (0, "2 0 0\n", ""))
            with open(path, encoding="utf-8") as own:
                self.assertEqual(own.read(), "own")

    def test_off_is_silent(self):
        code, output, errors = run([program("awkward"), "exceptions"], environment(MEMOPT_NO_SUCH="1", MEMOPT_LOG="off"))
        self.assertEqual((code, output, errors), (0, "thrown\n", ""))


class Library(unittest.TestCase):
    def test_exports(self):
        if not shutil.which("nm"):
            self.skipTest("nm is not installed (binutils)")
        shown = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", SHIM], check=True, capture_output=True, text=True)
        names = {line.split()[-1] for line in shown.stdout.splitlines()}
        self.assertEqual({name for name in names if not name.startswith("cu")}, {"InitializeInjection", "dlsym", "dlvsym", "memopt_version"})
        self.assertEqual({name for name in names if "@" in name}, set(), "a versioned export would not interpose")


if __name__ == "__main__":
    cases.main()
