#!/usr/bin/env python3
"""Plants a violation of each rule and expects the check to find it, and that a clean tree passes."""
import os
import subprocess
import sys
import tempfile
import unittest

import cases
import check_format
import check_generated
import check_includes
import check_layers
import check_needed
import check_readmes
import check_shell
import tree


class PlantedTree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = self.folder.name

    def plant(self, path, text, mode=0o644):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(full, mode)
        return full


class Includes(PlantedTree):
    def setUp(self):
        super().setUp()
        self.plant("cmake/Precompiled.cmake", "set(MEMOPT_PRECOMPILED_HEADERS\n    <string> <string_view> <vector>)\n")

    def findings(self):
        return check_includes.findings_of(self.root)[0]

    def test_what_is_included_may_be_used(self):
        self.plant("agent/deep.h", "#include <vector>\n")
        self.plant("agent/room/own.h", '#include "agent/deep.h"\n#include "own.h"\n')
        self.plant("agent/room/own.cpp", '#include "own.h"\n#include <string>\nstd::vector<int> a; std::string b; std::string_view c;\n')
        self.assertEqual(self.findings(), [])

    def test_what_is_precompiled_only_is_found(self):
        self.plant("agent/a.cpp", '#include <string_view>\nstd::string a;  // a std::vector\nconst char* b = "std::vector";\n')
        self.assertEqual(self.findings(), ["agent/a.cpp: std::string is used, but <string> is not included"])

    def test_what_only_another_source_of_the_room_includes_is_found(self):
        self.plant("agent/room/size.h", "namespace memopt {\nstruct Size {\n};\nconstexpr int kLargest = 4;\nint whole_size(Size);\n}\n")
        self.plant("agent/room/includes.cpp", '#include "agent/room/size.h"\nSize a; int b = kLargest; int c() {\n  return whole_size(a);\n}\n')
        self.plant("agent/room/own.h", "struct Size;\n")
        self.assertEqual(self.findings(), [])
        for use in ("Size a;", "int b = kLargest;", "int c() {\n  return whole_size(a);\n}"):
            with self.subTest(use):
                self.plant("agent/room/does_not.cpp", use + "\n")
                self.assertEqual(len(self.findings()), 1)
                self.assertIn("but agent/room/size.h is not included", self.findings()[0])

    def test_a_name_that_is_not_the_headers_passes(self):
        self.plant("agent/room/size.h", "struct Size {\n};\nconstexpr int kLargest = 4;\nint whole_size(Size size);\n")
        self.plant("agent/room/includes.cpp", '#include "agent/room/size.h"\n')
        for use in ("struct Size;", "struct Size {\n};\nSize a;", "Other::Size a;", "a.whole_size(1);", "const auto whole_size = 1;",
                    "constexpr int kLargest = 3;\nint b = kLargest;", "// Size\nconst char* a = \"kLargest\";"):
            with self.subTest(use):
                self.plant("agent/room/does_not.cpp", use + "\n")
                self.assertEqual(self.findings(), [])
        # Compiled with nobody who includes it: a compiler would say so.
        self.plant("agent/other/does_not.cpp", "Size a;\n")
        self.plant("planner/does_not.cpp", "Size a;\n")
        self.assertEqual([finding for finding in self.findings() if "planner" in finding], [])

    def test_a_source_includes_its_own_header(self):
        self.plant("agent/room/own.h", "\n")
        self.plant("agent/room/own.cpp", "int a;\n")
        self.assertEqual(self.findings(), ["agent/room/own.cpp: agent/room/own.h is not included"])

    def test_each_precompiled_header_has_a_rule(self):
        self.plant("cmake/Precompiled.cmake", "set(MEMOPT_PRECOMPILED_HEADERS <regex>)\n")
        self.assertIn("<regex> has no rule", self.findings()[0])


class Layers(PlantedTree):
    def includes(self):
        return check_layers.include_findings(self.root)[0]

    def links(self):
        return check_layers.link_findings(self.root)[0]

    def test_downwards_passes(self):
        self.plant("shm/units.h", "#include <cstdint>\n")
        self.plant("agent/agent.h", '#include "shm/units.h"\n')
        self.plant("preload/hooks.cpp", '#include "agent/agent.h"\n#include <dlfcn.h>\n')
        self.plant("planner/plan.cpp", '#include "shm/units.h"\n')
        self.assertEqual(self.includes(), [])

    def test_each_forbidden_direction_is_found(self):
        for path, included in [("shm/a.h", "agent/x.h"), ("shm/a.h", "planner/x.h"), ("agent/a.cpp", "preload/x.h"),
                               ("agent/a.cpp", "planner/x.h"), ("planner/a.cpp", "agent/x.h"), ("preload/a.cpp", "tools/x.h"),
                               ("tools/a.cpp", "agent/x.h"), ("agent/a.cpp", "integration/cudasim/x.h"),
                               ("integration/cudasim/driver/a.cpp", "shm/x.h"), ("integration/workloads/a.cpp", "agent/x.h"),
                               ("planner/a.cpp", "tests/x.h"), ("planner/iteration/a.cpp", "planner/swap/model/x.h"),
                               ("planner/swap/model/a.h", "planner/swap/simulation/x.h"),
                               ("planner/swap/evaluation/a.h", "planner/swap/search/x.h"),
                               ("planner/sending/a.cpp", "planner/swap/files/x.h")]:
            with self.subTest(path=path, included=included):
                full = self.plant(path, f'int before;\n#  include "{included}"\n')
                self.assertEqual(len(self.includes()), 1)
                self.assertIn(f"{path}:2:", self.includes()[0])
                os.remove(full)

    def test_the_rooms_of_memoptctl_are_held_to_their_order(self):
        for room, included in [("main", "swap/a.h"), ("swap", "plan/a.h"), ("doctor", "status/a.h"), ("recording", "run/a.h")]:
            self.plant(f"tools/memoptctl/{room}/a.cpp", f'#include "tools/memoptctl/{included}"\n')
        self.plant("tools/memoptctl/solve/a.cpp", '#include "planner/layout/problem.h"\n#include "shm/units.h"\n')
        self.assertEqual(self.includes(), [])
        for room, included in [("common", "tools/memoptctl/run/a.h"), ("plan", "tools/memoptctl/swap/a.h"),
                               ("solve", "tools/memoptctl/plan/a.h"), ("recording", "tools/memoptctl/status/a.h"),
                               ("doctor", "tools/memoptctl/main/line.h"), ("status", "planner/program.h"), ("run", "agent/agent.h")]:
            with self.subTest(room=room, included=included):
                full = self.plant(f"tools/memoptctl/{room}/b.cpp", f'#include "{included}"\n')
                self.assertEqual(len(self.includes()), 1)
                os.remove(full)

    def test_an_include_through_an_include_folder_is_found(self):
        self.plant("integration/cudasim/include/cudasim/cudasim.h", "\n")
        self.plant("agent/a.cpp", "#include <cudasim/cudasim.h>\n")
        self.assertEqual(len(self.includes()), 1)

    def test_a_relative_climb_is_found(self):
        self.plant("agent/agent.h", "\n")
        self.plant("shm/a.cpp", '#include "../agent/agent.h"\n')
        self.assertEqual(len(self.includes()), 1)

    def test_the_rooms_of_the_planner_have_an_order(self):
        for path, included in [("layout/skyline/a.cpp", "planner/layout/problem/sections.h"),
                               ("layout/portfolio/a.cpp", "planner/layout/exact/branch_and_bound.h"),
                               ("iteration/a.cpp", "planner/layout/portfolio/solve.h"), ("iteration/a.h", "shm/units.h"),
                               ("swap/search/a.cpp", "planner/layout/problem/limits.h"),
                               ("swap/files/a.cpp", "planner/input/text.h"), ("swap/search/b.cpp", "planner/swap/model/model.h"),
                               ("sending/a.cpp", "planner/program.h"), ("sending/a.h", "planner/swap/search/search.h"),
                               ("recording/a.cpp", "planner/daemon/sink.h"), ("daemon/a.cpp", "planner/sending/program.h")]:
            self.plant("planner/" + path, f'#include "{included}"\n')
        self.assertEqual(self.includes(), [])
        for path, included in [("layout/problem/b.cpp", "planner/layout/skyline/skyline.h"), ("layout/problem/b.cpp", "shm/units.h"),
                               ("layout/exact/b.cpp", "planner/layout/local_search/insertion.h"),
                               ("layout/portfolio/b.cpp", "planner/layout/files/csv.h"),
                               ("layout/skyline/b.cpp", "planner/iteration/lifetimes.h"),
                               ("iteration/b.cpp", "planner/swap/model.h"), ("iteration/b.cpp", "planner/layout/skyline/skyline.h"),
                               ("swap/b.cpp", "planner/iteration/lifetimes.h"), ("swap/search/b.cpp", "planner/layout/problem/sections.h"),
                               ("swap/b.cpp", "shm/units.h"), ("sending/b.cpp", "planner/daemon/server.h"),
                               ("recording/b.cpp", "planner/daemon/server.h"), ("recording/b.cpp", "planner/iteration/lifetimes.h"),
                               ("daemon/b.cpp", "agent/agent.h"), ("program.h", "planner/sending/program.h")]:
            with self.subTest(path=path, included=included):
                full = self.plant("planner/" + path, f'#include "{included}"\n')
                self.assertEqual(len(self.includes()), 1)
                os.remove(full)

    def test_a_link_against_the_order_of_the_planners_rooms_is_found(self):
        self.plant("planner/layout/CMakeLists.txt", "add_library(layout STATIC a.cpp)\n")
        self.plant("planner/swap/CMakeLists.txt", "add_library(swap STATIC a.cpp)\ntarget_link_libraries(swap PUBLIC layout)\n")
        self.plant("planner/daemon/CMakeLists.txt", "add_library(daemon STATIC a.cpp)\ntarget_link_libraries(daemon PUBLIC swap)\n")
        self.assertEqual(self.links(), [])
        self.plant("planner/recording/CMakeLists.txt",
                   "add_library(recording STATIC a.cpp)\ntarget_link_libraries(recording PUBLIC daemon)\n")
        self.assertEqual(len(self.links()), 1)

    def test_the_file_beside_comes_first(self):
        self.plant("planner/config.h", "\n")
        self.plant("agent/config.h", "\n")
        self.plant("agent/a.cpp", '#include "config.h"\n')
        self.assertEqual(self.includes(), [])

    def test_a_link_up_is_found(self):
        self.plant("agent/CMakeLists.txt", "add_library(agent STATIC a.cpp)\ntarget_link_libraries(agent PUBLIC shm)\n")
        self.plant("shm/CMakeLists.txt", "add_library(shm STATIC a.cpp)\n")
        self.assertEqual(self.links(), [])
        self.plant("shm/CMakeLists.txt", "add_library(shm STATIC a.cpp)\ntarget_link_libraries(shm\n  PRIVATE agent)\n")
        self.assertEqual(len(self.links()), 1)

    def test_the_library_of_the_folder_above_may_be_linked(self):
        self.plant("planner/swap/CMakeLists.txt", "add_library(swap STATIC a.cpp)\ntarget_link_libraries(swap PUBLIC layout)\n")
        self.plant("planner/layout/CMakeLists.txt", "add_library(layout STATIC a.cpp)\n")
        self.plant("planner/swap/files/CMakeLists.txt", "add_library(files STATIC a.cpp)\ntarget_link_libraries(files PUBLIC swap)\n")
        self.plant("planner/sending/CMakeLists.txt", "add_library(sending STATIC a.cpp)\ntarget_link_libraries(sending PUBLIC swap)\n")
        self.assertEqual(self.links(), [])
        self.plant("planner/sending/CMakeLists.txt", "add_library(sending STATIC a.cpp)\ntarget_link_libraries(sending PUBLIC files)\n")
        self.assertEqual(len(self.links()), 1)


class Readmes(PlantedTree):
    def test_missing_empty_and_heading_are_found(self):
        self.plant("agent/README.md", "The runtime inside the program's process; may include shm/.\n")
        self.assertEqual(check_readmes.findings(self.root, ["agent"]), [])
        for text in ["", "# agent\n", "Things.\n", "A long first line that never says what this folder is allowed to use.\n"]:
            self.plant("agent/README.md", text)
            self.assertEqual(len(check_readmes.findings(self.root, ["agent"])), 1, text)
        os.remove(os.path.join(self.root, "agent/README.md"))
        self.assertEqual(len(check_readmes.findings(self.root, ["agent", "absent"])), 2)


class Needed(PlantedTree):
    def compile(self, *arguments):
        source = self.plant("a.c", "#include <math.h>\ndouble f(double x) { return cbrt(x); }\n")
        library = os.path.join(self.root, "a.so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", source, "-o", library, *arguments], check=True)
        return library

    def test_libc_passes_and_anything_else_is_found(self):
        self.assertEqual(check_needed.findings(self.compile("-lm")), [])
        found = check_needed.findings(self.compile("-Wl,--no-as-needed", "-l:libstdc++.so.6"))
        self.assertEqual(len(found), 1)
        self.assertIn("libstdc++.so.6", found[0])


class Format(PlantedTree):
    def test_badly_formatted_is_found(self):
        program, reason = check_format.clang_format()
        if not program:
            self.skipTest(reason)
        self.plant(".clang-format", "BasedOnStyle: Google\n")
        self.plant("good.cpp", "int f() { return 1; }\n")
        self.plant("bad.cpp", "int   g( ){return 2 ;}\n")
        self.assertEqual(check_format.findings(self.root, program, ["good.cpp"]), [])
        found = check_format.findings(self.root, program, ["good.cpp", "bad.cpp"])
        self.assertEqual([line.split(":")[0] for line in found], ["bad.cpp"])


class Shell(PlantedTree):
    def test_each_kind_is_found(self):
        good = "#!/usr/bin/env bash\nset -euo pipefail\necho hi\n"
        self.plant("good", good, 0o755)
        self.assertEqual(check_shell.scripts(self.root), ["good"])
        self.assertEqual(check_shell.findings(self.root, ["good"]), [])
        self.plant("norun", good)
        self.assertTrue(any("run bit" in line for line in check_shell.findings(self.root, ["norun"])))
        self.plant("loose", "#!/bin/bash\necho hi\n", 0o755)
        self.assertTrue(any("pipefail" in line for line in check_shell.findings(self.root, ["loose"])))
        self.plant("broken", good + "if true; then\n", 0o755)
        self.assertTrue(check_shell.findings(self.root, ["broken"]))


class Generated(PlantedTree):
    def test_out_of_date_and_missing_are_found(self):
        page = self.plant("page.md", "Words.\n\nline\n")
        self.assertEqual(check_generated.findings(page, ["echo", "line"]), [])
        self.assertEqual(len(check_generated.findings(page, ["echo", "other"])), 1)
        self.assertEqual(len(check_generated.findings(page, ["true"])), 1)
        self.assertEqual(len(check_generated.findings(page + ".absent", ["echo", "line"])), 1)


class Reporting(PlantedTree):
    def run_check(self, name):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
        return subprocess.run([sys.executable, script, self.root], capture_output=True, text=True)

    def test_findings_and_an_empty_tree_fail(self):
        self.assertEqual(self.run_check("check_layers.py").returncode, 1, "nothing checked must not pass")
        self.plant("shm/a.h", "#include <cstdint>\n")
        self.assertEqual(self.run_check("check_layers.py").returncode, 0)
        self.plant("shm/b.h", '#include "agent/x.h"\n')
        self.assertEqual(self.run_check("check_layers.py").returncode, 1)

    def test_build_folders_are_left_out(self):
        self.plant("build/release/shm/a.h", "\n")
        self.plant("shm/a.h", "\n")
        self.assertEqual(tree.files(self.root, (".h",)), ["shm/a.h"])


if __name__ == "__main__":
    cases.main()
