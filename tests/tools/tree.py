"""What the checks share: which files belong to the tree, and how findings are reported."""
import os
import sys

SKIPPED_FOLDERS = {"build", ".git", ".cache", "__pycache__", "node_modules"}
SOURCE_ENDINGS = (".h", ".hpp", ".cuh", ".cpp", ".cc", ".c", ".cu", ".S", ".inc")
SKIP = 77  # exit code that ctest takes for a skip


def files(root, endings=("",)):
    """Paths relative to root, sorted, of the tree's own files with one of the endings. Independent of git: a plain copy is checked too."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS and not f.startswith("cmake-build"))
        for name in names:
            if name.endswith(endings):
                found.append(os.path.relpath(os.path.join(folder, name), root))
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def root_argument():
    if len(sys.argv) < 2 or not os.path.isdir(sys.argv[1]):
        sys.exit(f"usage: {os.path.basename(sys.argv[0])} ROOT")
    return sys.argv[1]


def report(findings, checked):
    """Prints the findings, or what was checked, and ends the program."""
    for finding in findings:
        print(finding)
    if not checked:
        print("nothing was found to check: the check itself is broken")
    print(f"{checked} checked, {len(findings)} findings")
    sys.exit(1 if findings or not checked else 0)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)
