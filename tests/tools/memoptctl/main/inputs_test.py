#!/usr/bin/env python3
"""What memoptctl reads and where it writes: pipes, packed files, inputs without an end, bad numbers, full disks.

usage: inputs_test.py MEMOPTCTL [unittest arguments]
"""
import gzip
import json
import os
import re
import resource
import subprocess
import sys
import unittest

import cases
import patience
import scratch

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)
RECORDING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "data", "recordings", "gpt.rec")
MIB = 1 << 20
MARK = b"\xef\xbb\xbf"
CSV = b"id,lower,upper,size\na,0,2,3\nb,1,3,4\n"
TRACE = "".join(f"{line} {1000 * at}\n" for at, line in enumerate(
    8 * (f"Malloc 0xa0 {MIB}", f"Mutable 0xa0 {MIB}", f"Malloc 0xb0 {2 * MIB}", f"Read 0xa0 {MIB}", f"Free 0xb0 {2 * MIB}", f"Free 0xa0 {MIB}"))).encode()
PLAN = json.dumps({"format": "memopt-plan-1", "period": 100000, "machine": {"out_bytes_per_ns": 200, "in_bytes_per_ns": 200},
                   "blocks": [{"id": 5, "size": 2 * MIB}],
                   "ops": [["m", 5, 0], ["w", 5, 1000], ["f", 5, 91000]]}, indent=0).encode()
NONE = ("--strategy", "none", "--no-bound")
MOST = 2_000_000 << 10  # bytes of address space


def limit_memory():
    if not cases.SANITIZER:  # whose shadow needs more
        resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))


def run(*arguments, stdin=b"", **options):
    done = subprocess.run([MEMOPTCTL, *arguments], input=stdin, stderr=subprocess.PIPE, timeout=patience.seconds(100), preexec_fn=limit_memory,
                          **({"stdout": subprocess.PIPE} | options))
    done.stderr = done.stderr.decode()  # fails if it is no text
    done.stdout = (done.stdout or b"").decode()
    return done


def zstd(data, kind=0, size=None):
    """As zstd packs what it can't make smaller: raw blocks. Kind 1: blocks of one byte that is repeated."""
    packed, step = b"\x28\xb5\x2f\xfd\x00\x58", 1 << 17
    size = len(data) if size is None else size
    for at in range(0, size, step):
        length, last = min(step, size - at), at + step >= size
        packed += (length << 3 | kind << 1 | last).to_bytes(3, "little") + (data[at:at + length] if kind == 0 else data)
    return packed


class Case(scratch.InFolder):
    def refuse(self, code, pattern, *arguments, **options):
        """A message of printable text, and no result. Reading ends by itself: what the test writes may have no end."""
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertRegex(done.stderr, pattern)
        self.assertRegex(done.stderr, r"\A[ -~…\n]*\Z")
        return done


def without_times(text):
    return re.sub(r"(?m)^(planning )?time .*$", "", text)


class ReadingOnce(Case):
    """Each command says the same of a file, of the file through a pipe, and of it packed."""
    def commands(self):
        recording = open(RECORDING, "rb").read()
        return ((("plan",), "a.trace", TRACE), (("plan", *NONE), "a.trace", TRACE), (("plan", *NONE), "plan.json", PLAN),
                (("solve", "--time-limit", "0"), "a.csv", CSV), (("plan",), "a.rec", recording), (("show", "--json"), "a.rec", recording),
                (("show", "--operations", "1:9"), "a.rec", recording))

    def test_pipes_and_packings(self):
        for command, name, content in self.commands():
            expected = without_times(run(*command, self.path(name, content)).stdout)
            self.assertNotEqual(expected, "", command)
            marked = () if name == "a.rec" else (MARK + content, gzip.compress(MARK + content))
            halves = gzip.compress(content[:20]) + gzip.compress(content[20:])
            for given in (content, gzip.compress(content), halves, zstd(content), zstd(content[:20]) + zstd(content[20:]), *marked):
                for file in ("-", "/dev/stdin", self.path("given", given)):
                    done = run(*command, file, stdin=given if file != self.path("given") else b"")
                    self.assertEqual(done.returncode, 0, (command, given[:4], file, done.stderr))
                    said = without_times(done.stdout).replace("reading", "")
                    self.assertEqual(said, expected.replace("reading", ""), (command, given[:4], file))

    def test_a_named_pipe(self):
        for command, _, content in self.commands():
            os.mkfifo(self.path("pipe"))
            # Until memoptctl opens it, too, the writer waits, and without a reader it ends.
            writer = subprocess.Popen([sys.executable, "-c", "import sys; open(sys.argv[1], 'wb').write(open(sys.argv[2], 'rb').read())",
                                       self.path("pipe"), self.path("content", content)], stderr=subprocess.DEVNULL)
            try:
                done = run(*command, self.path("pipe"))
            finally:
                writer.kill()
                writer.wait()
            self.assertEqual(done.returncode, 0, (command, done.stderr))
            os.unlink(self.path("pipe"))

    def test_reduce(self):
        with open(RECORDING, "rb") as file:
            recording = file.read()
        said = run("reduce", RECORDING, "-o", self.path("file.rec")).stdout.replace("file.rec", "")
        for given in (recording, gzip.compress(recording), zstd(recording)):
            done = run("reduce", "-", "-o", self.path("pipe.rec"), "--force", stdin=given)
            self.assertEqual((done.returncode, done.stdout.replace("pipe.rec", "")), (0, said), done.stderr)
            self.assertEqual(open(self.path("pipe.rec"), "rb").read(), open(self.path("file.rec"), "rb").read())

    def test_packed_files_that_are_cut_or_damaged(self):
        for pack in (gzip.compress, zstd):
            packed = pack(TRACE)
            self.refuse(1, "cut: cannot be read: ends within its packed data", "plan", self.path("cut", packed[:-5]))
            self.refuse(1, "standard input: cannot be read: its packed data is damaged", "plan", "-", stdin=packed + packed[:4] + b"\xff" * 20)
            self.refuse(1, "cannot be read: ends within its packed data", "show", self.path("cut.rec", pack(open(RECORDING, "rb").read())[:-5]))
        self.refuse(1, "cannot be read: its packed data is damaged", "plan", "-", stdin=gzip.compress(TRACE) + b"more")


class WithoutEnd(Case):
    """Ends where it shows, in little memory. The code of solve is that of bad input."""
    COMMANDS = ((1, ("plan",)), (2, ("solve",)), (1, ("show",)), (1, ("reduce", "-o", "/dev/null/none")))

    def test_no_text(self):
        sparse = self.path("sparse", b"")
        os.truncate(sparse, 2 << 30)
        member = gzip.compress(bytes(8 * MIB), 1)
        bombs = {"/dev/zero": None, sparse: None, self.path("zeros.gz", 128 * member): None, self.path("zeros.zst", zstd(b"\0", 1, 1 << 30)): None}
        for file in bombs:
            for code, command in self.COMMANDS[:2]:
                self.refuse(code, re.escape(file) + ": line 1: expected .*, found a NUL byte", *command, file)
            self.refuse(1, re.escape(file) + ": it is no recording of memopt", "show", file)
            self.refuse(1, re.escape(file) + ": it is no recording of memopt", "reduce", file, "-o", self.path("none.rec"))
        self.refuse(1, "standard input: line 3: expected a text trace .*, found a NUL byte", "plan", "-", stdin=TRACE[:TRACE.index(b"\n", 30) + 1] + b"\0")
        self.refuse(2, "standard input: line 3: expected CSV .*, found a NUL byte", "solve", "-", stdin=CSV[:CSV.index(b"\n", 21) + 1] + b"a\0")
        self.refuse(1, "standard input: line 2: expected JSON .*, found a NUL byte", "plan", "-", stdin=b'{"format":\n\0')

    def test_one_line(self):
        line = self.path("line.gz", gzip.compress(b"a" * (64 * MIB), 1))
        self.refuse(1, "line.gz: line 1: expected a text trace .* in lines of at most 65536 bytes, found a longer one", "plan", line)
        self.refuse(2, "line.gz: line 1: expected CSV .* in lines of at most 1 MiB, found a longer one", "solve", line)
        json_line = self.path("json.gz", gzip.compress(b'{"name": "' + b"a" * (65 * MIB), 1))
        self.refuse(1, r"json.gz: line 1: expected JSON \(memopt-plan-1\) of at most 32 MiB, found more", "plan", json_line)
        self.refuse(1, "line 2: expected lists and objects in each other at most 32 deep, found more", "plan", "-", stdin=b'{"ops":\n' + b"[" * MIB)

    @cases.in_plain_builds
    def test_valid_lines(self):
        rows = gzip.compress(b"a,0,1,1\n" * MIB, 1)
        self.refuse(2, "standard input: line 4194305: expected CSV .* of at most 4194304 lines, found more", "solve", "-", stdin=gzip.compress(CSV) + 5 * rows)
        layers = gzip.compress(b"Layer 0x1 1\n" * MIB, 1)
        self.refuse(1, "standard input: line 16777217: expected a text trace of at most 16777216 operations, found more", "plan", "-", stdin=17 * layers)
        self.refuse(1, "standard input: line 33554433: expected a text trace .* of at most 33554432 lines, found more", "plan", "-",
                    stdin=33 * gzip.compress(b"\n" * MIB, 1))

    def test_lists_that_take_much_memory(self):
        head = b'{"format":"memopt-plan-1","period":1,"machine":{"out_bytes_per_ns":1,"in_bytes_per_ns":1},"blocks":[],"ops":['
        for one in (b"[]", b"{}"):
            text = head + (one + b",") * (10 * MIB) + one + b"]}"
            self.refuse(1, r"ops\[0\]: expected \[kind, block, time\]", "plan", "-", stdin=text)

    def test_messages_have_no_control_characters(self):
        for text in (b"\x1b[31mMalloc 0xa0 1 1\n", b"Malloc 0xa0 \x1b]0;x\x07 1\n", b"\x9b\x7f\xff\xfe\n", b"\x01\x02\x03"):
            self.refuse(1, "expected .*, found \"", "plan", "-", stdin=text)
        for text in (b'{"\x1b[31m": 1}', b'{"a": "\xff\x9b"}', b'{"format\x7f\xc2\x9b": 1}', b"{\x1b}"):
            self.refuse(1, "standard input: ", "plan", "-", stdin=text)
        for text in (b"id,lower,upper,\x1b[31m\n", CSV + b"\x1b[1m,2,1,\x9b\n", b"\x7fELF\x02"):
            self.refuse(2, "line ", "solve", "-", stdin=text)
        self.refuse(2, "expected a size", "solve", "-", "--capacity", "\x1b[31m")
        self.refuse(1, "cannot be opened", "plan", self.path("\x1b[31m"))


class Traces(Case):
    def lines(self, change):
        return "".join(change(at, line.split()) + "\n" for at, line in enumerate(TRACE.decode().splitlines())).encode()

    def test_an_index_in_front(self):
        plain = run("plan", "-", stdin=TRACE).stdout
        indexed = run("plan", "-", stdin=self.lines(lambda at, words: f"  {at}\t{' '.join(words)}"))
        self.assertEqual(indexed.returncode, 0, indexed.stderr)
        self.assertRegex(indexed.stdout, r"(?m)^assumed +the numbers in front of the operations are an index$")
        rows = [[line for line in without_times(text).splitlines() if not line.startswith("assumed")] for text in (plain, indexed.stdout)]
        self.assertEqual(*rows)
        self.refuse(1, 'line 2: expected a number in front of the operation, as in the first line, found "Malloc"', "plan", "-",
                    stdin=b"0 Malloc 0xa0 1 1\nMalloc 0xb0 1 2\n")

    def test_no_times(self):
        plain = run("plan", "-", stdin=TRACE).stdout
        for change in (lambda at, words: " ".join(words[:3]),  # a size with each
                       lambda at, words: " ".join(words[:3 if words[0] == "Malloc" else 2]),
                       lambda at, words: " ".join(words[:3]) + " (remark 7)"):
            done = run("plan", "-", stdin=self.lines(change))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"(?m)^assumed +there are no times: 1000 ns between operations$")
            for row in ("operations per iteration", "peak load", "slab"):
                pattern = rf"(?m)^{row} .*$"
                self.assertEqual(re.search(pattern, done.stdout).group(), re.search(pattern, plain).group())
            swaps = run("plan", "-", *NONE, stdin=self.lines(change)).stdout
            self.assertRegex(swaps, r"(?m)^times +assumed, 1000 ns between operations, as the trace has none$")
            self.assertRegex(swaps, r"(?m)^added time +0\.000 ms an iteration of 0\.006 ms")


class Numbers(Case):
    def test_of_traces(self):
        for value in ("nan", "inf", "-5", "1.5", "1e9", "+5", "0x10", "18446744073709551616", "99999999999999999999999"):
            found = re.escape(f'found "{value}"')
            self.refuse(1, "line 2: expected a size in bytes as a whole number from 0 to 4611686018427387904, " + found, "plan", "-",
                        stdin=f"Malloc 0xa0 1 1\nMalloc 0xb0 {value} 2\n".encode())
            self.refuse(1, "line 2: expected a time as a whole number from 0 to 9223372036854775807, " + found, "plan", "-",
                        stdin=f"Malloc 0xa0 1 1\nRead 0xa0 {value}\n".encode())
        self.refuse(1, 'line 1: expected a pointer in hexadecimal .*, found "0x10000000000000000"', "plan", "-", stdin=b"Malloc 0x10000000000000000 8 1\n")
        half = "4611686018427387904"
        self.refuse(1, r"line 2: expected blocks of at most 2\^62 bytes together, found " + half + " more", "plan", "-",
                    stdin=f"Malloc 0xa0 {half} 1\nMalloc 0xb0 {half} 2\n".encode())

    def test_of_plans(self):
        for number, replaced in ((b'"size": 2097152', "size"), (b'"period": 100000', "period"), (b'"out_bytes_per_ns": 200', "out_bytes_per_ns")):
            for value in ("NaN", "Infinity", "-Infinity", "-5", "1e999", "1e300", "18446744073709551616"):
                text = PLAN.replace(number, number.split()[0] + b" " + value.encode())
                self.assertNotEqual(text, PLAN)
                message = self.refuse(1, "standard input: ", "plan", "-", *NONE, stdin=text).stderr
                self.assertRegex(message, rf"line \d+.*last read|line \d+: .*number overflow parsing '1e999'|{replaced}: expected .*, found [-1]")

    def test_of_options(self):
        """What --help says of each, an error says, too. A command with an option of numbers that this does not know of fails."""
        known = {"plan": "--time-budget --threads --seed --layout-time --bound-time --remap-time", "solve": "--capacity --time-limit --threads --seed",
                 "show": "--stacks", "reduce": "--iterations", "status": "--pid", "doctor": "--seconds", "import": "--iterations",
                 "fit": "--time-budget --run-time --threads --seed"}
        needed = {"plan": ["-"], "solve": ["-"], "show": [RECORDING], "reduce": [RECORDING, "-o", self.path("never")],
                  "import": [RECORDING, "-o", self.path("never")], "fit": [RECORDING]}
        for command, options in known.items():
            text = re.sub(r"\s+", " ", run(command, "--help").stdout)
            range_of = r"a (?:whole )?number from \S+ to (?:2\^64 - 1|\S+)|a size from 0 to 2\^62 bytes|a duration from \S+ to \S+ \(a plain number is \w+\)"
            told = dict(re.findall(rf" (--[a-z-]+) (?:N|SIZE|DURATION)(?:(?! --[a-z]).)*?; ({range_of})", text))
            self.assertEqual(sorted(told), sorted(options.split()), command)
            for option, range_ in told.items():
                for value in ("nan", "inf", "-1", "x", "1e400", "18446744073709551616", "99999999999999999999999", ""):
                    self.refuse(2, re.escape(f"{option}: expected {range_}") + f".*, not '{re.escape(value)}'", command, *needed.get(command, []), option, value)
        for option, value in (("--limit", "nan"), ("--limit", "-1"), ("--limit", "1e30"), ("--machine", "nan:1"), ("--machine", "-1:1")):
            self.refuse(2, f"{option}: expected .*{re.escape(value)}", "plan", "-", option, value, "--no-bound", stdin=PLAN)
        for value in ("nan", "1", "5:1", "-1:5", "18446744073709551616:"):
            self.refuse(2, f"--operations: expected FROM:TO, .* not {value}", "show", RECORDING, f"--operations={value}")


class Units(Case):
    """Durations and sizes are written in the same way wherever one is taken."""
    def test_durations(self):
        plain = run("plan", "-", "--limit", "100%", "--no-bound", "--time-budget", "0.1", "--seed", "7", stdin=PLAN)
        self.assertEqual(plain.returncode, 0, plain.stderr)
        for value in ("100ms", "0.1s", "100000us", "0.002min"):
            done = run("plan", "-", "--limit", "100%", "--no-bound", "--time-budget", value, "--seed", "7", stdin=PLAN)
            self.assertEqual((done.returncode, without_times(done.stdout)), (0, without_times(plain.stdout)), value + done.stderr)
        for option, value in (("--layout-time", "200ms"), ("--bound-time", "2s")):
            strategy = ("--strategy", "none") if option == "--layout-time" else ()
            self.assertEqual(run("plan", "-", "--time-budget", "50ms", *strategy, option, value, stdin=PLAN).returncode if not strategy else
                             run("plan", "-", *strategy, option, value, stdin=PLAN).returncode, 0, option)
        self.assertEqual(run("solve", "-", "--time-limit", "500ms", stdin=CSV).returncode, 0)
        for option, value, command in (("--time-budget", "49ms", "plan"), ("--time-budget", "25h", "plan"), ("--time-budget", "5m", "plan"),
                                       ("--remap-time", "1001ms", "plan"), ("--time-limit", "-1s", "solve"), ("--seconds", "99ms", "doctor")):
            self.refuse(2, f"{option}: expected a duration from .*, not '{value}'", command, *(["-"] if command != "doctor" else []), option, value, stdin=CSV)

    def test_sizes(self):
        for value in ("7", "7B", "0.0070K"):
            done = run("solve", "-", "--capacity", value, stdin=CSV)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(run("solve", "-", "--capacity", "6B", stdin=CSV).returncode, 3)
        for value in ("7MB", "7b", "60%", "1.5", "5E"):
            self.refuse(2, rf"--capacity: expected a size from 0 to 2\^62 bytes \(8GiB, 512M\), not '{value}'", "solve", "-", "--capacity", value, stdin=CSV)
        texts = {without_times(run("plan", "-", "--no-bound", "--strategy", "none", "--limit", value, stdin=PLAN).stdout)
                 for value in ("2097152", "2097152B", "2048K", "2048KiB", "2M", "2MiB", "100%", "100.000000%")}
        self.assertEqual(len(texts), 1, texts)
        for value in ("2MB", "2 MiB", "1e6", "1.5", "-2M", "%", "4611686018427387905"):
            self.refuse(2, re.escape(f"--limit: expected bytes, such as 300MiB, or a percentage of the peak load, such as 50%, from 0 to 2^62 bytes, not {value}"),
                        "plan", "-", f"--limit={value}", stdin=PLAN)


class Help(Case):
    def commands(self):
        names = re.findall(r"(?m)^  ([a-z][a-z-]+) ", run("--help").stdout.partition("Subcommands:")[2].partition("Examples:")[0])
        self.assertGreater(len(names), 10)
        return names

    def test_examples(self):
        for command in ("", *self.commands()):
            done = run(*([command] if command else []), "--help")
            examples = done.stdout.partition("\nExamples:\n")[2].splitlines()
            self.assertGreater(len(examples), 0, command)
            for line in examples:
                self.assertTrue(line.startswith(f"  memoptctl {command}".rstrip()), line)
                # Each has only options that there are.
                words = line.partition(" -- ")[0].split()
                known = run(words[1], "--help").stdout
                for word in words[2:]:
                    self.assertTrue(not word.startswith("-") or re.search(rf"[ ,]{re.escape(word)}\b", known), line)

    def test_misspelt(self):
        for words, meant in (((["plan", "x", "--time-buget", "5"], "--time-budget"), (["solve", "--capcity=5"], "--capacity"), (["show", "x", "--stack"], "--stacks"),
                              (["run", "--simm", "h200", "--", "true"], "--sim"), (["record", "-o", "x", "--forse", "--", "true"], "--force"),
                              (["doctor", "--secnds", "5"], "--seconds"), (["status", "--jsn"], "--json"), (["reduce", "x", "-o", "y", "--iteration", "1"], "--iterations"))):
            self.refuse(2, rf"\Amemoptctl: memoptctl {words[0]} has no option --[a-z-]+, did you mean {meant}\?; memoptctl {words[0]} --help lists them\n\Z", *words)
        self.refuse(2, "memoptctl: memoptctl has no option --verson, did you mean --version", "--verson")
        self.refuse(2, r"memoptctl plan has no option --zzzzzzzz; memoptctl plan", "plan", "x", "--zzzzzzzz")
        self.refuse(2, "there is no subcommand pln, did you mean plan", "pln", "x")


class Outputs(Case):
    def files(self):
        return self.path("a.trace", TRACE), self.path("plan.json", PLAN), self.path("a.csv", CSV)

    def test_a_full_disk(self):
        trace, plan, table = self.files()
        lines = (("plan", trace), ("plan", plan, *NONE), ("plan", plan, "--compare", "--strategies", "none", "--no-bound"), ("solve", table),
                 ("solve", table, "--json"), ("solve", table, "-o", "-"), ("solve", "--list"), ("show", RECORDING), ("show", RECORDING, "--json"),
                 ("show", RECORDING, "--operations", "1:"), ("show", RECORDING, "--operations", "1:2"), ("options",), ("frameworks",), ("--help",))
        for line in lines:
            with open("/dev/full", "wb") as full:
                done = self.refuse(1, r"\Amemoptctl: standard output: cannot be written: No space left on device\n\Z", *line, stdout=full)
                self.assertEqual(done.returncode, 1, line)
        for line in (("plan", trace, "--json"), ("plan", trace, "--buffers"), ("plan", plan, *NONE, "--json"), ("plan", plan, *NONE, "--plot"),
                     ("plan", plan, "--compare", "--strategies", "none", "--no-bound", "--json"),
                     ("plan", plan, "--compare", "--strategies", "none", "--no-bound", "--plot"),
                     ("solve", table, "-o"), ("solve", table, "--plot"), ("show", RECORDING, "--trace")):
            self.refuse(1, r"(?m)^memoptctl: /dev/full: can(not|'t) be written: No space left on device$", *line, "/dev/full")

    def test_a_reader_that_went_away(self):
        trace, _, table = self.files()
        for line in (("plan", trace), ("solve", table), ("show", RECORDING), ("show", RECORDING, "--operations", "1:")):
            there, gone = os.pipe()
            os.close(there)
            with os.fdopen(gone, "wb") as pipe:
                # Started so that SIGPIPE ends it, as by a shell, or that it is ignored, as by some programs.
                done = run(*line, stdout=pipe)
                self.assertEqual((done.returncode, done.stderr), (-13, ""), line)
                self.refuse(1, "memoptctl: standard output: cannot be written: Broken pipe", *line, stdout=pipe, restore_signals=False)

    def test_a_recording_takes_no_place_of_a_device(self):
        os.mkfifo(self.path("pipe"))
        self.refuse(1, "pipe: cannot be written: expected a file", "reduce", RECORDING, "-o", self.path("pipe"), "--force")
        self.assertFalse(os.path.isfile(self.path("pipe")))


if __name__ == "__main__":
    cases.main()
