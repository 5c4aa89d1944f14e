#!/usr/bin/env python3
"""Fails where a source uses what neither it nor a header of ours that it includes has included: of the precompiled headers
(cmake/Precompiled.cmake) or of our own. It would compile only where they are read for it, or another source before it
(cmake/Unity.cmake) has read them. Of our own, names count that one header alone declares, outside of classes: types, constants,
functions where they are called."""
import os
import re

import tree

PRECOMPILED = os.path.join("cmake", "Precompiled.cmake")
# Where the precompiled ones are asked for: the libraries' folders and what they include; tests include GoogleTest, which has most of these.
FOLDERS = ("shm", "agent", "preload", "planner", "tools", "integration")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_ALGORITHMS = ("adjacent_find|all_of|any_of|binary_search|clamp|copy_if|count|count_if|equal_range|find|find_if|find_if_not|for_each|"
               "generate|is_sorted|lexicographical_compare|lower_bound|max|max_element|merge|min|min_element|minmax|minmax_element|"
               "mismatch|none_of|nth_element|partial_sort|partition|partition_point|pop_heap|push_heap|make_heap|remove|remove_if|replace|"
               "reverse|rotate|search|shuffle|sort|stable_sort|transform|unique|upper_bound")
# Header -> what is taken for a use of it. Names that come with other headers as well (std::less with <map>) are left out.
USES = {
    "algorithm": rf"std::(?:{_ALGORITHMS})\(|std::ranges::",
    "array": r"std::array\b",
    "atomic": r"std::(?:atomic|memory_order)",
    "chrono": r"std::chrono\b",
    "functional": r"std::(?:function|bind|ref|cref)\b",
    "map": r"std::(?:map|multimap)\b",
    "memory": r"std::(?:unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared)\b",
    "mutex": r"std::(?:mutex|recursive_mutex|lock_guard|unique_lock|scoped_lock|call_once|once_flag)\b",
    "optional": r"std::(?:optional|nullopt|make_optional)\b",
    "span": r"std::span\b",
    "string": r"std::(?:string|to_string|stoul|stoull|stoi|getline)\b",
    "string_view": r"std::string_view\b",
    "thread": r"std::(?:thread|jthread|this_thread)\b",
    "unordered_map": r"std::(?:unordered_map|unordered_multimap)\b",
    "vector": r"std::vector\b",
}
# The standard says that these bring them.
BROUGHT_BY = {"string_view": {"string"}}


# What a line outside of classes and functions declares. `struct X;` declares nothing that could be used, but who has it needs no more.
TYPE = re.compile(r"(?:template\s*<[^;{]*>\s*)?(?:struct|class|union|enum(?: class| struct)?)\s+(?:\[\[\w+\]\]\s*)?"
                  r"(?:alignas\([^)]*\)\s*)?([A-Z]\w+)\s*(?:final\s*)?(?::[^;]*)?\{")
ALIAS = re.compile(r"using\s+([A-Z]\w+)\s*=")
CONSTANT = re.compile(r"(?:inline\s+|static\s+|extern\s+)*const(?:expr|init)?\b[^(=;{]*?\b(k[A-Z]\w+)\s*(?:\[[^\]]*\]\s*)*[={]")
FUNCTION = re.compile(r"[^\s(][^(]*?[\s&*]([a-z]\w{2,})\s*\((?!\*)")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Z]\w{3,})", re.MULTILINE)
NO_DECLARATION = re.compile(r"(?:return|using namespace|namespace|friend|typedef|static_assert)\b|[#})]|:")
# The same in any scope: such a name may be a member's.
ANYWHERE = re.compile(r"\b(?:struct|class|union|enum|typename)\s+(\w+)|\busing\s+(?:\w+::)*(\w+)\s*[=;]"
                      r"|\b(k[A-Z]\w+)\s*(?:\[[^\]]*\]\s*)*[={,]"
                      r"|\bauto&?\s+(\w+)\s*[=({]|\bTEST(?:_F|_P)?\(\w+, (\w+)\)")
FORWARD = re.compile(r"\b(?:struct|class)\s+(\w+)\s*;")
MEMBER = re.compile(r"^[ \t]+(?![ \t]|return\b|else\b|delete\b|throw\b)[\w:<>,&*\[\] ]+?[ &*]([a-z]\w{2,})\([^;]*\)[ \w]*[;{]", re.MULTILINE)
WORD = re.compile(r"(?<![\w.>~:])((?:\w+::)*)([A-Za-z_]\w*)(\s*\()?")
NO_CODE = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/', re.DOTALL)


def code_of(root, path):
    return NO_CODE.sub(lambda match: '""' if match.group(0)[0] in "R\"" else " ", tree.read(root, path))


def declared_by(code):
    """Names that stand outside of all braces but those of namespaces."""
    names, scopes = set(MACRO.findall(code)), []
    for line in code.splitlines():
        namespace = re.match(r"\s*(?:inline\s+)?namespace\b[^;]*{", line)
        if not namespace and "other" not in scopes and not NO_DECLARATION.match(line) and line[:1].strip():
            found = TYPE.match(line) or ALIAS.match(line) or CONSTANT.match(line) or FUNCTION.match(line)
            if found:
                names.add(found.group(1))
        for brace in re.findall("[{}]", line):
            if brace == "{":
                scopes.append("namespace" if namespace else "other")
            elif scopes:
                scopes.pop()
    return names


def precompiled(root):
    """The headers that are read for every source, in the file that says so."""
    found = re.search(r"set\(MEMOPT_PRECOMPILED_HEADERS([^)]*)\)", tree.read(root, PRECOMPILED))
    return re.findall(r"<([^>]+)>", found.group(1)) if found else []


class Includes:
    def __init__(self, root, paths):
        self.root, self.paths, self.known, self.own = root, set(paths), {}, {}
        self.by_name = {}
        for path in paths:
            self.by_name.setdefault(os.path.basename(path), []).append(path)

    def ours(self, path, included):
        """The header of ours that is meant, or None."""
        beside = os.path.normpath(os.path.join(os.path.dirname(path), included))
        for candidate in (beside, included):
            if candidate in self.paths:
                return candidate
        ending = [other for other in self.by_name.get(os.path.basename(included), []) if other.endswith("/" + included)]
        # By a target's include folder: the one that is nearest.
        return max(ending, key=lambda other: len(os.path.commonprefix([other, path])), default=None)

    def reached(self, path):
        """Names of all system headers that the file includes, itself or by headers of ours."""
        if path not in self.known:
            self.known[path] = set()  # a circle ends here
            found = set()
            for _, included in INCLUDE.findall(tree.read(self.root, path)):
                other = self.ours(path, included)
                found |= self.reached(other) if other else {included}
            self.known[path] = found
        return self.known[path]


    def own_reached(self, path):
        """Headers of ours that the file includes, itself or by others, and itself."""
        if path not in self.own:
            found = self.own[path] = {path}
            for _, included in INCLUDE.findall(tree.read(self.root, path)):
                other = self.ours(path, included)
                if other:
                    found |= self.own_reached(other)
        return self.own[path]


def own_findings_of(root, paths, includes):
    code = {path: code_of(root, path) for path in paths if path.endswith((".h", ".cpp"))}
    declared = {path: declared_by(text) for path, text in code.items()}
    other = {path: {name for names in ANYWHERE.findall(text) for name in names if name} | set(MEMBER.findall(text))
             for path, text in code.items()}
    headers, ambiguous = {}, set()
    for path in code:
        for name in declared[path] if path.endswith(".h") else ():
            if name in headers:
                ambiguous.add(name)
            headers[name] = path
    forward = {path: set(FORWARD.findall(text)) for path, text in code.items()}
    for path in code:
        if path.endswith(".h"):
            ambiguous |= {name for name in other[path] - forward[path] if name in headers and headers[name] != path}
    # Only what is compiled together can lend a header to another: sources of one room.
    room = {}
    for path in code:
        if path.endswith(".cpp"):
            room.setdefault(room_of(path), set()).update(includes.own_reached(path))
    findings, checked = [], 0
    for path, text in code.items():
        checked += 1
        if not path.endswith(".cpp"):
            continue
        reached, told = includes.own_reached(path), set()
        if (own := path.removesuffix("cpp") + "h") in code and own not in reached:
            findings.append(f"{path}: {own} is not included")
        for qualifier, name, call in WORD.findall(text):
            header = headers.get(name)
            if header is None or name in ambiguous or header in reached or header in told or header not in room[room_of(path)]:
                continue
            if name in declared[path] or name in other[path] or any(name in forward.get(one, ()) for one in reached):
                continue
            if name.islower() and not call:
                continue
            if qualifier.startswith("std::") or re.search(r"(?:^|::)[A-Z]\w*::$", qualifier):
                continue
            told.add(header)
            findings.append(f"{path}: {name} is used, but {header} is not included")
    return findings, checked


def room_of(path):
    return os.sep.join(path.split(os.sep)[:3 if path.startswith(("integration", "tests")) else 2])


def findings_of(root):
    headers = precompiled(root)
    paths = tree.files(root, tree.SOURCE_ENDINGS)
    includes = Includes(root, paths)
    findings, checked = [f"{PRECOMPILED}: <{name}> has no rule in check_includes.py" for name in headers if name not in USES], 0
    for path in paths:
        if not path.startswith(tuple(folder + os.sep for folder in FOLDERS)) or path.endswith((".S", ".inc", ".c", ".cu", ".cuh")):
            continue
        text = COMMENT.sub(lambda match: '""' if match.group(0)[0] == '"' else "", tree.read(root, path))
        for name in headers:
            checked += 1
            reached = includes.reached(path)
            if name in USES and name not in reached and not reached & BROUGHT_BY.get(name, set()) and (use := re.search(USES[name], text)):
                findings.append(f"{path}: {use.group(0)} is used, but <{name}> is not included")
    own, own_checked = own_findings_of(root, paths, includes)
    return findings + own, checked + own_checked


def main():
    tree.report(*findings_of(tree.root_argument()))


if __name__ == "__main__":
    main()
