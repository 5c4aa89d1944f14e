#!/usr/bin/env python3
"""The comparison of memopt's recording with CUPTI's account: programs on the simulated driver, the injection library in them, and a CUPTI that says what
the test wants. NVIDIA's own is only asked for its version, where it is there."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import cases
import kit

sys.path.insert(0, os.path.join(kit.SOURCE, "integration", "gpu", "kit"))
import completeness  # noqa: E402
import cupti  # noqa: E402
import libraries  # noqa: E402
import results  # noqa: E402
import setting  # noqa: E402
import summary  # noqa: E402

FAKE = os.path.join(kit.BUILD, "tests", "fake_cupti")
BUILT = os.path.exists(os.path.join(FAKE, "libcupti.so.13"))
KINDS = {"to_device": 1, "to_host": 2, "on_device": 8}  # as CUPTI numbers them
PROGRAMS = ("digits_cnn", "vector_runtime", "vector_driver", "vector_async")


def account(**more):
    """What the injection library writes."""
    return {"cupti": 130001, "complete": True, "kernels": {"fill": 4, "add": 2}, "sets": {"count": 1, "bytes": 64}, "dropped": 0, "failures": 0, "others": 0,
            "copies": {"to_device": {"count": 2, "bytes": 300}, "to_host": {"count": 1, "bytes": 100}}} | more


def recording(**more):
    """The same operations, as `memoptctl show --json` tells them."""
    none = {"count": 0, "bytes": 0}
    return {"kernels": [{"name": "fill", "launches": 3}, {"name": "add", "launches": 2}, {"name": "fill", "launches": 1}], "missing": 0, "whole": True,
            "copies": {"to_device": {"count": 2, "bytes": 300}, "to_host": {"count": 1, "bytes": 100}, "on_device": none, "unknown": none},
            "operations": {"memset": 1}, "set_bytes": 64} | more


class Comparison(unittest.TestCase):
    def test_equal(self):
        found = completeness.compare(account(), recording())
        self.assertEqual((found["verdict"], found["kernels"]["cupti"], found["kernels"]["memopt"], found["kernels"]["names"]), ("equal", 6, 6, 2))

    def test_a_missing_kernel_is_named_on_its_side(self):
        for seen, recorded, side in ((account(kernels={"fill": 4, "add": 2, "lost": 3}), recording(), "memopt"),
                                     (account(), recording(kernels=recording()["kernels"] + [{"name": "lost", "launches": 3}]), "cupti")):
            found = completeness.compare(seen, recorded)
            self.assertEqual((found["verdict"], found["kernels"]["missing_in_" + side]), ("different", {"lost": 3}))
            other = {"memopt": "cupti", "cupti": "memopt"}[side]
            self.assertEqual(found["kernels"]["missing_in_" + other], {})

    def test_equal_totals_of_other_kernels_are_not_equal(self):
        found = completeness.compare(account(kernels={"fill": 2, "add": 4}), recording())
        self.assertEqual(found["verdict"], "different")
        self.assertEqual((found["kernels"]["missing_in_memopt"], found["kernels"]["missing_in_cupti"]), ({"add": 2}, {"fill": 2}))

    def test_copies_of_unknown_direction_fill_what_is_missing_exactly(self):
        mixed = recording()["copies"] | {"to_device": {"count": 1, "bytes": 50}, "unknown": {"count": 1, "bytes": 250}}
        self.assertEqual(completeness.compare(account(), recording(copies=mixed))["verdict"], "equal")
        few = completeness.compare(account(), recording(copies=mixed | {"unknown": {"count": 1, "bytes": 20}}))
        self.assertEqual((few["verdict"], few["copies"]["missing_in_memopt"]), ("different", {"to_device": {"count": 1, "bytes": 250}}))
        many = completeness.compare(account(), recording(copies=mixed | {"unknown": {"count": 2, "bytes": 260}}))
        self.assertEqual((many["verdict"], many["copies"]["missing_in_cupti"]), ("different", {"unknown": {"count": 1, "bytes": 10}}))

    def test_one_copy_in_pieces(self):
        found = completeness.compare(account(copies=account()["copies"] | {"to_device": {"count": 5, "bytes": 300}}), recording())
        self.assertEqual(found["verdict"], "equal bytes")

    def test_a_missing_memset(self):
        found = completeness.compare(account(), recording(operations={"memset": 0}, set_bytes=0))
        self.assertEqual((found["verdict"], found["memsets"]["missing_in_memopt"]), ("different", {"all": {"count": 1, "bytes": 64}}))

    def test_holes_are_not_taken_for_differences(self):
        for seen, recorded, why in ((account(dropped=7), recording(), "CUPTI dropped 7"), (account(failures=1), recording(), "CUPTI's buffers"),
                                    (account(), recording(missing=3), "lacks 3 records"), (account(), recording(whole=False), "is not whole"),
                                    (account(kernels={}), recording(kernels=[]), "neither saw a kernel")):
            found = completeness.compare(seen, recorded)
            self.assertEqual(found["verdict"], "not compared")
            self.assertIn(why, found["why"])

    def test_not_more_names_than_one_reads(self):
        found = completeness.compare(account(kernels={f"k{i}": i + 1 for i in range(1000)}), recording())
        named = found["kernels"]["missing_in_memopt"]
        self.assertEqual((len(named), next(iter(named.items()))), (completeness.MOST_NAMED, ("k999", 1000)))


class OnTheSimulator(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def enter(self, manager):
        value = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return value

    def setting(self, cases_wanted=None, pack=None, library_path=FAKE):
        clean = kit.environment(FAKE_CUPTI_FOLDER=self.folder, **({"LD_LIBRARY_PATH": library_path} if library_path else {}))
        self.enter(mock.patch.dict(os.environ, clean, clear=True))
        made = setting.Setting(pack or kit.pack(), results.Results(os.path.join(self.folder, "results"), 3000), kit.SIMULATOR, True, 400, cases_wanted)
        self.addCleanup(made.close)
        return made

    def fact(self, where):
        completeness.ask(where)
        with open(where.results.path("facts.json"), encoding="utf-8") as file:
            return json.load(file)["facts"][completeness.NAME]

    def record(self, where, program):
        """memopt's account of the program, and the simulator's own number of launches."""
        path = os.path.join(self.folder, program.name + ".recording")
        subprocess.run([where.memoptctl, "record", "-o", path, "--force", "--", *program.command], check=True, capture_output=True, env=where.environment())
        with open(where.report, encoding="utf-8") as file:
            launches = json.load(file)["launches"]
        return json.loads(subprocess.run([where.memoptctl, "show", "--json", path], check=True, capture_output=True, text=True).stdout), launches

    def tell(self, name, recorded, kernels=(), lines=()):
        """What the stand-in for CUPTI will say: as recorded, but for `kernels` (name -> number of launches), and `lines` more."""
        counts = {}
        for kernel in recorded["kernels"]:
            counts[kernel["name"]] = counts.get(kernel["name"], 0) + kernel["launches"]
        lines = [f"kernel {count} {kernel}" for kernel, count in (counts | dict(kernels)).items() if count] + list(lines)
        for kind, number in KINDS.items():
            amount = recorded["copies"][kind]
            if amount["count"]:
                lines += [f"copy {amount['count'] - 1} {number} 0", f"copy 1 {number} {amount['bytes']}"]
        if recorded["operations"]["memset"]:
            lines += [f"memset {recorded['operations']['memset'] - 1} 0", f"memset 1 {recorded['set_bytes']}"]
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def vector(self):
        where = self.setting(["vector_runtime"])
        (program, unable), = completeness._chosen(where)
        self.assertEqual(unable, "")
        return where, self.record(where, program)[0]

    def test_without_cupti_it_says_so(self):
        where = self.setting(["vector_runtime"], library_path=None)
        fact = self.fact(where)
        self.assertIn("not available: ", fact["error"])
        self.assertEqual(fact["values"], {})
        self.assertTrue(any(line.startswith("access_completeness: not available") for line in summary.of(where.results.path("facts.json"))))

    def test_a_pack_without_the_library_says_so(self):
        where = self.setting(["vector_runtime"])
        with mock.patch.object(cupti, "injection", return_value="/nowhere/libcupti_injection.so"):
            self.assertIn("CUPTI's headers were not there", self.fact(where)["error"])

    @unittest.skipUnless(BUILT, "CUPTI's headers were not there: nothing to inject")
    def test_equal_for_all_programs(self):
        where = self.setting()
        launches = {}
        for program, unable in completeness._chosen(where):
            self.assertEqual((program.name, unable), (program.name, ""))
            recorded, launches[program.name] = self.record(where, program)
            self.tell(program.name, recorded)
        self.assertEqual(set(launches), set(PROGRAMS))
        fact = self.fact(where)
        self.assertNotIn("error", fact)
        for name, found in fact["values"]["programs"].items():
            with self.subTest(name=name):
                self.assertEqual((found["verdict"], found["injected_by"]), ("equal", "preloaded"), found)
                # By the driver's own count, too.
                self.assertEqual(found["kernels"]["memopt"], launches[name])
                self.assertGreater(found["copies"]["to_host"]["memopt"]["bytes"], 0)
        self.assertEqual(fact["values"]["cupti"], os.path.join(FAKE, "libcupti.so.13"))
        lines = summary.of(where.results.path("facts.json"))
        self.assertTrue(any(f"{launches['digits_cnn']} launches" in line and "digits_cnn: equal" in line for line in lines), lines)

    @unittest.skipUnless(BUILT, "CUPTI's headers were not there: nothing to inject")
    def test_what_is_missing_is_named(self):
        where, recorded = self.vector()
        first = recorded["kernels"][0]["name"]
        self.tell("vector_runtime", recorded, kernels={first: 1, "unseen_kernel": 2}, lines=["copy 3 1 1000", "copy 1 9 10"])
        found = self.fact(where)["values"]["programs"]["vector_runtime"]
        self.assertEqual(found["verdict"], "different")
        self.assertEqual(found["kernels"]["missing_in_memopt"], {"unseen_kernel": 2})
        self.assertEqual(set(found["kernels"]["missing_in_cupti"]), {first})
        self.assertEqual(found["copies"]["missing_in_memopt"], {"to_device": {"count": 3, "bytes": 3000}, "on_host": {"count": 1, "bytes": 10}})
        lines = "\n".join(summary.of(where.results.path("facts.json")))
        self.assertIn("not seen by memopt: kernels: unseen_kernel (2)", lines)
        self.assertIn("to_device (3, 3000 bytes)", lines)

    @unittest.skipUnless(BUILT, "CUPTI's headers were not there: nothing to inject")
    def test_many_records_take_many_buffers(self):
        where, recorded = self.vector()
        self.tell("vector_runtime", recorded, kernels={"often": 20000})
        found = self.fact(where)["values"]["programs"]["vector_runtime"]
        self.assertEqual(found["kernels"]["missing_in_memopt"], {"often": 20000})

    @unittest.skipUnless(BUILT, "CUPTI's headers were not there: nothing to inject")
    def test_what_cupti_dropped_is_no_difference(self):
        where, recorded = self.vector()
        self.tell("vector_runtime", recorded, lines=["dropped 9"])
        found = self.fact(where)["values"]["programs"]["vector_runtime"]
        self.assertEqual((found["verdict"], "CUPTI dropped 9 records" in found["why"]), ("not compared", True))

    @unittest.skipUnless(BUILT, "CUPTI's headers were not there: nothing to inject")
    def test_a_version_that_is_not_known(self):
        for version in "18", "1000", "140000":
            where = self.setting(["vector_runtime"])
            self.enter(mock.patch.dict(os.environ, {"FAKE_CUPTI_VERSION": version}))
            self.assertRegex(self.fact(where)["error"], rf"^not available: .*libcupti\.so\.13: its version is {version}, known are ")

    @unittest.skipUnless(BUILT, "CUPTI's headers were not there: nothing to inject")
    def test_one_that_fails_in_the_program(self):
        for function, why in (("cuptiActivityEnable", "cuptiActivityEnable, kernels: CUPTI_ERROR_NOT_COMPATIBLE"),
                              ("cuptiActivityFlushAll", "cuptiActivityFlushAll: CUPTI_ERROR_NOT_COMPATIBLE")):
            where = self.setting(["vector_runtime"])
            self.enter(mock.patch.dict(os.environ, {"FAKE_CUPTI_BROKEN": function}))
            found = self.fact(where)["values"]["programs"]["vector_runtime"]
            self.assertEqual((found["verdict"], found["why"]), ("not compared", why))

    @unittest.skipUnless(BUILT, "CUPTI's headers were not there: nothing to inject")
    def test_the_second_way_where_the_driver_does_not_load_it(self):
        for loads, way in ((True, "CUDA_INJECTION64_PATH"), (False, "preloaded")):
            where, recorded = self.vector()
            self.tell("vector_runtime", recorded)
            path, _ = cupti.choose(where)
            program = next(completeness._chosen(where))[0]
            # As on a GPU.
            environment = where.environment({}, runtime=True)
            where.simulator = None

            def names_of(names=None, environment=environment, loads=loads, **_):
                return environment | {name: value for name, value in (names or {}).items() if loads or name != "CUDA_INJECTION64_PATH"}
            with self.subTest(way), mock.patch.object(where, "environment", names_of):
                observed = cupti.observe(where, program.name, program.command, path, True)
                self.assertEqual((observed.way, observed.failure), (way, None))
                self.assertEqual(completeness.compare(observed.seen, observed.recorded)["verdict"], "equal")

    @unittest.skipUnless(BUILT, "CUPTI's headers were not there: nothing to inject")
    def test_the_entry_point_that_the_driver_calls(self):
        # Twice, and from a forked child that ends by its exit handlers: one account, of the parent.
        program = ("import ctypes, os, sys\nlibrary = ctypes.CDLL(sys.argv[1])\nassert library.InitializeInjection() == library.InitializeInjection() == 1\n"
                   "child = os.fork()\nif child == 0:\n    sys.exit(0)\nassert os.waitpid(child, 0)[1] == 0\nprint(os.getpid())")
        with open(os.path.join(self.folder, os.path.basename(sys.executable)), "w", encoding="utf-8") as file:
            file.write("kernel 5 some_kernel\ncopy 2 3 10\ncopy 1 9 4\ncopy 1 77 1\nmemset 3 8\n")
        output = os.path.join(self.folder, "seen")
        done = kit.run([sys.executable, "-c", program, cupti.injection(self.setting())], FAKE_CUPTI_FOLDER=self.folder, GPU_KIT_CUPTI_OUTPUT=output,
                       GPU_KIT_CUPTI=os.path.join(FAKE, "libcupti.so.13"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("seen")], ["seen." + done.stdout.strip()])
        with open(output + "." + done.stdout.strip(), encoding="utf-8") as file:
            found = json.load(file)
        self.assertEqual((found["complete"], found["kernels"], found["sets"]), (True, {"some_kernel": 5}, {"count": 3, "bytes": 24}))
        self.assertEqual(found["copies"], {"to_device": {"count": 2, "bytes": 20}, "on_host": {"count": 1, "bytes": 4}, "unknown": {"count": 1, "bytes": 1}})

    @unittest.skipUnless(BUILT, "CUPTI's headers were not there: nothing to inject")
    def test_nvidias_own_is_known_where_it_is_there(self):
        found = [path for name in cupti.NAMES for path in libraries.find(name, cupti.IN_TOOLKIT, "cuda_cupti") if not path.startswith(FAKE)]
        if not found:
            self.skipTest("there is no CUPTI on this machine")
        where = self.setting()
        with mock.patch.object(cupti, "candidates", return_value=found):
            path, version = cupti.choose(where)
        self.assertIn(path, found)
        self.assertGreaterEqual(version, 19)

    def test_other_facts_stay(self):
        where = self.setting(["vector_runtime"], library_path=None)
        with open(where.results.path("facts.json"), "w", encoding="utf-8") as file:
            json.dump({"format": 1, "small": True, "facts": {"device": {"values": {"name": "x"}}}}, file)
        self.fact(where)
        with open(where.results.path("facts.json"), encoding="utf-8") as file:
            self.assertEqual(set(json.load(file)["facts"]), {"device", completeness.NAME})


if __name__ == "__main__":
    cases.main()
