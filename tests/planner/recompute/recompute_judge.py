#!/usr/bin/env python3
"""An independent judge of plans that compute again (memopt-plan-2 with launches and recompute), with and without swaps.

Written from docs/formats/plan-json.md alone, above all its "Computing again"; it shares no code with the planner. judge(plan) walks through the
operations and steps and keeps for each block in memory which version it is in; each instance counts its own. Swaps and places are judged by the
judge of swap plans, as those of the iteration with its steps, which extend(plan) gives.

    recompute_judge.py FILE.json ...    a line each; exit code 1 unless all hold
"""
import json
import math
import os
import sys
from bisect import bisect

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "swap", "checker"))
import judge as swap_judge
from judged_plan import Invalid, require


# Reading: what is malformed is refused. bool is a kind of int to Python, so the types are compared.

def whole(value, where, most=2**62):
    require(type(value) is int and 0 <= value <= most, f"{where} is not a whole number from 0 to {most}")
    return value


def number(value, where):
    require(type(value) is int and 0 <= value <= 2**53 or type(value) is float and 0 <= value <= 2**62, f"{where} is not a number from 0 to 2^62")
    return value


def of_type(value, kind, where):
    require(type(value) is kind, f"{where} is not of type {kind.__name__}")
    return value


class Block:
    def __init__(self, record, where):
        self.record = of_type(record, dict, where)
        self.size = whole(record.get("size"), f"{where}.size")
        self.persistent, self.pinned = (of_type(record.get(field, False), bool, f"{where}.{field}") for field in ("persistent", "pinned"))
        self.allocated = self.freed = None  # Places in the list of operations.
        self.free_age = 0                   # So many instances of earlier iterations live when one begins.
        self.first_access_age = None
        self.remakeable = False


class Launch:
    """Reads and writes map an instance (block, age) to the version that the launch read, or gives it."""
    def __init__(self, first, end, duration):
        self.first, self.end, self.duration = first, end, duration
        self.reads, self.writes = {}, {}


class Iteration:
    def __init__(self, plan):
        of_type(plan, dict, "the plan")
        require(plan.get("format") in ("memopt-plan-1", "memopt-plan-2"), "format is not memopt-plan-1 or memopt-plan-2")
        self.layout = of_type(plan.get("layout", True), bool, "layout")
        self.unplaced = False
        self.swaps = of_type(plan.get("swaps", []), list, "swaps")
        for field in ("launches", "recompute"):
            require(plan["format"] == "memopt-plan-2" or field not in plan, f"memopt-plan-1 has no {field}")
        if of_type(plan.get("lazy_malloc", False), bool, "lazy_malloc"):
            raise NotImplementedError("lazy_malloc")
        self.limit = plan.get("limit")
        if self.limit is not None:
            whole(self.limit, "limit")
        self.blocks = {}
        for place, record in enumerate(of_type(plan.get("blocks"), list, "blocks")):
            block = Block(record, f"blocks[{place}]")
            require(self.blocks.setdefault(whole(record.get("id"), f"blocks[{place}].id"), block) is block, f"blocks[{place}]: the id is taken")
        self.read_operations(of_type(plan.get("ops"), list, "ops"), number(plan.get("period"), "period"))
        self.read_launches(of_type(plan.get("launches", []), list, "launches"))
        self.steps = of_type(plan.get("recompute", []), list, "recompute")
        self.check_steps()

    def read_operations(self, records, period):
        self.operations = []  # [kind, block's id, age]
        self.times = []
        for i, record in enumerate(records):
            where = f"ops[{i}]"
            require(3 <= len(of_type(record, list, where)) <= 5, f"{where} has not 3 to 5 elements")
            kind, block, time, age = [*record, None][:4]
            require(kind in ("m", "f", "r", "w", "x"), f"{where}: unknown kind {kind!r}")
            if age is not None:
                whole(age, f"{where}: age", 7)
            self.times.append(number(time, f"{where}: time"))
            require(time >= self.times[i - 1] if i else time == 0, f"{where}: the times fall, or the first is not 0")
            self.operations.append([kind, block, age])
            if kind == "x":
                require(type(block) is int and block == -1, f"{where}: an x has block -1")
                continue
            require(whole(block, f"{where}: block") in self.blocks, f"{where}: unknown block {block}")
            if kind in "mf":
                field = "allocated" if kind == "m" else "freed"
                require(not self.blocks[block].persistent, f"{where}: block {block} is persistent")
                require(getattr(self.blocks[block], field) is None, f"{where}: block {block} is {field} twice")
                setattr(self.blocks[block], field, i)
        self.times.append(period)
        require(not records or period >= self.times[-2], "the period is shorter than the time of the last operation")
        self.find_instances(len(records))

    def find_instances(self, n):
        """Settles the ages that are left out, and checks that each instance is touched within its life only."""
        for id_, block in self.blocks.items():
            require(block.persistent or None not in (block.allocated, block.freed), f"block {id_} is not allocated and freed")
        for i, operation in enumerate(self.operations):
            kind, id_, age = operation
            block = self.blocks.get(id_)
            if age is None:
                operation[2] = 0 if kind == "x" or block.persistent or i >= block.allocated else 1
            if kind == "f":
                block.free_age = operation[2]
        for i, (kind, id_, age) in enumerate(self.operations):
            block = self.blocks.get(id_)
            if kind == "x":
                continue
            if block.persistent or kind == "m":
                require(age == 0, f"ops[{i}]: block {id_} has no age here")
            else:
                end = block.freed + block.free_age * n
                require(block.allocated < i + age * n <= end, f"ops[{i}]: block {id_} is not alive at age {age}")
            if kind in "rw" and (block.first_access_age is None or age < block.first_access_age):
                block.first_access_age = age

    def read_launches(self, records):
        n = len(self.operations)
        self.launches = {}             # By their first operation.
        self.within = [None] * (n + 1)  # The launch that has begun before the operation and has not ended.
        ends, last = {}, 0
        for place, record in enumerate(records):
            where = f"launches[{place}]"
            require(len(of_type(record, list, where)) == 2, f"{where} is not [first, number]")
            first, count = (whole(value, f"{where}[{j}]") for j, value in enumerate(record))
            require(count > 0 and first + count <= n, f"{where} has no operations, or more than there are")
            require(first >= last, f"{where} begins before the one before has ended")
            for i in range(first, first + count):
                require(self.operations[i][0] in "rwx", f"{where}: operation {i} is neither r, w nor x")
            ends[first] = last = first + count
        versions, accessed = {}, set()
        i = 0
        while i < n:
            if self.operations[i][0] in "mf":
                i += 1
                continue
            end = ends.get(i, i + 1)
            launch = self.launches[i] = Launch(i, end, self.times[end] - self.times[i])
            self.within[i + 1:end] = [launch] * (end - i - 1)
            for kind, id_, age in self.operations[i:end]:
                if kind != "x" and self.blocks[id_].size == 0:
                    continue
                if kind == "r":
                    launch.reads[id_, age] = versions.get((id_, age), 0)
                elif kind == "w":
                    launch.writes[id_, age] = versions.get((id_, age), 0) + 1
            versions.update(launch.writes)
            for instance in {**launch.reads, **launch.writes}:
                block = self.blocks[instance[0]]
                if instance in accessed or instance[1] != block.first_access_age:
                    continue
                accessed.add(instance)
                if not block.persistent:
                    block.remakeable = block.size > 0 and not block.pinned and block.free_age == 0 and instance not in launch.reads
            i = end

    def check_steps(self):
        last = 0
        for place, step in enumerate(self.steps):
            where = f"recompute[{place}]"
            fields = of_type(step, dict, where).keys()
            require(fields in ({"before", "drop"}, {"before", "replay"}, {"before", "replay", "places"}),
                    f"{where} does not have before and one of drop and replay, or has more")
            before = whole(step["before"], f"{where}.before", len(self.operations))
            require(before >= last, f"{where} is before operation {before}, but listed behind one before operation {last}")
            last = before
            if "drop" in step:
                require(whole(step["drop"], f"{where}.drop") in self.blocks, f"{where}: unknown block {step['drop']}")
            else:
                require(whole(step["replay"], f"{where}.replay") in self.launches, f"{where}: no launch begins with operation {step['replay']}")
                self.read_places(step, where)

    def read_places(self, step, where):
        """What they are is for the judge of swap plans."""
        seen = set()
        for number_of_place, place in enumerate(of_type(step.get("places", []), list, f"{where}.places")):
            of = f"{where}.places[{number_of_place}]"
            require(of_type(place, dict, of).keys() in ({"block", "offset"}, {"block", "offset", "window"}),
                    f"{of} does not have block, offset and perhaps window")
            require(whole(place["block"], f"{of}.block") in self.blocks, f"{of}: unknown block {place['block']}")
            require(place["block"] not in seen or not self.layout, f"{of}: block {place['block']} has one already")
            seen.add(place["block"])
            require(place.get("window", "linear") in ("linear", "own"), f"{of}.window is neither linear nor own")
            offsets = place["offset"] if type(place["offset"]) is list else [place["offset"]]
            require(1 <= len(offsets) <= 8, f"{of}.offset is not 1 to 8 offsets")
            for offset in offsets:
                whole(offset, f"{of}.offset")


class Extended:
    """The iteration with its steps, in which each life is a block of its own ("With swaps")."""
    def __init__(self, iteration):
        self.iteration = iteration
        self.operations = []  # [kind, life, time, age]; a life's number is its place in blocks.
        self.blocks = []
        self.lives = {}  # By block, in order: [life, its allocation, its free]; both None where it reaches into the next iteration.
        self.origins = {}  # Of what replays allocate, by life: (the step's place in the list, the block).
        self.runs = []   # Of launches and replays: (first operation, end, {(life, age) that they touch}).
        self.now = self.replayed = 0
        for id_, block in iteration.blocks.items():
            if block.persistent:
                self.life(id_)

    def reach(self, i):
        """The operation of the list; what comes next is before it."""
        self.now = self.iteration.times[i] + self.replayed

    def emit(self, kind, life, age=0):
        # Sums of times are rounded, and must not fall for that.
        self.operations.append([kind, life, max(self.now, self.operations[-1][2] if self.operations else 0), age])

    def begin(self, record):
        self.blocks.append({**record, "id": len(self.blocks)})
        return len(self.blocks) - 1

    def life(self, id_):
        """The present one. What persists, or is in memory when an iteration begins, has only one."""
        if id_ not in self.lives:
            self.lives[id_] = [[self.begin(self.iteration.blocks[id_].record), None, None]]
        return self.lives[id_][-1][0]

    def allocate(self, id_, place=None):
        """Where the block itself says, or there."""
        block = self.iteration.blocks[id_]
        if block.free_age == 0:
            self.lives.setdefault(id_, []).append([self.begin({**block.record, **(place or {})}), len(self.operations), None])
        self.emit("m", self.life(id_))

    def free(self, id_, age):
        self.emit("f", self.life(id_), age)
        if self.iteration.blocks[id_].free_age == 0:
            self.lives[id_][-1][2] = len(self.operations) - 1

    def launch(self, launch):
        """Its operations follow."""
        touched = {(self.life(id_), age) for id_, age in {**launch.reads, **launch.writes}}
        self.runs.append((len(self.operations), len(self.operations) + launch.end - launch.first, touched))

    def replay(self, launch, made, besides, places):
        """Of instances that it makes, and of those that it writes besides; with the places, by block, of a plan with a layout. What is allocated:
        (life, block)."""
        substitutes, allocated = {}, []
        for instance in launch.writes:  # In order of the first writes.
            if instance in made:
                self.allocate(instance[0], places.get(instance[0]))
                allocated.append((self.life(instance[0]), instance[0]))
            elif instance in besides:
                size = self.iteration.blocks[instance[0]].size
                substitutes[instance] = self.begin({"size": size, "pinned": True, **places.get(instance[0], {})})
                allocated.append((substitutes[instance], instance[0]))
                self.emit("m", substitutes[instance])
        first, touched, began = len(self.operations), set(), self.now
        for i in range(launch.first, launch.end):
            self.now = began + (self.iteration.times[i] - self.iteration.times[launch.first])
            kind, id_, age = self.iteration.operations[i]
            if kind == "x" or self.iteration.blocks[id_].size == 0:  # What has no bytes may have been freed.
                self.emit("x", -1)
                continue
            life = substitutes.get((id_, age)) if kind == "w" else None
            touched.add((self.life(id_) if life is None else life, age))
            self.emit(kind, self.life(id_) if life is None else life, age)
        self.runs.append((first, len(self.operations), touched))
        self.replayed += launch.duration
        self.now = began + launch.duration
        for life in substitutes.values():
            self.emit("f", life)
        return allocated

    def swaps(self):
        """Those of the plan, of lives."""
        found = []
        for place, record in enumerate(self.iteration.swaps):
            where = f"swaps[{place}]"
            id_, out = (whole(of_type(record, dict, where).get(field), f"{where}.{field}") for field in ("block", "out_after"))
            require(id_ in self.iteration.blocks, f"{where}: unknown block {id_}")
            require(self.iteration.blocks[id_].size > 0, f"{where}: block {id_} has no bytes")
            lives = self.lives[id_]
            if lives[0][1] is not None:
                lives = [one for one in lives if one[1] <= out < one[2]]
                require(lives, f"{where}: block {id_} is not there behind operation {out}")
            found.append({**record, "block": lives[0][0]})
        return found

    def plan(self, original):
        """As a plan without launches and steps, once all lives have ended."""
        swaps = self.swaps()
        self.reach(-1)
        period = max(self.now, self.operations[-1][2] if self.operations else 0)
        kept = {field: value for field, value in original.items() if field not in ("launches", "recompute")}
        return {**kept, "period": period, "ops": self.operations, "blocks": self.blocks, "swaps": swaps}

    def check_runs(self, swaps):
        """No swap is within a launch, or a replay, that touches its block."""
        n = len(self.operations)
        runs = {}  # By life, with the positions of the instance.
        for first, end, touched in self.runs:
            for life, age in touched:
                persistent = self.blocks[life].get("persistent", False)
                runs.setdefault(life, []).extend((first + lap * n, end + lap * n) for lap in ((0, 1) if persistent else (age,)))
        for place, swap in enumerate(swaps):
            own = sorted(runs.get(swap["block"], []))
            following = bisect(own, swap["out_after"] + 1, key=lambda run: run[1])  # The first that ends behind the copy out.
            for first, end in own[following:following + 1]:
                back = swap.get("need") is not None and swap["need"] <= first
                require(back, f"swaps[{place}] is within the launch or replay of operations {first} to {end - 1}")


class Memory:
    """What is in memory while an iteration runs."""
    def __init__(self, iteration):
        self.iteration = iteration
        self.extended = Extended(iteration)
        self.versions = {}  # Of the instances in memory; 0 where nothing was written in this iteration.
        self.freed = set()  # By the program.
        self.bytes = self.footprint = 0
        for id_, block in iteration.blocks.items():
            if block.persistent:
                self.take((id_, 0), 0)
            for age in range(1, block.free_age + 1):
                self.take((id_, age), 0)

    def size(self, instance):
        return self.iteration.blocks[instance[0]].size

    def take(self, instance, version):
        self.versions[instance] = version
        self.bytes += self.size(instance)
        self.footprint = max(self.footprint, self.bytes)

    def release(self, instance):
        if self.versions.pop(instance, None) is not None:
            self.bytes -= self.size(instance)

    def require_read(self, launch, where):
        for instance, version in launch.reads.items():
            what = f"{where}: block {instance[0]}, which the launch of operation {launch.first} read,"
            require(instance in self.versions, f"{what} is not in memory")
            require(self.versions[instance] == version, f"{what} is in version {self.versions[instance]} instead of {version}")

    def operation(self, i, kind, instance):
        if kind == "m":
            self.take(instance, 0)
            self.extended.allocate(instance[0])
            return
        if kind == "f":
            if instance in self.versions:
                self.extended.free(*instance)
            self.release(instance)
            self.freed.add(instance)
            return
        if i in self.iteration.launches:
            self.run(self.iteration.launches[i])
            self.extended.launch(self.iteration.launches[i])
        self.extended.emit(kind, -1 if kind == "x" else self.extended.life(instance[0]), instance[1])

    def run(self, launch):
        where = f"operation {launch.first}"
        self.require_read(launch, where)
        for instance, version in launch.writes.items():
            held = self.versions.get(instance)
            require(held == version - 1, f"{where}: block {instance[0]}, which its launch writes, is in version {held} instead of {version - 1}")
            self.versions[instance] = version

    def drop(self, before, id_, where):
        require(self.iteration.blocks[id_].remakeable, f"{where}: block {id_} can't be made again")
        require((id_, 0) in self.versions, f"{where}: block {id_} is not in memory")
        require(self.versions[id_, 0] > 0, f"{where}: block {id_} has not been written")
        require(self.iteration.within[before] is None, f"{where} is within a launch")
        self.extended.free(id_, 0)
        self.release((id_, 0))

    def replay(self, before, launch, places, number_of_step):
        where = f"recompute[{number_of_step}]"
        require(before >= launch.end, f"{where}: the launch of operation {launch.first} has not run yet")
        require(self.iteration.within[before] is None, f"{where} is within a launch")
        for id_, _ in {**launch.reads, **launch.writes}:
            require(self.iteration.blocks[id_].free_age == 0, f"{where}: block {id_}, which its launch touches, lives on into the next iteration")
        self.require_read(launch, where)
        made, besides = set(), set()
        for instance, version in launch.writes.items():
            held, remakeable = self.versions.get(instance), self.iteration.blocks[instance[0]].remakeable
            if remakeable and held is None and version == 1:                # Rule 1,
                self.take(instance, version)
                made.add(instance)
            elif remakeable and held is not None and held == version - 1:  # 2,
                self.versions[instance] = version
            elif held != version:                                           # 4; 3 changes nothing.
                besides.add(instance)
        self.footprint = max(self.footprint, self.bytes + sum(map(self.size, besides)))
        if self.iteration.layout and not self.iteration.unplaced:
            taken = {id_ for id_, _ in made | besides}
            require(taken == places.keys(), f"{where}: places are of blocks {sorted(places)}, and it takes bytes for {sorted(taken)}")
        allocated = self.extended.replay(launch, made, besides, places if self.iteration.layout else {})
        self.extended.origins.update({life: (number_of_step, id_) for life, id_ in allocated})


def simulate(iteration, steps):
    memory = Memory(iteration)
    place = 0
    for i in range(len(iteration.operations) + 1):
        memory.extended.reach(i)
        while place < len(steps) and steps[place]["before"] == i:
            step, where = steps[place], f"recompute[{place}]"
            if "drop" in step:
                memory.drop(i, step["drop"], where)
            else:
                places = {one["block"]: {"offset": one["offset"], "window": one.get("window", "linear")} for one in step.get("places", [])}
                memory.replay(i, iteration.launches[step["replay"]], places, place)
            place += 1
        if i < len(iteration.operations):
            kind, id_, age = iteration.operations[i]
            memory.operation(i, kind, (id_, age))
    for id_, _ in sorted(memory.freed & memory.versions.keys()):
        raise Invalid(f"block {id_} is in memory at the end, though the program has freed it")
    return memory


def extend(plan):
    """The iteration with its steps, which must hold. Of a plan with a layout the places may be missing."""
    iteration = Iteration(plan)
    iteration.unplaced = True
    return simulate(iteration, iteration.steps).extended


def judge(plan):
    iteration = Iteration(plan)
    memory = simulate(iteration, iteration.steps)
    replayed = [iteration.launches[step["replay"]].duration for step in iteration.steps if "replay" in step]
    swapped = {"peak_taken": memory.footprint, "added_ns": 0, "converged": True}
    if iteration.swaps or iteration.layout:
        with_steps = memory.extended.plan(plan)
        swapped = swap_judge.judge(with_steps)
        memory.extended.check_runs(with_steps["swaps"])
    footprint = swapped["footprint" if iteration.layout else "peak_taken"]
    require(iteration.limit is None or footprint <= iteration.limit, f"the footprint, {footprint}, is above the limit")
    return {"valid": True, "footprint": footprint, "load": memory.footprint, "added_ns": math.fsum([*replayed, swapped["added_ns"]]), "replays": len(replayed),
            "drops": len(iteration.steps) - len(replayed), "swaps": len(iteration.swaps), "waits_ns": swapped["added_ns"],
            "converged": swapped["converged"], "peak_live": simulate(iteration, []).footprint}


def main(files):
    all_hold = True
    for name in files:
        try:
            with open(name, encoding="utf-8") as file:
                result = judge(json.load(file))
            print(f"{name}: {result['footprint'] / 2**20:.2f} MiB, {result['added_ns'] / 1e6:.3f} ms added, {result['replays']} replays, "
                  f"{result['drops']} drops, {result['swaps']} swaps{'' if result['converged'] else ', not steady'}")
        except (Invalid, NotImplementedError, OSError, ValueError, RecursionError) as why:
            print(f"{name}: does not hold: {why}")
            all_hold = False
    return 0 if all_hold else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
