"""Puts a build into a folder that runs on another machine: stripped, with what that machine may lack, and checked for what it still needs.

usage: pack.py --source TREE --build BUILD [--programs BUILD] --output FOLDER [--archive FILE]

--programs names a build whose programs of nvcc have NVIDIA's static runtime (-DMEMOPT_GPU_RUNTIME=ON); without it they come from BUILD, for the
simulated driver.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

LARGEST = 64 << 20
# What every machine has, and what a machine with a GPU has besides.
LIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}
DEVICE = {"libcuda.so.1", "libcudart.so.13"}
# In the build -> in the pack. The first three are memopt itself.
FILES = (("bin/memoptctl", "bin/memoptctl"), ("bin/memoptd", "bin/memoptd"), ("lib/libmemopt.so", "lib/libmemopt.so"),
         ("gpu/facts", "bin/facts"), ("gpu/facts_kernels.fatbin", "bin/facts_kernels.fatbin"), ("workloads/replay", "workloads/replay"),
         ("workloads/replay_kernels.fatbin", "workloads/replay_kernels.fatbin"), ("workloads/train.py", "workloads/train.py"),
         ("workloads/digits_kernels.fatbin", "workloads/digits_kernels.fatbin"), ("workloads/data/digits.csv", "workloads/data/digits.csv"))
# Left out and named where the build has none: CUPTI's headers were not there.
OPTIONAL = (("gpu/libcupti_injection.so", "lib/libcupti_injection.so"),)
# Programs of nvcc, and what lies beside them; those that a build lacks are left out and named.
PROGRAMS = ("digits_cnn", "digits_cnn_static", "vector_runtime", "vector_driver", "vector_async", "vector_runtime_static", "vector_async_static")
SOURCES = (("integration/gpu/run-all", "."), ("integration/gpu/README.md", "."), ("integration/gpu/kit/*.py", "kit"),
           ("integration/gpu/frameworks/*.py", "frameworks"), ("integration/workloads/nets/*.py", "workloads/nets"), ("LICENSE", "."))


def fail(text):
    sys.exit(f"pack.py: {text}")


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def readelf(*arguments):
    return subprocess.run(["readelf", "--wide", *arguments], check=True, capture_output=True, text=True).stdout


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("--dynamic", path))


def glibc(path):
    """The newest version of libc's symbols that the file asks for."""
    return max((tuple(map(int, version.split("."))) for version in re.findall(r"Name: GLIBC_([0-9.]+)\b", readelf("--version-info", path))),
               default=(0,))


def system_library(name):
    """Path of a shared library of this machine, by its exact name."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    for line in listed.splitlines():
        if line.strip().startswith(name + " ") and "x86-64" in line:
            return os.path.realpath(line.split("=>")[1].strip())
    return None


class Pack:
    def __init__(self, folder):
        self.folder, self.missing = folder, []

    def add(self, source, target, optional=False):
        if not os.path.exists(source):
            if not optional:
                fail(f"{source} is missing: build it first")
            self.missing.append(target)
            return
        path = os.path.join(self.folder, target)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy2(source, path)
        if is_elf(path):
            subprocess.run(["strip", "--strip-unneeded", path], check=True)

    def files(self):
        for folder, _, names in os.walk(self.folder):
            for name in sorted(names):
                path = os.path.join(folder, name)
                yield os.path.relpath(path, self.folder), path


def carried_libraries(pack):
    """Copies libunwind beside libmemopt.so, and whatever our files need beyond libc and the device into lib/compat, for a machine that lacks it.
    Returns library -> files that need it."""
    unwind = system_library("libunwind.so.8")
    if unwind is None:
        fail("libunwind.so.8 is not installed (libunwind-dev)")
    pack.add(unwind, "lib/libunwind.so.8")
    needs, looked_at = {}, set()
    while True:
        new = [(name, path) for name, path in pack.files() if name not in looked_at and is_elf(path)]
        if not new:
            return needs
        for name, path in new:
            looked_at.add(name)
            for library in needed(path):
                needs.setdefault(library, []).append(name)
                if library in LIBC | DEVICE or os.path.exists(os.path.join(pack.folder, "lib/compat", library)):
                    continue
                found = system_library(library)
                if found is None:
                    fail(f"{name} needs {library}, which this machine does not have")
                pack.add(found, "lib/compat/" + library)


def version_of(source):
    described = subprocess.run(["git", "-C", source, "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True)
    return described.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    for name, required in (("source", True), ("build", True), ("programs", False), ("output", True), ("archive", False)):
        parser.add_argument("--" + name, required=required)
    options = parser.parse_args()
    output = os.path.abspath(options.output)
    if os.path.exists(output) and not os.path.exists(os.path.join(output, "manifest.json")) and os.listdir(output):
        fail(f"{output} is there, and no pack: it is not replaced")
    shutil.rmtree(output, ignore_errors=True)
    pack = Pack(output)
    for source, target in FILES:
        pack.add(os.path.join(options.build, source), target)
    for source, target in OPTIONAL:
        pack.add(os.path.join(options.build, source), target, optional=True)
    programs = os.path.join(options.programs or options.build, "workloads")
    for name in PROGRAMS:
        pack.add(os.path.join(programs, name), "workloads/" + name, optional=True)
    for path in glob.glob(os.path.join(programs, "vector_*.fatbin")):
        pack.add(path, "workloads/" + os.path.basename(path))
    for pattern, folder in SOURCES:
        found = glob.glob(os.path.join(options.source, pattern))
        if not found:
            fail(f"{pattern} is missing in {options.source}")
        for path in found:
            pack.add(path, os.path.normpath(os.path.join(folder, os.path.basename(path))))
    needs = carried_libraries(pack)
    versions = {name: glibc(path) for name, path in pack.files() if is_elf(path)}
    newest = max(versions.values())
    sizes = {name: os.path.getsize(path) for name, path in pack.files()}
    total = sum(sizes.values())
    manifest = {"format": 1, "version": version_of(options.source), "static_runtime": "nvidia" if options.programs else "simulated", "bytes": total,
                "glibc": ".".join(map(str, newest)), "needs": needs, "left_out": pack.missing, "files": sizes}
    with open(os.path.join(output, "manifest.json"), "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
    print(f"   {output}: {len(sizes)} files, {total / (1 << 20):.1f} MiB (at most {LARGEST >> 20})")
    print(f"   needs glibc {manifest['glibc']} (" + ", ".join(name for name, version in versions.items() if version == newest) + ")")
    print("   needs of the machine: " + ", ".join(sorted(set(needs) - {name for name in needs if name in LIBC} - _carried(pack)) or ["libc alone"]))
    print("   carried: lib/libunwind.so.8" + "".join(", lib/compat/" + name for name in sorted(_carried(pack))))
    if pack.missing:
        print("   left out, not built: " + ", ".join(pack.missing))
    if total > LARGEST:
        fail(f"the pack has {total} bytes, {LARGEST} are the most that can be carried")
    if options.archive:
        with tarfile.open(options.archive, "w:gz", compresslevel=6) as archive:
            archive.add(output, arcname="gpu-pack")
        print(f"   {options.archive}: {os.path.getsize(options.archive) / (1 << 20):.1f} MiB")


def _carried(pack):
    folder = os.path.join(pack.folder, "lib/compat")
    return set(os.listdir(folder)) if os.path.isdir(folder) else set()


if __name__ == "__main__":
    main()
