#!/usr/bin/env python3
"""A made-up iteration of any size (memopt-plan-1): forward and backward of LAYERS layers, 40 operations and 10 blocks each.

Usage: layered_iteration.py LAYERS OUT.json"""
import json
import random
import sys

MIB = 1 << 20


def layered(layers):
    drawn = random.Random(1)
    operations, blocks, now = [], [], 0

    def block(size, **more):
        blocks.append({"id": len(blocks), "size": size, **more})
        return len(blocks) - 1

    def operation(kind, which, length):
        nonlocal now
        operations.append([kind, which, now])
        now += length

    def workspaces():
        for _ in range(4):
            which = block(drawn.choice([512, 4096, 65536, MIB, 4 * MIB]))
            for kind, length in (("m", 100), ("w", 2000), ("r", 2000), ("f", 100)):
                operation(kind, which, length)

    weights = [block(drawn.choice([1, 2, 4, 8]) * MIB + drawn.randrange(4096), persistent=True) for _ in range(layers)]
    outputs = []
    for layer in range(layers):
        workspaces()
        outputs.append(block(drawn.choice([2, 4, 6, 8]) * MIB + drawn.randrange(100000)))
        operation("m", outputs[layer], 100)
        operation("r", weights[layer], 20000)
        if layer > 0:
            operation("r", outputs[layer - 1], 1000)
        operation("w", outputs[layer], 60000)
    for layer in reversed(range(layers)):
        workspaces()
        for kind, which, length in (("r", weights[layer], 20000), ("r", outputs[layer], 100000), ("w", weights[layer], 2000), ("f", outputs[layer], 100)):
            operation(kind, which, length)
    machine = {"out_bytes_per_ns": 13.2, "in_bytes_per_ns": 12.2, "out_latency_ns": 47200, "in_latency_ns": 9700}
    return {"format": "memopt-plan-1", "period": now, "ops": operations, "blocks": blocks, "machine": machine}


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[1].isdigit() or int(sys.argv[1]) == 0:
        sys.exit(__doc__)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(layered(int(sys.argv[1])), file)
