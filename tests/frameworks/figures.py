"""What runs of a program have shown, in figures, and what is wanted of them. No run is made here."""
import math

MIB = 1 << 20
FEWEST_STEPS = 8
NOT_RUN = "not run yet"
# Natively PyTorch's caching allocator and the driver's pool; memopt's routes.
NATIVE = ("pool", "driver")
ROUTES = ("async", "plain")
SEEDS = ("none", "1", "2", "3", "4")

# What is wanted.
LIVE_AT = 6  # the fifth step after the first complete one
REGULAR_SHARE, MIXED_SHARE = 0.99, 0.95
STEADY_RATIO, STEADY_SPARE = 1.01, 4 * MIB
LARGEST_RATIO = 1.05
STEP_RATIO, RUN_RATIO = 1.02, 1.10
# A program with one of these in it does not do the same in each step.
MIXED = ("--evaluate-every", "--accumulate", "--save-every")


class Measured:
    """A run for sizes and times: marks are by step, though a program may have several optimizers."""

    def __init__(self, result, steps):
        marks = result["notes"]["marks"]
        if len(marks) % steps or not marks:
            raise ValueError(f"{len(marks)} optimizer steps in {steps} steps")
        each = len(marks) // steps
        self.steps = [{**marks[i + each - 1],
                       "bytes_held_peak": max(mark["bytes_held_peak"] for mark in marks[i:i + each]),
                       "bytes_live_peak": max(mark["bytes_live_peak"] for mark in marks[i:i + each])}
                      for i in range(0, len(marks), each)]
        self.end = result["notes"]["end"]
        self.allocated, self.peak, self.reserved = result["counters"]
        self.effects = result["effects"]
        # Steps at the end, a multiple of four: phases of the programs are of four steps.
        self.window = min(max(4, steps // 2 // 4 * 4), steps - 1)

    @property
    def late(self):
        return self.steps[-self.window:]

    @property
    def steady(self):
        """Bytes held, at most, in the steps at the end."""
        return max(step["bytes_held_peak"] for step in self.late)

    @property
    def load(self):
        """Bytes that the program itself holds, at most, in the steps at the end: natively, by the driver's pool."""
        return max(step["bytes_live_peak"] for step in self.late)

    @property
    def largest(self):
        return max(mark["bytes_held_peak"] for mark in [*self.steps, self.end])

    @property
    def step_ns(self):
        before = self.steps[-self.window - 1]["host_now_ns"]
        return (self.steps[-1]["host_now_ns"] - before) / self.window

    @property
    def run_ns(self):
        return self.end["host_now_ns"]

    @property
    def memopt(self):
        """What memopt says at the end; None natively."""
        return self.steps[-1]["memopt"]

    @property
    def live_at(self):
        """The step in which the first plan went live; None if none did."""
        return next((number for number, step in enumerate(self.steps, 1) if (step["memopt"] or {}).get("iteration_at_live")), None)

    @property
    def share(self):
        """Of the allocations of all steps after that one, those that had their planned place."""
        live_at = self.live_at
        if live_at is None or live_at == len(self.steps):
            return None
        first, last = self.steps[live_at - 1]["memopt"], self.memopt
        made = last["allocations"] - first["allocations"]
        return 1 - (last["displaced"] - first["displaced"]) / made if made else None

    @property
    def late_share(self):
        """The same for the steps at the end."""
        first, last = self.steps[-self.window - 1]["memopt"], self.memopt
        made = last["allocations"] - first["allocations"]
        return 1 - (last["displaced"] - first["displaced"]) / made if made and first["iteration_at_live"] else None


class Row:
    """A program: what its runs have shown, or why not."""

    def __init__(self, name, text, results, steps):
        self.name, self.text, self.results = name, text, results
        self.mixed = any(word in text.split() for word in MIXED)
        self.runs, self.failed = {}, {}
        for configuration, result in results.items():
            if "failed" in result:
                self.failed[configuration] = result["failed"]
        for configuration in NATIVE + ROUTES:
            if configuration in results and configuration not in self.failed:
                try:
                    self.runs[configuration] = Measured(results[configuration], steps)
                except ValueError as fault:
                    self.failed[configuration] = str(fault)

    @property
    def wanted_share(self):
        return MIXED_SHARE if self.mixed else REGULAR_SHARE

    @property
    def load(self):
        return self.runs["driver"].load if "driver" in self.runs else None

    def counters_unchanged(self):
        """PyTorch's own allocated and largest MiB, by cudaMallocAsync natively and under memopt; None: can't be said."""
        if not {"driver", "async"} <= self.runs.keys():
            return None
        native, memopt = self.runs["driver"], self.runs["async"]
        return (native.allocated, native.peak) == (memopt.allocated, memopt.peak)

    def contents(self, route):
        """By seed: "equal", or what is wrong, or None where there was no run."""
        native = self.results.get("contents")
        found = {}
        for seed in SEEDS:
            run = self.results.get(f"contents-{route}-{seed}")
            there = all(one and one.get("failed") != NOT_RUN for one in (native, run))
            found[seed] = difference(native, run) if there else None
        return found

    def planned_in_contents(self, route):
        """Was a plan live in the runs whose contents were compared?"""
        runs = [self.results.get(f"contents-{route}-{seed}", {}) for seed in SEEDS]
        last = [run["notes"]["marks"][-1]["memopt"] for run in runs if "notes" in run and run["notes"]["marks"]]
        return bool(last) and all(said and said["iteration_at_live"] for said in last)

    def not_as_decided(self):
        """Launches and words of a run that are not what was decided, at most: none should be."""
        effects = [result["effects"] for result in self.results.values() if "effects" in result]
        return max((e["undecided"] for e in effects), default=0), max((e["disagreed"] for e in effects), default=0)


def difference(native, run):
    if "failed" in run:
        return run["failed"]
    if "failed" in native:
        return "nothing to compare with"
    if run["device"]["races"]:
        return f"{run['device']['races']} races"
    for name, words in (("launches", "launches"), ("uses_checksum", "what launches have read"), ("live_blocks", "blocks at the end"),
                        ("live_checksum", "their contents")):
        if run["effects"][name] != native["effects"][name]:
            return f"{words}: {run['effects'][name]}, natively {native['effects'][name]}"
    if run["effects"]["live_unreadable"]:
        return f"{run['effects']['live_unreadable']} blocks can't be read"
    return "equal"


class Verdict:
    """One thing that is wanted of a program on a route: what it came to, what was wanted, and whether that is so."""

    def __init__(self, what, route, text, met):
        self.what, self.route, self.text, self.met = what, route, text, met


def mib(count):
    return f"{count / MIB:,.1f}"


def verdicts(row):
    """All that can be said of a row. What could not be measured has no verdict."""
    found = []
    pool = row.runs.get("pool")
    for route in ROUTES:
        if route not in row.runs:
            continue
        run = row.runs[route]
        live_at, share = run.live_at, run.share
        text = f"plan live in step {live_at}" if live_at else "no plan"
        found.append(Verdict("live", route, text, live_at is not None and live_at <= LIVE_AT))
        wanted = f"{row.wanted_share * 100:.0f} %"
        if share is not None:
            found.append(Verdict("share", route, f"{floor_percent(share)}, wanted are {wanted}", share >= row.wanted_share))
        if row.load:
            steady = f"{mib(run.steady)} MiB for a load of {mib(row.load)} ({run.steady / row.load:.3f})"
            found.append(Verdict("steady", route, steady, run.steady <= STEADY_RATIO * row.load + STEADY_SPARE))
        if not pool:
            continue
        text = f"{mib(run.steady)} MiB, the caching allocator {mib(pool.steady)}"
        found.append(Verdict("reserved", route, text, run.steady <= pool.steady))
        most = pool.largest
        found.append(Verdict("largest", route, f"{mib(run.largest)} MiB, the caching allocator {mib(most)} ({run.largest / most:.3f})",
                             run.largest <= LARGEST_RATIO * most))
        for what, ours, its, ratio in (("step", run.step_ns, pool.step_ns, STEP_RATIO), ("run", run.run_ns, pool.run_ns, RUN_RATIO)):
            text = f"{ours / 1e6:,.2f} ms, the caching allocator {its / 1e6:,.2f} ({ours / its:.3f})"
            found.append(Verdict(what, route, text, ours <= ratio * its))
    for route in ROUTES:
        seen = {seed: text for seed, text in row.contents(route).items() if text}
        wrong = {seed: text for seed, text in seen.items() if text != "equal"}
        if seen:
            seeds = {text: ", ".join(seed for seed in wrong if wrong[seed] == text) for text in wrong.values()}
            found.append(Verdict("contents", route, "; ".join(f"seed {s}: {t}" for t, s in seeds.items()) or "equal", not wrong))
    unchanged = row.counters_unchanged()
    if unchanged is not None:
        native, memopt = row.runs["driver"], row.runs["async"]
        found.append(Verdict("counters", "async", f"allocated {memopt.allocated}, at peak {memopt.peak} MiB; natively "
                             f"{native.allocated}, {native.peak}", unchanged))
    return found


def floor_percent(share):
    """Rounded down: 99.99 is not 100."""
    return f"{math.floor(share * 10000) / 100:.2f} %"
