#!/usr/bin/env python3
"""The runtime exports all that PyTorch's wheels ask of it, and of these implements all that the list does not call refused.

usage: runtime_names_test.py NM LIBCUDART MISSING_FUNCTIONS_CPP [unittest arguments]
"""
import os
import re
import subprocess
import sys
import unittest

NM, LIBRARY, MISSING = sys.argv[1:4]
del sys.argv[1:4]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import cases  # noqa: E402

VERSION = "libcudart.so.13"


def wanted():
    """Name -> whether the list calls it refused."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runtime_names.txt")
    with open(path, encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {row[0]: row[1:] == ["refused"] for row in rows}


class RuntimeNames(unittest.TestCase):
    def test_all_are_exported_with_nvidias_version(self):
        out = subprocess.run([NM, "-D", "--defined-only", "--with-symbol-versions", LIBRARY], check=True, capture_output=True, text=True)
        exported = {line.split()[-1] for line in out.stdout.splitlines()}
        for name in wanted():
            with self.subTest(name):
                self.assertIn(f"{name}@@{VERSION}", exported)

    def test_what_is_refused_is_known(self):
        with open(MISSING, encoding="utf-8") as file:
            refused = set(re.findall(r"^cudaError_t (\w+)\(\)", file.read(), re.MULTILINE))
        for name, expected in wanted().items():
            with self.subTest(name):
                self.assertEqual(name in refused, expected)


if __name__ == "__main__":
    cases.main()
