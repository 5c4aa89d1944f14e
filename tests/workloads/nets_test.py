#!/usr/bin/env python3
"""The generated traces of networks: peaks as published, consistent operations, times that grow; and the same as launches."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import cases

NETS = os.path.join(os.environ["TEST_NETS"], "nets.py")
NAMES = ["resnet18", "resnet34", "resnet50", "resnet101", "vgg11", "vgg13", "vgg16", "vgg19"]
IMAGENET = ["resnet50-imagenet", "resnet200-imagenet", "resnet992-imagenet"]
# Zhang et al. 2019, Table I, in MiB.
PUBLISHED = dict(zip(NAMES, (1452, 2824, 4418, 8367, 389, 509, 647, 785)))
LINE = re.compile(r"(Malloc|Free|Read|Mutable|Layer) (0x[0-9a-f]+) ([1-9][0-9]*) ([0-9]+)")


def nets(*arguments):
    return subprocess.run([sys.executable, NETS, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def operations(*arguments):
    done = nets(*arguments)
    assert done.returncode == 0, done.stderr
    lines = [LINE.fullmatch(line) for line in done.stdout.splitlines()]
    assert all(lines), "a line is not an operation"
    return [(m[1], int(m[2], 16), int(m[3]), int(m[4])) for m in lines]


class Nets(unittest.TestCase):
    def test_lists_all(self):
        self.assertEqual(sorted(nets("--list").stdout.split()), sorted(NAMES + IMAGENET))

    def test_peaks_are_within_five_percent_of_the_published(self):
        rows = [line.split() for line in nets("--table").stdout.splitlines()[1:]]
        self.assertEqual(sorted(row[0] for row in rows), sorted(NAMES))
        for name, _, peak, published, difference in rows:
            with self.subTest(network=name):
                self.assertEqual(int(published), PUBLISHED[name])
                self.assertLess(abs(float(peak) / PUBLISHED[name] - 1), 0.05)
                self.assertAlmostEqual(float(difference.rstrip("%")), 100 * (float(peak) / PUBLISHED[name] - 1), delta=0.01)

    def test_blocks_are_allocated_used_and_freed_in_order(self):
        """No overlap of live blocks, no use after a free, and the load that --table tells, by an own count."""
        for name in "resnet18", "vgg16":
            with self.subTest(network=name):
                trace = operations(name, "--iterations", "2")
                live, born, load_before = {}, set(), 0
                for verb, pointer, size, _ in trace:
                    if verb == "Malloc":
                        self.assertNotIn(pointer, live)
                        live[pointer] = size
                        born.add(pointer)
                        continue
                    if pointer not in born and pointer not in live:
                        live[pointer] = size
                        load_before += size
                    self.assertEqual(live.get(pointer), size, f"{verb} of a block that is not there, or of another size")
                    if verb == "Free":
                        del live[pointer]
                        born.add(pointer)
                load = peak = load_before
                addresses = []
                for verb, pointer, size, _ in trace:
                    addresses.append((pointer, size))
                    load += size if verb == "Malloc" else -size if verb == "Free" else 0
                    peak = max(peak, load)
                row = next(line.split() for line in nets("--table").stdout.splitlines() if line.startswith(name))
                self.assertEqual(f"{peak / 2**20:.2f}", row[2])
                # Places are shared only by blocks of one rounded size.
                places = sorted({(p, -(-s // 512) * 512) for p, s in addresses})
                for (p, s), (q, _) in zip(places, places[1:]):
                    self.assertLessEqual(p + s, q)

    def test_another_device_is_faster_and_does_the_same(self):
        slow, same, fast = (operations("vgg11", *device) for device in ((), ("--device", "gtx1080ti"), ("--device", "h200")))
        self.assertEqual(slow, same)
        self.assertEqual([operation[:3] for operation in slow], [operation[:3] for operation in fast])
        calls = 10000 * sum(verb in ("Malloc", "Free") for verb, *_ in slow[:-1])
        # 5.9 times the operations in a time, 9.9 times the bytes, kernels that begin 1.2 times faster.
        kernels = (slow[-1][3] - calls) / (fast[-1][3] - calls)
        self.assertGreater(kernels, 1.2)
        self.assertLess(kernels, 9.9)
        unknown = nets("vgg11", "--device", "abacus")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("h200", unknown.stderr)

    def test_every_block_is_written_before_it_is_read(self):
        for name in NAMES:
            with self.subTest(network=name):
                fresh = set()
                for verb, pointer, _, _ in operations(name, "--batch", "1"):
                    if verb == "Malloc":
                        fresh.add(pointer)
                    elif verb in ("Mutable", "Free"):
                        fresh.discard(pointer)
                    elif verb == "Read":
                        self.assertNotIn(pointer, fresh)

    def test_batches_of_a_step_allocate_alike_before_one_update(self):
        one, three = (operations("vgg11", "--batch", "2", "--iterations", "1", "--accumulate", count) for count in "13")
        sizes = [[(verb, size) for verb, _, size, _ in trace if verb in ("Malloc", "Free")] for trace in (one, three)]
        self.assertEqual(sizes[1], 3 * sizes[0])
        last_free = max(i for i, operation in enumerate(one) if operation[0] == "Free")
        update = [operation[:3:2] for operation in one[last_free + 1:]]
        self.assertEqual([operation[:3:2] for operation in three[-len(update):]], update)
        self.assertLess(len(three), 3 * len(one))

    def test_iterations_repeat_and_balance(self):
        trace = operations("resnet34", "--batch", "2", "--iterations", "3")
        period = len(trace) // 3
        self.assertEqual(len(trace), 3 * period)
        shape = [[(verb, size) for verb, _, size, _ in trace[i * period:(i + 1) * period]] for i in range(3)]
        self.assertEqual(shape[0], shape[1])
        self.assertEqual(shape[1], shape[2])
        count = collections.Counter(verb for verb, _ in shape[0])
        self.assertEqual(count["Malloc"], count["Free"])
        self.assertGreater(count["Read"], count["Malloc"])

    def test_times_never_go_back_and_grow_with_the_batch(self):
        ends = []
        for batch in "10", "100":
            times = [time for _, _, _, time in operations("vgg11", "--iterations", "1", "--batch", batch)]
            self.assertEqual(times, sorted(times))
            ends.append(times[-1])
        # More work, but weights and the calls' own times stay as they are.
        self.assertGreater(ends[1], 1.5 * ends[0])

    def test_the_same_every_time(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace")
            self.assertEqual(nets("vgg13", "-o", path).returncode, 0)
            with open(path, encoding="ascii") as file:
                self.assertEqual(file.read(), nets("vgg13").stdout)

    def test_bad_arguments_are_named(self):
        for arguments, words in ((["vgg12"], "vgg12"), ([], "which network"), (["vgg11", "--batch", "0"], "--batch"),
                                 (["vgg11", "--launches", "--iterations", "2"], "--iterations is for traces"),
                                 (["vgg11", "-o", "/nowhere/at/all"], "/nowhere/at/all: No such file")):
            with self.subTest(arguments=arguments):
                done = nets(*arguments)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stdout, "")


class Launches(unittest.TestCase):
    def iteration(self, *arguments):
        done = nets(*arguments, "--launches")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_steady_step_of_the_trace(self):
        """What is allocated, freed and written is the trace's second step; only statistics are read and changed by launches of their own."""
        for arguments, normalisations in ((("vgg11", "--batch", "7"), 9), (("resnet18", "--batch", "3", "--device", "h200", "--accumulate", "2"), 2 * 19),
                                          (("resnet50-imagenet", "--batch", "2"), 53)):
            with self.subTest(arguments=arguments):
                plan = self.iteration(*arguments)
                size = {block["id"]: block["size"] for block in plan["blocks"]}
                trace = [operation for operation in operations(*arguments, "--iterations", "2") if operation[0] != "Layer"]
                step = trace[len(trace) // 2:]
                self.assertEqual([(kind, size[block]) for kind, block, *_ in plan["ops"] if kind in "mf"],
                                 [("m" if verb == "Malloc" else "f", of) for verb, _, of, _ in step if verb in ("Malloc", "Free")])
                self.assertEqual(collections.Counter(size[op[1]] for op in plan["ops"] if op[0] == "w"),
                                 collections.Counter(of for verb, _, of, _ in step if verb == "Mutable"))
                self.assertEqual(sum(op[0] == "r" for op in plan["ops"]), sum(verb == "Read" for verb, *_ in step) + 4 * normalisations)
                # Some microseconds for each launch more; in a trace each access has a whole number of nanoseconds.
                longer = plan["period"] - (trace[-1][3] - trace[len(trace) // 2 - 1][3])
                self.assertLess(abs(longer - normalisations * (2500 if "h200" in arguments else 3000)), 0.02 * plan["period"])

    def test_each_operation_is_within_the_life_of_its_instance(self):
        for name in "vgg16", "resnet34":
            with self.subTest(network=name):
                plan = self.iteration(name, "--batch", "2")
                persistent = {block["id"] for block in plan["blocks"] if block.get("persistent")}
                gradients = {op[1] for op in plan["ops"] if op[0] == "f" and op[3:] == [1]}
                self.assertTrue(gradients)
                live = {(block, 1) for block in gradients}    # of the step before
                for kind, block, _, *age in plan["ops"]:
                    instance = block, *(age or [0])
                    if kind == "m":
                        self.assertNotIn(instance, live)
                        live.add(instance)
                    elif kind == "f":
                        live.remove(instance)
                    else:
                        self.assertTrue(block in persistent or instance in live)
                self.assertEqual(live, {(block, 0) for block in gradients})
                accesses = [i for i, op in enumerate(plan["ops"]) if op[0] in "rw"]
                self.assertEqual(accesses, [i for first, count in plan["launches"] for i in range(first, first + count)])

    def test_what_makes_an_activation_changes_nothing_that_stays(self):
        plan = self.iteration("resnet18", "--batch", "2")
        persistent = {block["id"] for block in plan["blocks"] if block.get("persistent")}
        written = set()
        changing = 0
        for first, count in plan["launches"]:
            ops = plan["ops"][first:first + count]
            reads, writes = ({op[1] for op in ops if op[0] == kind} for kind in "rw")
            changes = reads & writes & persistent
            self.assertFalse(changes and writes - persistent - written, f"launch {first}")
            changing += bool(changes)
            written |= writes
        self.assertEqual(changing, 19 + 2 * 78)    # statistics; momentum and weight of each parameter


if __name__ == "__main__":
    cases.main()
