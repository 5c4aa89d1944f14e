#!/usr/bin/env python3
"""NVIDIA's samples, of the checkout that MEMOPT_SAMPLES names; skipped without."""
import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
import cases  # noqa: E402

# As many as were seen to pass; docs/results/samples.md says which were not run.
LEAST = 60


class Samples(unittest.TestCase):
    def test_as_many_pass_as_did(self):
        if not os.environ.get("MEMOPT_SAMPLES"):
            self.skipTest("MEMOPT_SAMPLES names no checkout of NVIDIA's cuda-samples")
        done = subprocess.run([sys.executable, os.path.join(ROOT, "integration", "samples", "run"), "--least", str(LEAST)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(done.stdout, flush=True)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:])


if __name__ == "__main__":
    sys.exit(cases.main())
