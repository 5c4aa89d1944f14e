"""A plan (memopt-plan-1 or memopt-plan-2) as a judge reads it, and what can be said of it by its operations alone.

Written from docs/formats/plan-json.md alone; it shares no code with the planner.
"""
import math


class Invalid(Exception):
    """The plan does not hold; says why."""


def require(condition, why):
    if not condition:
        raise Invalid(why)


# Reading: what is malformed is refused. bool is a kind of int to Python, so the types are compared.

def is_whole(value):
    return type(value) is int and 0 <= value <= 2**62


def is_number(value):
    return type(value) is int and 0 <= value <= 2**53 or type(value) is float and 0 <= value <= 2**62


def is_offsets(value):
    return is_whole(value) or type(value) is list and 1 <= len(value) <= 8 and all(map(is_whole, value))


WHOLE = (is_whole, "a whole number from 0 to 2^62")
POSITIVE = (lambda value: is_whole(value) and value > 0, "a whole number from 1 to 2^62")
NUMBER = (is_number, "a number from 0 to 2^62 (whole: to 2^53)")
RATE = (lambda value: is_number(value) and value > 0, "a number above 0")
LIMIT = (lambda value: value is None or is_whole(value), "null or a whole number from 0 to 2^62")
AGE = (lambda value: value is None or is_whole(value) and value <= 7, "null or a whole number from 0 to 7")
OFFSETS = (is_offsets, "a whole number from 0 to 2^62, or a list of 1 to 8 of them")
FLAG = (lambda value: type(value) is bool, "true or false")
TEXT = (lambda value: type(value) is str, "text")
LIST = (lambda value: type(value) is list, "a list")
OBJECT = (lambda value: type(value) is dict, "an object")


def one_of(*names):
    return (lambda value: value in names, " or ".join(names))


# Each field's kind and what it is where it is left out.
NEEDED = object()
PLAN = {"format": (one_of("memopt-plan-1", "memopt-plan-2"), NEEDED), "period": (NUMBER, NEEDED), "ops": (LIST, NEEDED), "blocks": (LIST, NEEDED),
        "machine": (OBJECT, NEEDED), "limit": (LIMIT, None), "chunk": (POSITIVE, 2097152), "align": (POSITIVE, 1), "layout": (FLAG, True),
        "lazy_malloc": (FLAG, False), "swaps": (LIST, []), "name": (TEXT, ""), "comment": (TEXT, "")}
MACHINE = {"out_bytes_per_ns": (RATE, NEEDED), "in_bytes_per_ns": (RATE, NEEDED), "out_latency_ns": (NUMBER, 0), "in_latency_ns": (NUMBER, 0)}
MACHINE_2 = {**MACHINE, "remap_ns": (NUMBER, None)}
BLOCK = {"id": (WHOLE, NEEDED), "size": (WHOLE, NEEDED), "persistent": (FLAG, False), "pinned": (FLAG, False), "offset": (OFFSETS, NEEDED),
         "window": (one_of("linear", "own"), "linear"), "name": (TEXT, "")}
BLOCK_WITHOUT_PLACE = {**BLOCK, "offset": ((lambda value: True, ""), None)}
SWAP = {"block": (WHOLE, NEEDED), "out_after": (WHOLE, NEEDED), "in_after": (WHOLE, None), "need": (WHOLE, None), "copy": (FLAG, True)}
SWAP_2 = {**SWAP, "offset": (OFFSETS, None)}


def check_kind(value, kind, what):
    require(kind[0](value), f"{what} is not {kind[1]}")


def fields_of(record, fields, where):
    """All of the fields, checked."""
    check_kind(record, OBJECT, where)
    for field, value in record.items():
        require(field in fields, f"{where} has an unknown field {field}")
        check_kind(value, fields[field][0], f"{where}: {field}")
    values = {field: record.get(field, default) for field, (_, default) in fields.items()}
    for field, value in values.items():
        require(value is not NEEDED, f"{where} has no {field}")
    return values


def offsets_of(value, unit, where):
    offsets = value if type(value) is list else [value]
    require(all(offset % unit == 0 for offset in offsets), f"{where}: an offset is no multiple of {unit}")
    return offsets


class Block:
    def __init__(self, record, place, plan):
        values = fields_of(record, BLOCK if plan.layout else BLOCK_WITHOUT_PLACE, f"element {place} of blocks")
        self.id, self.size, self.pinned, self.persistent = (values[field] for field in ("id", "size", "pinned", "persistent"))
        self.label = f"block {self.id}"
        self.own_window = values["window"] == "own"
        self.offsets = offsets_of(values["offset"], plan.chunk if self.own_window else plan.align, self.label) if plan.layout else [0]
        require(len(self.offsets) == 1 or not self.persistent, f"{self.label} persists, so that its offsets have no turns")
        self.chunks = -(-self.size // plan.chunk)
        self.born = self.freed = self.start = None  # Positions; start is where it takes its bytes.
        self.accesses = []                          # (position, kind)
        self.swaps = []


class Swap:
    def __init__(self, record, place, plan):
        values = fields_of(record, SWAP_2 if plan.version == 2 else SWAP, f"swap {place}")
        self.place = place
        self.out_after, self.in_after, self.need, self.copy = (values[field] for field in ("out_after", "in_after", "need", "copy"))
        require(values["block"] in plan.blocks, f"swap {place} is of an unknown block")
        self.block = plan.blocks[values["block"]]
        self.label = f"swap {place} (block {self.block.id})"
        self.returns = self.need is not None
        require(self.returns == (self.in_after is not None), f"{self.label} has only one of in_after and need")
        require(not self.returns or self.out_after <= self.in_after < self.need, f"{self.label}: not out_after <= in_after < need")
        self.offsets = self.block.offsets
        self.has_offset = values.get("offset") is not None
        if self.has_offset:
            require(plan.layout, f"{self.label} has an offset, but there is no layout")
            require(self.returns, f"{self.label} has an offset, but does not return")
            require(plan.remap_ns is not None, f"{self.label} has an offset, but the machine has no remap_ns")
            self.offsets = offsets_of(values["offset"], plan.chunk, self.label)
            require(len(self.offsets) == len(self.block.offsets), f"{self.label} has another number of offsets than its block")
        self.out_ns = plan.machine["out_latency_ns"] + self.block.size / plan.machine["out_bytes_per_ns"]
        self.in_ns = plan.machine["in_latency_ns"] + self.block.size / plan.machine["in_bytes_per_ns"]
        self.remapped_chunks = 0
        # When its copies ended, by the iteration in which they were issued; without copy, when its bytes were let go.
        self.went, self.returned = [], []


class Plan:
    def __init__(self, record):
        values = fields_of(record, PLAN, "the plan")
        self.version = int(values["format"][-1])
        self.period, self.limit, self.chunk, self.align, self.layout, self.lazy = (
            values[field] for field in ("period", "limit", "chunk", "align", "layout", "lazy_malloc"))
        require(self.layout or self.limit is not None, "there is neither a layout nor a limit")
        self.machine = fields_of(values["machine"], MACHINE_2 if self.version == 2 else MACHINE, "machine")
        self.remap_ns = self.machine.get("remap_ns")
        blocks = [Block(block, place, self) for place, block in enumerate(values["blocks"])]
        self.blocks = {block.id: block for block in blocks}
        require(len(self.blocks) == len(blocks), "two blocks have the same id")
        self.rounds = math.lcm(*(len(block.offsets) for block in blocks))
        self.read_operations(values["ops"])
        self.swaps = [Swap(swap, place, self) for place, swap in enumerate(values["swaps"])]
        for swap in sorted(self.swaps, key=lambda swap: swap.out_after):
            swap.block.swaps.append(swap)

    def read_operations(self, ops):
        require(ops, "there are no operations")
        self.n = len(ops)
        for i, op in enumerate(ops):
            require(type(op) is list and 3 <= len(op) <= 5, f"operation {i} is not a list of 3 to 5")
            for value, kind in zip(op, (one_of("m", "f", "r", "w", "x"), None, NUMBER, AGE, WHOLE)):
                if kind:
                    check_kind(value, kind, f"operation {i}: {value!r}")
        times = [op[2] for op in ops] + [self.period]
        require(times[0] == 0, "the first operation is not at time 0")
        self.durations = [after - before for before, after in zip(times, times[1:])]
        require(min(self.durations) >= 0, "times fall, or the period ends before the last operation")
        # Allocations first, since ages that are left out depend on where they are.
        for i, op in sorted(enumerate(ops), key=lambda entry: entry[1][0] != "m"):
            if op[0] == "x":
                require(op[1] == -1, f"operation {i} is of kind x and names a block")
                continue
            require(is_whole(op[1]) and op[1] in self.blocks, f"operation {i} is of an unknown block")
            self.read_operation(i, op[0], self.blocks[op[1]], op[3] if op[3:] else None)
        for block in self.blocks.values():
            block.accesses.sort()
            self.check_lifetime(block)

    def read_operation(self, i, kind, block, age):
        if age is None:
            age = 0 if block.persistent or kind == "m" or block.born is not None and i > block.born else 1
        require(age == 0 or not block.persistent and kind != "m", f"operation {i}: age is not 0")
        if kind == "m":
            require(block.born is None, f"{block.label} is allocated twice")
            block.born = i
        elif kind == "f":
            require(block.freed is None, f"{block.label} is freed twice")
            block.freed = i + age * self.n
        else:
            block.accesses.append((i + age * self.n, kind))

    def check_lifetime(self, block):
        if block.persistent:
            require(block.born is None and block.freed is None, f"{block.label} persists, and is allocated or freed")
            return
        require(block.born is not None and block.freed is not None, f"{block.label} is not allocated and freed")
        require(block.born < block.freed, f"{block.label} is freed before it is allocated")
        require(all(block.born < position < block.freed for position, _ in block.accesses), f"{block.label} is accessed outside its lifetime")
        block.start = block.accesses[0][0] if self.lazy and block.accesses else block.born


# By operations: swaps, stays on the device, and who had their bytes before.

def check_swaps(block, plan):
    """The block's swaps lie within its lifetime and not in each other, and it is not accessed between."""
    if not block.swaps:
        return
    n = plan.n
    require(not block.pinned, f"{block.label} is pinned and swapped")
    require(block.own_window or plan.chunk == 1 or not plan.layout, f"{block.label} is swapped and has no window of its own")
    for swap in block.swaps:
        require(not swap.has_offset or block.persistent or block.freed - block.born < n,
                f"{swap.label} has an offset, and its block lives for an iteration or longer")
        require(swap.returns or not block.persistent, f"{swap.label} does not return, but its block persists")
        require(not block.persistent or swap.out_after < n, f"{swap.label}: out_after is not within the iteration")
        require(block.persistent or block.start <= swap.out_after < block.freed, f"{swap.label} is outside the block's lifetime")
    end = block.swaps[0].out_after + n if block.persistent else block.freed
    for swap, next_out in zip(block.swaps, [swap.out_after for swap in block.swaps[1:]] + [end]):
        # One that does not return is away until the free, so nothing may follow it.
        need = swap.need if swap.returns else block.freed
        require(need <= next_out, f"{swap.label} ends behind the lifetime, or overlaps the block's next swap")
        until = need if swap.returns else block.freed + 1
        for position, _ in block.accesses:
            away = swap.out_after < position < until or block.persistent and position + n < until
            require(not away, f"{block.label} is accessed at position {position}, while away by swap {swap.place}")


def check_copies(block):
    """Where a swap does not copy, an earlier one has to have done so, and nothing may have written the block since."""
    events = [(position, 0, kind) for position, kind in block.accesses] + [(swap.out_after, 1, swap) for swap in block.swaps]
    events.sort(key=lambda event: event[:2])
    current = False  # Is the host's copy?
    # A persistent block's may be of the iteration before, so the first lap only finds out what is current at the end of that.
    for judged in (False, True) if block.persistent else (True,):
        for _, is_swap, what in events:
            if is_swap:
                require(what.copy or current or not judged, f"{what.label} has no copy, but the host's is not current")
                current = current or what.copy
            elif what == "w":
                current = False
