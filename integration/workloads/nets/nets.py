#!/usr/bin/env python3
"""Writes operation traces of VGG and ResNet training on CIFAR-10, and of deep ResNets on ImageNet, made from the architectures alone.

  nets.py NAME [-o FILE] [--batch N] [--accumulate N] [--iterations N] [--device NAME]    a trace, for replay and for planners
  nets.py NAME --launches [-o FILE] [--batch N] [--accumulate N] [--device NAME]            an iteration (memopt-plan-2), for plan --recompute
  nets.py --list                                                                            the names
  nets.py --table [--batch N]                                                               peak loads beside the published ones

Format: one operation a line, `OP POINTER SIZE NANOSECONDS`; Malloc, Free, Read, Mutable (a write) and Layer (a marker). Blocks that
are used before a Malloc exist when the trace begins: parameters, optimiser state, workspaces, and gradients of the step before. With
--launches: one steady step as JSON, which says which accesses are one launch (docs/formats/plan-json.md).
"""
import argparse
import json
import os
import signal
import sys

from model import NETWORKS, peak_load, training_iteration, training_trace
from recorder import device

# Peak loads at batch 100, Zhang et al. 2019, Table I. Their MB are MiB: the published trace of VGG-16 peaks at 647.73 MiB.
PUBLISHED_MIB = {"resnet18": 1452, "resnet34": 2824, "resnet50": 4418, "resnet101": 8367,
                 "vgg11": 389, "vgg13": 509, "vgg16": 647, "vgg19": 785}


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return value


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=sorted(NETWORKS), metavar="NAME", help="which network; see --list")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to (default: stdout)")
    parser.add_argument("--batch", type=positive, default=100, help="images in a step (default 100)")
    parser.add_argument("--accumulate", type=positive, default=1, metavar="N", help="batches in a step (default 1)")
    parser.add_argument("--iterations", type=positive, help="training steps (default 3)")
    parser.add_argument("--launches", action="store_true", help="one steady step with its launches, as JSON")
    parser.add_argument("--device", choices=("gtx1080ti", "a100-40g", "h200"), default="gtx1080ti", help="whose roofline (default gtx1080ti)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="print the names")
    what.add_argument("--table", action="store_true", help="print operations and peak load of each, and the published one")
    options = parser.parse_args()
    if not (options.name or options.list or options.table):
        parser.error("which network? --list names them")
    if options.launches and options.iterations:
        parser.error("--iterations is for traces; --launches writes one")
    if options.launches and not options.name:
        parser.error("--launches is of one network: which?")
    return options


def table(batch):
    print(f"{'network':10} {'operations':>10} {'peak MiB':>9} {'published':>9} {'difference':>10}")
    for name, published in PUBLISHED_MIB.items():
        trace = training_trace(name, batch, 1)
        peak = peak_load(trace) / 2**20
        print(f"{name:10} {len(trace):10} {peak:9.2f} {published:9} {100 * (peak / published - 1):+9.2f}%")


def main():
    options = parse()
    if options.list:
        print("\n".join(NETWORKS))
    elif options.table:
        table(options.batch)
    else:
        try:
            its_device = device(options.device)
        except OSError as error:
            sys.exit(f"nets.py: {error.filename}: {error.strerror}")
        if options.launches:
            text = json.dumps(training_iteration(options.name, options.batch, its_device, options.accumulate)) + "\n"
        else:
            trace = training_trace(options.name, options.batch, options.iterations or 3, its_device, options.accumulate)
            text = "".join(f"{verb} {pointer:#x} {size} {time}\n" for verb, pointer, size, time in trace)
        if options.output:
            try:
                with open(options.output, "w", encoding="ascii") as file:
                    file.write(text)
            except OSError as error:
                sys.exit(f"nets.py: {options.output}: {error.strerror}")
        else:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # nets.py … | head
            try:
                sys.stdout.write(text)
                sys.stdout.flush()
            except OSError as error:
                os.close(1)  # or it would be said once more at the end
                sys.exit(f"nets.py: standard output: {error.strerror}")
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
