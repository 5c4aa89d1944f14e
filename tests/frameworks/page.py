"""The page of frameworks_table.py: conditions, tables, and in plain words what falls short."""
import dataclasses
import subprocess

import figures
from figures import MIB, ROUTES, SEEDS

NOTHING = "–"


@dataclasses.dataclass
class Conditions:
    device: str
    steps: int
    contents_steps: int
    contents: bool
    free_running: bool
    versions: dict


def versions_of(python, results):
    """Of what is measured: PyTorch and Python by that interpreter, memopt by what it says of itself."""
    asked = "import platform, importlib.metadata as m; print(m.version('torch')); print(platform.python_version())"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
    found = dict(zip(("PyTorch", "Python"), done.stdout.split()))
    for runs in results.values():
        for route in ROUTES:
            marks = runs.get(route, {}).get("notes", {}).get("marks")
            if marks and marks[-1]["memopt"]:
                found["memopt"] = marks[-1]["memopt"]["version"]
    return found


def table(head, rows):
    """Markdown whose columns are as wide as they must be: it is read on a terminal too."""
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]

    def line(cells):
        padded = [cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(cells, widths))]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (width + 2) if i == 0 else "-" * (width + 1) + ":" for i, width in enumerate(widths)) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


class Marks:
    """What falls short is bold."""

    def __init__(self, row):
        self.missed = {(verdict.what, verdict.route) for verdict in figures.verdicts(row) if not verdict.met}

    def __call__(self, text, route, *what):
        return f"**{text}**" if any((one, route) in self.missed for one in what) else text


def planned_cells(row):
    marked, cells = Marks(row), [row.name]
    for route in ROUTES:
        run = row.runs.get(route)
        if not run:
            cells += [NOTHING] * 5
            continue
        said = run.memopt
        share, late = run.share, run.late_share
        cells += [marked(str(run.live_at or "never"), route, "live"),
                  marked(figures.floor_percent(share), route, "share") if share is not None else NOTHING,
                  figures.floor_percent(late) if late is not None else NOTHING,
                  str(said["generation"]), str(said["deviations"])]
    return cells


def memory_cells(row):
    marked = Marks(row)
    pool, driver = (row.runs.get(name) for name in figures.NATIVE)
    cells = [row.name, figures.mib(row.load) if row.load else NOTHING]
    cells += [figures.mib(pool.reserved * MIB), figures.mib(pool.largest)] if pool else [NOTHING] * 2
    cells += [figures.mib(driver.steady)] if driver else [NOTHING]
    for route in ROUTES:
        run = row.runs.get(route)
        if not run:
            cells += [NOTHING] * 3
            continue
        cells += [marked(figures.mib(run.steady), route, "steady", "reserved"),
                  marked(f"{run.steady / row.load:.3f}", route, "steady") if row.load else NOTHING,
                  marked(figures.mib(run.largest), route, "largest")]
    return cells


def time_cells(row):
    marked = Marks(row)
    pool, driver = (row.runs.get(name) for name in figures.NATIVE)
    cells = [row.name]
    for value, what in (("step_ns", "step"), ("run_ns", "run")):
        for run in (pool, driver):
            cells.append(f"{getattr(run, value) / 1e6:,.2f}" if run else NOTHING)
        for route in ROUTES:
            run = row.runs.get(route)
            ratio = f"{getattr(run, value) / getattr(pool, value):.3f}" if run and pool else NOTHING
            cells.append(marked(ratio, route, what))
    return cells


def contents_cells(row):
    native = row.results.get("contents", {}).get("effects")
    cells = [row.name]
    cells += [f"{native['launches']:,}", f"{native['live_blocks']:,}"] if native else [NOTHING] * 2
    for route in ROUTES:
        seen = row.contents(route)
        equal = sum(text == "equal" for text in seen.values())
        tried = sum(text is not None for text in seen.values())
        text = f"{equal} of {tried}" + ("" if row.planned_in_contents(route) or not tried else ", unplanned")
        cells.append((text if equal == tried else f"**{text}**") if tried else NOTHING)
    unchanged = row.counters_unchanged()
    return cells + [NOTHING if unchanged is None else "yes" if unchanged else "**no**"]


WANTED = {
    "live": f"A plan is live by step {figures.LIVE_AT}, the fifth after the first complete one",
    "share": "Of the allocations of the steps after that, 99 % have their planned place; 95 % where a program evaluates, accumulates or "
             "saves",
    "steady": "In the steady state at most 1.01 times the peak load and 4 MiB are held",
    "reserved": "In the steady state no more is held than natively with the caching allocator: its reserve, and what is held beside it",
    "largest": "The largest of the whole run is at most 1.05 times what is held natively with the caching allocator",
    "step": "A step takes at most 1.02 times as long as with the caching allocator",
    "run": "The whole run takes at most 1.10 times as long as with the caching allocator",
    "contents": "Contents are equal in all orders tried, the nominal one and up to four adversaries, and the checker finds no race",
    "counters": "PyTorch's own counters of allocated memory are unchanged",
}


def short_lines(rows):
    """For each thing that is wanted, on how many runs it is so, and on which it is not, by how much."""
    lines = []
    for what, words in WANTED.items():
        seen = [(row, verdict) for row in rows for verdict in figures.verdicts(row) if verdict.what == what]
        missed = [(row, verdict) for row, verdict in seen if not verdict.met]
        if not seen:
            lines.append(f"- {words}: not measured.")
            continue
        lines.append(f"- {words}: {len(seen) - len(missed)} of {len(seen)}" + (", but for:" if missed else "."))
        together = {}
        for row, verdict in missed:
            together.setdefault((row.name, verdict.text), []).append(verdict.route)
        for (name, text), routes in together.items():
            lines.append(f"  - `{name}` ({', '.join(routes)}): {text}")
    return lines


def missing_lines(rows):
    lines, not_run = [], {}
    for row in rows:
        by_reason = {}
        for configuration, reason in row.failed.items():
            by_reason.setdefault(reason, []).append(configuration)
        waiting = by_reason.pop(figures.NOT_RUN, None)
        if waiting:
            not_run.setdefault(", ".join(f"`{c}`" for c in waiting), []).append(f"`{row.name}`")
        for reason, configurations in by_reason.items():
            lines.append(f"- `{row.name}`, {', '.join(f'`{c}`' for c in configurations)}: {reason}")
        undecided, disagreed = row.not_as_decided()
        if undecided or disagreed:
            lines.append(f"- `{row.name}`: in one run {undecided} launches were new to the instrument, and {disagreed} of the words that count by "
                         "decision named another block, or none: its contents are not comparable.")
        for route in ROUTES:
            run = row.runs.get(route)
            if run and not run.live_at and run.memopt["note"]:
                lines.append(f"- `{row.name}` ({route}) has no plan: {run.memopt['note']}")
    for configurations, names in not_run.items():
        lines.append(f"- Not run yet: {configurations} of {', '.join(names)}.")
    return lines


PLANS = {False: "`MEMOPT_SYNC_PLAN=1`, memopt waits for its planner at fixed points, so that runs repeat. Without it a plan can come later.",
         True: "memopt does not wait for its planner, as in everyday use; when a plan comes depends on the machine, and runs differ."}


def introduction(conditions):
    versions = ", ".join(f"{name} {version}" for name, version in conditions.versions.items())
    window = max(4, conditions.steps // 2 // 4 * 4)
    return f"""# PyTorch's programs under memopt

Written by `tests/frameworks/frameworks_table.py`. **Simulated {conditions.device}**: sizes and virtual times are the simulated driver's, exact and
repeatable, but a model's; nothing here was measured on a GPU. {versions}.

Programs of [integration/workloads/pytorch](../../integration/workloads/pytorch/README.md), unmodified, {conditions.steps} steps each: natively
with PyTorch's caching allocator and with the driver's pool (`PYTORCH_ALLOC_CONF=backend:cudaMallocAsync`), and under memopt by both routes
(`MEMOPT_FRAMEWORK_ENV`): *async*, by `cudaMallocAsync`, and *plain*, by `cudaMalloc`.

- **Kernels** have roofline times by [integration/launch_effects](../../integration/launch_effects/README.md), the same in all four: two native
  runs of each program have decided which words of their parameters count. Only calls of the driver, waits and the device take virtual time,
  Python's code and memopt's own do not.
- **Plans**: {PLANS[conditions.free_running]}
- **Steps**: at the end of each optimizer's step the simulator's counters and memopt's status are read (`tests/frameworks/meter.py`), which
  costs no virtual time. *Steady* are the last {window} steps: of sizes the most in them, of times the mean, by the clock of the program's thread
  at the end of optimizers' steps. That is more exact than the difference between runs of several lengths, which need not begin alike.
- **Peak load**: the largest sum of live blocks in the steady steps, natively with the driver's pool. *Held*: all device bytes that the driver
  counts for the process.
- **Contents**: runs of {conditions.contents_steps} steps in which each launch reads and rewrites 64 bytes of each 4 KiB of the blocks that it names, as a
  function of all that it reads. Compared with the native run is all that launches have read, and the blocks of parameters, gradients and
  optimizers at the end; in the nominal order and under four adversaries (`CUDASIM_SEED`), the happens-before checker on. Words that one of
  these runs does not find as decided count in none of them.

Bold is what falls short of what is wanted; below the tables it is said by how much.
"""


def summary(rows):
    whole = {route: sum(1 for row in rows if route in row.runs and all(v.met for v in figures.verdicts(row) if v.route == route))
             for route in ROUTES}
    by_route = ", ".join(f"{whole[route]} of {len(rows)} programs by *{route}*" for route in ROUTES)
    return f"Nothing that was measured falls short in {by_route}.\n"


def markdown(rows, conditions):
    parts = [introduction(conditions), summary(rows)]
    if conditions.steps < 60:
        parts.append(f"Whole runs are wanted of 60 steps; these are of {conditions.steps}: what the beginning costs weighs more.\n")

    def heads(*names):
        return [f"{route}: {name}" for route in ROUTES for name in names]

    parts += ["## How much is planned\n",
              "Step in which a plan goes live; share of the allocations of all later steps, and of the steady ones, that have their planned\n"
              "place; plans; times that the program left them.\n",
              table(["", *heads("live", "planned", "steady", "plans", "left")], [planned_cells(row) for row in rows]) + "\n",
              "## Memory, MiB\n",
              "*Reserved* by PyTorch's caching allocator, at most, and what the driver holds then, at most; the driver's pool in the steady\n"
              "state; memopt in the steady state, its ratio to the peak load, and the most of the whole run.\n",
              table(["", "peak load", "reserved", "its largest", "driver's pool", *heads("steady", "ratio", "largest")],
                    [memory_cells(row) for row in rows]) + "\n",
              "## Virtual time, ms\n",
              "A steady step and the whole run, natively in ms; memopt as a ratio to the caching allocator.\n",
              table(["", "step: caching", "driver's pool", *heads("step"), "run: caching", "driver's pool", *heads("run")],
                    [time_cells(row) for row in rows]) + "\n"]
    if conditions.contents:
        parts += ["## Contents\n",
                  f"Launches and blocks compared; in how many of the orders tried ({len(SEEDS)} are wanted) all is equal and the checker silent;\n"
                  "whether PyTorch's counters (allocated, and at peak) are the same natively with the driver's pool and under memopt, *async*.\n"
                  "With *plain* PyTorch counts nothing.\n",
                  table(["", "launches", "blocks", *heads("equal"), "counters unchanged"], [contents_cells(row) for row in rows]) + "\n"]
    parts += ["## What falls short\n", "\n".join(short_lines(rows)) + "\n"]
    missing = missing_lines(rows)
    if missing:
        parts += ["## What is missing or less sure\n", "\n".join(missing) + "\n"]
    parts += ["## Programs\n", table(["name", "program"], [[row.name, f"`{row.text}`"] for row in rows]) + "\n"]
    return "\n".join(parts)


def broken(rows):
    """Has a program failed, or are its contents not equal?"""
    failed = any(reason != figures.NOT_RUN for row in rows for reason in row.failed.values())
    return failed or any(not verdict.met for row in rows for verdict in figures.verdicts(row) if verdict.what == "contents")
