#!/usr/bin/env python3
"""Which sources of a target can be compiled together: those of whose names in anonymous namespaces none is a word of another one, or of a
header of ours that the other includes.

usage: unity_groups.py --root FOLDER --most N < LINES > COMMANDS

A line is a target, the folder that names of its sources are relative to, and its sources, with | between all of them. What is written is
CMake's commands that put each source of the target into a group of at most N, or leave it alone."""
import argparse
import collections
import functools
import itertools
import os
import re
import sys

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
INCLUDES = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)
DEFINES = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
NO_CODE = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
WORD = re.compile(r"[A-Za-z_]\w*")
# What a declaration at the begin of a line declares: the last word before its initializer, parameters or body.
TYPE = re.compile(r"^(?:template\s*<[^;{]*>\s*)?(?:struct|class|union|enum(?: class)?)\s+(\w+)")
ALIAS = re.compile(r"^using\s+(?:\w+::)*(\w+)")
OPENED = re.compile(r"^using namespace ([\w:]+);", re.MULTILINE)
NAME = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:[({=;,]|$)")
CALL = re.compile(r"(?<![\w.>:~])([a-z_]\w*)\s*\(")
OWN_WORDS = ("static ", "constexpr ", "const ", "using ")
ABOVE = [os.path.join(os.getcwd(), folder) for folder in ("integration/cudasim/driver", "integration/cudasim/runtime", "tools/memoptctl")]
KEYWORDS = {"if", "for", "while", "switch", "return", "namespace", "using", "public", "private", "protected", "case", "default", "template",
            "decltype", "alignas", "requires", "operator", "TEST", "TEST_F", "TEST_P", "INSTANTIATE_TEST_SUITE_P"}


@functools.cache
def text_of(path):
    with open(path, encoding="utf-8") as file:
        return NO_CODE.sub(lambda match: match.group(0) if "\n" not in match.group(0) and match.group(0)[0] == '"' else " ", file.read())


@functools.cache
def code_of(path):
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text_of(path))


def headers_of(path, root, found):
    """All headers of ours that it includes, through others too."""
    for name in INCLUDE.findall(text_of(path)):
        for folder in (os.path.dirname(path), root, *ABOVE):
            other = os.path.normpath(os.path.join(folder, name))
            if os.path.exists(other):
                if other not in found:
                    found.add(other)
                    headers_of(other, root, found)
                break
    return found


@functools.cache
def words_of(path, root):
    words = set(WORD.findall(code_of(path)))
    for header in headers_of(path, root, set()):
        words |= set(WORD.findall(code_of(header)))
    return words


@functools.cache
def calls_of(path):
    return set(CALL.findall(code_of(path)))


@functools.cache
def own_names(path):
    """Names that only this source knows: of its anonymous namespaces, its static functions, its macros."""
    names, scopes = set(DEFINES.findall(text_of(path))), []
    for line in code_of(path).splitlines():
        opening = re.match(r"namespace(\s+[\w:]+)?\s*{", line)
        if opening:
            scopes.append("named" if opening.group(1) else "anonymous")
            scopes.extend(["other"] * (line.count("{") - 1))
            del scopes[len(scopes) - line.count("}"):]
            continue
        if "other" not in scopes and line and line[0] not in " \t#}" and ("anonymous" in scopes or line.startswith(OWN_WORDS)):
            names |= declared_by(line)
        for brace in re.findall("[{}]", line):
            if brace == "{":
                scopes.append("other")
            elif scopes:
                scopes.pop()
    return names


def declared_by(line):
    found = TYPE.match(line) or ALIAS.match(line) or NAME.search(re.sub(r"<[^<>]*(<[^<>]*>[^<>]*)*>", "", line))
    return {found.group(1)} - KEYWORDS if found else set()


def begins_with(path):
    """What decides how all is read that comes after it: macros before its headers, namespaces that it opens to everything. None where it
    can't stand beside any other: it reads a table for its own purpose."""
    text = text_of(path)
    if re.search(r'"[^"\n]+\.inc"', text):
        return None
    includes = [include.start() for include in INCLUDES.finditer(text)]
    return (tuple(define.group(1) for define in DEFINES.finditer(text) if includes and define.start() < includes[-1]),
            tuple(OPENED.findall(text)))


def clash(one, other, root):
    """Types, constants and variables clash with any use of the word; functions with others of that name, and with calls."""
    for this, that in ((one, other), (other, one)):
        names = own_names(this) - set(begins_with(this)[0])
        functions = {name for name in names if name.islower() and not name.startswith("g_")}
        if (names - functions) & words_of(that, root) or functions & (own_names(that) | calls_of(that)):
            return True
    return False


def groups_of(sources, root, most):
    groups, alone = [], []
    for path in sources:
        if begins_with(path) is None:
            alone.append(path)
            continue
        for group in groups:
            if len(group) < most and begins_with(group[0]) == begins_with(path) and not any(clash(path, other, root) for other in group):
                group.append(path)
                break
        else:
            groups.append([path])
    return [group for group in groups if len(group) > 1], alone + [group[0] for group in groups if len(group) == 1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--most", type=int, required=True)
    options = parser.parse_args()
    numbers = collections.defaultdict(itertools.count)
    for line in sys.stdin:
        target, folder, *sources = line.rstrip("\n").split("|")
        paths = [os.path.normpath(os.path.join(folder, source)) for source in sources if source.endswith(".cpp") and "$<" not in source]
        groups, alone = groups_of([path for path in paths if os.path.exists(path)], options.root, options.most)
        alone += [path for path in paths if not os.path.exists(path)]
        for group in groups:
            print(f"set_source_files_properties({' '.join(group)} TARGET_DIRECTORY {target} PROPERTIES UNITY_GROUP {target}_{next(numbers[target])})")
        if alone:
            print(f"set_source_files_properties({' '.join(alone)} TARGET_DIRECTORY {target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)")


if __name__ == "__main__":
    main()
