#!/usr/bin/env python3
"""The preloaded library must need nothing beyond libc's own libraries: it is loaded into programs that have other versions of the rest.

usage: check_needed.py LIBRARY
"""
import re
import shutil
import subprocess
import sys

import tree

ALLOWED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
           "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def needed(library):
    shown = subprocess.run(["readelf", "--dynamic", "--wide", library], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", shown)


def findings(library):
    return [f"{library} needs {name}" for name in needed(library) if name not in ALLOWED]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not shutil.which("readelf"):
        tree.skip("readelf is not installed (binutils)")
    tree.report(findings(sys.argv[1]), len(needed(sys.argv[1])))


if __name__ == "__main__":
    main()
