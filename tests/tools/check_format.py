#!/usr/bin/env python3
"""C++ and CUDA sources are as clang-format 14 leaves them. Another version formats differently, so it is not asked."""
import re
import shutil
import subprocess

import tree

VERSION = "14"


def clang_format():
    """The program of the right version, or None and the reason."""
    reason = f"clang-format {VERSION} is not installed"
    for name in (f"clang-format-{VERSION}", "clang-format"):
        program = shutil.which(name)
        if not program:
            continue
        version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
        found = re.search(r"version (\d+)", version)
        if found and found.group(1) == VERSION:
            return program, None
        reason = f"{name} is version {found.group(1) if found else version.strip()}, the tree is formatted by {VERSION}"
    return None, reason


def findings(root, program, paths):
    shown = subprocess.run([program, "--dry-run", "--style=file"] + paths, cwd=root, capture_output=True, text=True)
    if shown.returncode != 0 and not shown.stderr:
        return [f"{program} failed: exit code {shown.returncode}"]
    badly = sorted({line.split(":")[0] for line in shown.stderr.splitlines() if "[-Wclang-format-violations]" in line})
    # Anchored: the lines of code that it quotes may say "error:" too.
    other = [line for line in shown.stderr.splitlines() if re.match(r"(?:\S+:\d+:\d+: )?(?:fatal )?error: |\S*clang-format\S*: ", line)]
    return [f"{path}: run clang-format -i on it" for path in badly] + other


def main():
    root = tree.root_argument()
    program, reason = clang_format()
    if not program:
        tree.skip(reason)
    paths = tree.files(root, (".h", ".hpp", ".cuh", ".cpp", ".cc", ".c", ".cu"))
    tree.report(findings(root, program, paths) if paths else [], len(paths))


if __name__ == "__main__":
    main()
