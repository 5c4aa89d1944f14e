#!/usr/bin/env python3
"""The models of pools hold what their rules say, of cases done by hand and of drawn ones, by other ways to count."""
import collections
import os
import random
import tempfile
import unittest

import cases
from pool_models import MIB, ExactPool, OutOfMemory, Pool, PyTorchPool, allocations, pooled

ALL = (Pool, ExactPool, PyTorchPool)


def run(pool, operations):
    """`operations`: (name, size) is a malloc, a name alone a free."""
    for operation in operations:
        if isinstance(operation, tuple):
            pool.malloc(*operation)
        else:
            pool.drop(operation)
    return pool.held


def drawn(seed, sizes=None):
    generator, live, operations = random.Random(seed), [], []
    for name in range(400):
        if live and generator.random() < 0.5:
            operations.append(live.pop(generator.randrange(len(live))))
        size = generator.choice(sizes) if sizes else int(2 ** generator.uniform(0, 25))
        operations.append((name, size))
        live.append(name)
    return operations


class PoolModels(unittest.TestCase):
    def test_by_hand(self):
        # 1,000 bytes are two units, 500 one.
        first = [("a", 1000), "a", ("b", 500)]
        self.assertEqual([run(pool(), first) for pool in ALL], [1024, 1024 + 512, 2 * MIB])
        # Both halves of what was cut are one again; a rest of a unit is cut off for a small block, one below a MiB is not for a large one.
        merged = [("a", 2048), "a", ("b", 512), ("c", 1536), "b", "c", ("d", 2048)]
        self.assertEqual(run(Pool(), merged), 2048)
        self.assertEqual(run(PyTorchPool(), [("a", 20 * MIB - 512), ("b", 2 * MIB)]), 40 * MIB)
        self.assertEqual(run(PyTorchPool(), [("a", 9 * MIB), ("b", 2 * MIB), ("c", 9 * MIB)]), 20 * MIB)
        self.assertEqual(run(PyTorchPool(), [("a", 9 * MIB), ("b", 100)]), 22 * MIB)    # small ones apart
        # The smallest that suffices, not the first.
        self.assertEqual(run(Pool(), [("a", 4096), ("b", 2048), "a", "b", ("c", 2048), ("d", 4096)]), 6144)

    def test_drawn(self):
        for seed in range(20):
            operations = drawn(seed)
            for kind in ALL:
                with self.subTest(seed=seed, pool=kind.__name__):
                    pool, sizes = kind(), {}
                    for operation in operations:
                        run(pool, [operation])
                        if isinstance(operation, tuple):
                            sizes[operation[0]] = operation[1]
                        else:
                            del sizes[operation]
                        self.sound(pool, sizes)

    def sound(self, pool, sizes):
        """Live and free blocks cover each segment once, and no two free ones are neighbours but where sizes are kept."""
        self.assertEqual(set(pool.blocks), set(sizes))
        of_segment = collections.defaultdict(list)
        for name, (size, segment, offset) in pool.blocks.items():
            self.assertGreaterEqual(size, sizes[name])
            of_segment[segment].append((offset, size, "live"))
        for kind, blocks in pool.free.items():
            self.assertEqual(blocks, sorted(blocks))
            for size, segment, offset in blocks:
                self.assertEqual(pool.segments[segment][1], kind)
                of_segment[segment].append((offset, size, "free"))
        self.assertEqual(sum(size for size, _ in pool.segments.values()), pool.held)
        self.assertEqual(set(of_segment), set(pool.segments))
        for segment, blocks in of_segment.items():
            end, before = 0, "live"
            for offset, size, state in sorted(blocks):
                self.assertEqual(offset, end)
                self.assertIn("live", (state, before))
                end, before = offset + size, state
            self.assertEqual(end, pool.segments[segment][0])

    def test_equal_sizes_hold_the_most_of_each(self):
        for seed in range(20):
            operations = drawn(seed, sizes=(100, 700, 5000, 1 << 20, 3 << 20))
            live, most, sizes = collections.Counter(), collections.Counter(), {}
            for operation in operations:
                if isinstance(operation, tuple):
                    name, size = operation
                    sizes[name] = -(-size // 512) * 512
                    live[sizes[name]] += 1
                    most |= live
                else:
                    live[sizes[operation]] -= 1
            self.assertEqual(run(ExactPool(), operations), sum(size * count for size, count in most.items()))

    def test_a_full_pool_gives_back_what_is_free(self):
        for kind, size in ((Pool, 1024), (ExactPool, 1024), (PyTorchPool, 20 * MIB)):
            pool = kind(capacity=2 * size)
            run(pool, [("a", size), ("b", size), "a"])
            self.assertEqual(pool.held, 2 * size)
            with self.assertRaises(OutOfMemory):
                pool.malloc("c", 2 * size)
            self.assertEqual(pool.held, size)
            run(pool, [("d", size), "d", "b", ("e", 2 * size)])
            self.assertEqual(pool.held, 2 * size)
        # What is in use in part stays.
        pool = run_pool = Pool(capacity=4096)
        run(run_pool, [("a", 4096), "a", ("b", 512)])
        with self.assertRaises(OutOfMemory):
            pool.malloc("c", 4096)
        self.assertEqual(pool.held, 4096)

    def test_of_a_trace(self):
        trace = "Read 0x10 300 0\nMalloc 0x20 1000 1\nMutable 0x20 1000 2\nFree 0x20 1000 3\nMalloc 0x20 2000 4\nFree 0x10 300 5\nMalloc 0x10 600 6\nFree 0x10 600 7\n"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace")
            with open(path, "w", encoding="ascii") as file:
                file.write(trace)
            own = [(True, "0x20", 1000), (False, "0x20", 1000), (True, "0x20", 2000), (True, "0x10", 600), (False, "0x10", 600)]
            self.assertEqual(list(allocations(path, persistent=False)), own)
            self.assertEqual(list(allocations(path)), [(True, "0x10", 300), *own[:3], (False, "0x10", 300), *own[3:]])
            self.assertEqual(pooled(path, Pool()), (2600, 512 + 1024 + 2048))
            self.assertEqual(pooled(path, Pool(), persistent=False), (2600, 1024 + 2048))
            with self.assertRaises(OutOfMemory):
                pooled(path, Pool(capacity=1024))


if __name__ == "__main__":
    cases.main()
