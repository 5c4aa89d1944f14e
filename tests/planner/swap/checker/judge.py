#!/usr/bin/env python3
"""An independent judge of swap plans (memopt-plan-1 and memopt-plan-2).

Written from docs/formats/plan-json.md alone (what a footprint and peak_live are, from the first description of memopt-plan-1); it shares no code
with the planner. judge(plan) checks a plan by its operations, then simulates it by the rules of that document's "Timing", which the comments
number. Of plans without layout the offsets, windows and units are not looked at. Launches and what is computed again are not judged.

    judge.py FILE.json ...    a line each; exit code 1 unless all hold
"""
import collections
import heapq
import json
import math
import sys
from bisect import bisect

MOST_OPERATIONS = 1_500_000  # Simulated in all, where the length of the iterations does not settle,
MOST_ITERATIONS = 4096       # and of these at most so many.


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


class Stay:
    """A block's residency interval, from the first to the last operation (positions, both included) at which it has its bytes."""

    def __init__(self, block, begin, end, offsets, swap_in, swap_out):
        self.block, self.begin, self.end, self.offsets = block, begin, end, offsets
        self.swap_in, self.swap_out = swap_in, swap_out
        self.issued = swap_in.in_after if swap_in else begin  # The operation that asks for the bytes.
        self.taken = []                                       # When it took them, by the iteration in which it asked.
        self.let_go = swap_out.went if swap_out else []       # And let them go, by the iteration of its end.
        self.previous = {}                                    # By turn: (owner's let_go, iteration there less that of the asking).


def stays_of(block, n):
    """In order. One that neither goes out nor is freed stays forever."""
    swaps = block.swaps
    returning = [swap for swap in swaps if swap.returns]
    if block.persistent:
        if not swaps:
            return [Stay(block, 0, n - 1, block.offsets, None, None)]
        ends = [(swap.out_after, swap) for swap in swaps[1:]] + [(swaps[0].out_after + n, swaps[0])]
        begins = [(swap.need, swap.offsets, swap) for swap in swaps]
    else:
        ends = [(swap.out_after, swap) for swap in swaps] + [(block.freed, None)]
        begins = [(block.start, block.offsets, None)] + [(swap.need, swap.offsets, swap) for swap in returning]
    return [Stay(block, begin, end, offsets, swap_in, swap_out) for (begin, offsets, swap_in), (end, swap_out) in zip(begins, ends)]


def count_remappings(block, stays):
    """Sets the chunks that the host remaps before each of the block's returns."""
    for index, stay in enumerate(stays):
        # stays[-1], of the iteration before, is what precedes a persistent block's first.
        if stay.swap_in and stay.offsets != stays[index - 1].offsets:
            stay.swap_in.remapped_chunks += block.chunks
    if not block.persistent and stays[-1].offsets != stays[0].offsets:
        stays[-1].swap_in.remapped_chunks += block.chunks


def find_previous_owners(plan, stays):
    """Checks that no two stays share a byte at an operation. Returns, for each (stay, turn), those that had its bytes before:
    (stay, how many iterations earlier that instance was born)."""
    length, period = plan.n * plan.rounds, plan.rounds
    # Bytes that all stays have whole or not at all are looked at together.
    cuts = sorted({cut for stay in stays for offset in stay.offsets for cut in (offset, offset + stay.block.size)})
    index = {cut: i for i, cut in enumerate(cuts)}
    pieces = [[] for _ in cuts]
    for number_of_stay, stay in enumerate(stays):
        for turn in range(plan.rounds):
            offset = stay.offsets[turn % len(stay.offsets)]
            # Of all instances with this turn, the one that begins in [0, length).
            born = turn - (turn * plan.n + stay.begin) // length * period
            begin = born * plan.n + stay.begin
            for piece in pieces[index[offset]:index[offset + stay.block.size]]:
                piece.append((begin, begin - stay.begin + stay.end, number_of_stay, born))
    owners = collections.defaultdict(set)
    for piece, cut in zip(pieces, cuts):
        piece.sort()
        for i, (begin, _, which, born) in enumerate(piece):
            _, end, before, owner_born = piece[i - 1]
            if i == 0:
                end, owner_born = end - length, owner_born - period
            require(end < begin, f"blocks {stays[before].block.id} and {stays[which].block.id} are both resident at byte {cut} "
                    f"at operation {begin % plan.n}")
            owners[which, born % period].add((before, born - owner_born))
    return owners


def set_previous_owners(plan, stays):
    """Returns how many copies in are early, on average over the turns."""
    owners = find_previous_owners(plan, stays)
    early = 0
    for which, stay in enumerate(stays):
        for turn in range(plan.rounds):
            asked = turn * plan.n + stay.issued
            stay.previous[turn] = []
            is_early = False
            for before, iterations in sorted(owners[which, turn]):
                owner = stays[before]
                end = (turn - iterations) * plan.n + owner.end
                stay.previous[turn].append((owner.let_go, end // plan.n - asked // plan.n))
                if not stay.swap_in:
                    continue
                # Places in swaps order copies on one engine only, so that none is issued before another after the same operation.
                is_early |= asked < end
                require(asked // plan.n >= end // plan.n, f"{stay.swap_in.label}: its copy in is issued in an earlier iteration than "
                        f"that in which block {owner.block.id} gives up its bytes")
            early += is_early
    return early / plan.rounds


# Simulated time.

def when(times, iteration):
    """What was issued before the first iteration is done at 0 (rule 7); None where it was not issued yet, or waits."""
    if iteration < 0:
        return 0.0
    return times[iteration] if iteration < len(times) else None


class Places:
    """With a layout: bytes are those of the offsets, free when all previous owners have let go."""

    def __init__(self, plan, stays):
        self.plan = plan
        self.peak = None  # Of what is taken, where nothing else says that it fits.
        self.early = set_previous_owners(plan, stays)

    def take(self, stay, iteration):
        """When they are free, of what asks in the iteration; None where an owner has yet to let go."""
        latest = 0.0
        for let_go, earlier in stay.previous[(iteration - stay.issued // self.plan.n) % self.plan.rounds]:
            time = when(let_go, iteration + earlier)
            if time is None:
                return None
            latest = max(latest, time)
        return latest

    def let_go(self, time, size):
        """The stays' own lists say so."""


class Pool:
    """Without: any bytes will do, those let go earliest first (rule 6)."""

    def __init__(self, plan, stays):
        self.early = 0
        taken = taken_at_the_beginning(plan, stays)
        self.peak = find_peak_taken(plan, stays, taken)
        require(self.peak <= plan.limit, f"{self.peak} bytes are taken, and the limit is {plan.limit}")
        self.free = [(0.0, plan.limit - taken)]  # A heap: so many bytes from then on.

    def take(self, stay, _):
        wanted, time = stay.block.size, 0.0
        while wanted:
            time, size = heapq.heappop(self.free)
            if size > wanted:
                heapq.heappush(self.free, (time, size - wanted))
            wanted -= min(size, wanted)
        return time

    def let_go(self, time, size):
        heapq.heappush(self.free, (time, size))


def taken_at_the_beginning(plan, stays):
    """Bytes of what was issued before the first operation."""
    taken = 0
    for stay in stays:
        if not stay.swap_out and stay.block.persistent:
            taken += stay.block.size
            continue
        # Of the iterations those in which the stay's bytes were asked for before operation 0, and are given up behind it.
        first_to_last = range(-(stay.end // plan.n), -(stay.issued // plan.n))
        taken += stay.block.size * len(first_to_last)
    return taken


def find_peak_taken(plan, stays, taken):
    """Counting only what was issued before; each iteration is like the first."""
    # At each operation: what is allocated, what is given up behind it, and what copies in take behind that.
    changes = [[0, 0, 0] for _ in range(plan.n)]
    for stay in stays:
        if stay.swap_out or not stay.block.persistent:
            changes[stay.issued % plan.n][2 if stay.swap_in else 0] += stay.block.size
            changes[stay.end % plan.n][1] -= stay.block.size
    peak = taken
    for steps in changes:
        for change in steps:
            taken += change
            peak = max(peak, taken)
    return peak


class Simulation:
    def __init__(self, plan, stays, memory):
        self.plan = plan
        self.memory = memory  # Places or Pool.
        self.iterations = 0
        self.now = 0.0
        self.out_free = self.in_free = self.host_free = 0.0  # When each is done with all that it was given.
        self.ends, self.engines = [0.0], [(0.0, 0.0, 0.0)]   # now and the others, behind each iteration.
        self.queue = collections.deque()                     # Copies in: (stay, iteration when issued, not before).
        # What happens at each operation of an iteration, with the iterations that it is behind the birth of its instance.
        self.allocated, self.needed, self.outs, self.ins, self.freed = ([[] for _ in range(plan.n)] for _ in range(5))
        for stay in stays:
            if stay.swap_in:
                self.needed[stay.begin % plan.n].append((stay.swap_in, stay.begin // plan.n - stay.issued // plan.n))
                self.ins[stay.issued % plan.n].append((stay, stay.issued // plan.n - stay.swap_in.out_after // plan.n))
            elif not stay.block.persistent:
                self.allocated[stay.begin % plan.n].append(stay)
            if not stay.swap_out and not stay.block.persistent:
                self.freed[stay.end % plan.n].append(stay)
        for swap in plan.swaps:
            self.outs[swap.out_after % plan.n].append(swap)
        for ins in self.ins:
            ins.sort(key=lambda entry: entry[0].swap_in.place)

    def iterate(self):
        for i, duration in enumerate(self.plan.durations):
            start = self.now
            for swap, later in self.needed[i]:
                returned = when(swap.returned, self.iterations - later)
                require(returned is not None, f"deadlock: operation {i} waits for {swap.label}, whose copy in waits for what comes later")
                start = max(start, returned)
            for stay in self.allocated[i]:  # Rule 5. Owners are before, so their ends are known.
                start = max(start, self.memory.take(stay, self.iterations))
            for stay in self.allocated[i]:
                stay.taken.append(start)
            self.now = start + duration
            for stay in self.freed[i]:
                stay.let_go.append(self.now)
                self.memory.let_go(self.now, stay.block.size)
            for swap in self.outs[i]:  # Rule 3.
                if swap.copy:
                    self.out_free = max(self.now, self.out_free) + swap.out_ns
                swap.went.append(self.out_free if swap.copy else self.now)
                self.memory.let_go(swap.went[-1], swap.block.size)
            for stay, later in self.ins[i]:
                self.issue_copy_in(stay, later)
            self.copy_in()
        self.iterations += 1
        self.ends.append(self.now)
        self.engines.append((self.out_free, self.in_free, self.host_free))

    def issue_copy_in(self, stay, later):
        swap = stay.swap_in
        went = when(swap.went, self.iterations - later)
        ready = max(self.now, went)
        if swap.remapped_chunks:
            # The host may have begun before this operation, as soon as the block was gone.
            self.host_free = max(self.host_free, went) + swap.remapped_chunks * self.plan.remap_ns
            ready = max(ready, self.host_free)
        self.queue.append((stay, self.iterations, ready))

    def copy_in(self):
        """Rule 4: those whose previous owners' ends are known, in order."""
        while self.queue:
            stay, iteration, ready = self.queue[0]
            free = self.memory.take(stay, iteration)
            if free is None:
                return
            self.queue.popleft()
            start = max(ready, self.in_free, free)
            self.in_free = start + stay.swap_in.in_ns
            stay.taken.append(start)
            stay.swap_in.returned.append(self.in_free)

    def added(self, begin, end):
        """To each of these iterations, on average."""
        return (self.ends[end] - self.ends[begin]) / (end - begin) - self.plan.period

    def run(self, span):
        """Returns what is added to each steady iteration, and whether they are steady."""
        rounds = self.plan.rounds
        goal = max(8, 3 * rounds + span + 2)
        tolerance = max(1e-6 * self.plan.period, 1e-9)
        while True:
            while self.iterations < goal:
                self.iterate()
            width = max(goal // 3 // rounds, 1) * rounds
            added = self.added(goal - width, goal)
            steady = abs(added - self.added(goal - 2 * width, goal - width)) <= tolerance
            # Copies that fall behind a little in each iteration may make operations wait much later.
            grown = max(after - before for after, before in zip(self.engines[goal], self.engines[goal - width]))
            falling_behind = grown / width - self.plan.period - added > tolerance
            if steady and not falling_behind or 2 * goal > min(MOST_ITERATIONS, MOST_OPERATIONS // self.plan.n):
                return added, steady
            goal *= 2


def residencies(plan, stays, iterations):
    """(time, whether bytes are taken, or let go, where, stay), in order; copies are included."""
    events = []
    for stay in stays:
        forever = not stay.swap_out and stay.block.persistent
        for born in [0] if forever else range(-stay.end // plan.n - 1, iterations):
            taken = 0.0 if forever else when(stay.taken, born + stay.issued // plan.n)
            let_go = None if forever else when(stay.let_go, born + stay.end // plan.n)
            let_go = math.inf if let_go is None else let_go
            if taken is None or taken == let_go or not stay.block.size:
                continue  # What takes no time is checked by operations.
            low = stay.offsets[born % len(stay.offsets)]
            events += [(let_go, 0, low, stay), (taken, 1, low, stay)]
    return sorted(events, key=lambda event: event[:3])


def check_load(plan, stays, iterations):
    """Those that have bytes at the same simulated time are within the limit."""
    load = 0
    for time, takes, _, stay in residencies(plan, stays, iterations):
        load += stay.block.size if takes else -stay.block.size
        require(load <= plan.limit, f"{load} bytes are resident at time {time}")


def check_bytes(plan, stays, iterations):
    """No two stays have the same bytes at the same simulated time."""
    lows, resident = [], []  # Sorted; they do not overlap, so that a new one can only overlap its neighbours.
    for time, takes, low, stay in residencies(plan, stays, iterations):
        at = bisect(lows, low)
        if not takes:
            del lows[at - 1], resident[at - 1]
            continue
        for other in range(max(at - 1, 0), min(at + 1, len(lows))):
            apart = lows[other] + resident[other].block.size <= low or low + stay.block.size <= lows[other]
            require(apart, f"blocks {resident[other].block.id} and {stay.block.id} share bytes at time {time}")
        lows.insert(at, low)
        resident.insert(at, stay)


# All together.

def peak_live(plan):
    """The largest sum of blocks between allocation and free, over the operations."""
    changing = [block for block in plan.blocks.values() if not block.persistent]
    live = sum(block.size for block in plan.blocks.values() if block.persistent) + sum(block.size * (block.freed // plan.n) for block in changing)
    peak = live
    # One an operation: (where, what it adds at once, what is gone behind it).
    for _, at_once, behind in sorted([(block.born, block.size, 0) for block in changing] +
                                     [(block.freed % plan.n, 0, block.size) for block in changing]):
        live += at_once
        peak = max(peak, live)
        live -= behind
    return peak


def judge(record):
    """What the plan comes to; raises Invalid where it does not hold."""
    plan = Plan(record)
    stays = []
    for block in plan.blocks.values():
        check_swaps(block, plan)
        check_copies(block)
        own = stays_of(block, plan.n)
        count_remappings(block, own)
        stays += own
    footprint = None
    if plan.layout:
        # The offsets of all blocks and swaps count, of a persistent block that is always elsewhere, too.
        placed = [(block, block.offsets) for block in plan.blocks.values()] + [(swap.block, swap.offsets) for swap in plan.swaps]
        footprint = max((max(offsets) + block.size for block, offsets in placed), default=0)
        require(plan.limit is None or footprint <= plan.limit, f"the footprint of {footprint} bytes is above the limit of {plan.limit}")
    memory = Places(plan, stays) if plan.layout else Pool(plan, stays)
    simulation = Simulation(plan, stays, memory)
    added, converged = simulation.run(1 + max((stay.end // plan.n for stay in stays), default=0))
    (check_bytes if plan.layout else check_load)(plan, stays, simulation.iterations)
    return {"valid": True, "footprint": footprint, "peak_taken": memory.peak, "peak_live": peak_live(plan), "added_ns": added,
            "early_swap_ins": memory.early, "returns_elsewhere": sum(swap.remapped_chunks > 0 for swap in plan.swaps),
            "remapped_chunks": sum(swap.remapped_chunks for swap in plan.swaps), "converged": converged}


def line_of(result):
    steady = "" if result["converged"] else ", not steady"
    added = f"{result['added_ns'] / 1e6:.3f} ms added"
    if result["footprint"] is None:
        return f"{result['peak_taken'] / 2**20:.2f} MiB (load only), {added}{steady}"
    return (f"{result['footprint'] / 2**20:.2f} MiB, {added}, {result['returns_elsewhere']} returns elsewhere "
            f"({result['remapped_chunks']} chunks), {result['early_swap_ins']:g} early{steady}")


def main(paths):
    failed = False
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                print(f"{path}: {line_of(judge(json.load(file)))}", flush=True)
                continue
        except Invalid as why:
            print(f"{path}: does not hold: {why}", flush=True)
        except (NotImplementedError, OSError, ValueError, RecursionError) as why:
            print(f"{path}: not judged: {why}", flush=True)
        failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
