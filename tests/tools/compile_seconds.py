#!/usr/bin/env python3
"""Prints the processor seconds that compiling takes, without a cache.

usage: compile_seconds.py BUILD PART... [-- OPTION...]

PART: of the path of a source, or of its object file: the first in BUILD's compile_commands.json that has it. The options come last on each
command line. Nothing is kept. Of a whole build: `CCACHE_DISABLE=1 bash -c 'time ninja -C BUILD'`."""
import json
import os
import resource
import shlex
import subprocess
import sys


def command_of(commands, part):
    for entry in commands:
        words = shlex.split(entry["command"])
        if part in entry["file"] or part in words[words.index("-o") + 1]:
            words[words.index("-o") + 1] = os.devnull
            return words, entry["directory"]
    sys.exit(f"compile_seconds.py: no command has '{part}' in its source or object")


def main():
    arguments = sys.argv[1:]
    options = arguments[arguments.index("--") + 1:] if "--" in arguments else []
    arguments = arguments[:arguments.index("--")] if "--" in arguments else arguments
    if len(arguments) < 2:
        sys.exit(__doc__)
    try:
        with open(os.path.join(arguments[0], "compile_commands.json"), encoding="utf-8") as file:
            commands = json.load(file)
    except OSError as error:
        sys.exit(f"compile_seconds.py: {error}")
    for part in arguments[1:]:
        words, folder = command_of(commands, part)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = subprocess.run(words + options, cwd=folder, env={**os.environ, "CCACHE_DISABLE": "1"}, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        print(f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before:6.1f}  {part}", flush=True)


if __name__ == "__main__":
    main()
