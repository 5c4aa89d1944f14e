"""Random small problems, plans for them that mostly hold, and mutations of plans."""
import copy

ABSENT = object()


def problem(rng):
    """An iteration of a few operations, with blocks that persist, cross the boundary, or are never accessed."""
    n = rng.randint(4, 24)
    durations = [rng.choice([0, 5, 10, 10, 20, rng.randint(1, 60), rng.random() * 30]) for _ in range(n)]
    times = [sum(durations[:i]) for i in range(n)]
    blocks, ops = [], [["x", -1, t] for t in times]
    free = list(range(n))
    rng.shuffle(free)
    for j in range(rng.randint(1, 7)):
        b = {"id": j * 3 + rng.randint(0, 2), "size": rng.choice([0, 7, 40, 64, 100, 100, 128, 300])}
        if rng.random() < 0.08:
            b["pinned"] = True
        if rng.random() < 0.35:
            b["persistent"] = True
            for _ in range(rng.randint(0, 3)):
                if free:
                    i = free.pop()
                    ops[i] = [rng.choice("rrw"), b["id"], times[i]]
            blocks.append(b)
            continue
        if len(free) < 2:
            break
        m, f = free.pop(), free.pop()
        ops[m] = ["m", b["id"], times[m]]
        laps = (1 if f < m else 0) + (rng.choice([0, 0, 0, 1, 2]) if rng.random() < 0.2 else 0)
        ops[f] = ["f", b["id"], times[f], laps]
        for _ in range(rng.randint(0, 4)):
            if not free:
                break
            i = free[-1]
            ages = [a for a in range(laps + 1) if m < i + a * n < f + laps * n]
            if not ages:
                break
            free.pop()
            ops[i] = [rng.choice("rw"), b["id"], times[i], rng.choice(ages)]
        blocks.append(b)
    if rng.random() < 0.1:
        i = rng.randrange(n)
        while len(ops[i]) < 4:
            ops[i].append(0 if ops[i][0] in "xm" else 1 if not any(o[0] == "m" and o[1] == ops[i][1] for o in ops[:i]) else 0)
        if any(b["id"] == ops[i][1] and b.get("persistent") for b in blocks):
            ops[i][3] = 0
        ops[i].append(rng.randint(0, 3))
    plan = {"format": "memopt-plan-1", "period": sum(durations), "ops": ops, "blocks": blocks, "swaps": [],
            "machine": {"out_bytes_per_ns": rng.choice([1, 4, 10, 13.227513227513228]), "in_bytes_per_ns": rng.choice([2, 4, 12.5])},
            "chunk": rng.choice([1, 64]), "align": rng.choice([1, 8])}
    if rng.random() < 0.5:
        plan["machine"].update(out_latency_ns=rng.choice([0, 3, 5.5]), in_latency_ns=rng.randint(0, 9))
    if rng.random() < 0.3:
        plan["lazy_malloc"] = rng.random() < 0.7
    return plan


class Life:
    def __init__(self, plan, block):
        self.n = len(plan["ops"])
        self.persistent = block.get("persistent", False)
        self.born = self.freed = None
        self.accesses = []
        for i, op in enumerate(plan["ops"]):
            if op[1] != block["id"] or op[0] == "x":
                continue
            age = op[3] if len(op) > 3 and op[3] is not None else 0
            if op[0] == "m":
                self.born = i
            elif op[0] == "f":
                self.freed = i + age * self.n
            else:
                self.accesses.append((i + age * self.n, op[0]))
        self.accesses.sort()
        self.start = self.accesses[0][0] if plan.get("lazy_malloc") and self.accesses else self.born

    def gaps(self):
        """(last access before, first need behind)"""
        points = [p for p, _ in self.accesses]
        if self.persistent:
            return list(zip(points, points[1:] + [points[0] + self.n])) if points else [(0, self.n)]
        return list(zip([self.start] + points, points + [self.freed]))


def add_swaps(rng, plan):
    for b in plan["blocks"]:
        if b.get("pinned") or rng.random() < 0.35:
            continue
        life = Life(plan, b)
        for k, (begin, end) in enumerate(life.gaps()):
            if end - begin < 2 or rng.random() < 0.4:
                continue
            out = rng.choice([begin, rng.randint(begin, end - 1)])
            if not life.persistent and end == life.freed and rng.random() < 0.5:
                plan["swaps"].append({"block": b["id"], "out_after": out})
                continue
            need = rng.choice([end, rng.randint(out + 1, end)])
            swap = {"block": b["id"], "out_after": out, "in_after": rng.randint(out, need - 1), "need": need}
            if rng.random() < 0.3:
                swap["in_after"] = need - 1
            if life.persistent and out >= life.n:
                continue
            if rng.random() < 0.15:
                swap["copy"] = rng.random() < 0.2
            plan["swaps"].append(swap)
    rng.shuffle(plan["swaps"])


def stays(plan, block):
    """Operations at which the instance born in iteration 0 is resident; of a persistent block those of one iteration."""
    life = Life(plan, block)
    swaps = sorted((s for s in plan["swaps"] if s["block"] == block["id"]), key=lambda s: s["out_after"])
    if life.persistent:
        away = {i % life.n for s in swaps for i in range(s["out_after"] + 1, s["need"])}
        return set(range(life.n)) - away
    away = {i for s in swaps for i in range(s["out_after"] + 1, s.get("need", life.freed + 1))}
    return set(range(life.start, life.freed + 1)) - away


def place(rng, plan, step=1):
    """First fit in random order, by looking at every operation, in steps of at least so many bytes."""
    n = len(plan["ops"])
    rounds, taken = 4, []
    swapped = {s["block"] for s in plan["swaps"]}
    blocks = list(plan["blocks"])
    rng.shuffle(blocks)
    for b in blocks:
        at = stays(plan, b)
        turns = 1 if b.get("persistent") else rng.choice([1] * 8 + [2, 4])
        lap = max(at, default=0) - min(at, default=0)
        while not b.get("persistent") and turns < 4 and lap >= turns * n:
            turns *= 2
        own = b["id"] in swapped or rng.random() < 0.1
        unit = max(step, plan["chunk"] if own else plan["align"])
        offsets = []
        for turn in range(turns):
            needed = {(p + k * n) % (rounds * n) for k in range(turn, rounds, turns) for p in at}
            if b.get("persistent"):
                needed = {p + k * n for k in range(rounds) for p in at}
            offset = rng.choice([0, 0, 0, unit])
            while any(offset < high and low < offset + b["size"] and needed & busy for low, high, busy in taken):
                offset += unit
            offsets.append(offset)
            taken.append((offset, offset + b["size"], needed))
        b["offset"] = offsets[0] if turns == 1 else offsets
        if own or rng.random() < 0.5:
            b["window"] = "own" if own else "linear"


def plan(rng):
    result = problem(rng)
    add_swaps(rng, result)
    if rng.random() < 0.3:
        result["layout"] = False
        most = sum(b["size"] for b in result["blocks"]) + 1
        result["limit"] = rng.randint(most // 3, most * 3 // 2)
        return result
    place(rng, result)
    if rng.random() < 0.3:
        result["limit"] = rng.choice([None, 200, 400, 800, 1600])
    return result


def return_elsewhere(rng, original):
    """The plan, which has a layout, in memopt-plan-2: some of its blocks return to other places, wherever these are."""
    result = copy.deepcopy(original)
    result["format"] = "memopt-plan-2"
    result["machine"]["remap_ns"] = rng.choice([0, 1, 7, 20])
    result.pop("limit", None)
    offsets = {b["id"]: b["offset"] for b in result["blocks"]}
    top = max(max(one if isinstance(one, list) else [one]) for one in offsets.values())
    for swap in result["swaps"]:
        if "need" not in swap or rng.random() < 0.3:
            continue
        unit = result["chunk"]
        chosen = [rng.randrange((top + rng.choice([0, 64, 300])) // unit + 1) * unit for _ in range(8)]
        home = offsets[swap["block"]]
        swap["offset"] = chosen[:len(home)] if isinstance(home, list) else chosen[0]
    return result


def _nudge(rng, value, n):
    return rng.choice([value + 1, max(0, value - 1), max(0, value + rng.randint(-n, n)), value + n, 0])


def mutated(rng, original):
    """The plan with one field changed, in a way that keeps it readable."""
    result = copy.deepcopy(original)
    n = len(result["ops"])
    what = rng.choice(["swap", "swap", "swap", "offset", "offset", "op", "block", "top", "drop", "double", "time"])
    if what in ("swap", "drop", "double") and result["swaps"]:
        k = rng.randrange(len(result["swaps"]))
        swap = result["swaps"][k]
        if what == "drop":
            del result["swaps"][k]
        elif what == "double":
            result["swaps"].append(dict(swap, out_after=_nudge(rng, swap["out_after"], n)))
        else:
            field = rng.choice(["out_after", "in_after", "need", "copy", "block", "never"])
            if field == "copy":
                swap["copy"] = not swap.get("copy", True)
            elif field == "block":
                swap["block"] = rng.choice(result["blocks"])["id"]
            elif field == "never":
                swap.pop(rng.choice(["in_after", "need"]), None)
            elif field in swap:
                swap[field] = _nudge(rng, swap[field], n)
    elif what == "offset":
        b = rng.choice(result["blocks"])
        if "offset" in b:
            offset = b["offset"][0] if isinstance(b["offset"], list) else b["offset"]
            b["offset"] = rng.choice([offset + 1, offset + 64, max(0, offset - 64), [offset, offset + 64], [offset], 0, None])
            if b["offset"] is None:
                del b["offset"]
    elif what == "block":
        b = rng.choice(result["blocks"])
        field = rng.choice(["size", "persistent", "pinned", "window"])
        if field == "size":
            b["size"] = _nudge(rng, b["size"], 40)
        elif field == "window":
            b["window"] = rng.choice(["own", "linear"])
        else:
            b[field] = not b.get(field, False)
    elif what == "top":
        field, value = rng.choice([("chunk", 1), ("chunk", 64), ("chunk", 100), ("align", 3), ("limit", 300), ("limit", 100),
                                   ("lazy_malloc", True), ("lazy_malloc", False), ("layout", True), ("layout", False)])
        result[field] = value
    elif what == "op":
        op = rng.choice(result["ops"])
        if op[0] != "x":
            field = rng.choice(["kind", "age", "block"])
            if field == "kind":
                op[0] = rng.choice("mfrw")
            elif field == "block":
                op[1] = rng.choice(result["blocks"])["id"]
            elif len(op) > 3:
                op[3] = rng.randint(0, 3)
    elif what == "time":
        op = rng.choice(result["ops"])
        op[2] = max(0, op[2] + rng.choice([-5, 5, 50]))
    return result
