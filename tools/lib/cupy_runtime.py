#!/usr/bin/env python3
"""Builds CuPy's module of the CUDA runtime from its source, against the shared runtime, and puts it in the place of the wheel's.

usage: cupy_runtime.py CUPY_SOURCE_FOLDER   (of the same version as the CuPy of this Python; it needs Cython and a C++ compiler)

The wheel's has NVIDIA's static runtime inside, which works on NVIDIA's own driver only. Nothing of that runtime is changed or looked at: the
module is CuPy's own source (MIT licence), compiled anew."""
import glob
import os
import subprocess
import sys
import sysconfig

from Cython.Build import cythonize
from setuptools import Extension


def main():
    os.chdir(sys.argv[1])
    packages = sysconfig.get_paths()["purelib"]
    [cuda] = glob.glob(os.path.join(packages, "nvidia", "cu13"))
    [target] = glob.glob(os.path.join(packages, "cupy_backends", "cuda", "api", "runtime.*.so"))
    constants = {"CUPY_USE_CUDA_PYTHON": False, "CUPY_CUFFT_STATIC": False, "CUPY_CYTHON_VERSION": "3", "CUPY_CUDA_VERSION": 13000, "CUPY_HIP_VERSION": 0}
    name = "cupy_backends.cuda.api.runtime"
    source = name.replace(".", "/")
    cythonize([Extension(name, [source + ".pyx"], language="c++")], language_level=3, compile_time_env=constants, quiet=True,
              compiler_directives={"embedsignature": True, "binding": True})
    compiler = os.environ.get("CXX", "c++").split()
    subprocess.run([*compiler, "-O1", "-shared", "-fPIC", "-w", "-I.", "-I" + os.path.join(cuda, "include"),
                    "-I" + sysconfig.get_paths()["include"], source + ".cpp", "-o", target + ".new",
                    os.path.join(cuda, "lib", "libcudart.so.13")], check=True)
    os.replace(target + ".new", target)


if __name__ == "__main__":
    main()
