#!/usr/bin/env python3
"""The list of entry points: the rule against the toolkit's own export list, and headers that are wrong."""
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "cmake"))
import entry_points  # noqa: E402

import cases  # noqa: E402

INCLUDE = os.environ["MEMOPT_CUDA_INCLUDE"]
ROOT = os.environ["MEMOPT_CUDA_ROOT"]

# Exported functions that cudaTypedefs.h leaves to other headers.
ELSEWHERE = {"cuProfilerInitialize", "cuProfilerStart", "cuProfilerStop"}

CUDA_H = """
#define CUDA_VERSION 13000
#define cuMemFoo cuMemFoo_v2
#define cuCopy __CUDA_API_PTDS(cuCopy_v2)
#define cuOld cuOther
"""
TYPEDEFS = """
typedef CUresult (CUDAAPI *PFN_cuMemFoo_v3020)(CUdeviceptr_v2 *dptr, size_t bytes);
typedef CUresult (CUDAAPI *PFN_cuMemFoo_v2000)(CUdeviceptr_v1 *dptr, unsigned int bytes);
typedef CUresult (CUDAAPI *PFN_cuCopy_v2000)(void);
typedef CUresult (CUDAAPI *PFN_cuCopy_v3020)(size_t n);
typedef CUresult (CUDAAPI *PFN_cuCopy_v7000_ptds)(size_t n);
typedef CUresult (CUDAAPI *PFN_cuOld_v10000)(int a);
typedef CUresult (CUDAAPI *PFN_cuOther_v11000)(int a,
                                               int b);
"""


def exports(library):
    shown = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in shown.splitlines() if line.split()[-1].startswith("cu")}


def stub():
    for folder in ("lib64/stubs", "lib/stubs", "targets/x86_64-linux/lib/stubs"):
        path = os.path.join(ROOT, folder, "libcuda.so")
        if os.path.exists(path):
            return path
    return None


class Toolkit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.entries, cls.version, cls.redirected = entry_points.load(INCLUDE)

    def test_every_typedef_is_an_export_of_the_toolkits_stub_and_the_other_way_about(self):
        if stub() is None:
            self.skipTest(f"the toolkit in {ROOT} has no stubs/libcuda.so")
        if not shutil.which("nm"):
            self.skipTest("nm is not installed (binutils)")
        symbols = {entry.symbol for entry in self.entries}
        exported = exports(stub())
        self.assertGreater(len(exported), 500)
        self.assertEqual(symbols - exported, set())
        self.assertEqual(exported - symbols - ELSEWHERE, set())

    def test_one_row_for_each_typedef(self):
        with open(os.path.join(INCLUDE, "cudaTypedefs.h"), encoding="utf-8") as header:
            typedefs = header.read().count("typedef CUresult")
        self.assertEqual(len(self.entries), typedefs)
        self.assertGreater(typedefs, 500)

    def test_known_rows(self):
        rows = {(e.base, e.version, e.suffix): e.symbol for e in self.entries}
        self.assertEqual(rows["cuMemAlloc", 2000, ""], "cuMemAlloc")
        self.assertEqual(rows["cuMemAlloc", 3020, ""], "cuMemAlloc_v2")
        self.assertEqual(rows["cuMemcpyHtoD", 7000, "_ptds"], "cuMemcpyHtoD_v2_ptds")
        self.assertEqual(rows["cuLaunchKernel", 7000, "_ptsz"], "cuLaunchKernel_ptsz")
        self.assertEqual(rows["cuCtxCreate", 11040, ""], "cuCtxCreate_v3")
        self.assertEqual(rows["cuGetProcAddress", 12000, ""], "cuGetProcAddress_v2")
        self.assertIn("cuGraphInstantiate", self.redirected)

    def test_the_page_is_what_the_generator_writes(self):
        if self.version != 13000:
            self.skipTest(f"the page is made from CUDA 13.0, this toolkit is {self.version}")
        with open(os.environ["MEMOPT_PAGE"], encoding="utf-8") as page:
            self.assertEqual(page.read(), "".join(entry_points.emit_markdown(self.entries, self.version, self.redirected)))


class Handling(unittest.TestCase):
    """Each entry point that has to do with memory has a hook, or a reason why it has none."""

    @classmethod
    def setUpClass(cls):
        cls.entries = entry_points.load(INCLUDE)[0]
        cls.handling = entry_points.read_handling()

    def test_nothing_is_left_out_and_nothing_is_stale(self):
        missing, stale = entry_points.unhandled(self.entries, self.handling)
        self.assertEqual(missing, [], "they allocate, free, copy, launch or tell of memory, and preload/ has no list with them")
        if entry_points.load(INCLUDE)[1] >= 13000:
            self.assertEqual(stale, [], "no header has them")

    def test_one_that_is_left_out_is_found(self):
        for symbol in ("cuMemAlloc_v2", "cuMemFreeAsync_ptsz", "cuMemcpyBatchAsync", "cuLaunchKernelEx", "cuPointerGetAttribute", "cuArrayDestroy"):
            less = {name: what for name, what in self.handling.items() if name != symbol}
            self.assertEqual(entry_points.unhandled(self.entries, less)[0], [symbol])

    def test_a_new_one_is_found_by_name_or_by_parameters(self):
        new = TYPEDEFS + ("typedef CUresult (CUDAAPI *PFN_cuMemcpyWithAttributesAsync_v13010)(int a);\n"
                          "typedef CUresult (CUDAAPI *PFN_cuFrobnicate_v13010)(int a, CUdeviceptr_v2 where);\n"
                          "typedef CUresult (CUDAAPI *PFN_cuDeviceGetWeight_v13010)(int a);\n")
        entries = entry_points.read_entries(CUDA_H, new)
        self.assertEqual(entry_points.unhandled(entries, dict.fromkeys(("cuMemFoo", "cuMemFoo_v2"), "hook"))[0],
                         ["cuFrobnicate", "cuMemcpyWithAttributesAsync"])

    def test_each_version_of_a_hooked_call_has_a_hook_or_a_reason(self):
        """A hook for one ABI and not for another would see half of a program."""
        hooked = {e.base for e in self.entries if self.handling.get(e.symbol, "").startswith(("hook", "relief"))}
        self.assertEqual([e.symbol for e in self.entries if e.base in hooked and e.symbol not in self.handling], [])


class Rule(unittest.TestCase):
    def symbols(self, cuda_h=CUDA_H, typedefs=TYPEDEFS):
        return {(e.base, e.version, e.suffix): e.symbol for e in entry_points.read_entries(cuda_h, typedefs)}

    def test_versions_are_numbered_in_ascending_order_wherever_they_stand(self):
        self.assertEqual(self.symbols(), {
            ("cuMemFoo", 2000, ""): "cuMemFoo", ("cuMemFoo", 3020, ""): "cuMemFoo_v2",
            ("cuCopy", 2000, ""): "cuCopy", ("cuCopy", 3020, ""): "cuCopy_v2", ("cuCopy", 7000, "_ptds"): "cuCopy_v2_ptds",
            ("cuOld", 10000, ""): "cuOld", ("cuOther", 11000, ""): "cuOther"})

    def test_parameters(self):
        by_symbol = {e.symbol: e for e in entry_points.read_entries(CUDA_H, TYPEDEFS)}
        self.assertEqual(by_symbol["cuCopy"].parameters, ())
        self.assertEqual(by_symbol["cuMemFoo_v2"].parameters, ("CUdeviceptr_v2 *dptr", "size_t bytes"))
        self.assertEqual(by_symbol["cuOther"].parameters, ("int a", "int b"))

    def test_redirected_bases(self):
        self.assertEqual(entry_points.redirected(CUDA_H, entry_points.read_entries(CUDA_H, TYPEDEFS)), ["cuOld"])

    def assert_refused(self, words, cuda_h=CUDA_H, typedefs=TYPEDEFS):
        with self.assertRaises(entry_points.HeaderError) as raised:
            entry_points.read_entries(cuda_h, typedefs)
        self.assertIn(words, str(raised.exception))

    def test_a_symbol_that_no_typedef_leads_to_is_refused(self):
        self.assert_refused("cuMemFoo_v3", cuda_h=CUDA_H.replace("cuMemFoo_v2", "cuMemFoo_v3"))

    def test_a_typedef_that_is_not_understood_is_refused(self):
        self.assert_refused("understood", typedefs=TYPEDEFS + "typedef CUresult (*PFN_cuOdd_v1)(int a);\n")

    def test_a_name_without_version_is_refused(self):
        self.assert_refused("cuOdd", typedefs=TYPEDEFS + "typedef CUresult (CUDAAPI *PFN_cuOdd)(int a);\n")

    def test_an_empty_header_is_refused(self):
        self.assert_refused("no typedef", typedefs="")

    def test_the_same_version_twice_is_refused(self):
        self.assert_refused("two typedefs", typedefs=TYPEDEFS + "typedef CUresult (CUDAAPI *PFN_cuMemFoo_v3020)(int a);\n")

    def test_a_per_thread_version_older_than_all_plain_ones_is_refused(self):
        self.assert_refused("as old as that", typedefs=TYPEDEFS + "typedef CUresult (CUDAAPI *PFN_cuOther_v7000_ptsz)(int a);\n")


class CommandLine(unittest.TestCase):
    def test_a_missing_header_is_named(self):
        script = entry_points.__file__
        result = subprocess.run([sys.executable, script, "--include", "/nonexistent", "--emit", "table"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("/nonexistent/cuda.h", result.stderr)


if __name__ == "__main__":
    cases.main()
