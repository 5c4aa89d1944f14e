"""Blocks and time of a simulated training run, written down as operations."""
import collections
import json
import os
import re

HOST_CALL_NS = 10000     # each allocation and each free, whatever the device
PRESETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cudasim", "driver", "presets")


class Device:
    def __init__(self, flops_per_ns, bytes_per_ns, kernel_ns):
        self.flops_per_ns, self.bytes_per_ns = flops_per_ns, bytes_per_ns    # single precision; device memory
        self.kernel_ns = kernel_ns    # each kernel, however small


GTX_1080_TI = Device(11300, 484, 3000)


def device(name):
    """As the simulated driver has it; the GTX 1080 Ti with its rate rounded, so that traces stay as they are. Raises OSError."""
    if name == "gtx1080ti":
        return GTX_1080_TI
    with open(os.path.join(PRESETS, name + ".json"), encoding="utf-8") as file:
        preset = json.loads(re.sub(r"^\s*//.*", "", file.read(), flags=re.MULTILINE))
    return Device(preset["fp32_flops_per_ns"], preset["memory_bytes_per_ns"], preset["kernel_latency_ns"])


class Block:
    def __init__(self, pointer, size):
        self.pointer, self.size = pointer, size


class Recorder:
    """Operations as (verb, pointer, size, nanoseconds)."""

    def __init__(self, its_device=GTX_1080_TI):
        self.operations = []
        self.device = its_device
        self._now = 0
        self._end = 0x7f0000000000
        self._free = collections.defaultdict(list)   # by rounded size: pointers are used again, as by a real allocator

    def _place(self, size):
        rounded = -(-size // 512) * 512
        if self._free[rounded]:
            return Block(self._free[rounded].pop(), size)
        self._end += rounded
        return Block(self._end - rounded, size)

    def persistent(self, size):
        """A block that exists before the trace begins."""
        return self._place(size)

    def malloc(self, size):
        block = self._place(size)
        self._note("Malloc", block, HOST_CALL_NS)
        return block

    def free(self, block):
        self._note("Free", block, HOST_CALL_NS)
        self._free[-(-block.size // 512) * 512].append(block.pointer)

    def kernel(self, reads, writes, flops=0):
        """One launch: its accesses share its time by the roofline, reads first."""
        touched = [("Read", block) for block in reads] + [("Mutable", block) for block in writes]
        moved = sum(block.size for _, block in touched)
        its = self.device
        share = int(its.kernel_ns + max(flops / its.flops_per_ns, moved / its.bytes_per_ns)) // len(touched)
        for verb, block in touched:
            self._note(verb, block, share)

    def scratch(self, size):
        """A block that is filled and freed directly after."""
        block = self.malloc(size)
        self.kernel([], [block])
        self.free(block)

    def layer(self, block):
        self._note("Layer", block, 0)

    def _note(self, verb, block, nanoseconds):
        self.operations.append((verb, block.pointer, block.size, self._now))
        self._now += nanoseconds
