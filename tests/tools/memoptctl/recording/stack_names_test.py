#!/usr/bin/env python3
"""Where allocations come from, by name: Python code, as the interpreter itself says it, under each version that is here; native code of
programs and libraries of all kinds.

usage: stack_names_test.py MEMOPTCTL CXX [unittest arguments]
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import unittest

import cases
import patience
import scratch
import simulated

MEMOPTCTL, CXX = (os.path.abspath(sys.argv.pop(1)), sys.argv.pop(1)) if len(sys.argv) > 2 else sys.exit(__doc__)

# Allocates at several depths, sizes of their own, and prints for each what the interpreter says of its stack.
PYTHON = r"""
import ctypes, json, sys, threading
driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and driver.cuCtxSetCurrent(context) == 0
blocks, expected, sizes = [], {}, iter(range(1 << 20, 1 << 24, 1 << 16))

def allocate():
    size, stack, frame = next(sizes), [], sys._getframe(0)
    blocks.append(ctypes.c_uint64())
    expected[size] = stack
    while frame:
        name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
        stack.append([name, frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    stack[0][2] += 3  # the line of the call below
    assert driver.cuMemAlloc_v2(ctypes.byref(blocks[-1]), ctypes.c_size_t(size)) == 0

class Net:
    def forward(self, depth):
        if depth:
            return self.forward(
                depth - 1)
        allocate()
        return [allocate() for _ in range(2)]

def generator():
    for _ in range(2):
        allocate()
        yield
def große_schicht_網(n):
    allocate()
    (lambda: allocate())()

for depth in (0, 1, 5, 90):
    Net().forward(depth)
list(generator())
sorted([2, 1], key=lambda _: allocate() or 0)
exec(compile("def made():\n  allocate()\nmade()", "<made up>", "exec"), {"allocate": allocate})
große_schicht_網(1)
def in_thread():
    assert driver.cuCtxSetCurrent(context) == 0
    Net().forward(2)
threads = [threading.Thread(target=in_thread) for _ in range(2)]
for thread in threads:
    thread.start()
    thread.join()
for block in blocks:
    assert driver.cuMemFree_v2(block) == 0
print(json.dumps({size: stack for size, stack in expected.items()}))
"""

PLUGIN = r"""
#include <dlfcn.h>
#include <cstddef>
namespace { template <typename Size> struct Layer {
  __attribute__((noinline)) int allocate(void* driver, Size bytes) {
    unsigned long long block; auto* call = reinterpret_cast<int (*)(unsigned long long*, std::size_t)>(dlsym(driver, "cuMemAlloc_v2"));
    int code = call(&block, bytes); asm volatile("" : "+r"(code)); return code; } }; }
extern "C" int allocate_in_plugin(void* driver, std::size_t bytes) { int code = Layer<std::size_t>().allocate(driver, bytes); asm volatile("" : "+r"(code)); return code; }
"""
PROGRAM = r"""
#include <dlfcn.h>
#include <cstddef>
__attribute__((noinline)) int outer_function(void* driver, int (*allocate)(void*, std::size_t), std::size_t bytes) {
  int code = allocate(driver, bytes); asm volatile("" : "+r"(code)); return code; }
__attribute__((noinline)) int in_program(void* driver, std::size_t bytes) {
  unsigned long long block; auto* call = reinterpret_cast<int (*)(unsigned long long*, std::size_t)>(dlsym(driver, "cuMemAlloc_v2"));
  int code = call(&block, bytes); asm volatile("" : "+r"(code)); return code; }
int main(int, char** arguments) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW); void* plugin = dlopen(arguments[1], RTLD_NOW); void* context = nullptr;
  if (!driver || !plugin) return 3;
  if (reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"))(0)) return 4;
  if (reinterpret_cast<int (*)(void**, int)>(dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0)) return 4;
  if (reinterpret_cast<int (*)(void*)>(dlsym(driver, "cuCtxSetCurrent"))(context)) return 4;
  auto* other = reinterpret_cast<int (*)(void*, std::size_t)>(dlsym(plugin, "allocate_in_plugin"));
  return outer_function(driver, in_program, 3 << 20) | outer_function(driver, other, 5 << 20);
}
"""


def interpreters():
    found = []
    for minor in range(8, 14):
        name = f"python3.{minor}"
        here = [shutil.which(name), *sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/{name}")))]
        for path in filter(None, here):
            asked = subprocess.run([path, "-c", "import sys, ctypes; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True)
            if asked.stdout.strip() == f"3.{minor}":
                found.append(path)
                break
    return found


class Recorded(scratch.InFolder):
    def setUp(self):
        super().setUp()
        self.file = self.path("recording")

    def record(self, *command):
        done = subprocess.run([MEMOPTCTL, "record", "--force", "-o", self.file, "--sim", "a100-40g", "--", *command], capture_output=True, text=True,
                              timeout=patience.seconds(100), stdin=subprocess.DEVNULL, env=simulated.clean_environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def blocks(self):
        shown = subprocess.run([MEMOPTCTL, "show", "--json", "--stacks", "100", self.file], capture_output=True, text=True,
                               timeout=patience.seconds(100))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        return {block["bytes"]: block for block in json.loads(shown.stdout)["largest_blocks"]}


class Python(Recorded):
    def program(self):
        path = os.path.join(self.folder, "trainé.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PYTHON)
        return path

    def says_what_the_interpreter_says(self, python):
        expected = json.loads(self.record(python, self.program()))
        blocks = self.blocks()
        self.assertGreater(len(expected), 15)
        for size, stack in expected.items():
            names = [f"{name} ({file}:{line})" for name, file, line in stack][:64]
            self.assertEqual(blocks[int(size)]["python"], names, f"{python}, {size}")

    def test_of_each_version(self):
        found = interpreters()
        self.assertTrue(found)
        for python in found:
            with self.subTest(python):
                self.says_what_the_interpreter_says(python)

    def test_as_text(self):
        self.record(sys.executable, self.program())
        shown = subprocess.run([MEMOPTCTL, "show", "--stacks", "3", self.file], capture_output=True, text=True, timeout=patience.seconds(100))
        self.assertRegex(shown.stdout, r"python frame\n")
        self.assertRegex(shown.stdout, r"      Net\.forward \(.*/train.*\.py:25\)\n")
        operations = subprocess.run([MEMOPTCTL, "show", "--operations", "1:400", self.file], capture_output=True, text=True, timeout=patience.seconds(100))
        self.assertRegex(operations.stdout, r"python frame +0x[0-9a-f]+ is allocate \(.*/train.*\.py:18\)")
        self.assertRegex(operations.stdout, r"python stack +0x[0-9a-f]+: 0x")


class Native(Recorded):
    def build(self, *options, name="program"):
        source, plugin, program = (os.path.join(self.folder, text) for text in ("program.cpp", "plugin.so", name))
        for path, text, more in ((source, PROGRAM, options), (source, PLUGIN, ["-shared", "-fPIC", *options])):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            is_plugin = "-shared" in more
            more = [option for option in more if not is_plugin or option not in ("-pie", "-no-pie")]
            subprocess.run([CXX, "-O1", "-fno-omit-frame-pointer", source, *more, "-o", plugin if is_plugin else program, "-ldl"], check=True)
        return program, plugin

    def test_programs_and_plugins(self):
        for options in (("-pie", "-fPIE"), ("-no-pie",), ("-g", "-pie", "-fPIE")):
            with self.subTest(options):
                self.record(*self.build(*options))
                blocks = self.blocks()
                line = r" at program\.cpp:\d+" if "-g" in options else ""
                own, other = blocks[3 << 20]["stack"], blocks[5 << 20]["stack"]
                self.assertRegex(own[0], rf"^in_program\(void\*, unsigned long\){line} \(program\+0x[0-9a-f]+\)$")
                self.assertRegex(own[1], rf"^outer_function\(void\*, int \(\*\)\(void\*, unsigned long\), unsigned long\){line} \(program\+0x")
                self.assertRegex(own[2], rf"^main{line} \(program\+0x")
                self.assertRegex(other[0], rf"^\(anonymous namespace\)::Layer<unsigned long>::allocate\(void\*, unsigned long\){line} \(plugin\.so\+0x")
                self.assertRegex(other[1], rf"^allocate_in_plugin{line} \(plugin\.so\+0x")
                self.assertRegex(other[2], rf"^outer_function\(.*\){line} \(program\+0x")

    # Exported names are left in a stripped library, a stripped program has none.
    def test_stripped(self):
        program, plugin = self.build("-pie", "-fPIE", "-s")
        self.record(program, plugin)
        blocks = self.blocks()
        self.assertRegex(blocks[3 << 20]["stack"][0], r"^program\+0x[0-9a-f]+$")
        self.assertRegex(blocks[5 << 20]["stack"][1], r"^allocate_in_plugin \(plugin\.so\+0x")

    def test_another_file_in_its_place(self):
        program, plugin = self.build("-pie", "-fPIE")
        self.record(program, plugin)
        self.build("-pie", "-fPIE", "-DCHANGED=1", "-O2", "-g")
        self.assertRegex(self.blocks()[3 << 20]["stack"][0], r"^program\+0x[0-9a-f]+$")
        os.remove(program)
        self.assertRegex(self.blocks()[3 << 20]["stack"][0], r"^program\+0x[0-9a-f]+$")


if __name__ == "__main__":
    cases.main()
