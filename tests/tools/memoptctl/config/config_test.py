#!/usr/bin/env python3
"""memopt.toml as memoptctl config shows it, and as programs get it.

usage: config_test.py MEMOPTCTL [unittest arguments]
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import cases
import patience
import simulated

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)


class Config(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = os.path.realpath(folder.name)
        self.project, self.home = os.path.join(self.root, "project"), os.path.join(self.root, "home")
        self.inside = os.path.join(self.project, "a", "b")
        os.makedirs(self.inside)
        self.user_file = os.path.join(self.home, ".config", "memopt", "memopt.toml")
        self.project_file = os.path.join(self.project, "memopt.toml")
        os.makedirs(os.path.dirname(self.user_file))
        self.environment = {**simulated.clean_environment(), "HOME": self.home}
        self.environment.pop("XDG_CONFIG_HOME", None)
        self.write(self.project_file, "")
        if "built without toml++" in self.ctl("config").stderr:
            self.skipTest("this memoptctl was built without toml++")
        os.remove(self.project_file)

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def ctl(self, *arguments, **variables):
        return subprocess.run([MEMOPTCTL, *arguments], cwd=self.inside, env={**self.environment, **variables}, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=patience.seconds(100))

    def setting(self, name, *arguments, **variables):
        """(value, origin, where) by `config --json`."""
        done = self.ctl("config", "--json", *arguments, **variables)
        found = {entry["name"]: entry for entry in json.loads(done.stdout)["settings"]}[name]
        return found["value"], found["origin"], found["where"]

    def in_program(self, *arguments, variable="MEMOPT_LIMIT", **variables):
        done = self.ctl("run", *arguments, "--", "sh", "-c", f'echo "${{{variable}-unset}}"', **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_what_prevails(self):
        self.assertEqual(self.setting("limit"), (None, "default", ""))
        self.assertEqual(self.in_program(), "unset")
        self.write(self.user_file, "\nlimit = '1GiB'\nlog = 'error'\n")
        self.assertEqual(self.setting("limit"), ("1GiB", "user", f"{self.user_file}:2"))
        self.assertEqual(self.in_program(), "1GiB")
        self.write(self.project_file, "limit = '2GiB'\n")
        self.assertEqual(self.setting("limit"), ("2GiB", "project", f"{self.project_file}:1"))
        self.assertEqual(self.setting("log"), ("error", "user", f"{self.user_file}:3"))
        self.assertEqual((self.in_program(), self.in_program(variable="MEMOPT_LOG")), ("2GiB", "error"))
        self.assertEqual(self.setting("limit", MEMOPT_LIMIT="3GiB"), ("3GiB", "environment", "MEMOPT_LIMIT"))
        self.assertEqual(self.in_program(MEMOPT_LIMIT="3GiB"), "3GiB")
        self.assertEqual(self.setting("limit", "--limit", "4GiB", MEMOPT_LIMIT="3GiB"), ("4GiB", "line", "--limit"))
        self.assertEqual(self.in_program("--limit", "4GiB", MEMOPT_LIMIT="3GiB"), "4GiB")
        self.assertEqual(self.setting("disable", "--disable"), ("1", "line", "--disable"))
        self.assertEqual(self.setting("limit", "--no-config"), (None, "default", ""))
        self.assertEqual(self.in_program("--no-config"), "unset")
        nearer = os.path.join(self.project, "a", "memopt.toml")
        self.write(nearer, "swap = false\n")
        self.assertEqual(self.setting("limit"), ("1GiB", "user", f"{self.user_file}:2"), "the nearest file is the project's")
        self.assertEqual(self.in_program(variable="MEMOPT_SWAP"), "0")

    def test_where_the_users_file_is(self):
        other = os.path.join(self.root, "xdg")
        os.makedirs(os.path.join(other, "memopt"))
        self.write(os.path.join(other, "memopt", "memopt.toml"), "limit = '5GiB'\n")
        self.write(self.user_file, "limit = '1GiB'\n")
        self.assertEqual(self.setting("limit", XDG_CONFIG_HOME=other)[0], "5GiB")
        self.assertEqual(self.setting("limit", XDG_CONFIG_HOME="relative")[0], "1GiB")
        self.assertEqual(self.setting("limit", HOME="", XDG_CONFIG_HOME="")[0], None)

    def test_the_table_for_a_person(self):
        self.write(self.project_file, "limit = '2GiB'\n")
        done = self.ctl("config", MEMOPT_LMIT="1", MEMOPT_SWAP="no")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, rf"(?m)^limit +2GiB +project \({self.project_file}:1\)$")
        self.assertRegex(done.stdout, r"(?m)^swap +no +environment \(MEMOPT_SWAP\)\n +expected 0 or 1; 1 holds$")
        self.assertRegex(done.stdout, r"(?m)^plan +1 +default$")
        self.assertIn("note: MEMOPT_LMIT is no option of memopt, did you mean MEMOPT_LIMIT?", done.stdout)

    def test_files_with_faults(self):
        for text, expected in (("limt = '1GiB'\n", ":1:1: there is no setting limt, did you mean limit?"),
                               ("plan = 1\nlimit = '8GB'\n", ":2:9: limit: '8GB': expected a size"), ("limit = ", ":1:"),
                               ("planner = './evil'", ":1:1: planner names what is started")):
            self.write(self.project_file, text)
            for command in (["config"], ["run", "--", "echo", "started"], ["record", "-o", os.path.join(self.root, "r"), "--", "echo", "started"]):
                done = self.ctl(*command)
                self.assertNotEqual(done.returncode, 0, command)
                self.assertEqual(done.stdout, "", command)
                self.assertIn(self.project_file + expected, done.stderr)
            self.assertEqual(self.ctl("run", "--no-config", "--", "echo", "started").stdout, "started\n")

    def test_files_that_are_none(self):
        os.mkfifo(self.project_file)
        self.assertIn(f"{self.project_file}: is no file", self.ctl("run", "--", "true").stderr)
        os.remove(self.project_file)
        os.mkdir(self.project_file)
        self.assertIn("memopt.toml", self.ctl("run", "--", "true").stderr)
        os.rmdir(self.project_file)
        self.write(self.project_file, "# " + "x" * (1 << 20))
        self.assertIn("is larger than 1 MiB", self.ctl("run", "--", "true").stderr)

    @unittest.skipIf(os.geteuid() != 0, "only root can give a file away")
    def test_files_of_other_users(self):
        self.write(self.project_file, "limit = '2GiB'\n")
        os.chown(self.project_file, 12345, 12345)
        done = self.ctl("run", "--", "sh", "-c", "echo ${MEMOPT_LIMIT-unset}")
        self.assertEqual((done.returncode, done.stdout), (0, "unset\n"))
        self.assertIn(f"{self.project_file} belongs to another user and is not read", done.stderr)
        self.assertIn("belongs to another user", self.ctl("config").stdout)


if __name__ == "__main__":
    cases.main()
