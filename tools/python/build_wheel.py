#!/usr/bin/env python3
"""Makes a wheel of a build folder.

usage: build_wheel.py BUILD OUTPUT

BUILD holds memoptctl, memoptd and libmemopt.so, and the simulated device if that was built; the wheel goes into the folder OUTPUT. Needs
binutils, and Python's `wheel` (Debian: python3-wheel).
"""
import email.message
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# What every Linux with glibc has (PEP 600).
EVERYWHERE = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "libgcc_s.so.1", "libstdc++.so.6"}
MACHINE = "x86_64"


def fail(why):
    sys.exit(f"build_wheel: {why}")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(path):
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "--dynamic", "--wide", path)))


def glibc(path):
    """The newest version of glibc that it asks for, as (2, 34); (0, 0) for none."""
    return max(((int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", run("readelf", "--version-info", "--wide", path))),
               default=(0, 0))


def copy_files(build, package):
    """The installed files that a program needs, without links (a wheel has none), symbols and what needs more than libc. Their names."""
    with tempfile.TemporaryDirectory() as root:
        done = subprocess.run(["cmake", "--install", build, "--prefix", root], capture_output=True, text=True)
        if done.returncode:
            fail(f"{build} can't be installed:\n{done.stderr}")
        library = next((os.path.join(folder, "libmemopt.so") for folder, _, names in os.walk(root) if "libmemopt.so" in names), None)
        if library is None:
            fail(f"{build} has no libmemopt.so")
        parts = [(os.path.join(root, "bin", "memoptctl"), "bin/memoptctl"), (os.path.join(root, "bin", "memoptd"), "bin/memoptd"),
                 (library, "lib/libmemopt.so")]
        private = os.path.join(os.path.dirname(library), "memopt")
        for folder, _, names in os.walk(private):
            parts += [(os.path.join(folder, name), os.path.join("lib/memopt", os.path.relpath(os.path.join(folder, name), private)))
                      for name in sorted(names)]
        copied = []
        for source, target in parts:
            target = os.path.join(package, "_files", target)
            elf = is_elf(source)
            unknown = needed(source) - EVERYWHERE - {os.path.basename(other) for other, _ in parts} if elf else set()
            if unknown:
                print(f"left out: {os.path.relpath(target, package)} needs {', '.join(sorted(unknown))}")
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(os.path.realpath(source), target)
            program = "/bin/" in target
            os.chmod(target, 0o755 if program else 0o644)
            if elf:
                run("strip", *([] if program else ["--strip-unneeded"]), target)
            copied.append(target)
        return copied


def metadata(version):
    text = email.message.Message()
    for name, value in (("Metadata-Version", "2.1"), ("Name", "memopt"), ("Version", version),
                        ("Summary", "Unmodified CUDA programs, less GPU memory"), ("License", "Apache-2.0"), ("Requires-Python", ">=3.8"),
                        ("Classifier", "Operating System :: POSIX :: Linux"), ("Classifier", "Environment :: GPU :: NVIDIA CUDA"),
                        ("Description-Content-Type", "text/plain")):
        text[name] = value
    text.set_payload("python -m memopt run train.py\n")
    return text.as_string()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, output = map(os.path.abspath, sys.argv[1:])
    if importlib.util.find_spec("wheel") is None:
        fail("Python's wheel is missing (Debian: python3-wheel; pip install wheel)")
    for tool in ("readelf", "strip", "cmake"):
        if not shutil.which(tool):
            fail(f"{tool} is missing")
    version = run(os.path.join(build, "bin", "memoptctl"), "--version").split()[-1]
    with tempfile.TemporaryDirectory() as work:
        root = os.path.join(work, f"memopt-{version}")
        package, info = os.path.join(root, "memopt"), os.path.join(root, f"memopt-{version}.dist-info")
        shutil.copytree(os.path.join(HERE, "memopt"), package, ignore=shutil.ignore_patterns("__pycache__"))
        os.makedirs(info)
        copied = copy_files(build, package)
        newest = max(glibc(path) for path in copied if is_elf(path))
        tag = f"py3-none-manylinux_{newest[0]}_{newest[1]}_{MACHINE}"
        for name, text in {os.path.join(package, "_version.py"): f'__version__ = "{version}"\n', os.path.join(info, "METADATA"): metadata(version),
                           os.path.join(info, "WHEEL"): f"Wheel-Version: 1.0\nGenerator: memopt ({version})\nRoot-Is-Purelib: false\nTag: {tag}\n",
                           os.path.join(info, "entry_points.txt"): "[console_scripts]\nmemoptctl = memopt.__main__:program\n",
                           os.path.join(info, "top_level.txt"): "memopt\n"}.items():
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)
        shutil.copyfile(os.path.join(HERE, "..", "..", "LICENSE"), os.path.join(info, "LICENSE"))
        os.makedirs(output, exist_ok=True)
        for old in os.listdir(output):
            if re.fullmatch(r"memopt-.*\.whl", old):
                os.remove(os.path.join(output, old))
        done = subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", output, root], capture_output=True, text=True)
        if done.returncode:
            fail(done.stderr)
    print(os.path.join(output, f"memopt-{version}-{tag}.whl"))


if __name__ == "__main__":
    main()
