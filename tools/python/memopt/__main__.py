"""python -m memopt: memoptctl, and `run` for Python programs."""
import argparse
import os
import sys

from memopt._programs import memoptctl
from memopt._version import __version__

USAGE = """usage: python -m memopt run [OPTION...] SCRIPT.py [ARGUMENT...]
       python -m memopt run [OPTION...] -m MODULE [ARGUMENT...]
       python -m memopt run [OPTION...] -- COMMAND [ARGUMENT...]
       python -m memopt COMMAND [ARGUMENT...]

The first two run a Python program under memopt by this very interpreter. All else is memoptctl's:
"""


def run_parser():
    """Options of `memoptctl run`, which stand before the script: what follows it is the script's own."""
    parser = argparse.ArgumentParser(prog="python -m memopt run", add_help=False, allow_abbrev=False)
    for flag in ("--disable", "--native", "--no-config", "--help", "-h"):
        parser.add_argument(flag, action="store_true")
    for option in ("--sim", "--limit", "--host-limit"):
        parser.add_argument(option)
    return parser


def split(words):
    """Our options of `run`, and the program behind them."""
    parser = run_parser()
    values = {option for action in parser._actions if action.nargs is None for option in action.option_strings}
    for at, word in enumerate(words):
        if word == "--":
            return words[:at], words[at + 1:]
        before = words[at - 1] if at else ""
        if before in values:
            continue
        if not word.startswith("-") or word in ("-m", "-c", "-"):
            return words[:at], [sys.executable, *words[at:]]
    return words, []


def command(words):
    """What is to be executed for `python -m memopt` with these words."""
    if not words or words[0] != "run":
        return [memoptctl(), *words]
    options, program = split(words[1:])
    return [memoptctl(), "run", *options, *(["--", *program] if program else [])]


def execute(words):
    try:
        os.execv(words[0], words)
    except OSError as error:
        sys.exit(f"memopt: {words[0]}: {error.strerror}")


def main():
    words = sys.argv[1:]
    if words == ["--version"]:
        print(f"memopt {__version__}")
        return
    if words in ([], ["--help"], ["-h"]):
        print(USAGE, flush=True)
        words = ["--help"]
    execute(command(words))


def program():
    """The console script `memoptctl`."""
    execute([memoptctl(), *sys.argv[1:]])


if __name__ == "__main__":
    main()
