"""Builds libmemopt.so with a bug planted in one of its source files, beside the build folder's own."""
import json
import os
import shlex
import shutil
import subprocess


def _command_of(build, source):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            target = "memopt_agent.dir" if "/agent/" in source else "memopt"
            if entry["file"] == source and target in entry["command"].split(" -o ")[1]:
                return entry
    raise AssertionError(f"{source} is not in compile_commands.json")


def build_library(build, tree, source, old, new, folder):
    """The path of the library in which `new` stands in the place of `old`, which the file must have once."""
    with open(os.path.join(tree, source), encoding="utf-8") as file:
        text = file.read()
    assert text.count(old) == 1, f"{source} no longer has what the mutant changes: {old}"
    # Beside no other file: quoted includes are by the path from the tree.
    changed, compiled = os.path.join(folder, os.path.basename(source)), os.path.join(folder, os.path.basename(source) + ".o")
    with open(changed, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))
    entry = _command_of(build, os.path.join(tree, source))
    words = shlex.split(entry["command"])
    original = words[words.index("-o") + 1]
    words[words.index("-o") + 1] = compiled
    words[words.index(entry["file"])] = changed
    words = [word for word in words if word != "-Werror"]
    subprocess.run(words, cwd=entry["directory"], check=True, capture_output=True)
    library = os.path.join(folder, "libmemopt.so")
    link = subprocess.run(["ninja", "-t", "commands", "-s", "lib/libmemopt.so"], cwd=build, check=True, capture_output=True,
                          text=True).stdout.strip().replace("-o lib/libmemopt.so", f"-o {library}")
    part = original
    if source.startswith("agent/"):
        part, archive = "lib/libmemopt_agent.a", os.path.join(folder, "libmemopt_agent.a")
        shutil.copy(os.path.join(build, part), archive)
        subprocess.run(["ar", "r", archive, compiled], check=True, capture_output=True)
        compiled = archive
    assert f" {part} " in link + " ", f"{part} is no part of libmemopt.so"
    subprocess.run(f"{link} ".replace(f" {part} ", f" {compiled} "), shell=True, cwd=build, check=True, capture_output=True)
    return library
