"""Models of what memory pools of frameworks hold, fed with the mallocs and frees of a text trace. Sizes are bytes; one stream, one thread."""
import bisect

MIB = 1 << 20
UNIT = 512


class OutOfMemory(Exception):
    """A pool needs more than its capacity, and can give nothing back."""


class Pool:
    """Segments cut into blocks: of the free ones the smallest that suffices, neighbours merged. Segments of which nothing is used are given back
    where `capacity` does not suffice (None: it always does), as all three frameworks do.

    As it is, CuPy's pool since version 2 (Chainer's since then): a segment is as large as what it was made for, and all that is left over is cut off."""

    def __init__(self, capacity=None):
        self.capacity, self.held = capacity, 0
        self.segments, self.made = {}, 0  # by number: size and kind
        self.free = {}                    # by kind: sorted (size, segment, offset)
        self.begins, self.ends = {}, {}   # of free blocks: sizes by (segment, offset)
        self.blocks = {}                  # by name: size, segment, offset

    @staticmethod
    def kind(size):
        """Of requests that share segments."""
        del size

    @staticmethod
    def segment_size(size):
        return size

    @staticmethod
    def is_cut(rest, size):
        """Whether so much is cut off a block that serves such a request."""
        del size
        return rest >= UNIT

    def malloc(self, name, size):
        size = -(-size // UNIT) * UNIT
        blocks = self.free.setdefault(self.kind(size), [])
        index = self._place(blocks, size)
        if index is None:
            found = self._segment(size)
        else:
            found = blocks[index]
            self._remove(*found)
        whole, segment, offset = found
        if self.is_cut(whole - size, size):
            self._insert(whole - size, segment, offset + size)
            whole = size
        self.blocks[name] = whole, segment, offset

    def drop(self, name):
        size, segment, offset = self.blocks.pop(name)
        before, behind = self.ends.get((segment, offset), 0), self.begins.get((segment, offset + size), 0)
        if before:
            self._remove(before, segment, offset - before)
        if behind:
            self._remove(behind, segment, offset + size)
        self._insert(before + size + behind, segment, offset - before)

    @staticmethod
    def _place(blocks, size):
        """Which of the free blocks serves it, if any."""
        index = bisect.bisect_left(blocks, (size,))
        return index if index < len(blocks) else None

    def _segment(self, size):
        """A new one, as one block."""
        whole = self.segment_size(size)
        if self.capacity is not None and self.held + whole > self.capacity:
            self._give_back()
            if self.held + whole > self.capacity:
                raise OutOfMemory(f"{self.held} bytes are held, and {whole} more are asked for: that is more than {self.capacity}")
        self.held += whole
        self.made += 1
        self.segments[self.made] = whole, self.kind(size)
        return whole, self.made, 0

    def _give_back(self):
        for block in [block for blocks in self.free.values() for block in blocks if block[0] == self.segments[block[1]][0]]:
            self._remove(*block)
            self.held -= self.segments.pop(block[1])[0]

    def _insert(self, size, segment, offset):
        bisect.insort(self.free[self.segments[segment][1]], (size, segment, offset))
        self.begins[segment, offset] = self.ends[segment, offset + size] = size

    def _remove(self, size, segment, offset):
        blocks = self.free[self.segments[segment][1]]
        del blocks[bisect.bisect_left(blocks, (size, segment, offset))]
        del self.begins[segment, offset], self.ends[segment, offset + size]


class ExactPool(Pool):
    """CuPy's first (Chainer 1's): a block serves requests of its size alone."""

    @staticmethod
    def _place(blocks, size):
        index = bisect.bisect_left(blocks, (size,))
        return index if index < len(blocks) and blocks[index][0] == size else None


class PyTorchPool(Pool):
    """By the rules of the caching pool of tools/quickstart: small requests have segments of their own."""

    @staticmethod
    def kind(size):
        return "small" if size <= MIB else "large"

    @staticmethod
    def segment_size(size):
        if size <= MIB:
            return 2 * MIB
        return 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB

    @staticmethod
    def is_cut(rest, size):
        return rest >= (UNIT if size <= MIB else MIB)


def allocations(trace, persistent=True):
    """(is an allocation, pointer, size) of a text trace, in order; with blocks that are used before any Malloc names them, which were there from
    the start, as the first ones, or (`persistent` False) without them."""
    with open(trace, encoding="ascii") as file:
        lines = [line.split() for line in file]
    known, first = set(), {}
    for operation, pointer, *rest in lines:
        if operation == "Malloc":
            known.add(pointer)
        elif operation in ("Read", "Mutable", "Free") and pointer not in known and rest and int(rest[0]) > 0:
            first.setdefault(pointer, int(rest[0]))
            known.add(pointer)
    live = dict(first)
    if persistent:
        yield from ((True, pointer, size) for pointer, size in first.items())
    for operation, pointer, size, *_ in lines:
        if operation == "Malloc":
            live[pointer] = int(size)
            yield True, pointer, int(size)
        elif operation == "Free" and pointer in live:
            size = live.pop(pointer)
            if persistent or first.get(pointer) is None:
                yield False, pointer, size
            else:
                del first[pointer]


def pooled(trace, pool, persistent=True):
    """Largest sum of live bytes, and most bytes held by the pool. Raises OutOfMemory."""
    live = peak = held = 0
    for is_allocation, pointer, size in allocations(trace, persistent):
        if is_allocation:
            live += size
            peak = max(peak, live)
            pool.malloc(pointer, size)
            held = max(held, pool.held)
        else:
            live -= size
            pool.drop(pointer)
    return peak, held
