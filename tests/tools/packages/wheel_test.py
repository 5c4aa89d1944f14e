#!/usr/bin/env python3
"""The wheel: built, installed by pip into an environment of its own, used while the build folder can't be seen, and uninstalled.

usage: wheel_test.py BUILD SOURCE [unittest arguments]
"""
import glob
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import cases
import patience
import roots

BUILD, SOURCE = [os.path.abspath(sys.argv.pop(1)) for _ in range(2)] if len(sys.argv) > 2 else sys.exit(__doc__)
NAME = f"wheel-{os.getpid()}"
SCRIPT = """
import ctypes, json, os, subprocess, sys
import memopt
before = memopt.status()
driver = ctypes.CDLL("libcuda.so.1")
device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
for code in (driver.cuInit(0), driver.cuDeviceGet(ctypes.byref(device), 0), driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
             driver.cuCtxSetCurrent(context), driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(64 << 20))):
    if code: sys.exit(f"CUDA error {code}")
here = memopt.status()
there = json.loads(subprocess.run([sys.executable, "-c", f"import json, memopt; print(json.dumps(memopt.status({os.getpid()})))"], check=True,
                                  capture_output=True, text=True, env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}).stdout)
print(json.dumps({"before": before, "here": here, "there": there["pid"], "pid": os.getpid(), "arguments": sys.argv[1:], "python": sys.executable}))
"""


def pip(python, *arguments):
    return subprocess.run([python, "-m", "pip", "--disable-pip-version-check", *arguments], check=True, capture_output=True, text=True,
                          timeout=patience.seconds(300)).stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for module in ("wheel", "ensurepip"):
            if importlib.util.find_spec(module) is None:
                raise unittest.SkipTest(f"Python's {module} is not installed")
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run([sys.executable, os.path.join(SOURCE, "tools/python/build_wheel.py"), BUILD, cls.folder], check=True, capture_output=True,
                       text=True, timeout=patience.seconds(600))
        (cls.wheel,) = glob.glob(os.path.join(cls.folder, "memopt-*.whl"))
        environment = os.path.join(cls.folder, "venv")
        subprocess.run([sys.executable, "-m", "venv", environment], check=True, capture_output=True, timeout=patience.seconds(300))
        cls.python = os.path.join(environment, "bin", "python")
        cls.before = cls.files(environment)
        pip(cls.python, "install", "--no-index", cls.wheel)
        cls.environment = environment
        cls.work = os.path.join(cls.folder, "work")
        roots.copy_workload(BUILD, cls.work)
        with open(os.path.join(cls.work, "script.py"), "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        cls.wrapper = roots.hidden([BUILD, SOURCE]) if roots.can_hide() else []

    @staticmethod
    def files(root):
        return sorted(os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names if not name.endswith(".pyc"))

    def run_hidden(self, *command, **variables):
        return roots.run(command, self.work, NAME, self.wrapper, **variables)

    def test_its_name_is_what_its_files_ask_for(self):
        tag = re.search(r"-py3-none-manylinux_2_(\d+)_x86_64\.whl$", self.wheel)
        self.assertIsNotNone(tag, self.wheel)
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
            self.assertEqual([name for name in names if "module" in name or "integer_program" in name], [], "what needs CBC or CLP")
            newest = 0
            with tempfile.TemporaryDirectory() as folder:
                for name in names:
                    if archive.read(name)[:4] != b"\x7fELF":
                        continue
                    shown = subprocess.run(["readelf", "-VdW", archive.extract(name, folder)], check=True, capture_output=True, text=True).stdout
                    newest = max([newest, *(int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", shown))])
                    self.assertNotRegex(shown, r"R(UN)?PATH")
        self.assertEqual(int(tag.group(1)), newest)
        self.assertLess(os.path.getsize(self.wheel), 40 << 20)

    def test_what_auditwheel_says(self):
        if importlib.util.find_spec("auditwheel") is None:
            self.skipTest("auditwheel is not installed")
        shown = subprocess.run([sys.executable, "-m", "auditwheel", "show", self.wheel], capture_output=True, text=True).stdout
        self.assertIn(re.search(r"manylinux_2_\d+_x86_64", self.wheel).group(), shown)

    def test_a_python_program(self):
        done = self.run_hidden(self.python, "-m", "memopt", "run", "--sim", "a100-40g", "--limit", "4GiB", "script.py", "--limit", "its own")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((said["before"], said["there"], said["arguments"]), (None, said["pid"], ["--limit", "its own"]))
        self.assertEqual((said["here"]["pid"], said["here"]["memory"]["live_bytes"], said["here"]["swaps"]["limit"]), (said["pid"], 64 << 20, 4 << 30))
        self.assertEqual(os.path.realpath(said["python"]), os.path.realpath(self.python))

    def test_a_program_is_planned(self):
        installed = glob.glob(os.path.join(self.environment, "lib/python*/site-packages/memopt/_files"))[0]
        done = self.run_hidden(os.path.join(self.environment, "bin/memoptctl"), "run", "--sim", "a100-40g", "--", "./digits_cnn", "--epochs", "4",
                               MEMOPT_SYNC_PLAN=patience.WAIT, CUDASIM_KERNELS=f"{self.work}/kernels:{installed}/lib/memopt/cudasim/kernels")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("memopt: plan live at iteration", done.stderr)

    def test_exit_codes_and_help(self):
        self.assertEqual(self.run_hidden(self.python, "-m", "memopt", "run", "-c", "import sys; sys.exit(7)").returncode, 7)
        self.assertIn("python -m memopt run [OPTION...] SCRIPT.py", self.run_hidden(self.python, "-m", "memopt", "--help").stdout)
        self.assertRegex(self.run_hidden(self.python, "-m", "memopt", "--version").stdout, r"^memopt \d+\.\d+\.\d+\n$")
        self.assertEqual(self.run_hidden(self.python, "-m", "memopt", "no-such").returncode, 2)

    def test_what_uninstalling_leaves(self):
        other = os.path.join(self.folder, "other")
        subprocess.run([sys.executable, "-m", "venv", other], check=True, capture_output=True, timeout=patience.seconds(300))
        python = os.path.join(other, "bin", "python")
        before = self.files(other)
        pip(python, "install", "--no-index", self.wheel)
        self.assertNotEqual(self.files(other), before)
        pip(python, "uninstall", "--yes", "memopt")
        self.assertEqual(self.files(other), before)


if __name__ == "__main__":
    cases.main()
