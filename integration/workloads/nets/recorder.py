"""Blocks and time of a simulated training run, written down as operations."""
import collections

FLOPS_PER_NS = 11300     # GTX 1080 Ti, single precision
BYTES_PER_NS = 484
KERNEL_NS = 3000         # each kernel, however small
HOST_CALL_NS = 10000     # each allocation and each free


class Block:
    def __init__(self, pointer, size):
        self.pointer, self.size = pointer, size


class Recorder:
    """Operations as (verb, pointer, size, nanoseconds)."""

    def __init__(self):
        self.operations = []
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
        share = int(KERNEL_NS + max(flops / FLOPS_PER_NS, moved / BYTES_PER_NS)) // len(touched)
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
