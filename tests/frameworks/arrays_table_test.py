#!/usr/bin/env python3
"""CuPy's, Numba's and tinygrad's programs run natively and under memopt; and the table says what is wrong where something is.

usage: arrays_table_test.py [unittest arguments]     without tools/fetch-arrays' packages, all that runs a program is skipped"""
import os
import unittest

import arrays_table
import cases


class Run:
    """As Finished, of what a run might have shown."""

    def __init__(self, copied="1", computed="2", computes=True):
        self.digests, self.computes = {"copied": copied, "computed": computed}, computes


class Comparison(unittest.TestCase):
    def test_what_kernels_make_counts_where_they_compute(self):
        self.assertEqual(arrays_table.compare(Run(), Run()), "yes")
        self.assertEqual(arrays_table.compare(Run(), Run(computed="3")), "no")
        self.assertEqual(arrays_table.compare(Run(computes=False), Run(computed="3", computes=False)), "copies")
        self.assertEqual(arrays_table.compare(Run(computes=False), Run(copied="3", computes=False)), "no")


@unittest.skipUnless(os.path.exists(arrays_table.PYTHON), f"{arrays_table.PYTHON} is not there: tools/fetch-arrays")
class Programs(unittest.TestCase):
    def test_every_row(self):
        for name, text, environment in arrays_table.ROWS:
            with self.subTest(name):
                row, good = arrays_table.row(name, text, environment)
                self.assertTrue(good, row)

    def test_a_program_that_fails_says_so(self):
        row, good = arrays_table.row("nothing", "cupy/arrays.py --pool nothing", {})
        self.assertFalse(good)
        self.assertIn("exit code 2", row)


if __name__ == "__main__":
    cases.main()
