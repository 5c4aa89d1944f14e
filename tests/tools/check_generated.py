#!/usr/bin/env python3
"""A generated page is what its command prints now.

usage: check_generated.py PAGE COMMAND...
"""
import subprocess
import sys

import tree


def findings(page, command):
    printed = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    try:
        with open(page, encoding="utf-8") as file:
            committed = file.read()
    except OSError as error:
        return [f"{page}: {error.strerror}; make it by: {' '.join(command)} > {page}"]
    # A page may begin with words of its own; the generated part is its end.
    if printed.strip() and committed.endswith(printed):
        return []
    return [f"{page} is out of date: it does not end with what this prints: {' '.join(command)}"]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    tree.report(findings(sys.argv[1], sys.argv[2:]), 1)


if __name__ == "__main__":
    main()
