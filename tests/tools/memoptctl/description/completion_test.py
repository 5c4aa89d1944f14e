#!/usr/bin/env python3
"""Completions in the shells that they are for.

usage: completion_test.py MEMOPTCTL [unittest arguments]
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import cases
import patience

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)


def ctl(*arguments):
    return subprocess.run([MEMOPTCTL, *arguments], check=True, capture_output=True, text=True, timeout=patience.seconds(60)).stdout


def commands():
    listed = ctl("--help")
    return set(re.findall(r"(?m)^  ([a-z]+) ", listed.partition("Subcommands:")[2].partition("Examples:")[0]))


def options(command):
    return set(re.findall(r"(?m)^  (?:-\w,)?(--[a-z-]+)", ctl(command, "--help")))


class Shell:
    """Cases for each shell; a subclass says how it is asked what it would offer for the last word of a line."""

    def setUp(self):
        if not shutil.which(self.shell):
            self.skipTest(f"{self.shell} is not installed")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("file one.rec", "run.rec"):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8"):
                pass
        os.mkdir(os.path.join(self.folder, "layouts"))
        self.script = os.path.join(self.folder, "completion")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(ctl("completion", self.shell))

    def test_commands(self):
        self.assertEqual(self.offered("memoptctl ") - {"--help", "--version", "-h"}, commands())
        self.assertEqual(self.offered("memoptctl re"), {command for command in commands() if command.startswith("re")})
        self.assertNotIn("probe", self.offered("memoptctl "))
        self.assertNotIn("manual", self.offered("memoptctl m"))

    def test_options_of_a_command(self):
        for command in ("run", "status", "plan", "top"):
            offered = {word for word in self.offered(f"memoptctl {command} --") if word.startswith("--") and word != "--"}
            self.assertEqual(offered, options(command), command)

    def test_values(self):
        devices = self.offered("memoptctl run --sim a100")
        self.assertTrue({"a100-40g", "a100-80g"} & devices, devices)
        self.assertEqual(self.offered("memoptctl completion "), {"bash", "zsh", "fish"})

    def test_files(self):
        self.assertIn("run.rec", self.offered("memoptctl show ru"))
        self.assertIn("run.rec", self.offered("memoptctl record -o ru"))


class Bash(Shell, unittest.TestCase):
    shell = "bash"

    def offered(self, line):
        words = line.split(" ")
        quoted = " ".join(f"'{word}'" for word in words)
        script = (f"source {self.script}; cd {self.folder}; compopt() {{ :; }}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _memoptctl; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "--norc", "-c", script], check=True, capture_output=True, text=True, timeout=patience.seconds(60))
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split("\n")) - {""}

    def test_what_follows_the_separator_is_the_programs(self):
        self.assertEqual(self.offered("memoptctl run -- --li"), set())
        self.assertIn("--", self.offered("memoptctl run -"))


class Fish(Shell, unittest.TestCase):
    shell = "fish"

    def offered(self, line):
        script = f"source {self.script}; cd {self.folder}; complete -C '{line}'"
        done = subprocess.run(["fish", "--no-config", "-c", script], check=True, capture_output=True, text=True, timeout=patience.seconds(60),
                              env={**os.environ, "HOME": self.folder})
        self.assertEqual(done.stderr, "")
        return {offer.split("\t")[0] for offer in done.stdout.splitlines()} - {""}


class Zsh(Shell, unittest.TestCase):
    shell = "zsh"

    def offered(self, line):
        """zsh completes only while it edits a line: it is asked on a terminal, and what its completion adds is written down."""
        output = os.path.join(self.folder, "offered")
        if os.path.exists(output):
            os.remove(output)
        setup = (f"cd {self.folder}; autoload -Uz compinit; compinit -u -D; source {self.script}; PS1='> '; zstyle ':completion:*' list-grouped false\n"
                 "compadd() { local -a found; builtin compadd -O found \"$@\"; (( $#found )) && print -rl -- $found >>" + output + "; builtin compadd \"$@\"; }\n"
                 "echo set-up-done\n")
        pid, fd = pty.fork()
        if pid == 0:
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "HOME": self.folder, "ZDOTDIR": self.folder})
        read = b""

        def until(done, seconds=10):
            nonlocal read
            end = time.monotonic() + patience.seconds(seconds)
            while not done() and time.monotonic() < end:
                if select.select([fd], [], [], 0.05)[0]:
                    try:
                        read += os.read(fd, 65536)
                    except OSError:
                        return
        try:
            os.write(fd, setup.encode())
            until(lambda: b"\nset-up-done" in read)
            # The list of what there is, whole and asked for nothing.
            os.write(fd, b"LISTMAX=100000; bindkey '^T' list-choices; echo ready-$((1+1))\n")
            until(lambda: b"ready-2" in read)
            os.write(fd, line.encode() + b"\x14\x07print -r -- the-en''d\n")
            until(lambda: b"the-end" in read)
        finally:
            os.close(fd)
            os.waitpid(pid, 0)
        if not os.path.exists(output):
            return set()
        with open(output, encoding="utf-8") as file:
            prefix = line.split(" ")[-1]
            return {word.rstrip("=") for word in file.read().split("\n") if word.startswith(prefix)} - {""}


if __name__ == "__main__":
    cases.main()
