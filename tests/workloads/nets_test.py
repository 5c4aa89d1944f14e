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
sys.path.insert(0, os.environ["TEST_NETS"])

import blocks  # noqa: E402 (the path is set above)
import layers  # noqa: E402
import model  # noqa: E402
import seq2seq  # noqa: E402
from network import Network  # noqa: E402
from recorder import LaunchRecorder, Recorder  # noqa: E402

NAMES = ["resnet18", "resnet34", "resnet50", "resnet101", "vgg11", "vgg13", "vgg16", "vgg19"]
IMAGENET = ["resnet50-imagenet", "resnet200-imagenet", "resnet992-imagenet", "alexnet", "googlenet", "inception-resnet-v2"]
SMALLER = [*NAMES, *(name for name in IMAGENET if name != "resnet992-imagenet"), "seq2seq"]    # that are written in a second
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
        self.assertEqual(sorted(nets("--list").stdout.split()), sorted(NAMES + IMAGENET + ["seq2seq"]))

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
        for name in "resnet18", "vgg16", "googlenet", "inception-resnet-v2", "seq2seq":
            with self.subTest(network=name):
                trace = operations(name, "--iterations", "2", *(() if name in NAMES else ("--batch", "2")))
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
                if name in NAMES:
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
        for name, *more in [[name] for name in SMALLER] + [[name, "--inference"] for name in ("resnet18", *IMAGENET[:2], *IMAGENET[3:])]:
            with self.subTest(network=name, more=more):
                fresh = set()
                for verb, pointer, _, _ in operations(name, "--batch", "1", *more):
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
                                 (["seq2seq", "--inference"], "--inference is of images; seq2seq has sentences"), (["--inference", "--list"], "--inference is of one network"),
                                 (["googlenet", "--inference", "--accumulate", "2"], "--accumulate is for training; --inference has no gradients"),
                                 (["alexnet", "--length", "9"], "--length is of sentences; alexnet has images"), (["seq2seq", "--length", "0"], "0 is not a number above 0"),
                                 (["--list", "--parameters"], "not allowed with argument"),
                                 (["vgg11", "-o", "/nowhere/at/all"], "/nowhere/at/all: No such file")):
            with self.subTest(arguments=arguments):
                done = nets(*arguments)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stdout, "")


    def test_as_many_parameters_as_published(self):
        rows = [line.split()[:4] for line in nets("--parameters").stdout.splitlines()[1:]]
        self.assertEqual(set(row[0] for row in rows), set(NAMES + IMAGENET + ["seq2seq"]))
        for name, count, published, difference in rows:
            if published != "-":
                self.assertLess(abs(int(count) / int(published) - 1), 0.01, name)
                self.assertEqual(difference, f"{100 * (int(count) / int(published) - 1):+.2f}%")
        # Krizhevsky et al.'s two columns: filters of convolutions 2, 4 and 5 see half of the channels.
        self.assertEqual(model.parameters("alexnet") - 5 ** 2 * 48 * 256 - 3 ** 2 * 192 * (384 + 256), 60965224)
        # GoogLeNet, with both classifiers beside the way and without: 13.4 and 7.0 million.
        self.assertEqual([model.parameters("googlenet", trains) for trains in (True, False)], [13378280, 6998552])
        self.assertEqual(model.parameters("inception-resnet-v2"), 55843464)
        # As many as in Chainer's example (embeddings, 2 x 3 LSTMs, the last layer), and those of attention.
        units, words = 1024, 40002
        self.assertEqual(model.parameters("seq2seq"), 2 * words * units + 6 * 8 * (units + 1) * units + (units + 1) * words + (2 * units + 1) * units)

    def test_peak_of_what_a_small_network_allocates(self):
        """Counted by hand: a batch of 2, images of 3 x 4 x 4, two branches of one 1 x 1 filter each, and a linear layer of 5."""
        def made(trains):
            network = Network(recorder, 2, trains)
            network.take_images(4)
            network.layers += [blocks.Branches(network, [layers.Convolution(network, 3, 1, 1)], [layers.Convolution(network, 3, 1, 1)]),
                               layers.Linear(network, 2 * 16, 5), layers.Loss(network)]
            return network
        images, labels, one, both, end = 4 * 2 * 3 * 16, 4 * 2, 4 * 2 * 16, 4 * 2 * 2 * 16, 4 * 2 * 5
        convolutions, matrix, bias = 4 * 2 * (3 + 1), 4 * 2 * 16 * 5, 4 * 5
        parameters = convolutions + matrix + bias
        recorder = Recorder()
        made(True).step()
        # When the linear layer ends backward: its input and the gradient of that, its output's gradient, its parameters' gradients, and scratch for the largest.
        self.assertEqual(model.peak_load(recorder.operations), images + labels + 3 * parameters + both + both + end + matrix + bias + matrix)
        recorder = Recorder()
        made(False).infer()
        # One branch's end, and the other's convolution with its workspace.
        self.assertEqual(model.peak_load(recorder.operations), parameters + images + labels + 2 * one + (8 << 20))

    def test_inference_frees_all_and_keeps_nothing_for_backward(self):
        """Sekiyama et al. (2018) printed 10,169,344 bytes for AlexNet, and 12,202,496 for GoogLeNet: of one image, in units of 512 bytes."""
        for name, channels, height, filters, outputs, printed in (("alexnet", 3, 227, 96, 55, 10169344), ("googlenet", 3, 224, 64, 112, 12202496),
                                                                  ("resnet50-imagenet", 3, 224, None, None, None), ("inception-resnet-v2", 3, 299, None, None, None)):
            with self.subTest(network=name):
                trace = operations(name, "--inference", "--batch", "1", "--iterations", "1")
                load = peak = rounded = 0
                for verb, _, size, _ in trace:
                    change = {"Malloc": 1, "Free": -1}.get(verb, 0)
                    load, rounded = load + change * size, rounded + change * -(-size // 512) * 512
                    peak = max(peak, rounded)
                self.assertEqual(load, 0)
                if printed:
                    self.assertEqual(peak, printed)
                    # The image and its label, what the first convolution puts out, and its workspace.
                    self.assertEqual(peak, sum(-(-4 * floats // 512) * 512 for floats in (channels * height ** 2, 1, filters * outputs ** 2, 2 << 20)))
                training = operations(name, "--batch", "1", "--iterations", "1")
                self.assertLess(model.peak_load(trace), model.peak_load(training) / 3)

    def test_sentences_are_longer_in_one_minibatch_than_in_another(self):
        trace = operations("seq2seq", "--batch", "2", "--iterations", "4")
        # Words are copied in first: source, the decoder's, and what is to come, of two sentences; the loss of each word comes later.
        sizes = [size for verb, _, size, _ in trace if verb == "Malloc" and size % 8 == 0 and size <= 8 * (seq2seq.LONGEST + 1)]
        lengths = [tuple(size // 8 for size in sizes[i:i + 3]) for i in range(0, len(sizes), 4)]
        self.assertEqual(sizes[2::4], sizes[3::4])
        self.assertEqual(len(lengths), 4)
        self.assertGreater(len(set(lengths)), 2)
        for source, fed, expected in lengths:
            self.assertEqual(fed, expected)
            self.assertTrue(seq2seq.SHORTEST <= source <= seq2seq.LONGEST and 2 <= fed <= seq2seq.LONGEST + 1)
        one, two = (operations("seq2seq", "--batch", "2", "--iterations", "2", "--length", length) for length in "12")
        self.assertEqual(len(one) % 2, 0)
        self.assertEqual([operation[::2] for operation in one[:len(one) // 2]][:20], [operation[::2] for operation in one[len(one) // 2:]][:20])
        self.assertLess(len(one), len(two))

    def test_gradients_of_what_is_used_more_than_once_are_added_in_place(self):
        """An LSTM's weights are, in all positions but the last."""
        recorder = LaunchRecorder()
        network = seq2seq.Seq2seq(recorder, 2, 3)
        recorder.begin_step()
        network.run_batch()
        gradients = {parameter.new_gradient for parameter in network.parameters}
        self.assertNotIn(None, gradients)
        changed = collections.Counter()
        for kind, touched, _ in recorder.steps[0]:
            if kind == "launch":
                reads, writes = ({block for verb, block in touched if verb == which} for which in "rw")
                changed.update(reads & writes & gradients)
        # Source and target have 3 and 4 positions.
        expected = collections.Counter({network._source.table.new_gradient: 1, network._target.table.new_gradient: 1})
        for lstms, positions in (network._encoder, 3), (network._decoder, 4):
            for lstm in lstms:
                expected.update({parameter.new_gradient: positions - 1 for parameter in (lstm.of_input, lstm.of_output, lstm.bias)})
        self.assertEqual(changed, expected)


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
        for name in "vgg16", "resnet34", "alexnet", "googlenet", "inception-resnet-v2", "seq2seq":
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


@unittest.skipUnless("MEMOPTCTL" in os.environ, "memoptctl is not in this build: nothing is planned")
class Planned(unittest.TestCase):
    def test_every_network_is_planned(self):
        """Its iteration with launches by what computes again, its trace by a layout."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "network")
            for name, *more in [[name] for name in SMALLER] + [[name, "--inference"] for name in IMAGENET if name != "resnet992-imagenet"]:
                length = ("--length", "4") if name == "seq2seq" else ()
                peak = model.peak_load(operations(name, "--batch", "2", *length, *more))
                for written, planned in ((("--launches",), ("--recompute", "--limit", "100%", "--time-budget", "0.05", "--no-bound")), ((), ("--strategy", "layout"))):
                    with self.subTest(network=name, more=more, written=written):
                        done = nets(name, "--batch", "2", *length, *more, *written, "-o", path)
                        self.assertEqual(done.returncode, 0, done.stderr)
                        done = subprocess.run([os.environ["MEMOPTCTL"], "plan", path, *planned], capture_output=True, text=True, check=False)
                        self.assertEqual(done.returncode, 0, done.stderr)
                        if written:
                            self.assertIn(f"{peak / 2**20:.2f} MiB", re.search(r"(?m)^peak load.*", done.stdout).group())
                        else:
                            self.assertIn(f"({peak} bytes)", re.search(r"(?m)^peak load.*", done.stdout).group())


if __name__ == "__main__":
    cases.main()
