#!/usr/bin/env python3
"""Writes operations of training networks, made from their architectures alone: traces of VGG and ResNet on CIFAR-10, of AlexNet, GoogLeNet,
Inception-ResNet-v2 and deep ResNets on ImageNet, and of translation by LSTMs.

  nets.py NAME [-o FILE] [--iterations N] [OPTION]...    a trace, for replay and for planners
  nets.py NAME --launches [-o FILE] [OPTION]...          an iteration (memopt-plan-2), for plan --recompute
  nets.py --list                                         the names
  nets.py --table [--batch N]                            peak loads beside the published ones
  nets.py --parameters                                   numbers of parameters beside the published ones

Format: one operation a line, `OP POINTER SIZE NANOSECONDS`; Malloc, Free, Read, Mutable (a write) and Layer (a marker). Blocks that
are used before a Malloc exist when the trace begins: parameters, optimiser state, workspaces, and gradients of the step before. With
--launches: one steady step as JSON, which says which accesses are one launch (docs/formats/plan-json.md).
"""
import argparse
import json
import os
import signal
import sys

from model import NETWORKS, SENTENCES, iteration, parameters, peak_load, trace
from recorder import device
from seq2seq import LONGEST

# Peak loads at batch 100, Zhang et al. 2019, Table I. Their MB are MiB: the published trace of VGG-16 peaks at 647.73 MiB.
PUBLISHED_MIB = {"resnet18": 1452, "resnet34": 2824, "resnet50": 4418, "resnet101": 8367,
                 "vgg11": 389, "vgg13": 509, "vgg16": 647, "vgg19": 785}
# Network, whether with what is for training alone, how many were published, and of which model.
PUBLISHED_PARAMETERS = (("alexnet", True, 62378344, "in one column, as in Chainer's example; in two columns 60,965,224"),
                        ("googlenet", False, 6998552, "Caffe's, without auxiliary classifiers"), ("googlenet", True, 13378280, "Caffe's, with both"),
                        ("inception-resnet-v2", True, 55843464, "timm's"), ("resnet50-imagenet", True, 25583592, "Keras's, whose convolutions have biases"))


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return value


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=sorted(NETWORKS), metavar="NAME", help="which network; see --list")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to (default: stdout)")
    parser.add_argument("--batch", type=positive, default=100, help="images or sentences in a batch (default 100)")
    parser.add_argument("--accumulate", type=positive, metavar="N", help="batches in a step (default 1)")
    parser.add_argument("--iterations", type=positive, help="training steps (default 3)")
    parser.add_argument("--launches", action="store_true", help="one steady step with its launches, as JSON")
    parser.add_argument("--inference", action="store_true", help="forward alone, nothing kept for backward; of images")
    parser.add_argument("--length", type=positive, metavar="N", help="words of each sentence (default: another length for each batch of a trace, "
                        f"{LONGEST} with --launches)")
    parser.add_argument("--device", choices=("gtx1080ti", "a100-40g", "h200"), default="gtx1080ti", help="whose roofline (default gtx1080ti)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="print the names")
    what.add_argument("--table", action="store_true", help="print operations and peak load of each, and the published one")
    what.add_argument("--parameters", action="store_true", help="print how many parameters each has, and how many were published")
    options = parser.parse_args()
    if not (options.name or options.list or options.table or options.parameters):
        parser.error("which network? --list names them")
    if options.launches and options.iterations:
        parser.error("--iterations is for traces; --launches writes one")
    for option in "launches", "inference", "length":
        if getattr(options, option) and not options.name:
            parser.error(f"--{option} is of one network: which?")
    if options.length and options.name not in SENTENCES:
        parser.error(f"--length is of sentences; {options.name} has images")
    if options.inference and options.name in SENTENCES:
        parser.error(f"--inference is of images; {options.name} has sentences")
    if options.inference and options.accumulate:
        parser.error("--accumulate is for training; --inference has no gradients")
    return options


def table(batch):
    print(f"{'network':10} {'operations':>10} {'peak MiB':>9} {'published':>9} {'difference':>10}")
    for name, published in PUBLISHED_MIB.items():
        operations = trace(name, batch, 1)
        peak = peak_load(operations) / 2**20
        print(f"{name:10} {len(operations):10} {peak:9.2f} {published:9} {100 * (peak / published - 1):+9.2f}%")


def parameter_table():
    print(f"{'network':19} {'parameters':>11} {'published':>10} {'difference':>10}  published are")
    for name, trains, published, what in PUBLISHED_PARAMETERS:
        count = parameters(name, trains)
        print(f"{name:19} {count:11} {published:10} {100 * (count / published - 1):+9.2f}%  {what}")
    for name in NETWORKS:
        if name not in [row[0] for row in PUBLISHED_PARAMETERS]:
            print(f"{name:19} {parameters(name):11} {'-':>10} {'-':>10}")


def text_of(options):
    """What is written of a network. Raises OSError where the device's preset can't be read."""
    its_device, how = device(options.device), {}
    if options.inference:
        how["trains"] = False
    if options.name in SENTENCES:
        how["length"] = options.length or (LONGEST if options.launches else None)
    if options.launches:
        return json.dumps(iteration(options.name, options.batch, its_device, options.accumulate or 1, **how)) + "\n"
    operations = trace(options.name, options.batch, options.iterations or 3, its_device, options.accumulate or 1, **how)
    return "".join(f"{verb} {pointer:#x} {size} {time}\n" for verb, pointer, size, time in operations)


def write(text, output):
    if output:
        try:
            with open(output, "w", encoding="ascii") as file:
                file.write(text)
        except OSError as error:
            sys.exit(f"nets.py: {output}: {error.strerror}")
        return
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # nets.py … | head
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        os.close(1)  # or it would be said once more at the end
        sys.exit(f"nets.py: standard output: {error.strerror}")


def main():
    options = parse()
    if options.list:
        print("\n".join(NETWORKS))
    elif options.table:
        table(options.batch)
    elif options.parameters:
        parameter_table()
    else:
        try:
            text = text_of(options)
        except OSError as error:
            sys.exit(f"nets.py: {error.filename}: {error.strerror}")
        write(text, options.output)
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
