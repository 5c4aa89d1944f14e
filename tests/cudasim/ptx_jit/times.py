"""Processor seconds of digits_cnn by its plug-in, from PTX in native code, and interpreted: times.py BUILD [--epochs N] [--interpreted]

The code is compiled before, so that what is compared is execution. Nothing is asserted: the numbers are those of this machine.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile


def seconds(build, epochs, **environment):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([os.path.join(build, "workloads", "digits_cnn"), "--quiet", "--epochs", str(epochs)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env=os.environ | {"LD_LIBRARY_PATH": os.path.join(build, "cudasim", "lib"), "CUDASIM_REPORT": "off"} | environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="the build folder")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--interpreted", action="store_true", help="also measure the interpreter, which takes long")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        empty = os.path.join(folder, "kernels")
        os.mkdir(empty)
        ptx = {"CUDASIM_KERNELS": empty, "CUDASIM_PTX_CACHE": os.path.join(folder, "cache")}
        plug_in = min(seconds(given.build, given.epochs) for _ in range(3))
        print(f"plug-in: {plug_in:.2f} s")
        first = seconds(given.build, 1, **ptx)
        kept = seconds(given.build, 1, **ptx)
        print(f"compiling its kernels: {max(first - kept, 0):.2f} s")
        native = min(seconds(given.build, given.epochs, **ptx) for _ in range(3))
        print(f"from PTX, native: {native:.2f} s, {native / plug_in:.2f} of the plug-in's")
        if given.interpreted:
            interpreted = seconds(given.build, given.epochs, **ptx, CUDASIM_PTX="interpret")
            print(f"from PTX, interpreted: {interpreted:.2f} s, {interpreted / plug_in:.2f} of the plug-in's")


if __name__ == "__main__":
    sys.exit(main())
