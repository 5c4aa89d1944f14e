#!/usr/bin/env python3
"""Shell scripts parse, stop at errors, may be run, and (where it is installed) please shellcheck."""
import os
import shutil
import subprocess

import tree


def scripts(root):
    found = []
    for path in tree.files(root):
        with open(os.path.join(root, path), "rb") as file:
            first = file.readline(100)
        if path.endswith(".sh") or (first.startswith(b"#!") and first.rstrip().endswith((b"bash", b"sh"))):
            found.append(path)
    return found


def findings(root, paths):
    found = []
    for path in paths:
        parsed = subprocess.run(["bash", "-n", path], cwd=root, capture_output=True, text=True)
        found += [line for line in parsed.stderr.splitlines()]
        text = tree.read(root, path)
        if text.startswith("#!"):
            if "set -euo pipefail" not in text:
                found.append(f"{path}: without set -euo pipefail")
            if not os.access(os.path.join(root, path), os.X_OK):
                found.append(f"{path}: has no run bit")
        if shutil.which("shellcheck"):
            checked = subprocess.run(["shellcheck", "-x", "-f", "gcc", path], cwd=root, capture_output=True, text=True)
            found += checked.stdout.splitlines()
    return found


def main():
    root = tree.root_argument()
    paths = scripts(root)
    if not shutil.which("shellcheck"):
        print("shellcheck is not installed: only parsed")
    tree.report(findings(root, paths), len(paths))


if __name__ == "__main__":
    main()
