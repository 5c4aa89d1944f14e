"""Small random iterations made like training steps, with random steps that compute again (memopt-plan-2), for tests of what judges such plans.

    iteration(rng)                a legal iteration without steps
    steps(rng, plan)              a list for its "recompute", which holds often, but not always
    machine(rng)                  one on which copies take about as long as some launches
    swaps(rng, plan, extended)    a list for its "swaps", most of which hold; extended: the judge's, of a plan whose steps hold
    place(rng, plan, extended)    gives all that has bytes a place, and the plan a layout; extended: as for swaps, of the plan with its swaps
    mutated(rng, plan)            a copy with one place, launch, step, swap or operation changed

rng is a random.Random. Shares no code with the planner; with the judge only where swaps are placed.
"""
import collections
import copy

import random_plans

MOST_LAUNCHES = 25
MOST_LAUNCH_OPERATIONS = 5
ATTEMPTS = 5   # To find steps that hold, before some that don't are good enough.
MOST_REPLAYS = 60


class Draft:
    """An iteration in the making. Slot j is before launch j; a launch is a list of (kind, block, age)."""
    def __init__(self, rng):
        self.rng = rng
        self.blocks = []
        self.launches = []
        self.allocated, self.freed, self.age = {}, {}, {}  # By block: slot, slot, and how old it is when it is freed.

    def block(self, **fields):
        size = self.rng.choice([0, 1, self.rng.randint(0, 300), self.rng.randint(0, 300), self.rng.randint(50, 300)])
        self.blocks.append({"id": len(self.blocks), "size": size, **fields})
        return len(self.blocks) - 1

    def launch(self, reads, writes):
        """Blocks are (block, age). What does not fit in a launch is left out, but for what is written."""
        accesses = [("w", *block) for block in writes] + [("r", *block) for block in reads]
        accesses = list(dict.fromkeys(accesses))[:MOST_LAUNCH_OPERATIONS]
        spare = MOST_LAUNCH_OPERATIONS - len(accesses)
        if spare and (not accesses or self.rng.random() < 0.15):
            accesses.append(self.rng.choice([("x", -1, 0), *accesses]))  # It may access a block twice.
        self.rng.shuffle(accesses)
        self.launches.append(accesses)


def iteration(rng):
    draft = Draft(rng)
    weights = [(draft.block(persistent=True), 0) for _ in range(rng.randint(0, 3))]
    states = [(draft.block(persistent=True), 0) for _ in range(rng.randint(0, 2))]
    wanted = rng.randint(5, MOST_LAUNCHES)
    carried = {}  # Blocks that live on into the next iteration: allocated in one slot, freed in another, so many iterations later.
    for _ in range(rng.choice([0, 0, 1, 2])):
        carried[draft.block()] = (rng.randint(0, wanted - 1), rng.randint(0, wanted), rng.choice([1, 1, 1, 2]))

    def living_carried():
        slot = len(draft.launches)
        return [(block, age) for block, (born, freed, oldest) in carried.items() for age in range(oldest + 1)
                if (age > 0 or slot >= born) and (age < oldest or slot < freed)]

    def some_outside():
        """A persistent or carried block to read now and then, and one to change."""
        reads, changes = [], []
        if weights and rng.random() < 0.5:
            reads.append(rng.choice(weights))
        if states and rng.random() < 0.3:
            (reads if rng.random() < 0.6 else changes).append(rng.choice(states))
        living = living_carried()
        if living and rng.random() < 0.35:
            (reads if rng.random() < 0.6 else changes).append(rng.choice(living))
        return reads, changes

    # Forward: mostly a chain, each launch reading what the one before wrote.
    tape = []    # (reads, writes) of the forward launches.
    values = []  # The blocks that they wrote.
    forward = rng.randint(2, max(2, wanted * 2 // 3))
    for _ in range(forward):
        reads, changes = some_outside()
        if values and rng.random() < 0.85:
            reads.append(values[-1])
        if values and rng.random() < 0.3:
            reads.append(rng.choice(values))
        if values and rng.random() < 0.2:
            changes.append(rng.choice(values[-3:]))
        outputs = [(draft.block(), 0) for _ in range(rng.choice([0, 1, 1, 1, 1, 2, 2, 3]))]
        for output in outputs:
            if rng.random() < 0.04:
                draft.blocks[output[0]]["pinned"] = True
        if rng.random() < 0.04:
            reads += outputs[:1]  # First read before anything was written.
        # A change without a read may leave bytes as they were, too.
        draft.launch(reads + (changes if rng.random() < 0.85 else []), outputs + changes)
        tape.append((reads, outputs))
        values += outputs

    # Backward: the same in reverse order, with a gradient that is passed on.
    gradient = []
    for reads, outputs in reversed(tape):
        if len(draft.launches) >= wanted:
            break
        if rng.random() < 0.1:
            continue
        more, changes = some_outside()
        passed = [(draft.block(), 0)] if not gradient or rng.random() < 0.8 else []
        wants = gradient + [block for block in reads + outputs if block in values and rng.random() < 0.8] + more
        draft.launch(wants + changes, (passed or gradient) + changes)
        gradient = passed or gradient
    while len(draft.launches) < wanted:  # An optimizer, say.
        reads, changes = some_outside()
        draft.launch(reads + changes + (gradient if rng.random() < 0.5 else []), changes)
    for _ in range(rng.choice([0, 0, 0, 1])):
        draft.block()  # Never accessed.

    place_allocations(draft, carried)
    return written_out(draft)


def place_allocations(draft, carried):
    rng, count = draft.rng, len(draft.launches)
    used = collections.defaultdict(list)
    for slot, accesses in enumerate(draft.launches):
        for _, block, _ in accesses:
            used[block].append(slot)
    for record in draft.blocks:
        block = record["id"]
        if record.get("persistent"):
            continue
        if block in carried:
            draft.allocated[block], draft.freed[block], draft.age[block] = carried[block]
            continue
        first = used[block][0] if used[block] else rng.randint(0, count - 1)
        last = used[block][-1] if used[block] else first
        draft.allocated[block] = first if rng.random() < 0.8 else rng.randint(max(0, first - 4), first)
        draft.freed[block] = min(count, last + 1 + rng.choice([0, 0, 0, 1, 3, count]))
        draft.age[block] = 0


def written_out(draft):
    rng = draft.rng
    whole_times = rng.random() < 0.6
    ops, launches = [], []
    time = 0

    def passes(most):
        nonlocal time
        time += rng.choice([0, rng.randint(0, most)]) if whole_times else rng.choice([0, rng.random() * most])

    def emit(kind, block, age):
        behind = block in allocated or block == -1 or draft.blocks[block].get("persistent", False)
        operation = [kind, block, time]
        if age != (0 if behind else 1) or rng.random() < 0.1:
            operation.append(age)
            if rng.random() < 0.1:
                operation.append(rng.randint(0, 2))
        ops.append(operation)

    allocated = set()
    for slot in range(len(draft.launches) + 1):
        events = [("m", block) for block, at in draft.allocated.items() if at == slot]
        events += [("f", block) for block, at in draft.freed.items() if at == slot]
        if rng.random() < 0.1:
            events.append(("x", -1))
        rng.shuffle(events)
        for kind, block in events:
            if kind == "m":
                allocated.add(block)
            emit(kind, block, draft.age[block] if kind == "f" else 0)
            passes(3)
        if slot == len(draft.launches):
            break
        if len(draft.launches[slot]) > 1 or rng.random() < 0.5:
            launches.append([len(ops), len(draft.launches[slot])])
        for access in draft.launches[slot]:
            emit(*access)
        passes(100)
    passes(20)
    sizes = sum(record["size"] * (1 + draft.age.get(record["id"], 0)) for record in draft.blocks)
    return {"format": "memopt-plan-2", "layout": False, "limit": sizes if rng.random() < 0.9 else sizes * 3 // 4, "period": time, "ops": ops,
            "blocks": draft.blocks, "machine": {"out_bytes_per_ns": 1, "in_bytes_per_ns": 1}, "launches": launches}


# Steps: a loose simulation that drops what it likes, and replays what is missing before it is needed.

class Unmakeable(Exception):
    """What is needed can't be had again."""


class Walk:
    def __init__(self, rng, plan, drop_share):
        self.rng, self.plan, self.drop_share = rng, plan, drop_share
        self.ops, self.steps = plan["ops"], []
        self.fails = False
        self.read_launches()

    def read_launches(self):
        """Instances are (block, age); a launch is (first, end, what it read in which version, what it wrote)."""
        allocated = {record["id"] for record in self.plan["blocks"] if record.get("persistent")} | {-1}
        pinned = {record["id"] for record in self.plan["blocks"] if record.get("persistent") or record.get("pinned")}
        ends = {first: first + count for first, count in self.plan["launches"]}
        versions = collections.Counter()
        self.launches, self.inside, self.instances = {}, set(), []
        self.writers = collections.defaultdict(list)
        self.makeable = set()
        sizes = {record["id"]: record["size"] for record in self.plan["blocks"]}
        self.lasting = {op[1] for op in self.ops if op[0] == "f" and len(op) > 3 and op[3]}  # Into the next iteration.
        seen, end = set(), 0
        for i, (kind, block, _, *rest) in enumerate(self.ops):
            if kind == "m":
                allocated.add(block)
            age = rest[0] if rest and rest[0] is not None else 0 if block in allocated else 1
            self.instances.append((block, age))
            if kind in "mf":
                if kind == "f" and age > 0:
                    self.makeable = {instance for instance in self.makeable if instance[0] != block}
                    pinned.add(block)
                continue
            if i >= end:
                launch, end = i, ends.get(i, i + 1)
                self.launches[launch] = (i, end, {}, {})
            else:
                self.inside.add(i)
            _, _, reads, writes = self.launches[launch]
            if sizes.get(block) == 0:
                pass
            elif kind == "r":
                reads[block, age] = 0
            elif kind == "w":
                writes[block, age] = 0
            if i + 1 < end:
                continue
            for instance in reads:
                reads[instance] = versions[instance]
            for instance in writes:
                versions[instance] += 1
                writes[instance] = versions[instance]
                self.writers[instance].append(launch)
                if instance not in seen and instance not in reads and instance[0] not in pinned:
                    self.makeable.add(instance)
            seen.update(reads, writes)

    def run(self):
        self.memory = {(record["id"], 0): 0 for record in self.plan["blocks"] if record.get("persistent")}
        for (kind, *_), (block, age) in zip(self.ops, self.instances):
            if kind == "f":
                self.memory.update({(block, old): 0 for old in range(1, age + 1)})
        self.freed, self.now = set(), 0
        for self.now, (kind, *_) in enumerate(self.ops):
            instance = self.instances[self.now]
            if self.now not in self.inside:
                self.play()
            if kind == "m":
                self.memory[instance] = 0
            elif kind == "f":
                self.memory.pop(instance, None)
                self.freed.add(instance)
            elif self.now in self.launches:
                self.launch(self.launches[self.now])
        self.now = len(self.ops)
        self.play()
        for instance in [instance for instance in self.memory if instance in self.freed]:
            self.drop(instance)
        return self.steps

    def play(self):
        """Steps that nothing asks for."""
        for instance in list(self.memory):
            share = 0.6 if instance in self.freed else self.drop_share
            if instance in self.makeable and self.memory[instance] > 0 and self.rng.random() < share:
                self.drop(instance)
        if self.rng.random() < 0.03:
            behind = [first for first, launch in self.launches.items() if launch[1] <= self.now and self.holds_inputs(launch)]
            if behind:
                self.replay(self.rng.choice(behind))

    def launch(self, launch):
        _, _, reads, writes = launch
        needed = {**{instance: version - 1 for instance, version in writes.items()}, **reads}
        try:
            self.bring(needed)
        except Unmakeable:
            self.fails = True
        for instance, version in writes.items():
            self.memory[instance] = version

    def holds_inputs(self, launch):
        return all(self.memory.get(instance) == version for instance, version in launch[2].items())

    def bring(self, needed, depth=0):
        for _ in range(3):  # Bringing one may change another.
            missing = [instance for instance, version in needed.items() if self.memory.get(instance) != version]
            if not missing:
                return
            self.rng.shuffle(missing)
            for instance in missing:
                self.bring_one(instance, needed[instance], depth)
        raise Unmakeable

    def bring_one(self, instance, version, depth):
        if instance not in self.makeable or depth > 12 or version == 0:
            raise Unmakeable
        if self.memory.get(instance, 0) > version:
            self.drop(instance)
        for writer in self.writers[instance][self.memory.get(instance, 0):version]:
            launch = self.launches[writer]
            if any(block in self.lasting for block, _ in (*launch[2], *launch[3])):
                raise Unmakeable
            if launch[1] > self.now or len(self.steps) > MOST_REPLAYS:
                raise Unmakeable
            self.bring(launch[2], depth + 1)
            self.replay(writer)

    def drop(self, instance):
        del self.memory[instance]
        self.steps.append({"before": self.now, "drop": instance[0]})

    def replay(self, first):
        for instance, version in self.launches[first][3].items():
            held = self.memory.get(instance, 0 if version == 1 else None)
            if instance in self.makeable and held == version - 1:
                self.memory[instance] = version
        self.steps.append({"before": self.now, "replay": first})


def steps(rng, plan):
    share = rng.choice([0.02, 0.05, 0.1, 0.3])
    for attempt in range(ATTEMPTS):
        walk = Walk(rng, plan, share)
        found = walk.run()
        if not walk.fails:
            break
        share /= 2
    if found and rng.random() < 0.4:
        perturb(rng, plan, found, walk.launches)
    return found


def machine(rng):
    return {"out_bytes_per_ns": rng.choice([1, 3, 10, 300]), "in_bytes_per_ns": rng.choice([1, 4, 12.5, 300]),
            "out_latency_ns": rng.choice([0, 0, 3, 5.5]), "in_latency_ns": rng.choice([0, 0, 4])}


def accesses_of_lives(extended):
    """By life, in order: [first, end, whether written] of what touches it, a launch or replay being one; and where each is allocated and freed."""
    n = len(extended.operations)
    run_at = {position: run for run in extended.runs for position in range(*run[:2])}
    accesses = collections.defaultdict(list)
    ends = collections.defaultdict(dict)
    for i, (kind, life, _, age) in enumerate(extended.operations):
        if kind in "mf":
            ends[life][kind] = i + age * n
        elif kind in "rw":
            first, end, touched = run_at.get(i, (i, i + 1, ()))
            if (life, age) not in touched:  # It has no bytes.
                first, end = i, i + 1
            accesses[life].append([first + age * n, end + age * n, kind == "w"])
    merged = collections.defaultdict(list)
    for life, found in accesses.items():
        for access in sorted(found):
            if merged[life] and merged[life][-1][:2] == access[:2]:
                merged[life][-1][2] |= access[2]
            else:
                merged[life].append(access)
    return merged, ends


def swaps(rng, plan, extended):
    n = len(extended.operations)
    accesses, ends = accesses_of_lives(extended)
    records = {record["id"]: record for record in plan["blocks"]}
    share = rng.choice([0.1, 0.3, 0.6])
    found = []
    for block, lives in extended.lives.items():
        persistent = records[block].get("persistent", False)
        if (records[block].get("pinned") or records[block]["size"] == 0) and rng.random() < 0.98:
            continue
        for life, _, _ in lives:
            points = accesses[life]
            if persistent:
                points = points + [[first + n, end + n, written] for first, end, written in points[:1]]
            else:
                born, freed = ends[life]["m"], ends[life]["f"]
                points = [[born, born + 1, False], *points, [freed, freed + 1, False]]
            found += swaps_of_life(rng, block, points, share, n if persistent else None)
    rng.shuffle(found)
    return found


def swaps_of_life(rng, block, points, share, persistent):
    """In gaps between what touches the life; of a persistent block out_after has to be below `persistent`, the number of operations."""
    found = []
    host_is_current = False
    for (first, end, written), (following, its_end, _) in zip(points, points[1:]):
        host_is_current &= not written
        earliest, latest = end - 1, following
        if rng.random() < 0.01:  # Into a launch.
            earliest, latest = rng.randint(first, end - 1), rng.randint(following, its_end - 1)
        if rng.random() >= share:
            continue
        out = rng.choice([earliest, earliest, rng.randint(earliest, latest - 1)])
        if persistent and out >= persistent:
            continue
        swap = {"block": block, "out_after": out}
        if host_is_current and rng.random() < 0.7 or rng.random() < 0.02:
            swap["copy"] = False
        host_is_current = True
        is_last = [following, its_end] == points[-1][:2] and not persistent
        if is_last and rng.random() < 0.6:
            return [*found, swap]
        swap["need"] = rng.choice([latest, latest, rng.randint(out + 1, latest)])
        swap["in_after"] = rng.choice([swap["need"] - 1, rng.randint(out, swap["need"] - 1)])
        found.append(swap)
    return found


def place(rng, plan, extended):
    plan.update(layout=True, chunk=rng.choice([1, 1, 64]), align=rng.choice([1, 8]))
    with_steps = extended.plan(plan)
    random_plans.place(rng, with_steps)
    places = {block["id"]: {"offset": block["offset"], "window": block.get("window", "linear")} for block in with_steps["blocks"]}
    for life, (step, block) in sorted(extended.origins.items()):
        plan["recompute"][step].setdefault("places", []).append({"block": block, **places[life]})
    for record in plan["blocks"]:
        record.update(places[extended.lives[record["id"]][0][0]])
    offsets = [(one["offset"], extended.blocks[life]["size"]) for life, one in places.items()]
    top = max(max(offset if isinstance(offset, list) else [offset]) + size for offset, size in offsets) if offsets else 0
    plan["limit"] = rng.choice([None, top, top, top + rng.randint(1, 100)])


def random_step(rng, plan, launches):
    before = rng.randint(0, len(plan["ops"]))
    if rng.random() < 0.5 and plan["blocks"]:
        return {"before": before, "drop": rng.choice(plan["blocks"])["id"]}
    return {"before": before, "replay": rng.choice(list(launches))}


def perturb(rng, plan, found, launches):
    place = rng.randrange(len(found))
    how = rng.choice(["remove", "add", "swap", "move", "nudge"])
    if how == "remove":
        del found[place]
    elif how == "add":
        found.insert(place, random_step(rng, plan, launches))
    elif how == "swap":
        other = rng.randrange(len(found))
        found[place]["before"], found[other]["before"] = found[other]["before"], found[place]["before"]
        found[place], found[other] = found[other], found[place]
    elif how == "move":
        found[place]["before"] = rng.randint(0, len(plan["ops"]))
    else:
        found[place]["before"] = min(len(plan["ops"]), max(0, found[place]["before"] + rng.choice([-2, -1, 1, 2])))
    if rng.random() < 0.9:  # Else they may be out of order, which is refused.
        found.sort(key=lambda step: step["before"])


def mutated(rng, plan):
    """Mostly something that can still be read, so that not only what is malformed is tried."""
    lists = [name for name in ("launches", "recompute", "recompute", "ops", *["swaps"] * 8) if plan.get(name)]
    while True:
        copied = copy.deepcopy(plan)
        if plan.get("layout", True) and rng.random() < 0.8:
            mutate_place(rng, copied)
            if copied != plan:
                return copied
            continue
        name = rng.choice(lists)
        elements = copied[name]
        place = rng.randrange(len(elements))
        how = rng.random()
        if name == "ops":
            mutate_operation(rng, copied, place)
        elif how < 0.15:
            del elements[place]
        elif how < 0.25:
            elements.insert(place, copy.deepcopy(rng.choice(elements)))
        elif name == "launches":
            field = rng.choice([0, 1, 1, 1])
            elements[place][field] = max(0, elements[place][field] + rng.choice([-2, -1, -1, -1, 1]))
        elif name == "swaps":
            mutate_swap(rng, copied, place)
        else:
            mutate_step(rng, copied, place)
        if copied != plan:
            return copied


def mutate_operation(rng, plan, place):
    operation = plan["ops"][place]
    ids = [record["id"] for record in plan["blocks"]]
    field = rng.choice([0, 1, 1, 2, 3])
    if field == 0:
        operation[0] = rng.choice("rw" if operation[0] in "rw" and rng.random() < 0.8 else "mfrwx")
    elif field == 1 and (operation[0] in "rw" or rng.random() < 0.2):
        operation[1] = rng.choice(ids if rng.random() < 0.9 else [-1, len(ids)])
    elif field == 2:
        times = [near[2] for near in plan["ops"][max(0, place - 1):place + 2]]
        operation[2] = rng.choice([*times, plan["period"]])
    elif operation[0] != "x":
        operation[3:4] = [rng.choice([None, 0, 1, 2])]


def mutate_place(rng, plan):
    """Mostly where something lies."""
    of_steps = [step["places"] for step in plan["recompute"] if "places" in step]
    if of_steps and rng.random() < 0.6:
        places = rng.choice(of_steps)
        number = rng.randrange(len(places))
        how = rng.random()
        if how < 0.1:
            del places[number]
            return
        if how < 0.2:
            places.insert(number, dict(places[number]))
        elif how < 0.3:
            places[number]["block"] = rng.choice(plan["blocks"])["id"]
        mutated_place = places[number]
    else:
        mutated_place = rng.choice(plan["blocks"])
    field = rng.choice(["offset"] * 8 + ["window", "limit", "chunk", "align", "missing"])
    if field == "limit":
        plan["limit"] = rng.choice([None, plan["limit"] - 1 if plan["limit"] else 0])
    elif field in ("chunk", "align"):
        plan[field] = rng.choice([1, 3, 8, 64])
    elif field == "missing":
        mutated_place.pop("offset", None)
    elif field == "window":
        mutated_place["window"] = rng.choice(["own", "linear", "wide"])
    elif "offset" in mutated_place:
        offset = mutated_place["offset"]
        offset = offset[0] if isinstance(offset, list) else offset
        mutated_place["offset"] = rng.choice([offset + rng.choice([-64, -8, -1, 1, 8, 64]), 0, rng.randint(0, offset + 100), [offset], [offset, offset + 64], -1])


def mutate_step(rng, plan, place):
    found = plan["recompute"]
    step = found[place]
    if rng.random() < 0.5:
        least = found[place - 1]["before"] if place else 0
        most = found[place + 1]["before"] if place + 1 < len(found) else len(plan["ops"])
        step["before"] = rng.randint(min(least, most), max(least, most)) if rng.random() < 0.8 else rng.randint(0, len(plan["ops"]) + 1)
    elif "drop" in step:
        step["drop"] = rng.randint(0, len(plan["blocks"]))
    else:
        listed = [first for first, _ in plan["launches"]]
        step["replay"] = rng.choice(listed) if listed and rng.random() < 0.8 else rng.randint(0, len(plan["ops"]))


def mutate_swap(rng, plan, place):
    swap = plan["swaps"][place]
    field = rng.choice(["out_after", "out_after", "in_after", "need", "need", "copy", "block", "never"])
    if field == "copy":
        swap["copy"] = not swap.get("copy", True)
    elif field == "block":
        swap["block"] = rng.choice(plan["blocks"])["id"] if rng.random() < 0.95 else len(plan["blocks"])
    elif field == "never":
        for name in ("in_after", "need") if rng.random() < 0.8 else ("need",):
            swap.pop(name, None)
    elif field in swap:
        swap[field] = max(0, swap[field] + rng.choice([-8, -3, -2, -1, -1, 1, 1, 2, 3, 8, len(plan["ops"])]))
