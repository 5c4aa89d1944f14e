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

from judged_plan import Invalid, Plan, check_copies, check_swaps, require

MOST_OPERATIONS = 1_500_000  # Simulated in all, where the length of the iterations does not settle,
MOST_ITERATIONS = 4096       # and of these at most so many.


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
