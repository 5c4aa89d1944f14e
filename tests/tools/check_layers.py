#!/usr/bin/env python3
"""Fails on an #include, or a CMake link, that goes up the layers.

preload -> agent -> shm <- planner; tools -> planner, shm; the simulator knows nothing of memopt and memopt nothing of it;
nothing includes integration or tests. The workload that replays recordings reads them with the planner's reader.
"""
import os
import re

import tree

# Each may include those before it.
AGENT_ROOMS = ["agent/process", "agent/plan", "agent/link", "agent/order", "agent/recording", "agent/memory", "agent/operations",
               "agent/status"]
# Room -> rooms whose files it may include, beside its own. A file belongs to the longest prefix.
RULES = {
    "preload": {"agent", "shm"},
    "agent": {"shm", *AGENT_ROOMS},
    **{room: {"shm", "agent/process/driver.h", *AGENT_ROOMS[:at]} for at, room in enumerate(AGENT_ROOMS)},
    "shm": set(),
    "planner": {"shm"},
    "tools": {"planner", "shm"},
    "integration/cudasim": set(),
    "integration/workloads": {"integration/cudasim", "planner", "shm"},
    "integration/gpu": {"integration/cudasim"},
    "tests": {"preload", "agent", "shm", "planner", "tools", "integration/cudasim", "integration/workloads", "integration/gpu"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
TARGET = re.compile(r"^\s*add_(?:library|executable)\(\s*([\w.-]+)", re.MULTILINE)
LINK = re.compile(r"^\s*target_link_libraries\(\s*([\w.-]+)([^)]*)\)", re.MULTILINE)

# memoptctl's rooms -> what each may include beside shm.
MEMOPTCTL_ROOMS = {
    "common": [], "run": ["common"], "status": ["common"], "recording": ["planner", "common", "run"], "plan": ["planner", "common"],
    "swap": ["planner", "common", "plan"], "solve": ["planner", "common"], "doctor": ["common", "run", "status"],
    "main": ["common", "run", "status", "recording", "plan", "swap", "solve", "doctor"],
}
RULES |= {f"tools/memoptctl/{room}": {"shm", *(f"tools/memoptctl/{other}" if other in MEMOPTCTL_ROOMS else other for other in others)}
          for room, others in MEMOPTCTL_ROOMS.items()}


def room_of(path):
    rooms = [room for room in RULES if path == room or path.startswith(room + "/")]
    return max(rooms, key=len) if rooms else None


def included_rooms(path, bracket, included, headers):
    """Rooms that the include can mean. Beside the file comes first, as for the compiler; then any header whose path ends so."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), included))
    if beside in headers:
        return {room_of(beside)}
    named = room_of(included)
    if named:
        return {named}
    # A bare name in angle brackets is the system's, whatever we have of that name.
    if bracket == "<" and "/" not in included:
        return set()
    return {room_of(header) for header in headers if header.endswith("/" + included)} - {None}


def may_use(room, other):
    """A room that is named stands for those inside it, too."""
    return other == room or any(other == allowed or other.startswith(allowed + "/") for allowed in RULES[room])


def include_findings(root):
    headers = set(tree.files(root, tree.SOURCE_ENDINGS))
    findings, checked = [], 0
    for path in sorted(headers):
        room = room_of(path)
        if room is None:
            continue
        text = tree.read(root, path)
        for match in INCLUDE.finditer(text):
            checked += 1
            rooms = included_rooms(path, match.group(1), match.group(2), headers)
            if rooms and not any(may_use(room, other) for other in rooms):
                line = text.count("\n", 0, match.start()) + 1
                findings.append(f"{path}:{line}: {room} must not include {match.group(2)} ({', '.join(sorted(rooms))})")
    return findings, checked


def link_findings(root):
    scripts = {path: tree.read(root, path) for path in tree.files(root, ("CMakeLists.txt",))}
    owner = {target: room_of(path) for path, text in scripts.items() for target in TARGET.findall(text)}
    findings, checked = [], 0
    for path, text in scripts.items():
        room = room_of(path)
        for target, linked in LINK.findall(text) if room else []:
            for name in linked.split():
                checked += 1
                other = owner.get(name)
                if other and not may_use(room, other):
                    findings.append(f"{path}: {target} ({room}) must not link {name} ({other})")
    return findings, checked


def main():
    root = tree.root_argument()
    includes, checked_includes = include_findings(root)
    links, checked_links = link_findings(root)
    tree.report(includes + links, checked_includes + checked_links)


if __name__ == "__main__":
    main()
