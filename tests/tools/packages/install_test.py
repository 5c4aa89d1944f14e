#!/usr/bin/env python3
"""cmake --install: what it puts where, that it can be moved, that it works without the build folder, and that nothing is left of it.

usage: install_test.py BUILD SOURCE CMAKE [unittest arguments]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import cases
import patience
import roots

BUILD, SOURCE, CMAKE = [os.path.abspath(sys.argv.pop(1)) for _ in range(3)] if len(sys.argv) > 3 else sys.exit(__doc__)
NAME = f"install-{os.getpid()}"


def cmake(*arguments, **variables):
    return subprocess.run([CMAKE, *arguments], check=True, capture_output=True, text=True, env={**os.environ, **variables},
                          timeout=patience.seconds(300))


def files_below(root):
    return sorted(os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        first = os.path.join(cls.folder, "first")
        cmake("--install", BUILD, "--prefix", first)
        with open(os.path.join(first, "lib/systemd/user/memoptd.service"), encoding="utf-8") as file:
            cls.unit = file.read().replace(first, "PREFIX")
        # Where it was installed is no more; all that follows is of what was moved.
        cls.root = os.path.join(cls.folder, "moved")
        os.rename(first, cls.root)
        cls.library = os.path.join(cls.root, "lib", "libmemopt.so")
        cls.memoptctl = os.path.join(cls.root, "bin", "memoptctl")
        cls.work = os.path.join(cls.folder, "work")
        roots.copy_workload(BUILD, cls.work)
        cls.wrapper = roots.hidden([BUILD, SOURCE]) if roots.can_hide() and not cls.folder.startswith((BUILD, SOURCE)) else []

    def run_hidden(self, *command, **variables):
        return roots.run(command, self.work, NAME, self.wrapper, **variables)

    def test_what_is_there(self):
        there = files_below(self.root)
        for wanted in ("bin/memoptctl", "bin/memoptd", "lib/libmemopt.so", "lib/memopt/cudasim/lib/libcuda.so.1", "lib/memopt/cudasim/lib/stand-ins.txt",
                       "lib/memopt/cudasim/kernels/memopt.so", "lib/systemd/user/memoptd.service", "share/man/man1/memoptctl.1",
                       "share/bash-completion/completions/memoptctl", "share/zsh/vendor-completions/_memoptctl",
                       "share/fish/vendor_completions.d/memoptctl.fish", "share/doc/memopt/copyright"):
            self.assertIn(wanted, there)
        self.assertEqual([path for path in there if path.startswith("lib/libcuda")], [], "nothing that a loader could take for the driver")
        self.assertEqual([path for path in there if "test" in path or path.endswith((".a", ".h"))], [])

    def test_the_library_has_a_version(self):
        self.assertTrue(os.path.islink(self.library))
        self.assertRegex(os.path.basename(os.path.realpath(self.library)), r"^libmemopt\.so\.\d+\.\d+\.\d+$")
        shown = subprocess.run(["readelf", "-d", self.library], check=True, capture_output=True, text=True).stdout
        self.assertRegex(shown, r"SONAME.*\[libmemopt\.so\.\d+\]")

    def test_nothing_looks_into_the_build_folder_for_libraries(self):
        for path in files_below(self.root):
            full = os.path.join(self.root, path)
            with open(full, "rb") as file:
                if file.read(4) != b"\x7fELF":
                    continue
            shown = subprocess.run(["readelf", "-d", full], check=True, capture_output=True, text=True).stdout
            self.assertNotRegex(shown, r"R(UN)?PATH", path)

    def test_a_program_is_planned_with_the_installed_files_alone(self):
        done = self.run_hidden(self.memoptctl, "run", "--sim", "a100-40g", "--", "./digits_cnn", "--epochs", "4", MEMOPT_SYNC_PLAN=patience.WAIT,
                               CUDASIM_KERNELS=f"{self.work}/kernels:{self.root}/lib/memopt/cudasim/kernels")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("memopt: plan live at iteration", done.stderr)
        plain = self.run_hidden(self.memoptctl, "run", "--sim", "a100-40g", "--native", "--", "./digits_cnn", "--epochs", "4",
                                CUDASIM_KERNELS=f"{self.work}/kernels")
        self.assertEqual(done.stdout, plain.stdout, "the same results as without memopt")

    def test_what_is_preloaded_is_what_was_moved(self):
        done = self.run_hidden(self.memoptctl, "run", "--sim", "h200", "--", "sh", "-c", 'echo "$LD_PRELOAD|$LD_LIBRARY_PATH"')
        preload, path = done.stdout.strip().split("|")
        self.assertEqual(preload.split(":")[0], self.library)
        self.assertEqual(path, os.path.join(self.root, "lib/memopt/cudasim/lib"))
        self.assertEqual([entry for entry in preload.split(":") if not entry.startswith(self.root)], [])

    def test_without_a_path_where_the_loader_looks(self):
        libraries = os.path.join(self.root, "lib")
        done = self.run_hidden("./digits_cnn", "--epochs", "4", LD_PRELOAD="libmemopt.so", MEMOPT_SYNC_PLAN=patience.WAIT, CUDASIM_DEVICE="a100-40g",
                               LD_LIBRARY_PATH=f"{libraries}:{libraries}/memopt/cudasim/lib",
                               CUDASIM_KERNELS=f"{self.work}/kernels:{libraries}/memopt/cudasim/kernels")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("memopt: plan live at iteration", done.stderr, "the library found memoptd beside itself")

    def test_what_doctor_says(self):
        done = self.run_hidden(self.memoptctl, "doctor", "--sim", "a100-40g")
        self.assertIn(f"{self.library}", done.stdout)
        self.assertNotIn(BUILD, done.stdout)

    def test_the_unit(self):
        self.assertIn("ExecStart=PREFIX/bin/memoptd --foreground --idle-exit 0\n", self.unit)
        if shutil.which("systemd-analyze"):
            path = os.path.join(self.folder, "memoptd.service")
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.unit.replace("PREFIX", self.root))
            done = subprocess.run(["systemd-analyze", "verify", "--user", "--man=no", path], capture_output=True, text=True)
            self.assertNotIn("memoptd.service", done.stderr)

    def test_what_the_unit_starts(self):
        planner = subprocess.Popen([os.path.join(self.root, "bin", "memoptd"), "--foreground", "--idle-exit", "0", "--name", NAME + "-unit"],
                                   stderr=subprocess.PIPE, text=True)
        self.assertIn("serves", planner.stderr.readline())
        planner.terminate()
        self.assertEqual(planner.wait(patience.seconds(60)), 0)
        planner.stderr.close()

    def test_a_staging_folder_and_uninstalling(self):
        stage = os.path.join(self.folder, "stage")
        cmake("--install", BUILD, "--prefix", "/opt/memopt", DESTDIR=stage)
        self.assertEqual(sorted(os.listdir(stage)), ["opt"])
        self.assertEqual(files_below(os.path.join(stage, "opt/memopt")), files_below(self.root))
        with open(os.path.join(stage, "opt/memopt/lib/systemd/user/memoptd.service"), encoding="utf-8") as file:
            self.assertIn("ExecStart=/opt/memopt/bin/memoptd", file.read(), "not where it was staged")
        other = os.path.join(stage, "opt", "other")
        with open(other, "w", encoding="utf-8"):
            pass
        script = os.path.join(SOURCE, "cmake/packages/uninstall.cmake")
        cmake(f"-DMANIFEST={BUILD}/install_manifest.txt", "-P", script, DESTDIR=stage)
        self.assertEqual(files_below(stage), ["opt/other"])
        self.assertEqual(os.listdir(os.path.join(stage, "opt")), ["other"], "no empty folders either")

    def test_the_manual_page(self):
        page = os.path.join(self.root, "share/man/man1/memoptctl.1")
        if not shutil.which("man"):
            self.skipTest("man is not installed (man-db)")
        done = subprocess.run(["man", "--warnings=w", "-l", page], capture_output=True, text=True, env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = re.sub(".\x08", "", done.stdout)
        listed = subprocess.run([self.memoptctl, "--help"], check=True, capture_output=True, text=True).stdout
        commands = re.findall(r"(?m)^  ([a-z]+) ", listed.partition("Subcommands:")[2].partition("Examples:")[0])
        self.assertGreater(len(commands), 12)
        for command in commands:
            self.assertRegex(text, rf"(?m)^ +memoptctl {command}\b")
            options = re.findall(r"(?m)^  (?:-\w,)?(--[a-z-]+)", subprocess.run([self.memoptctl, command, "--help"], check=True, capture_output=True, text=True).stdout)
            for option in options:
                self.assertIn(option, text)
        self.assertIn("MEMOPT_LIMIT", text)


if __name__ == "__main__":
    cases.main()
