#!/usr/bin/env python3
"""Every room has a README.md whose first line says what it is for and what it may include."""
import os

import check_layers
import tree

ROOMS = ["preload", "agent", "shm", "planner", "tools", "tools/memoptctl", "integration/cudasim", "integration/workloads",
         "integration/gpu", "tests", *(room for room in check_layers.RULES if room.startswith("planner/"))]


def findings(root, rooms=None):
    found = []
    for room in rooms or ROOMS:
        if not os.path.isdir(os.path.join(root, room)):
            found.append(f"{room}: the folder is missing")
            continue
        path = os.path.join(room, "README.md")
        if not os.path.exists(os.path.join(root, path)):
            found.append(f"{path} is missing")
            continue
        first = tree.read(root, path).split("\n", 1)[0].strip("# ")
        if len(first) < 40 or "include" not in first:
            found.append(f"{path}: its first line must say what the folder is for and what it may include, not: {first!r}")
    return found


if __name__ == "__main__":
    tree.report(findings(tree.root_argument()), len(ROOMS))
