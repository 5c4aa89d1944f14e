#!/usr/bin/env python3
"""The model of managed memory: waits that were counted by hand, and files that are none."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import cases
import patience
import uvm_model

MODEL = uvm_model.__file__
MIB = 1 << 20


def iteration(blocks, ops, period=1_000_000):
    return {"format": "memopt-plan-1", "name": "test", "period": period, "blocks": blocks, "ops": ops, "swaps": [], "limit": None,
            "machine": {"out_bytes_per_ns": 2, "in_bytes_per_ns": 4}}


def stay(*sizes):
    return [{"id": number, "size": size * MIB, "persistent": True} for number, size in enumerate(sizes)]


class UvmModel(unittest.TestCase):
    def stalls(self, problem, limit):
        return uvm_model.stall_ns(problem, limit * MIB, 2, 4, 45_000)

    def test_what_fits_waits_for_nothing(self):
        problem = iteration(stay(4, 4), [["r", 0, 0], ["w", 1, 10]])
        self.assertEqual(self.stalls(problem, 8), (0, 0, 0))

    def test_pieces_take_turns(self):
        # Of 4 and 4 MiB in 6, the least lately used is always the one that is needed next: all four pieces leave and come.
        problem = iteration(stay(4, 4), [["r", 0, 0], ["w", 1, 10]])
        each = 45_000 + 2 * MIB / 2 + 2 * MIB / 4
        self.assertEqual(self.stalls(problem, 6), (4 * each, 8 * MIB, 8 * MIB))

    def test_the_end_of_a_block_is_less_than_a_piece(self):
        # 2 MiB and 100 KiB, that is two pages of 64.
        problem = iteration([{"id": 0, "size": 2 * MIB + 100 * 1024, "persistent": True}, *stay(0, 2)[1:]], [["r", 0, 0], ["r", 1, 1]])
        whole, rest = 2 * MIB, 128 << 10
        waited, left, came = self.stalls(problem, 3)
        self.assertEqual(left, came)
        self.assertEqual(left, 2 * whole + rest)
        self.assertEqual(waited, 3 * 45_000 + left / 2 + came / 4)

    def test_new_blocks_fault_and_are_not_copied(self):
        problem = iteration([{"id": 0, "size": 4 * MIB}], [["m", 0, 0], ["w", 0, 1], ["r", 0, 2], ["f", 0, 3]])
        self.assertEqual(self.stalls(problem, 4), (2 * 45_000, 0, 0))

    def test_blocks_cross_the_end_of_an_iteration(self):
        # Made in one, read and freed in the next, while the next one is made: two at a time, and room for all.
        problem = iteration([{"id": 0, "size": 2 * MIB}], [["m", 0, 0], ["w", 0, 1], ["r", 0, 2, 1], ["f", 0, 3, 1]])
        self.assertEqual(uvm_model.peak_load(problem), 4 * MIB)
        self.assertEqual(self.stalls(problem, 4), (45_000, 0, 0))
        # With room for one the younger leaves when the older, which has left for it before, comes back to be read.
        self.assertEqual(self.stalls(problem, 2), (2 * 45_000 + 2 * MIB / 2 + 2 * MIB / 4, 2 * MIB, 2 * MIB))

    def test_one_operation_that_needs_more_than_all(self):
        self.assertIsNone(self.stalls(iteration(stay(4), [["r", 0, 0]]), 2))

    def run_model(self, *arguments):
        return subprocess.run([sys.executable, MODEL, *arguments], capture_output=True, text=True, timeout=patience.seconds(60))

    def test_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "iteration")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(iteration(stay(4, 4), [["r", 0, 0], ["w", 1, 10]]), file)
            done = self.run_model("--parts", "100,75", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in done.stdout.splitlines()[2:]]
            each = 45_000 + 2 * MIB / 2 + 2 * MIB / 4
            self.assertEqual([row[1:5] for row in rows],
                             [["8", "100 %", "1.00", "1.00"], ["6", "75 %", "1.00", f"{1 + 4 * each / 1e6:.2f}"]])
            for wrong, said in [(["--limit", "1KiB", path], "expected a size"), (["--parts", "-3", path], "above 0"),
                                (["--machine", "3", path], "two rates"), (["--fault", "nan", path], "above 0")]:
                done = self.run_model(*wrong)
                self.assertEqual(done.returncode, 2, wrong)
                self.assertIn(said, done.stderr)
            block = {"id": 0, "size": 2 * MIB}
            broken = [iteration([], []), iteration([{"id": 0, "size": -1}], []), iteration([{"id": 0, "size": 1 << 60}], []), iteration([7], []),
                      iteration([block], [["r", 1, 0]]), iteration([block], [["r"]]), iteration([block], 7),
                      iteration([block], []) | {"machine": {"out_bytes_per_ns": 0, "in_bytes_per_ns": 1}}, iteration([block], []) | {"machine": 1}]
            for text in ["", "[]", "{}", '{"format": "memopt-plan-1"}', "[" * 100_000, *map(json.dumps, broken)]:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                done = self.run_model(path)
                self.assertEqual(done.returncode, 1, text)
                self.assertIn(path, done.stderr)
                self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    cases.main()
