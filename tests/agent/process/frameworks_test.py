#!/usr/bin/env python3
"""What programs find in their environment under libmemopt.so, and what the agent says of it.

usage: frameworks_test.py MEMOPTCTL [unittest arguments]
"""
import json
import os
import shutil
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
NAMES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING", "XLA_PYTHON_CLIENT_ALLOCATOR",
         "TF_GPU_ALLOCATOR", "_MEMOPT_FRAMEWORKS")
ASYNC = "backend:cudaMallocAsync"
SHOW = f"import json, os; print(json.dumps({{n: os.environ[n] for n in {NAMES!r} if n in os.environ}}))"


def environment(**variables):
    kept = {key: value for key, value in simulated.clean_environment().items() if key not in NAMES}
    return {**kept, "LD_PRELOAD": os.environ.get("SANITIZER_PRELOAD", "") + LIBRARY, **variables}


def run(*command, **variables):
    done = subprocess.run(command, env=environment(**variables), capture_output=True, text=True, timeout=patience.seconds(100), stdin=subprocess.DEVNULL)
    if done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def seen(**variables):
    return json.loads(run(sys.executable, "-c", SHOW, **variables))


class Environment(unittest.TestCase):
    def test_python_sees_the_settings(self):
        self.assertEqual(seen(MEMOPT_FRAMEWORK_ENV="async"), {
            "PYTORCH_ALLOC_CONF": ASYNC, "PYTORCH_CUDA_ALLOC_CONF": ASYNC, "XLA_PYTHON_CLIENT_ALLOCATOR": "platform",
            "TF_GPU_ALLOCATOR": "cuda_malloc_async", "_MEMOPT_FRAMEWORKS": "PyTorch,JAX,TensorFlow"})
        self.assertEqual(seen(MEMOPT_FRAMEWORK_ENV="plain")["PYTORCH_NO_CUDA_MEMORY_CACHING"], "1")
        self.assertIn(seen(), (seen(MEMOPT_FRAMEWORK_ENV="async"), seen(MEMOPT_FRAMEWORK_ENV="plain")))

    def test_nothing_where_memopt_is_off(self):
        for off in ({"MEMOPT_FRAMEWORK_ENV": "off"}, {"MEMOPT_DISABLE": "1"}, {"MEMOPT_PLAN": "0"}):
            self.assertEqual(seen(**off), {}, off)

    def test_what_the_user_has_set_stays(self):
        for name, value in (("PYTORCH_ALLOC_CONF", "backend:native"), ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
                            ("XLA_PYTHON_CLIENT_ALLOCATOR", "bfc"), ("TF_GPU_ALLOCATOR", "memory_guard")):
            for way in ("async", "plain"):
                self.assertEqual(seen(**{name: value}, MEMOPT_FRAMEWORK_ENV=way)[name], value)

    def test_a_list_of_the_users_is_appended_to(self):
        found = seen(PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:64", MEMOPT_FRAMEWORK_ENV="async")
        self.assertEqual(found["PYTORCH_CUDA_ALLOC_CONF"], "max_split_size_mb:64," + ASYNC)
        self.assertNotIn("PYTORCH_ALLOC_CONF", found)

    def test_children_find_the_same(self):
        grandchild = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SHOW!r}], check=True)"
        self.assertEqual(json.loads(run(sys.executable, "-c", grandchild, MEMOPT_FRAMEWORK_ENV="async")), seen(MEMOPT_FRAMEWORK_ENV="async"))

    def test_the_rest_of_the_environment_is_untouched(self):
        show = f"import json, os; print(json.dumps({{k: v for k, v in os.environ.items() if k not in {NAMES!r}}}))"
        wanted = environment(A="1", EMPTY="", ODD="a=b\n c")
        self.assertEqual({k: v for k, v in json.loads(run(sys.executable, "-c", show, A="1", EMPTY="", ODD="a=b\n c")).items()
                          if k != "LC_CTYPE"}, {k: v for k, v in wanted.items() if k != "LC_CTYPE"})

    def test_programs_may_change_it_further(self):
        text = ("import os\nfor i in range(200): os.environ[f'X{i}'] = 'y' * i\nfor i in range(200): del os.environ[f'X{i}']\n"
                "del os.environ['TF_GPU_ALLOCATOR']\n" + SHOW)
        found = json.loads(run(sys.executable, "-c", text, MEMOPT_FRAMEWORK_ENV="async"))
        self.assertEqual(found, {k: v for k, v in seen(MEMOPT_FRAMEWORK_ENV="async").items() if k != "TF_GPU_ALLOCATOR"})

    def test_programs_that_are_not_python(self):
        # bash has a setenv of its own, and reads the array that main gets.
        for shell in ("sh", "bash"):
            if shutil.which(shell):
                self.assertEqual(run(shell, "-c", "echo $((40 + 2)) $HOME", HOME="/x"), "42 /x\n")
        self.assertIn(ASYNC, run("env", MEMOPT_FRAMEWORK_ENV="async"))
        self.assertEqual(subprocess.run([sys.executable, "-c", "import os; os.execve('/usr/bin/env', ['env'], {})"], env=environment(),
                                        capture_output=True, text=True, timeout=patience.seconds(100)).stdout, "")

    def test_memoptctl_run_sets_it_before_the_program_is_loaded(self):
        done = subprocess.run([MEMOPTCTL, "run", "--", "/bin/sh", "-c", "tr '\\0' '\\n' < /proc/$$/environ"], env=environment(
            MEMOPT_FRAMEWORK_ENV="async", LD_PRELOAD=""), capture_output=True, text=True, timeout=patience.seconds(100))
        self.assertIn("PYTORCH_ALLOC_CONF=" + ASYNC, done.stdout)


PROGRAM = """
import ctypes, json, os, sys
ctypes.CDLL(sys.argv[1])
driver = ctypes.CDLL("libcuda.so.1")
if driver.cuInit(0): sys.exit("no driver")
sizes = json.loads(os.environ.get("SIZES", "[]"))
if sizes:
    context, block = ctypes.c_void_p(), ctypes.c_uint64()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and driver.cuCtxSetCurrent(context) == 0
for size in sizes:
    stream = [None] if os.environ["CALL"].endswith("Async") else []
    assert driver[os.environ["CALL"]](ctypes.byref(block), ctypes.c_size_t(size), *stream) == 0
print("ready", flush=True)
sys.stdin.read()
"""


# Two segments of 20 MiB: what is left of the first is less than 5.
ITERATIONS = PROGRAM.split("sizes =")[0] + """
context, blocks = ctypes.c_void_p(), [ctypes.c_uint64() for _ in range(3)]
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and driver.cuCtxSetCurrent(context) == 0
for _ in range(60):
    for block, size in zip(blocks, (3 << 20, 15 << 20, 5 << 20)):
        assert driver.cuMemAllocAsync(ctypes.byref(block), ctypes.c_size_t(size), None) == 0
    for block in blocks:
        assert driver.cuMemFreeAsync(block, None) == 0
"""


class Status(unittest.TestCase):
    def status(self, **variables):
        """Of a program that has loaded a library with PyTorch's name: exit code, its entry, what a person sees."""
        with tempfile.TemporaryDirectory() as folder:
            # Any small library will do.
            library = shutil.copy(os.path.realpath(os.path.join(BUILD, "cudasim", "lib", "libcuda.so.1")),
                                  os.path.join(folder, "libc10_cuda.so"))
            process = subprocess.Popen([MEMOPTCTL, "run", "--sim", "a100-40g", "--", sys.executable, "-c", PROGRAM, library],
                                       env={**environment(**variables), "LD_PRELOAD": ""}, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
            try:
                self.assertEqual(process.stdout.readline(), "ready\n")
                arguments = [MEMOPTCTL, "status", "--pid", str(process.pid)]
                done = subprocess.run([*arguments, "--json"], capture_output=True, text=True, timeout=patience.seconds(100))
                shown = subprocess.run(arguments, capture_output=True, text=True, timeout=patience.seconds(100))
            finally:
                process.communicate(timeout=patience.seconds(100))
        return done.returncode, json.loads(done.stdout)["processes"][0], shown.stdout

    def test_says_what_was_set(self):
        _, entry, shown = self.status(MEMOPT_FRAMEWORK_ENV="async")
        self.assertEqual([(f["name"], f["set_by"], f["visible"]) for f in entry["agent"]["frameworks"]], [("PyTorch", "memopt", True)])
        self.assertIn("PyTorch: PYTORCH_ALLOC_CONF=" + ASYNC + " (set by memopt: stream-ordered allocation)", shown)

    def test_says_what_its_allocator_would_have_reserved(self):
        for way, call in (("async", "cuMemAllocAsync"), ("plain", "cuMemAlloc_v2")):
            with self.subTest(way):
                # 20 MiB are shared by those of 3 MiB, 16 are for the one of 15, 2 are shared by the small ones.
                sizes = [3 << 20, 3 << 20, 15 << 20] + [1000] * 20
                code, entry, shown = self.status(MEMOPT_FRAMEWORK_ENV=way, MEMOPT_SYNC_PLAN=patience.WAIT, MEMOPT_PLANNER_NAME="frameworks-" + way,
                                                 CALL=call, SIZES=json.dumps(sizes))
                self.assertEqual(code, 0, shown)
                self.assertEqual([(f["route"], f["reserved"]) for f in entry["agent"]["frameworks"]], [(way, 38 << 20)])
                self.assertRegex(shown, rf"PyTorch \({way}\): its caching allocator would have reserved 38(\.0)? MiB; memopt holds \S+ MiB")

    def test_the_line_at_the_end_says_it_too(self):
        with tempfile.TemporaryDirectory() as folder:
            for framework, expected in (("libc10_cuda.so", r"; PyTorch's caching allocator: 40\.0 MiB$"), ("libother.so", r"→ \S+ MiB$")):
                library = shutil.copy(os.path.realpath(os.path.join(BUILD, "cudasim", "lib", "libcuda.so.1")), os.path.join(folder, framework))
                done = subprocess.run([MEMOPTCTL, "run", "--sim", "a100-40g", "--", sys.executable, "-c", ITERATIONS, library],
                                      env={**environment(MEMOPT_FRAMEWORK_ENV="async", MEMOPT_SYNC_PLAN=patience.WAIT,
                                                         MEMOPT_PLANNER_NAME="frameworks-end"), "LD_PRELOAD": ""},
                                      capture_output=True, text=True, timeout=patience.seconds(100), stdin=subprocess.DEVNULL)
                self.assertEqual(done.returncode, 0, done.stderr)
                [line] = [line for line in done.stderr.splitlines() if "planned at iteration" in line]
                self.assertRegex(line, expected)

    def test_a_pool_that_is_on_is_a_problem(self):
        code, entry, shown = self.status(PYTORCH_ALLOC_CONF="backend:native")
        self.assertEqual((code, entry["agent"]["frameworks"][0]["set_by"]), (4, "user"))
        self.assertIn("its caching allocator is on", shown)
        code, entry, _ = self.status(MEMOPT_FRAMEWORK_ENV="off")
        self.assertEqual((code, entry["agent"]["frameworks"][0]["visible"]), (4, False))


if __name__ == "__main__":
    cases.main()
