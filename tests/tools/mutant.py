"""Builds libmemopt.so with a bug planted in one of its source files, beside the build folder's own."""
import json
import os
import re
import shlex
import shutil
import subprocess


def _command_of(build, source):
    """What compiles the source: alone, or with others in a file that includes them all (cmake/Unity.cmake)."""
    target = "memopt_agent.dir" if "/agent/" in source else "memopt"
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            if target in entry["command"].split(" -o ")[1] and (entry["file"] == source or source in _included_by(entry["file"])):
                return entry
    raise AssertionError(f"{source} is not in compile_commands.json")


def _included_by(path):
    if not os.path.basename(path).startswith("unity_"):
        return []
    with open(path, encoding="utf-8") as file:
        return re.findall(r'^#include "(.*)"$', file.read(), re.MULTILINE)


def build_library(build, tree, source, old, new, folder):
    """The path of the library in which `new` stands in the place of `old`, which the file must have once."""
    source_path = os.path.join(tree, source)
    with open(source_path, encoding="utf-8") as file:
        text = file.read()
    assert text.count(old) == 1, f"{source} no longer has what the mutant changes: {old}"
    # Beside no other file: quoted includes are by the path from the tree.
    changed = os.path.join(folder, os.path.basename(source))
    with open(changed, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))
    entry = _command_of(build, source_path)
    if entry["file"] != source_path:
        with open(entry["file"], encoding="utf-8") as file:
            all_sources = file.read()
        changed_source, changed = changed, os.path.join(folder, os.path.basename(entry["file"]))
        with open(changed, "w", encoding="utf-8") as file:
            file.write(all_sources.replace(f'"{source_path}"', f'"{changed_source}"'))
    words = shlex.split(entry["command"])
    original = words[words.index("-o") + 1]
    compiled = os.path.join(folder, os.path.basename(original))
    words[words.index("-o") + 1] = compiled
    words[words.index(entry["file"])] = changed
    # It is compiled for a few runs.
    words = [word for word in words if word != "-Werror"] + ["-O0", "-g0", "-Wno-invalid-pch"]
    subprocess.run(words, cwd=entry["directory"], check=True, capture_output=True)
    library = os.path.join(folder, "libmemopt.so")
    # The file has its version in its name; what has none is a link to it.
    original_library = os.path.join("lib", os.path.basename(os.path.realpath(os.path.join(build, "lib", "libmemopt.so"))))
    link = subprocess.run(["ninja", "-t", "commands", "-s", original_library], cwd=build, check=True, capture_output=True,
                          text=True).stdout.strip().replace(f"-o {original_library}", f"-o {library}")
    part = original
    if source.startswith("agent/"):
        part, archive = "lib/libmemopt_agent.a", os.path.join(folder, "libmemopt_agent.a")
        shutil.copy(os.path.join(build, part), archive)
        subprocess.run(["ar", "r", archive, compiled], check=True, capture_output=True)
        compiled = archive
    assert f" {part} " in link + " ", f"{part} is no part of libmemopt.so"
    subprocess.run(f"{link} ".replace(f" {part} ", f" {compiled} "), shell=True, cwd=build, check=True, capture_output=True)
    return library
