#!/usr/bin/env python3
"""memoptctl doctor finds what is planted: one case for each thing that can be wrong.

usage: doctor_test.py MEMOPTCTL CC [unittest arguments]
"""
import contextlib
import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

import cases
import patience
import simulated

MEMOPTCTL, CC = (os.path.abspath(sys.argv.pop(1)), sys.argv.pop(1)) if len(sys.argv) > 2 else sys.exit(__doc__)
BUILD = os.path.dirname(os.path.dirname(MEMOPTCTL))
LIBRARY = os.path.join(BUILD, "lib", "libmemopt.so")
PLANNER = os.path.join(BUILD, "bin", "memoptd")
SIMULATOR = os.path.join(BUILD, "cudasim", "lib")
STATIC = os.path.join(BUILD, "workloads", "digits_cnn_static")
SANITIZED = bool(os.environ.get("SANITIZER_PRELOAD"))
FRAMEWORKS = ("PYTORCH_", "XLA_PYTHON_", "TF_GPU_", "_MEMOPT_")
SIM = ("--sim", "a100-40g")

# A CUDA program that allocates, then does as it is told.
PROGRAM = """
import ctypes, os, sys, time
driver = ctypes.CDLL("libcuda.so.1")
device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
def check(code):
    if code: sys.exit(f"CUDA error {code}")
check(driver.cuInit(0))
check(driver.cuDeviceGet(ctypes.byref(device), 0))
check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
check(driver.cuCtxSetCurrent(context))
check(driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(3 << 20)))
"""
# Long enough to be looked at on a busy machine.
STAYS = PROGRAM + "time.sleep(6)\n"


class Diagnosis:
    def __init__(self, done):
        self.code, self.errors = done.returncode, done.stderr
        try:
            document = json.loads(done.stdout)
        except ValueError:
            raise AssertionError(f"exit code {done.returncode}, no JSON: {done.stdout!r} {done.stderr!r}") from None
        self.findings = document["findings"]
        self.problems = document["problems"]

    def of(self, check):
        return [(f["verdict"], f["text"]) for f in self.findings if f["check"] == check]

    def verdict(self, check):
        found = self.of(check)
        if len(found) != 1:
            raise AssertionError(f"{len(found)} findings of {check}: {self.findings}")
        return found[0]

    def all_problems(self):
        return {f["check"] for f in self.findings if f["verdict"] == "problem"}


def doctor(*arguments, program=(), memoptctl=MEMOPTCTL, before=None, **variables):
    environment = {k: v for k, v in simulated.clean_environment().items() if not k.startswith(FRAMEWORKS)}
    command = [memoptctl, "doctor", "--json", *arguments, *(["--", *program] if program else [])]
    return Diagnosis(subprocess.run(command, env={**environment, **variables}, capture_output=True, text=True, timeout=patience.seconds(280),
                                    stdin=subprocess.DEVNULL, preexec_fn=before))


def python(text):
    return [sys.executable, "-c", text]


class Cases(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o755):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def device_without_vmm(self):
        preset = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../integration/cudasim/driver/presets/a100-40g.json")
        with open(preset, encoding="utf-8") as file:
            device = json.loads("".join(line for line in file if not line.lstrip().startswith("//")))
        device.setdefault("attributes", {})["virtual_memory_management_supported"] = 0
        return self.write("no_vmm.json", json.dumps(device))

    def compile(self, name, text, *options):
        source = self.write(name + ".c", text)
        done = subprocess.run([CC, "-o", self.path(name), source, *options], capture_output=True, text=True, timeout=patience.seconds(100))
        if done.returncode:
            self.skipTest(f"{CC} can't build it: {done.stderr[-200:]}")
        return self.path(name)

    def found(self, diagnosis, check, verdict, words):
        self.assertEqual(diagnosis.verdict(check)[0], verdict, diagnosis.findings)
        self.assertIn(words, diagnosis.verdict(check)[1])
        finding = next(f for f in diagnosis.findings if f["check"] == check)
        self.assertEqual(bool(finding["remedy"]), verdict in ("problem", "warning"), finding)
        if verdict == "problem":
            self.assertEqual(diagnosis.code, 1)


class Driver(Cases):
    def test_all_well(self):
        found = doctor(*SIM)
        self.assertEqual((found.code, found.all_problems()), (0, set()), found.findings)
        for check in ("driver", "device", "vmm", "aliasing", "memfd", "preload", "planner", "frameworks"):
            self.assertEqual(found.verdict(check)[0], "ok", found.findings)
        self.assertIn("simulated", found.verdict("driver")[1])

    def test_driver_missing(self):
        # A file that is no library is found before any driver of the machine's own.
        self.write("libcuda.so.1", "not a library")
        self.found(doctor(LD_LIBRARY_PATH=self.folder), "driver", "problem", "no CUDA driver")
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            self.found(doctor(), "driver", "problem", "libcuda.so.1: cannot open shared object file")

    def test_driver_that_refuses(self):
        self.found(doctor(*SIM, CUDASIM_INJECT="cuInit:100"), "driver", "problem", "cuInit: CUDA_ERROR_NO_DEVICE (100)")
        self.found(doctor(*SIM, CUDASIM_INJECT="cuDeviceGetCount:999"), "device", "problem", "cuDeviceGetCount")

    def test_driver_that_crashes_or_lacks_functions(self):
        if SANITIZED:
            self.skipTest("a sanitizer's report takes the place of the signal")
        self.compile("libcuda.so.1", "int cuInit(unsigned f) { *(volatile int *)0 = (int)f; return 0; }", "-shared", "-fPIC")
        self.found(doctor(LD_LIBRARY_PATH=self.folder), "driver", "problem", "failed in the step cuInit: killed by signal 11")
        self.compile("libcuda.so.1", "int x;", "-shared", "-fPIC")
        self.found(doctor(LD_LIBRARY_PATH=self.folder), "driver", "problem", "cuInit: not there")

    def test_vmm_missing(self):
        found = doctor("--sim", self.device_without_vmm())
        self.found(found, "vmm", "problem", "no virtual memory management")

    def test_aliasing_broken(self):
        for call in ("cuMemMap:1@2", "cuMemCreate:801"):
            self.found(doctor(*SIM, CUDASIM_INJECT=call), "aliasing", "problem", call.split(":", maxsplit=1)[0])
        # A device that is full is no reason to call it broken.
        self.assertEqual(doctor(*SIM, CUDASIM_INJECT="cuMemCreate:2").verdict("aliasing")[0], "unknown")

    def test_aliases_that_differ(self):
        # A driver that keeps the two addresses apart.
        self.compile("libcuda.so.1", """
            #include <stdlib.h>
            #include <string.h>
            typedef unsigned long long u;
            int cuInit(unsigned f) { return 0; }
            int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
            int cuDeviceGetCount(int *n) { *n = 1; return 0; }
            int cuDeviceGet(int *d, int n) { *d = n; return 0; }
            int cuDeviceGetName(char *s, int n, int d) { strncpy(s, "two-faced", n); return 0; }
            int cuDeviceTotalMem_v2(size_t *b, int d) { *b = 1 << 30; return 0; }
            int cuDeviceGetAttribute(int *v, int a, int d) { *v = 1; return 0; }
            int cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)8; return 0; }
            int cuCtxSetCurrent(void *c) { return 0; }
            int cuMemGetAllocationGranularity(size_t *b, const void *p, int f) { *b = 1 << 21; return 0; }
            int cuMemCreate(u *h, size_t b, const void *p, u f) { *h = 1; return 0; }
            int cuMemAddressReserve(u *a, size_t b, size_t g, u w, u f) { *a = (u)calloc(1, b); return 0; }
            int cuMemMap(u a, size_t b, size_t o, u h, u f) { return 0; }
            int cuMemSetAccess(u a, size_t b, const void *d, size_t n) { return 0; }
            int cuMemcpyHtoD_v2(u to, const void *from, size_t b) { memcpy((void *)to, from, b); return 0; }
            int cuMemcpyDtoH_v2(void *to, u from, size_t b) { memcpy(to, (void *)from, b); return 0; }
            """, "-shared", "-fPIC", "-w")
        self.found(doctor(LD_LIBRARY_PATH=self.folder), "aliasing", "problem", "differs")


class Limits(Cases):
    def test_memlock_too_small(self):
        _, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
        self.found(doctor(*SIM, before=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, hard))), "memlock", "warning",
                   "64.0 KiB only")

    def test_memlock_unlimited(self):
        try:
            subprocess.run(["true"], check=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (-1, -1)))
        except (subprocess.SubprocessError, OSError):
            self.skipTest("the limit may not be raised here")
        self.found(doctor(*SIM, before=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (-1, -1))), "memlock", "ok", "unlimited")


class Options(Cases):
    def test_values_that_are_not_understood(self):
        found = doctor(*SIM, MEMOPT_LIMIT="8GB")
        self.found(found, "options", "warning", "MEMOPT_LIMIT=8GB: expected a size")
        self.assertEqual(found.code, 0, found.findings)

    def test_values_that_are(self):
        self.found(doctor(*SIM, MEMOPT_LIMIT="60%", MEMOPT_HOST_LIMIT="64GiB"), "options", "ok", "MEMOPT_LIMIT=60%")


class Preload(Cases):
    def moved(self, library):
        """memoptctl beside another library."""
        memoptctl = self.path("bin/memoptctl")
        for part in ("bin", "lib"):
            os.mkdir(self.path(part))
        shutil.copy(MEMOPTCTL, memoptctl)
        shutil.copy(PLANNER, self.path("bin/memoptd"))
        library(self.path("lib/libmemopt.so"))
        return memoptctl

    def test_not_a_library(self):
        found = doctor(memoptctl=self.moved(lambda path: self.write(path, "garbage")))
        self.found(found, "preload", "problem", "it is no ELF file")

    def test_wrong_architecture(self):
        def plant(path):
            with open(LIBRARY, "rb") as file:
                image = bytearray(file.read())
            image[18:20] = (183).to_bytes(2, "little")  # e_machine: AArch64
            with open(path, "wb") as file:
                file.write(image)
        self.found(doctor(memoptctl=self.moved(plant)), "preload", "problem", "wrong architecture")

    def test_not_in_effect(self):
        library = self.compile("other.so", "int nothing;", "-shared", "-fPIC")
        found = doctor(memoptctl=self.moved(lambda path: shutil.copy(library, path)))
        self.found(found, "preload", "problem", "did not have it")

    def test_another_version(self):
        library = self.compile("other.so", 'const char *memopt_version(void) { return "9.9.9"; }', "-shared", "-fPIC")
        found = doctor(memoptctl=self.moved(lambda path: shutil.copy(library, path)))
        self.found(found, "preload", "problem", "is memopt 9.9.9")

    def test_disabled(self):
        self.found(doctor(MEMOPT_DISABLE="1"), "preload", "warning", "MEMOPT_DISABLE=1 is set")

    def test_setuid_program(self):
        program = shutil.copy("/bin/true", self.path("setuid"))
        if os.geteuid() != 0 or os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("needs root, and a file system that is not mounted nosuid")
        os.chown(program, 65534, 65534)
        os.chmod(program, 0o4755)
        self.found(doctor(*SIM, program=[program]), "program.file", "problem", "it is setuid: the loader ignores LD_PRELOAD")
        os.chmod(program, 0o2755)
        self.found(doctor(*SIM, program=[program]), "program.file", "problem", "it is setgid")
        os.chown(program, os.geteuid(), os.getegid())
        os.chmod(program, 0o6755)  # of the same user: the loader does not mind
        self.found(doctor(*SIM, program=[program]), "program.file", "ok", "setuid")

    def test_static_program(self):
        program = self.compile("static", "int main(void) { return 0; }", "-static")
        self.found(doctor(*SIM, program=[program]), "program.file", "problem", "linked statically to libc")

    def test_program_for_another_machine(self):
        with open("/bin/true", "rb") as file:
            image = bytearray(file.read())
        image[18:20] = (183).to_bytes(2, "little")
        with open(self.path("arm"), "wb") as file:
            file.write(image)
        os.chmod(self.path("arm"), 0o755)
        self.found(doctor(*SIM, program=[self.path("arm")]), "program.file", "problem", "it is for another machine")

    def test_scripts_are_their_interpreters(self):
        script = self.write("script", f"#!/usr/bin/env {os.path.basename(sys.executable)}\nprint(1)\n")
        found = doctor(*SIM, program=[script], PATH=os.path.dirname(sys.executable) + ":/bin:/usr/bin")
        self.found(found, "program.file", "ok", " by ")
        self.assertEqual(found.verdict("program")[0], "ok")

    def test_no_such_program(self):
        self.found(doctor(*SIM, program=["no-such-program"]), "program.file", "problem", "no such program")


class Planner(Cases):
    def planner(self, *lines):
        """A planner that is none, in a few lines of Python; its name is in `name`."""
        return self.write("memoptd", "\n".join([
            f"#!{sys.executable} -S", "import os, socket, struct, sys, time", "if '--version' in sys.argv:",
            f"    print({self.version()!r})", "    sys.exit()", "name = sys.argv[sys.argv.index('--name') + 1]",
            "def listen(wire):", "    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)",
            "    s.bind(f'\\0memoptd-{os.geteuid()}-{wire}-{name}')", "    s.listen()", "    return s", *lines]) + "\n")

    @staticmethod
    def version():
        return subprocess.run([PLANNER, "--version"], capture_output=True, text=True, timeout=patience.seconds(100), check=True).stdout.strip()

    def test_missing(self):
        self.found(doctor(*SIM, MEMOPT_PLANNER="/nonexistent/memoptd"), "planner", "problem", "No such file or directory")

    def test_another_version(self):
        other = self.write("memoptd", "#!/bin/sh\necho memoptd 9.9.9\n")
        self.found(doctor(*SIM, MEMOPT_PLANNER=other), "planner", "problem", "is memopt 9.9.9")
        self.assertIn("version mismatch", doctor(*SIM, MEMOPT_PLANNER=other).verdict("planner")[1])

    def test_another_wire_version(self):
        other = self.planner("s = listen(77)", "time.sleep(1000)")
        self.found(doctor(*SIM, MEMOPT_PLANNER=other), "planner", "problem", "it speaks wire version 77")

    def test_one_that_refuses(self):
        other = self.planner("s = listen(1)", "c, _ = s.accept()", "c.recv(4096)", "text = b'not today'",
                             "c.send(struct.pack('<II', 3, len(text)) + text)", "time.sleep(1000)")
        self.found(doctor(*SIM, MEMOPT_PLANNER=other), "planner", "problem", "it refused: not today")

    def test_one_that_hangs_up(self):
        other = self.planner("s = listen(1)", "c, _ = s.accept()", "c.close()", "time.sleep(1000)")
        self.found(doctor(*SIM, MEMOPT_PLANNER=other), "planner", "problem", "it closed the connection without an answer")

    def test_one_that_dies(self):
        other = self.planner("sys.exit('no room')")
        self.found(doctor(*SIM, MEMOPT_PLANNER=other), "planner", "problem", "exit code 1: no room")

    def test_something_else(self):
        self.found(doctor(*SIM, MEMOPT_PLANNER="/bin/false"), "planner", "problem", "--version")

    def test_the_users_own_planner_is_left_alone(self):
        doctor(*SIM)
        self.assertFalse([line for line in open("/proc/net/unix", encoding="utf-8") if "-doctor-" in line and "memoptd" in line
                          and self.is_orphan(line)])

    @staticmethod
    def is_orphan(line):
        pid = line.rsplit("-", 1)[1].strip()
        return pid.isdigit() and not os.path.exists(f"/proc/{pid}")


class Frameworks(Cases):
    def test_caching_allocator_still_on(self):
        found = doctor(*SIM, PYTORCH_CUDA_ALLOC_CONF="backend:native")
        self.assertIn(("warning", "PyTorch would keep its caching allocator on: PYTORCH_CUDA_ALLOC_CONF=backend:native (its caching "
                       "allocator is on)"), found.of("frameworks"))
        self.assertEqual({v for v, _ in doctor(*SIM, MEMOPT_FRAMEWORK_ENV="off").of("frameworks")}, {"warning"})

    @cases.in_plain_builds
    def test_caching_allocator_still_on_in_a_program(self):
        shutil.copy(os.path.join(SIMULATOR, "libcuda.so.1"), self.path("libc10_cuda.so"))  # any library will do
        text = f"import ctypes; ctypes.CDLL({self.path('libc10_cuda.so')!r})\n" + STAYS
        found = doctor(*SIM, "--seconds", "100", program=python(text), PYTORCH_ALLOC_CONF="expandable_segments:True")
        self.found(found, "program.framework", "problem", "PyTorch: PYTORCH_ALLOC_CONF=expandable_segments:True")
        self.assertIn("caching allocator is still on", found.verdict("program.framework")[1])
        self.found(doctor(*SIM, "--seconds", "100", program=python(text)), "program.framework", "ok", "set by memopt")


class Program(Cases):
    def test_what_was_seen(self):
        found = doctor(*SIM, "--seconds", "100", program=python(STAYS))
        self.assertEqual(found.code, 0, found.findings)
        self.found(found, "program", "ok", "ran to its end")
        self.assertIn("calls were seen, by the driver API", found.verdict("program.driver")[1])
        self.found(found, "program.memory", "ok", "allocations seen: cuMemAlloc_v2 1; memopt serves them")
        self.assertRegex(found.verdict("program.state")[1], "state reached: (bootstrap|recording)")

    def test_vmm_missing_is_why_nothing_is_served(self):
        found = doctor("--sim", self.device_without_vmm(), "--seconds", "100", program=python(STAYS))
        self.found(found, "program.memory", "problem", "no virtual memory management")

    @cases.in_plain_builds
    def test_static_runtime_without_symbols(self):
        # One that calls nothing: its file is all there is.
        program = self.compile("planted", '__attribute__((section(".nv_fatbin"), used)) static const char code[16] = {0};\n'
                               "int main(void) { return 0; }", "-s")
        self.found(doctor(*SIM, program=[program]), "program.runtime", "warning", "static, without symbols; none of its calls was seen")
        if os.path.exists(STATIC):
            found = doctor(*SIM, "--seconds", "20", program=[STATIC, "--epochs", "8", "--quiet"])
            self.found(found, "program.runtime", "ok", "static, without symbols; its calls are seen at the driver")
            self.assertIn("by the static runtime and cuGetProcAddress", found.verdict("program.driver")[1])

    def test_preload_that_is_lost(self):
        if SANITIZED:
            self.skipTest("without LD_PRELOAD an instrumented driver ends the program")
        # The first waits so long that it is looked at, with libmemopt.so, before it becomes the program without.
        for start in (["/bin/sh", "-c", 'sleep 1; exec /usr/bin/env -u LD_PRELOAD "$@"', "sh"], ["/usr/bin/env", "-u", "LD_PRELOAD"]):
            with self.subTest(start=start):
                found = doctor(*SIM, "--seconds", "100", program=[*start, *python(STAYS)])
                self.found(found, "program.driver", "problem", "has loaded the CUDA driver, but not libmemopt.so")

    def test_a_program_that_fails(self):
        self.found(doctor(*SIM, program=["/bin/sh", "-c", "echo no luck >&2; exit 3"]), "program", "problem", "exit code 3: no luck")

    def test_a_program_without_cuda(self):
        found = doctor(*SIM, program=["/bin/true"])
        self.assertEqual((found.code, found.verdict("program.driver")[0]), (0, "unknown"))

    def test_nothing_is_left_of_a_program_that_does_not_end(self):
        mark = f"memopt-doctor-test-{os.getpid()}"
        text = (f"import os, signal, sys, time\nmark = {mark!r}\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                "if not os.fork():\n  os.setsid()\n  if not os.fork(): time.sleep(1000)\n  time.sleep(1000)\ntime.sleep(1000)\n")
        found = doctor(*SIM, "--seconds", "1", program=python(text))
        self.found(found, "program", "ok", "then it was ended")
        left = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if mark.encode() in file.read() and int(pid) != os.getpid():
                        left.append(pid)
        self.assertEqual(left, [])


class Use(Cases):
    def run_plain(self, *arguments):
        return subprocess.run([MEMOPTCTL, "doctor", *arguments], env=simulated.clean_environment(), capture_output=True, text=True,
                              timeout=patience.seconds(280), stdin=subprocess.DEVNULL)

    def test_wrong_use(self):
        for arguments in (["--seconds", "x"], ["--seconds", "0"], ["--sim"], ["--bogus"]):
            done = self.run_plain(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertTrue(done.stderr)

    def test_for_people(self):
        done = self.run_plain(*SIM)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^ok +driver +/")
        self.assertRegex(done.stdout, r"(?m)^0 problems, \d+ warnings")
        failing = self.run_plain(*SIM, "--", "no-such-program")
        self.assertEqual(failing.returncode, 1)
        self.assertRegex(failing.stdout, r"(?m)^problem +program.file .*\n +remedy: ")


if __name__ == "__main__":
    cases.main()
