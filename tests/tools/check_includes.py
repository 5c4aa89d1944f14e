#!/usr/bin/env python3
"""Fails where a source uses of the precompiled headers (cmake/Precompiled.cmake) what neither it nor a header of ours that it includes
has included: it would compile only where they are read for it."""
import os
import re

import tree

PRECOMPILED = os.path.join("cmake", "Precompiled.cmake")
# The libraries' folders and what they include; tests include GoogleTest, which has most of these.
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


def precompiled(root):
    """The headers that are read for every source, in the file that says so."""
    found = re.search(r"set\(MEMOPT_PRECOMPILED_HEADERS([^)]*)\)", tree.read(root, PRECOMPILED))
    return re.findall(r"<([^>]+)>", found.group(1)) if found else []


class Includes:
    def __init__(self, root, paths):
        self.root, self.paths, self.known = root, set(paths), {}
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
        return ending[0] if ending else None

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
    return findings, checked


def main():
    tree.report(*findings_of(tree.root_argument()))


if __name__ == "__main__":
    main()
