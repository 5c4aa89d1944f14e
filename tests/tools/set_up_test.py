#!/usr/bin/env python3
"""The set-up commands as far as they can be tried without installing anything: fake toolkits, a fake apt, fake reports."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

import cases
import patience

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = os.path.join(ROOT, "tools")


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=patience.seconds(100), stdin=subprocess.DEVNULL, **options)


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        os.chmod(self.folder, 0o755)

    def write(self, path, text, mode=0o644):
        full = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(full, mode)
        return full


class FetchFrameworks(Scratch):
    def setUp(self):
        super().setUp()
        for name in ("fetch-frameworks", "lib/common.sh", "lib/frameworks.txt"):
            to = os.path.join(self.folder, "tree/tools", name)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(os.path.join(TOOLS, name), to)

    def fetch(self, *arguments, **environment):
        # Without a network: what would be fetched fails.
        return run(os.path.join(self.folder, "tree/tools/fetch-frameworks"), *arguments,
                   env={"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1", **environment})

    def test_what_is_there_is_not_fetched_again(self):
        missing = self.fetch("--check")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("tools/fetch-frameworks", missing.stderr)
        self.write("tree/build/frameworks/bin/python", "#!/bin/sh\n", 0o755)
        self.assertEqual(self.fetch("--check").returncode, 1, "half of it")
        shutil.copy(os.path.join(TOOLS, "lib/frameworks.txt"), os.path.join(self.folder, "tree/build/frameworks"))
        for arguments in (("--check",), ()):
            done = self.fetch(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("build/frameworks", done.stdout)
        self.write("tree/build/frameworks/frameworks.txt", "torch==1.0\n")
        self.assertEqual(self.fetch("--check").returncode, 1, "another list")

    def test_a_folder_of_the_users_is_taken_as_it_is(self):
        self.write("mine/bin/python", "#!/bin/sh\n", 0o755)
        self.assertEqual(self.fetch(MEMOPT_FRAMEWORKS=os.path.join(self.folder, "mine")).returncode, 0)
        done = self.fetch(MEMOPT_FRAMEWORKS=os.path.join(self.folder, "none"))
        self.assertEqual(done.returncode, 3)
        self.assertIn("has no bin/python", done.stderr)

    @unittest.skipUnless(run("/usr/bin/python3", "-m", "pip", "--version").returncode == 0, "the system's Python has no pip")
    def test_what_cannot_be_had_is_said(self):
        done = self.fetch("--no-install")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(done.stderr, "PyTorch|too little space")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "tree/build/frameworks")), "a half-filled folder")

    def test_wrong_use(self):
        self.assertEqual(self.fetch("--bogus").returncode, 2)


class FindCuda(Scratch):
    def toolkit(self, name, version, headers=("cuda.h", "cudaTypedefs.h")):
        self.write(f"{name}/bin/nvcc", "#!/bin/sh\n", 0o755)
        for header in headers:
            self.write(f"{name}/include/{header}", f"#define CUDA_VERSION {version}\n")
        return os.path.join(self.folder, name)

    def find(self, home="", path="", default="/nonexistent"):
        # A copy, so that a toolkit in this tree's own build folder is not found.
        script = os.path.join(self.folder, "tree/tools/lib/find-cuda")
        os.makedirs(os.path.dirname(script), exist_ok=True)
        shutil.copy(os.path.join(TOOLS, "lib/find-cuda"), script)
        return run(script, env={"CUDA_HOME": home, "PATH": f"{path}:/usr/bin:/bin", "FIND_CUDA_DEFAULT": default})

    def test_the_order(self):
        home, path, default = (self.toolkit(name, 13000) for name in ("home", "path", "default"))
        wheels = self.toolkit("tree/build/cuda", 13000)
        self.assertEqual(self.find(home, path + "/bin", default).stdout.strip(), home)
        self.assertEqual(self.find("", path + "/bin", default).stdout.strip(), path)
        self.assertEqual(self.find("", "", default).stdout.strip(), default)
        self.assertEqual(self.find().stdout.strip(), wheels)

    def test_a_link_in_path_leads_to_its_toolkit(self):
        home = self.toolkit("home", 13000)
        os.makedirs(os.path.join(self.folder, "links"))
        os.symlink(home + "/bin/nvcc", os.path.join(self.folder, "links/nvcc"))
        self.assertEqual(self.find("", os.path.join(self.folder, "links")).stdout.strip(), home)

    def test_unusable_ones_are_passed_over_and_named(self):
        old, bare = self.toolkit("old", 12080), self.toolkit("bare", 13000, ["cuda.h"])
        found = self.find(old, bare + "/bin")
        self.assertEqual((found.returncode, found.stdout), (3, ""))
        self.assertIn(f"CUDA_HOME: {old} is version 12080", found.stderr)
        self.assertIn(f"PATH: {bare} has nvcc, but no include", found.stderr)
        good = self.toolkit("good", 13010)
        self.assertEqual(self.find(old, bare + "/bin", good).stdout.strip(), good)


class Packages(Scratch):
    """install_packages with a dpkg-query, an apt-get and an apt-cache of the test's own."""

    def setUp(self):
        super().setUp()
        shutil.copytree(TOOLS, os.path.join(self.folder, "tree/tools"))
        self.log = self.write("log", "", 0o666)
        self.write("bin/dpkg-query", f'#!/bin/bash\ngrep -qx "${{@: -1}}" {self.folder}/installed && echo -n installed\n', 0o755)
        self.write("bin/apt-cache", f'#!/bin/bash\n[[ -e {self.folder}/lists ]]\n', 0o755)
        self.write("bin/apt-get", f"""#!/bin/bash
echo "$*" >>{self.log}
case "$*" in
  *update*) touch {self.folder}/lists ;;
  *install*) [[ ! -e {self.folder}/broken ]] || exit 100; for word; do echo "$word"; done >>{self.folder}/installed ;;
esac
""", 0o755)

    def install(self, *packages, user=None):
        os.chmod(self.folder, 0o777)
        command = ["bash", "-c", 'set -euo pipefail; source tree/tools/lib/common.sh; install_packages "$@"', "test", *packages]
        if user:
            command = ["setpriv", f"--reuid={user}", "--clear-groups", *command]
        return run(*command, cwd=self.folder, env={"PATH": f"{self.folder}/bin:/usr/bin:/bin"})

    def calls(self):
        with open(self.log, encoding="utf-8") as file:
            return [line.split(" -q ")[-1].split()[0] for line in file]

    @unittest.skipIf(os.geteuid() != 0, "needs root: apt is called by sudo otherwise")
    def test_nothing_is_called_when_all_is_there(self):
        self.write("installed", "one\ntwo\n")
        self.assertEqual(self.install("one", "two").returncode, 0)
        self.assertEqual(self.calls(), [])

    @unittest.skipIf(os.geteuid() != 0, "needs root: apt is called by sudo otherwise")
    def test_lists_are_fetched_only_where_needed(self):
        self.write("installed", "one\n", 0o666)
        self.assertEqual(self.install("one", "two").returncode, 0)
        self.assertEqual(self.calls(), ["update", "install"])
        self.assertEqual(self.install("one", "three").returncode, 0)
        self.assertEqual(self.calls(), ["update", "install", "install"])

    @unittest.skipIf(os.geteuid() != 0, "needs root: apt is called by sudo otherwise")
    def test_a_failing_install_is_tried_once_more_after_an_update_and_named(self):
        for name in ("installed", "lists", "broken"):
            self.write(name, "")
        done = self.install("two")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(self.calls(), ["install", "update", "install"])
        self.assertIn("could not be installed: two", done.stderr)

    @unittest.skipIf(os.geteuid() != 0 or shutil.which("sudo"), "needs root, and a machine without sudo")
    def test_neither_root_nor_sudo_names_the_command(self):
        self.write("installed", "")
        done = self.install("two", user=65534)
        self.assertEqual(done.returncode, 3)
        self.assertIn("apt-get install two", done.stderr)


class Totals(Scratch):
    def totals(self, *presets):
        return run(sys.executable, os.path.join(TOOLS, "lib/test_totals.py"), self.folder, *presets)

    def report(self, preset, cases, gtests=()):
        body = "".join(f'<testcase name="{name}" status="{status}"><system-out>noise\n{out}\n</system-out></testcase>'
                       for name, status, out in cases)
        self.write(f"{preset}/test-results/ctest.junit", f"<testsuite>{body}</testsuite>")
        for name, body in gtests:
            self.write(f"{preset}/test-results/{name}.xml", f"<testsuites><testsuite>{body}</testsuite></testsuites>")

    def test_cases_inside_binaries_are_counted(self):
        self.report("release", [("a", "run", ""), ("plain", "run", ""), ("off", "notrun", "skipped: no such tool")],
                    [("a", '<testcase classname="S" name="one" status="run"/>'
                           '<testcase classname="S" name="two" status="run"><skipped message="x&#10;no GPU"/></testcase>'
                           '<testcase classname="S" name="off" status="notrun"/>')])
        done = self.totals("release")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 0 failed, 2 skipped")
        self.assertIn("skipped: a: S.two: no GPU", done.stdout)
        self.assertIn("skipped: off: skipped: no such tool", done.stdout)

    def test_failures_are_named_and_summed_over_presets(self):
        self.report("release", [("a", "fail", "")], [("a", '<testcase classname="S" name="one" status="run"><failure/></testcase>'
                                                           '<testcase classname="S" name="two" status="run"/>')])
        self.report("asan", [("crashed", "fail", ""), ("died_late", "fail", "")],
                    [("died_late", '<testcase classname="S" name="one" status="run"/>')])
        done = self.totals("release", "asan")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 3 failed, 0 skipped")
        for name in ("a: S.one", "crashed", "died_late"):
            self.assertIn(f"FAILED: {name}", done.stdout)

    def test_what_was_left_out_is_skipped(self):
        self.report("release", [("a", "run", ""), ("late", "notrun", "the time of this run of tests was over")])
        done = self.totals("release", "--left-out=asan", "--left-out=tsan")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "1 passed, 0 failed, 3 skipped"))
        for line in ("skipped: late: the time of this run of tests was over", "skipped: asan: neither built"):
            self.assertIn(line, done.stdout)

    def test_what_is_missing_or_unreadable_fails(self):
        self.assertEqual(self.totals("release").returncode, 1)
        self.report("release", [])
        self.assertEqual(self.totals("release").returncode, 1)
        self.report("release", [("a", "run", "")])
        self.write("release/test-results/a.xml", "<testsuites>")
        self.assertEqual(self.totals("release").returncode, 1)


class Arguments(unittest.TestCase):
    def test_help_and_wrong_use(self):
        for command in ("quickstart", "run-tests"):
            path = os.path.join(TOOLS, command)
            self.assertEqual(run(path, "--help").returncode, 0)
            self.assertEqual(run(path, "--bogus").returncode, 2)
        for arguments, environment in ((("--preset", "bogus"), {}), (("--minutes", "0"), {}), (("--minutes=soon",), {}),
                                       ((), {"TEST_PATIENCE": "21"})):
            done = run(os.path.join(TOOLS, "run-tests"), *arguments, env={**os.environ, **environment})
            self.assertEqual(done.returncode, 2, (arguments, environment))
            self.assertIn((arguments or ("TEST_PATIENCE",))[-1].rpartition("=")[2], done.stderr)
        with open(os.path.join(ROOT, ".ci/run"), encoding="utf-8") as file:
            self.assertIn("tools/run-tests", file.read())


class Presets(Scratch):
    """run-tests over several presets, with a cmake, a ninja and a ctest of the test's own."""

    def setUp(self):
        super().setUp()
        shutil.copytree(TOOLS, os.path.join(self.folder, "tree/tools"))
        self.write("cuda/bin/nvcc", "#!/bin/sh\n", 0o755)
        for header in ("cuda.h", "cudaTypedefs.h"):
            self.write(f"cuda/include/{header}", "#define CUDA_VERSION 13000\n")
        self.log = self.write("log", "")
        self.write("bin/cmake", f'#!/bin/sh\necho "$@" >>{self.folder}/configured\n', 0o755)
        self.write("bin/ninja", f"""#!/bin/bash
preset=$(basename "$2")
echo "build $preset at $(ps -o policy= -p $$)" >>{self.log}
touch {self.folder}/$preset-build-began
echo '[1/1] Building everything'
[[ ! -e {self.folder}/$preset-takes-long ]] || sleep 300
[[ ! -e {self.folder}/$preset-is-broken ]] || {{ echo 'error: no such type'; exit 1; }}
echo "built $preset" >>{self.log}
""", 0o755)
        # Where WAIT_FOR is set, the release tests end only when that build has begun: beside them.
        self.write("bin/ctest", f"""#!/bin/bash
without=''
while (($#)); do case $1 in
  --test-dir) preset=$(basename "$2") ;; --output-junit) junit=$2 ;; --label-exclude) without=$2 ;;
esac; shift; done
echo "$without" >{self.folder}/$preset-without
echo "test $preset" >>{self.log}
if [[ $preset == release && -n ${{WAIT_FOR:-}} ]]; then
  for ((tries = 0; tries < 500; tries++)); do [[ -e {self.folder}/$WAIT_FOR-build-began ]] && break; sleep 0.1; done
  ((tries < 500)) || exit 1
fi
echo "tested $preset" >>{self.log}
echo '<testsuite><testcase name="a" status="run"/></testsuite>' >"$junit"
""", 0o755)

    def run_tests(self, *arguments, **environment):
        done = run(os.path.join(self.folder, "tree/tools/run-tests"), "--no-install", *arguments,
                   env={"PATH": f"{self.folder}/bin:/usr/bin:/bin", "CUDA_HOME": f"{self.folder}/cuda", **environment})
        with open(self.log, encoding="utf-8") as file:
            return done, file.read().splitlines()

    def test_the_next_preset_is_built_beside_the_tests(self):
        done, log = self.run_tests(WAIT_FOR="asan")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "3 passed, 0 failed, 0 skipped"), done.stdout + done.stderr)
        policy = "IDL" if run("chrt", "--idle", "0", "true").returncode == 0 else "TS"
        self.assertLess(log.index(f"build asan at {policy}"), log.index("tested release"))
        for preset in ("release", "asan", "tsan"):
            self.assertLess(log.index(f"built {preset}"), log.index(f"test {preset}"))
            self.assertIn(f"== Build {preset}", done.stdout)

    def test_in_turn(self):
        done, log = self.run_tests("--in-turn", "--preset", "release", "--preset", "tsan")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([line.split(" at ")[0] for line in log],
                         [f"{step} {preset}" for preset in ("release", "tsan") for step in ("build", "built", "test", "tested")])
        self.assertFalse([line for line in log if "IDL" in line])

    def test_labels_that_are_left_out(self):
        for arguments, release, tsan in (((), "full|frameworks", "full|frameworks|lint|frameworks"),
                                         (("--frameworks",), "full", "full|lint|frameworks"),
                                         (("--full",), "frameworks", "frameworks|lint|frameworks"),
                                         (("--full", "--frameworks"), None, "lint|frameworks"),
                                         (("--quick",), "full|frameworks|slow", "full|frameworks|slow|lint|frameworks")):
            first = () if arguments == ("--quick",) else ("--preset", "release")  # --quick is this preset
            done, _ = self.run_tests("--in-turn", *arguments, *first, "--preset", "tsan")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for preset, expected in (("release", release), ("tsan", tsan)):
                with open(os.path.join(self.folder, f"{preset}-without"), encoding="utf-8") as file:
                    self.assertEqual(file.read().strip(), f"^({expected})$" if expected else "", (arguments, preset))

    def test_what_a_preset_leaves_to_another(self):
        """GoogleTest binaries to asan, what nvcc makes to the release: where these are built, and before it."""
        release = f"{self.folder}/tree/build/release"
        every, fewer, copied, made = "ALL_GOOGLETESTS=ON", "ALL_GOOGLETESTS=OFF", f"NVCC_FROM={release}", "NVCC_FROM="
        for presets, more, expected in ((("release", "asan", "tsan"), (), ((fewer, made), (every, copied), (every, copied))),
                                        (("release", "asan"), ("--full",), ((every, made), (every, copied))),
                                        (("release", "tsan"), (), ((every, made), (every, copied))),
                                        (("coverage", "asan"), (), ((every, made), (every, made))),
                                        (("asan", "release"), (), ((every, made), (fewer, made))),
                                        (("release",), ("--quick",), ((every, made),))):
            self.write("configured", "")
            named = () if more == ("--quick",) else [word for preset in presets for word in ("--preset", preset)]
            done, _ = self.run_tests("--in-turn", *named, *more)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(f"{self.folder}/configured", encoding="utf-8") as file:
                self.assertEqual([line.split()[1:2] + line.split()[-3:-1] for line in file],
                                 [[preset, *(f"-DMEMOPT_{one}" for one in settings)] for preset, settings in zip(presets, expected)])

    def test_no_longer_than_it_is_given(self):
        """asan's build takes longer; what it would still do is not done. It is late by this machine's clock once the build has begun."""
        self.write("asan-takes-long", "")
        self.write("bin/date", f'#!/bin/sh\n[ -e {self.folder}/asan-build-began ] && echo 9999999999 || exec /bin/date "$@"\n', 0o755)
        done, log = self.run_tests("--minutes", "1", WAIT_FOR="asan")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "1 passed, 0 failed, 2 skipped"), done.stdout + done.stderr)
        self.assertIn("tested release", log)
        self.assertNotIn("built asan", log)
        for preset in ("asan", "tsan"):
            self.assertIn(f"skipped: {preset}: neither built to its end nor tested", done.stdout)
            self.assertNotIn(f"test {preset}", log)

    def test_a_test_is_begun_only_in_time(self):
        for until, expected in (("", (3, "")), (str(int(time.time()) + 1000), (3, "")), (str(int(time.time())), (77, "over"))):
            done = run(os.path.join(ROOT, "tests/tools/in_time"), "sh", "-c", "exit 3", env={**os.environ, "TESTS_UNTIL": until})
            self.assertEqual(done.returncode, expected[0])
            self.assertIn(expected[1], done.stdout)

    def test_patience(self):
        """Measured where it is not said, and handed to all that is built."""
        for said in ("", "7"):
            self.write("configured", "")
            done, _ = self.run_tests("--preset", "release", TEST_PATIENCE=said)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(f"{self.folder}/configured", encoding="utf-8") as file:
                given = int(file.read().split("-DMEMOPT_TEST_PATIENCE=")[1])
            self.assertTrue(given == 7 if said else 1 <= given <= 20, given)
            self.assertEqual(f"tests are given {given} times as long" in done.stdout, given > 1)

    def test_patience_is_how_many_times_the_usual_a_start_takes(self):
        specification = importlib.util.spec_from_file_location("test_patience", os.path.join(TOOLS, "lib/test_patience.py"))
        measured = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(measured)
        self.assertEqual([measured.times(seconds) for seconds in (0.001, 0.02, 0.021, 0.06, 100)], [1, 1, 2, 3, 20])
        self.assertGreater(measured.start(), 0)

    def test_a_build_that_fails_beside_the_tests_ends_it(self):
        self.write("asan-is-broken", "")
        done, log = self.run_tests()
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: no such type", done.stdout)
        self.assertIn("building asan failed", done.stdout)
        self.assertIn("tested release", log)
        self.assertNotIn("test asan", log)


class Comparison(Scratch):
    """compare_runs.py over a build of shell scripts."""

    def setUp(self):
        super().setUp()
        self.write("cudasim/lib/libcaching_pool.so", "")
        self.program("same")
        self.write("bin/memoptctl-running", """#!/bin/bash
case $1 in
  run) [[ "$*" != *--limit* || "$*" == *"--limit 60MiB"* ]] || exit 2
    while [[ $1 != -- ]]; do shift; done; shift; UNDER=memopt exec "$@" ;;
  status) echo '{"processes": []}'; exit 3 ;;
esac
""", 0o755)

    def program(self, checksum_under_memopt, races=0, last="", report=True, trouble="out of memory", small="same"):
        text = json.dumps({"memory": {"bytes_held_peak": 96 << 20, "bytes_live_peak": 64 << 20}, "races": races,
                           "host_end_ns": 80000000, "device_end_ns": 40000000})
        self.write("workloads/digits_cnn", f"""#!/bin/bash
unset LD_PRELOAD
while (($#)); do [[ $1 != --batch ]] || batch=$2; shift; done
if [[ -n ${{CUDASIM_CAPACITY:-}} && $batch -gt 240 && ${{UNDER:-}}${{MEMOPT_SWAP:-}} != memopt ]]; then echo "{trouble}"; exit 1; fi
[[ -z ${{CACHING_POOL_REPORT:-}} ]] || echo '{{"peak_requested_bytes": {60 << 20}}}' >"$CACHING_POOL_REPORT"
{f"echo '{text}' >$CUDASIM_REPORT" if report else ""}
echo 'test accuracy 97.50 % (1 of 2)'
sum=cafe; [[ -z ${{CUDASIM_CAPACITY:-}} || {small} == same ]] || sum=beef; [[ ${{UNDER:-}} != memopt || {checksum_under_memopt} == same ]] || sum=beef
echo "checksum $sum"
{last}
""", 0o755)

    def compare(self):
        return run(sys.executable, os.path.join(TOOLS, "lib/compare_runs.py"), "--build", self.folder, "--cuda", "/nonexistent", "--sim",
                   "--device", "h200", "--table", f"{self.folder}/table", "--json", f"{self.folder}/json")

    def test_equal_results(self):
        done = self.compare()
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("Simulated device (h200)", "natively 240, memopt without swaps 240, memopt 1008.", "96.0 MiB", "64.0 MiB", "60.0 MiB", "1.600 ms", "97.50 %", "equal", "memopt", "memopt, limit 60MiB"):
            self.assertIn(words, done.stdout)
        with open(f"{self.folder}/json", encoding="utf-8") as file:
            self.assertEqual([row["checksum"] for row in json.load(file)["runs"]], ["cafe"] * 4)
        with open(f"{self.folder}/table", encoding="utf-8") as file:
            drawn = subprocess.run([sys.executable, os.path.join(ROOT, "docs/images/draw_terminal.py"), "tools/quickstart"], stdin=file,
                                   capture_output=True, text=True)
        self.assertEqual(drawn.returncode, 0)
        words = "".join(ElementTree.fromstring(drawn.stdout).itertext())
        self.assertIn("memopt's own", words)

    def test_a_differing_checksum_fails(self):
        self.program("different")
        done = self.compare()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("DIFFERS", done.stdout)
        self.assertIn("the results differ", done.stderr)

    def test_races_failures_and_missing_reports_fail(self):
        for options, words in (({"races": 2}, "races"), ({"last": "exit 9"}, "exit code 9"), ({"last": "echo more"}, "no checksum"),
                               ({"report": False}, "no readable report")):
            self.program("same", **options)
            done = self.compare()
            self.assertNotEqual(done.returncode, 0, options)
            self.assertIn(words, done.stderr)

    def test_the_comparison_is_kept_where_the_largest_batch_fails(self):
        for options, words in (({"small": "different"}, "the largest batch: batch 1008 in 64 MiB: the results differ"),
                               ({"trouble": "no such file"}, "the largest batch: batch 528: exit code 1: no such file")):
            self.program("same", **options)
            done = self.compare()
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
            self.assertIn("equal", done.stdout)
            with open(f"{self.folder}/table", encoding="utf-8") as file:
                self.assertIn("equal", file.read())
            os.remove(f"{self.folder}/table")

    def test_a_build_that_is_not_whole_is_named(self):
        os.remove(f"{self.folder}/workloads/digits_cnn")
        self.assertIn("digits_cnn is missing", self.compare().stderr)


if __name__ == "__main__":
    cases.main()
