#!/usr/bin/env python3
"""memoptd as a process: options, two of one name, going away."""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import cases
import patience

MEMOPTD = sys.argv.pop(1)
NUMBER = [0]


def unique_name():
    NUMBER[0] += 1
    return f"memoptd-{os.getpid()}-{NUMBER[0]}"


def connect(name):
    """A connection to the daemon of that name, or None."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        client.connect(f"\0memoptd-{os.geteuid()}-1-{name}")
        return client
    except ConnectionRefusedError:
        client.close()
        return None


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    return None


def peer_pid(client):
    return int.from_bytes(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], "little")


class Memoptd(unittest.TestCase):
    def run_it(self, *arguments):
        return subprocess.run([MEMOPTD, *arguments], capture_output=True, text=True, timeout=patience.seconds(60))

    def test_version_and_help(self):
        self.assertRegex(self.run_it("--version").stdout, r"^memoptd \d+\.\d+\.\d+\n$")
        self.assertIn("--idle-exit", self.run_it("--help").stdout)

    def test_bad_options_are_named(self):
        for arguments, named in ((["--name", "a/b"], "at most 40"), (["--name="], "at most 40"), (["--idle-exit", "soon"], "idle-exit"),
                                 (["--idle-exit", "nan"], "0 to 1000000"), (["--idle-exit", "-1"], "0 to 1000000"), (["--idle-exit"], "idle-exit"),
                                 (["--what"], "--what"), (["program"], "unexpected argument 'program'")):
            with self.subTest(arguments):
                result = self.run_it(*arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(named, result.stderr)

    def test_a_log_that_can_not_be_written_is_an_error_that_names_it(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.run_it("--name", unique_name(), "--idle-exit", "1", "--log", folder)
            self.assertEqual(result.returncode, 1)
            self.assertIn(folder, result.stderr)

    def test_a_second_one_of_the_same_name_leaves_quietly(self):
        name = unique_name()
        first = subprocess.Popen([MEMOPTD, "--foreground", "--name", name, "--idle-exit", "0"], stderr=subprocess.PIPE)
        try:
            self.assertTrue(wait_until(lambda: connect(name)))
            second = self.run_it("--name", name)
            self.assertEqual((second.returncode, second.stdout, second.stderr), (0, "", ""))
            self.assertEqual(self.run_it("--foreground", "--name", name).returncode, 0)
            self.assertIsNone(first.poll())
        finally:
            first.terminate()
            self.assertEqual(first.wait(60), 0)
            first.stderr.close()

    def test_in_the_background_it_holds_nothing_of_its_starter_and_leaves_when_idle(self):
        name = unique_name()
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            environment = {"HOME": "/nonexistent"}
            # Ends although the daemon lives: it keeps no pipe open.
            result = subprocess.run([MEMOPTD, "--name", name, "--idle-exit", "2", "--log", log], env=environment,
                                    capture_output=True, timeout=patience.seconds(60), cwd=folder)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, b"", b""))
            client = wait_until(lambda: connect(name))
            pid = peer_pid(client)
            self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), "/")
            self.assertEqual(os.getsid(pid) == os.getsid(0), False)
            for number in "012":
                self.assertEqual(os.readlink(f"/proc/{pid}/fd/{number}"), "/dev/null")
            client.close()
            self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{pid}")))
            with open(log, encoding="utf-8") as file:
                self.assertIn("leaving", file.read())

    def test_it_ends_on_a_signal(self):
        name = unique_name()
        daemon = subprocess.Popen([MEMOPTD, "--foreground", "--name", name], stderr=subprocess.DEVNULL)
        client = wait_until(lambda: connect(name))
        client.close()
        daemon.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(60), 0)


if __name__ == "__main__":
    cases.main()
