#!/usr/bin/env python3
"""Fails on an #include, or a CMake link, that goes up the layers.

preload -> agent -> shm <- planner; tools -> planner, shm; the simulator knows nothing of memopt and memopt nothing of it;
nothing includes integration or tests. The workload that replays recordings reads them with the planner's reader. Rooms of the
agent and of the planner have an order of their own.
"""
import os
import re

import tree

# planner/layout's rooms -> those of its others that each may include.
LAYOUT = "planner/layout/"
LAYOUT_ROOMS = {"problem": [], "skyline": ["problem"], "local_search": ["problem", "skyline"], "exact": ["problem"],
                "published": ["problem", "skyline"], "portfolio": ["problem", "skyline", "local_search", "exact", "published"],
                "files": ["problem"]}
# What the planner's other rooms may include of it.
LAYOUT_PUBLIC = {LAYOUT + header for header in ("problem/problem.h", "problem/limits.h", "problem/outcome.h", "problem/validation.h",
                                                "portfolio/solve.h", "portfolio/solvers.h", "files")}
# Each may include those before it.
AGENT_ROOMS = ["agent/process", "agent/plan", "agent/link", "agent/order", "agent/stacks", "agent/recording", "agent/scan", "agent/memory", "agent/operations",
               "agent/status"]
# planner/swap's rooms -> those of its others that each may include.
SWAP = "planner/swap/"
SWAP_ROOMS = {"model": [], "simulation": ["model"], "places": ["model", "simulation"], "strategies": ["model", "simulation", "places"],
              "evaluation": ["model", "simulation"], "search": ["model", "simulation", "places", "strategies", "evaluation"], "bounds": ["model"], "files": ["model", "simulation"]}
SWAP_LAYOUT = {"places": LAYOUT_PUBLIC - {LAYOUT + "files"}, "strategies": LAYOUT_PUBLIC - {LAYOUT + "files"}, "search": LAYOUT_PUBLIC - {LAYOUT + "files"},
               "files": {"planner/json", "planner/input"}}
# planner/recompute's rooms -> those of its others that each may include.
RECOMPUTE = "planner/recompute/"
RECOMPUTE_ROOMS = {"model": [], "online": ["model"], "published": ["model"], "bounds": ["model"], "search": ["model", "online", "published"], "combined": ["model", "online", "search"],
                   "learned": ["model", "online", "search", "combined"], "observed": ["model"],
                   "places": ["model", "search", "combined"]}
# The simulated driver's interpreter of PTX knows nothing of the driver.
PTX = "integration/cudasim/driver/ptx/"
# Room -> rooms whose files it may include, and single headers, beside its own. A file belongs to the longest prefix.
RULES = {
    "preload": {"agent", "shm"},
    "agent": {"shm", *AGENT_ROOMS},
    **{room: {"shm", "agent/process/driver.h", *AGENT_ROOMS[:at]} for at, room in enumerate(AGENT_ROOMS)},
    "shm": set(),
    "planner": {"shm"},
    "planner/input": set(),
    "planner/json": set(),
    "planner/frameworks": set(),
    "planner/layout": set(),
    **{LAYOUT + room: {LAYOUT + other for other in others} for room, others in LAYOUT_ROOMS.items()},
    LAYOUT + "files": {LAYOUT + "problem", "planner/input"},
    "planner/iteration": {"shm", "planner/input", *LAYOUT_PUBLIC},
    "planner/swap": LAYOUT_PUBLIC,
    **{SWAP + room: {*(SWAP + other for other in others), *SWAP_LAYOUT.get(room, ())} for room, others in SWAP_ROOMS.items()},
    "planner/recompute": {SWAP + "model"},
    **{RECOMPUTE + room: {SWAP + "model", *(RECOMPUTE + other for other in others)} for room, others in RECOMPUTE_ROOMS.items()},
    RECOMPUTE + "combined": {SWAP + "model", SWAP + "search", SWAP + "simulation", *(RECOMPUTE + other for other in RECOMPUTE_ROOMS["combined"])},
    RECOMPUTE + "observed": {SWAP + "model", "planner/input", *(RECOMPUTE + other for other in RECOMPUTE_ROOMS["observed"])},
    RECOMPUTE + "places": {*(SWAP + room for room in ("model", "simulation", "places", "search")), *(RECOMPUTE + other for other in RECOMPUTE_ROOMS["places"]),
                           *LAYOUT_PUBLIC - {LAYOUT + "files"}},
    "planner/sending": {"shm", "planner/program.h", "planner/frameworks", "planner/iteration", *(SWAP + room for room in SWAP_ROOMS if room != "files")},
    "planner/recording": {"shm", "planner/daemon/sink.h", "planner/json"},
    "planner/exchange": {"shm", "planner/daemon/sink.h", "planner/recording", "planner/input", "planner/json", LAYOUT + "files", LAYOUT + "problem/problem.h"},
    "planner/daemon": {"shm", "planner"},
    "tools": {"planner", "shm"},
    "integration/cudasim": {PTX + "front", PTX + "execution", PTX + "loader"},
    PTX + "front": set(),
    PTX + "execution": {PTX + "front"},
    PTX + "jit": {PTX + "front", PTX + "execution"},
    PTX + "loader": {PTX + "front", PTX + "execution", PTX + "jit/plug_in.h"},
    "integration/agent_kernels": {"integration/cudasim", "agent/scan/scan_slot.h"},
    "integration/launch_effects": {"integration/cudasim"},
    "integration/workloads": {"integration/cudasim", "planner", "shm"},
    "integration/gpu": {"integration/cudasim"},
    "tests": {"preload", "agent", "shm", "planner", "tools", "integration/cudasim", "integration/launch_effects",
              "integration/workloads", "integration/gpu"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
TARGET = re.compile(r"^\s*add_(?:library|executable)\(\s*([\w.-]+)", re.MULTILINE)
LINK = re.compile(r"^\s*target_link_libraries\(\s*([\w.-]+)([^)]*)\)", re.MULTILINE)

# memoptctl's rooms -> what each may include beside shm.
MEMOPTCTL_ROOMS = {
    "common": [],
    "config": ["common", "planner/json"],
    "run": ["common", "config"],
    "status": ["common", "planner/json"],
    "symbols": ["planner", "common"],
    "recording": ["planner", "common", "run", "symbols"],
    "plan": ["planner", "common"],
    "page": ["planner", "common"],
    "swap": ["planner", "common", "page", "plan"],
    "recompute": ["planner", "common", "page", "swap"],
    "solve": ["planner", "common", "page"],
    "report": ["planner", "common", "page", "plan", "swap", "symbols"],
    "exchange": ["planner", "common"],
    "fit": ["planner", "common", "run", "exchange", "plan", "swap"],
    "doctor": ["common", "config", "run", "status", "planner/json"],
    "top": ["common", "status", "planner/json"],
    "metrics": ["common", "status", "planner/json"],
    "description": ["common"],
    "main": ["planner/input", "common", "config", "run", "status", "symbols", "recording", "plan", "swap", "recompute", "solve", "report", "exchange", "fit", "doctor", "top",
             "metrics", "description"],
}
RULES |= {f"tools/memoptctl/{room}": {"shm", *(f"tools/memoptctl/{other}" if other in MEMOPTCTL_ROOMS else other for other in others)}
          for room, others in MEMOPTCTL_ROOMS.items()}


def room_of(path):
    rooms = [room for room in RULES if path == room or path.startswith(room + "/")]
    return max(rooms, key=len) if rooms else None


def included_paths(path, bracket, included, headers):
    """Files that the include can mean. Beside the file comes first, as for the compiler; then any header whose path ends so."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), included))
    if beside in headers:
        return {beside}
    if room_of(included):
        return {included}
    # A bare name in angle brackets is the system's, whatever we have of that name.
    if bracket == "<" and "/" not in included:
        return set()
    return {header for header in headers if header.endswith("/" + included) and room_of(header)}


def may_use(room, path):
    """A room that is named stands for those inside it, too."""
    return room_of(path) == room or any(path == allowed or path.startswith(allowed + "/") for allowed in RULES[room])


def may_link(room, other):
    """The library of a folder holds what its rooms hold: that of the folder in which a room lies, and of one with a room that it may
    use, may be linked."""
    used = {room_of(allowed) or allowed for allowed in RULES[room]}
    return may_use(room, other) or any(inside.startswith(other + "/") for inside in {room, *used})


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
            paths = included_paths(path, match.group(1), match.group(2), headers)
            if paths and not any(may_use(room, other) for other in paths):
                line = text.count("\n", 0, match.start()) + 1
                rooms = ", ".join(sorted({room_of(other) for other in paths}))
                findings.append(f"{path}:{line}: {room} must not include {match.group(2)} ({rooms})")
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
                if other and not may_link(room, other):
                    findings.append(f"{path}: {target} ({room}) must not link {name} ({other})")
    return findings, checked


def main():
    root = tree.root_argument()
    includes, checked_includes = include_findings(root)
    links, checked_links = link_findings(root)
    tree.report(includes + links, checked_includes + checked_links)


if __name__ == "__main__":
    main()
