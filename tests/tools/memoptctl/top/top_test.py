#!/usr/bin/env python3
"""memoptctl top on a terminal: a pseudo-terminal, a model of a screen (pyte), real programs on the simulated device.

usage: top_test.py MEMOPTCTL [unittest arguments]
"""
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

import cases
import patience
import simulated

try:
    import pyte
except ImportError:
    print("skipped: python3-pyte is not installed")
    sys.exit(77)

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)

# Loads the driver, allocates, says "ready", ends with its standard input.
PROGRAM = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
for code in (driver.cuInit(0), driver.cuDeviceGet(ctypes.byref(device), 0), driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
             driver.cuCtxSetCurrent(context), driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(int(sys.argv[1]) << 20))):
    if code: sys.exit(f"CUDA error {code}")
print("ready", flush=True)
sys.stdin.read()
"""


def program(mebibytes, *options, name=None):
    """A program under memopt, from when it says "ready" until the test is done with it. `name`: what it calls itself."""
    python = [sys.executable, "-S", "-c", PROGRAM, str(mebibytes)]
    if name:
        python = ["bash", "-c", 'exec -a "$0" "$@"', name, *python]
    return simulated.ready([MEMOPTCTL, "run", "--sim", "a100-40g", *options, "--", *python], env=simulated.clean_environment(), stderr=subprocess.DEVNULL)


class Terminal:
    """memoptctl top in a terminal of that size; what it shows is in `lines`. Of terminals, screen's asks for nothing that pyte does not know
    (xterm's repeats characters by a sequence)."""

    def __init__(self, columns=80, lines=24, term="screen-256color", environment=None, arguments=("--interval", "0.1")):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.written = b""
        size = struct.pack("HHHH", lines, columns, 0, 0)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, size)
            env = {**simulated.clean_environment(), "TERM": term, "LC_ALL": "C.UTF-8", **(environment or {})}
            os.execve(MEMOPTCTL, [MEMOPTCTL, "top", *arguments], {key: value for key, value in env.items() if value is not None})
        self.code = None

    @property
    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self):
        return "\n".join(self.lines)

    def read(self, wait):
        """False at its end."""
        if not select.select([self.fd], [], [], wait)[0]:
            return True
        try:
            part = os.read(self.fd, 65536)
        except OSError:  # as Linux says that the other side is gone
            part = b""
        self.written += part
        self.stream.feed(part)
        return bool(part)

    def until(self, wanted, why=""):
        """Reads until wanted(self), or fails."""
        end = time.monotonic() + patience.seconds(60)
        while not wanted(self):
            if time.monotonic() > end or not self.read(0.2):
                raise AssertionError(f"{why or 'what was waited for'} did not come; the screen:\n{self.text}")

    def until_text(self, text):
        self.until(lambda shown: text in shown.text, repr(text))

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def resize(self, columns, lines):
        self.screen.resize(lines, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait(self):
        """Its exit code."""
        end = time.monotonic() + patience.seconds(60)
        while self.read(0.2):
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.code is None:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def order(terminal, *pids):
    """The pids in the order in which they are listed."""
    listed = [int(match.group(1)) for line in terminal.lines if (match := re.match(r"\s*(\d+) ", line))]
    return [pid for pid in listed if pid in pids]


def line_of(terminal, pid):
    return next((number for number, line in enumerate(terminal.lines) if re.match(rf"\s*{pid} ", line)), None)


class Top(unittest.TestCase):
    def test_processes_sorting_selection_and_leaving(self):
        with program(300) as large, program(100, "--limit", "4GiB") as small, Terminal() as top:
            top.until(lambda shown: order(shown, large.pid, small.pid) == [large.pid, small.pid], "both, the larger one first")
            self.assertRegex(top.lines[0], r"^memopt: \d+ process(es)?, .*; every 0\.1 s, by footprint")
            self.assertRegex(top.lines[1], r"PID STATE +FOOTPRINT +LIMIT OF LIMIT +COPIES/S DEVIATE COMMAND")
            mine = top.lines[line_of(top, small.pid)]
            self.assertIn("4.00 GiB", mine)
            self.assertRegex(mine, r"\d%")
            self.assertIn("python", mine)
            self.assertNotIn("%", top.lines[line_of(top, large.pid)].split("python")[0])
            top.press("r")
            top.until(lambda shown: order(shown, large.pid, small.pid) == [small.pid, large.pid], "reversed")
            self.assertIn("reversed", top.lines[0])
            top.press("r")
            top.press("p")
            top.until(lambda shown: order(shown, large.pid, small.pid) == sorted([large.pid, small.pid]) and "by pid" in shown.lines[0], "by pid")
            top.press("l")
            top.until(lambda shown: "by limit" in shown.lines[0] and order(shown, large.pid, small.pid)[0] == small.pid, "by limit")
            top.press("\x1b[1~")  # home
            top.press("\r")
            top.until_text(f"process {small.pid}")
            self.assertIn("limit 4.00 GiB:", top.text)
            top.press("j")
            top.until_text(f"process {large.pid}")
            top.press("\x1bOA")  # up, as a terminal says it in this mode
            top.until_text(f"process {small.pid}")
            top.press("h")
            top.until_text("sort by the next column")
            top.press("h")
            top.until_text(f"process {small.pid}")
            top.press("q")
            self.assertEqual(top.wait(), 0)

    def test_a_process_that_ends(self):
        with program(50) as stays, Terminal() as top:
            with program(60) as goes:
                top.until(lambda shown: len(order(shown, stays.pid, goes.pid)) == 2, "both")
            top.until(lambda shown: line_of(shown, goes.pid) is None, "its line gone")
            self.assertIsNotNone(line_of(top, stays.pid))
            top.press("\x03")  # Ctrl-C
            self.assertEqual(top.wait(), 0)

    def test_a_stopped_process_keeps_no_key_waiting(self):
        with program(50) as process, Terminal() as top:
            top.until(lambda shown: line_of(shown, process.pid) is not None, "it")
            process.send_signal(signal.SIGSTOP)
            top.until(lambda shown: line_of(shown, process.pid) is not None and "?" in shown.lines[line_of(shown, process.pid)], "no answer")
            top.press("q")
            self.assertEqual(top.wait(), 0)

    def test_sizes_while_it_runs(self):
        with program(50, "--limit", "4GiB") as process, Terminal() as top:
            top.until(lambda shown: line_of(shown, process.pid) is not None, "it")
            for columns, lines in ((40, 24), (200, 50), (20, 5), (10, 3), (80, 24)):
                top.resize(columns, lines)
                # Nothing was drawn beside the screen, and what this size has is there.
                if columns >= 40:
                    def as_it_should_be(shown):
                        line = line_of(shown, process.pid)
                        return (line is not None and re.search(r"\d%", shown.lines[line]) and ("ITERATION" in shown.text) == (columns >= 100) and
                                ("COMMAND" in shown.text) == (columns >= 60) and shown.lines[lines - 1].startswith("q leave"))
                    top.until(as_it_should_be, f"{columns} columns")
                else:
                    top.until(lambda shown: shown.lines[0].startswith("memopt"), f"{columns} columns")
            top.press("q")
            self.assertEqual(top.wait(), 0)

    def test_hostile_names(self):
        name = "\x1b[2J\x1b]0;owned\x07evil\u202egnp.\ttab\nline 日本語" + "x" * 300
        with program(50, name=name) as process, Terminal(columns=100) as top:
            top.until(lambda shown: line_of(shown, process.pid) is not None, "it")
            top.press("\r")
            top.until_text(f"process {process.pid}")
            self.assertIn("evil?gnp.?tab?line 日本語".replace(" ", ""), re.sub(r"\s", "", top.text))
            self.assertNotIn(b"\x1b[2J\x1b]0", top.written)
            self.assertNotIn(b"owned\x07", top.written)
            self.assertNotIn("\u202e".encode(), top.written)
            self.assertTrue(top.lines[0].startswith("memopt:"), "the name did not clear the screen")
            top.press("q")
            self.assertEqual(top.wait(), 0)

    def test_only_what_differs_is_written(self):
        """No flicker: with nothing new on the screen, nothing is cleared, and hardly anything is written."""
        with program(50) as process, Terminal() as top:
            top.until(lambda shown: line_of(shown, process.pid) is not None, "it")
            for _ in range(5):
                top.read(0.2)
            before = len(top.written)
            began = time.monotonic()
            while time.monotonic() < began + 1:
                top.read(0.2)
            # Ten samples in that time, of 1,920 characters each if all were written; others' programs may come and go.
            self.assertLess(len(top.written) - before, 5000, top.written[before:])
            self.assertLessEqual(top.written.count(b"\x1b[2J") + top.written.count(b"\x1b[H\x1b[J"), 1)
            top.press("\x1b[99~q")  # no key that is known: what is in it is no command, what follows is not lost for long
            top.press("\x1b")
            time.sleep(0.2)
            top.press("q")
            self.assertEqual(top.wait(), 0)

    def colours(self, **options):
        with program(50, "--limit", "4GiB") as process, Terminal(**options) as top:
            top.until(lambda shown: line_of(shown, process.pid) is not None, "it")
            top.press("q")
            self.assertEqual(top.wait(), 0)
            return re.findall(rb"\x1b\[[0-9;]*?(?:3[0-7]|38;5;\d+|9[0-7])m", top.written), top.text

    def test_colours_and_none(self):
        self.assertTrue(self.colours()[0])
        self.assertEqual(self.colours(environment={"NO_COLOR": "1"})[0], [])
        self.assertEqual(self.colours(term="vt100")[0], [])

    def test_without_a_locale(self):
        with program(50, "--limit", "4GiB", name="日本語") as process, Terminal(environment={"LC_ALL": "C"}) as top:
            top.until(lambda shown: line_of(shown, process.pid) is not None, "it")
            self.assertTrue(re.search(r"\.{4} +\d+%", top.lines[line_of(top, process.pid)]), top.text)
            self.assertTrue(all(32 <= byte < 127 or byte in b"\x1b\r\n\b\x0f\x0e\x07" for byte in top.written), top.written)
            top.press("q")
            self.assertEqual(top.wait(), 0)

    def test_leaving_at_once(self):
        with Terminal() as top:
            top.press("q")
            self.assertEqual(top.wait(), 0)

    def test_a_terminal_that_goes_away(self):
        top = Terminal()
        top.until(lambda shown: shown.lines[0].startswith("memopt:"), "a title")
        os.close(top.fd)
        end = time.monotonic() + patience.seconds(60)
        while os.waitpid(top.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                os.kill(top.pid, signal.SIGKILL)
                self.fail("it goes on without its terminal")
            time.sleep(0.05)


class Refused(unittest.TestCase):
    def ctl(self, *arguments, **options):
        return subprocess.run([MEMOPTCTL, *arguments], capture_output=True, text=True, timeout=patience.seconds(100), **options)

    def test_no_terminal(self):
        done = self.ctl("top", stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("standard output is no terminal; memoptctl status --watch", done.stderr)

    def test_terminals_that_are_not_known(self):
        for term, why in (("no-such-terminal", "TERM=no-such-terminal: no such terminal is known here"),
                          ("dumb", "TERM=dumb: such a terminal has no full screen"), ("", "TERM is not set"), (None, "TERM is not set"),
                          ("x\x1b[2Jy", "TERM=x?[2Jy: no such terminal")):
            with self.subTest(term=term), Terminal(term="xterm", environment={"TERM": term}) as top:
                self.assertEqual(top.wait(), 1)
                self.assertIn(why, " ".join(top.text.split()))

    def test_wrong_use(self):
        for arguments, expected in ((["--interval", "0"], "expected a duration from 100ms to 1h (a plain number is seconds), not '0'"),
                                    (["--interval", "soon"], "expected a duration from 100ms to 1h (a plain number is seconds), not 'soon'"), (["--interva", "1"], "--interva"),
                                    (["extra"], "extra")):
            done = self.ctl("top", *arguments, stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(expected, done.stderr)


if __name__ == "__main__":
    cases.main()
