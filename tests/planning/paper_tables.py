#!/usr/bin/env python3
"""Prints, as tables in Markdown, what papers on memory plans printed, beside what their algorithms come to here, and ours.

usage: paper_tables.py [--rows NAME,...] [--seconds S] [--quick] [--shared FOLDER]

Rows: chen (Chen et al. 2016), monet (MONeT, 2021), dtr (DTR, 2021), checkmate (2020), zhang (Zhang et al. 2019), sekiyama (Sekiyama et al. 2018);
all by default. S seconds for each search of memopt's own (3). Each row says what was printed, by what here it is set beside, what the published
algorithm comes to there, what ours does, and why they differ; "-": not reproduced, with the reason. Plans and footprints are offline: nothing is
run. TEST_BUILD names the build folder (default: build/release of this checkout), MEMOPT_SHARED or --shared the folder with published logs
(dtr/) and traces (traces/); rows that need them are "-" without. --quick: small instances in place of the large ones, in seconds."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "planner", "recompute")]

import footprints  # noqa: E402 (paths are set above)
import pool_models  # noqa: E402
import swap_table  # noqa: E402

SOURCE, NETS, MEMOPTCTL = swap_table.SOURCE, swap_table.NETS, swap_table.MEMOPTCTL
SHARED = os.environ.get("MEMOPT_SHARED") or os.path.join(os.path.dirname(SOURCE), "shared")
MIB, GIB = 1 << 20, 1 << 30
SMALL = 16  # images, with --quick
LONGER = 20  # times the seconds of other searches
HEADS = ("printed", "set beside", "published algorithm here", "ours", "why they differ")
CHEN = ("chen:sqrt", "chen:budget", "chen:recursive")
SCORES = ("autoswap:doa", "autoswap:aoa", "autoswap:wdoa", "autoswap:swdoa")
# MONeT, ResNet-50 of batch 184 (GB, percent added); 15.06 GB without.
MONET_PEAK, MONET = 15.06, ((10.01, 3.22), (8.01, 5.56), (6.00, 9.31), (4.99, 11.95))
# Table I of Zhang et al.: peak load over footprint of SmartPool.
SMART_POOL = {"vgg11": 1.013, "vgg13": 1.016, "vgg16": 1.012, "vgg19": 1.011, "resnet18": 1.003, "resnet34": 1.001, "resnet50": 1.003, "resnet101": 1.0005}
# Figure 9, VGG16's tuned score: MB, milliseconds added to 81.57.
FIGURE_9 = ((450, 0), (400, 2.18), (350, 6.01), (300, 9.19), (280, 10.89))


class Bench:
    """Where instances are made, and how they are planned."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def network(self, name, batch, launches, *more):
        """The path of a network's iteration with launches, or of its trace."""
        path = self.path("-".join([name, str(batch), *more]) + (".json" if launches else ".trace"))
        if not os.path.exists(path):
            subprocess.run([sys.executable, NETS, name, "--batch", str(batch), "-o", path, *(("--launches",) if launches else ()), *more], check=True)
        return path

    def shared(self, *parts):
        """A published file, or None."""
        path = os.path.join(self.options.shared, *parts)
        return path if os.path.exists(path) else None

    def compared(self, path, limits, strategies):
        return footprints.compared(MEMOPTCTL, path, self.path("compared.json"), limits, self.options.seconds, "--strategies", ",".join(strategies))

    def memoptctl(self, *arguments):
        done = subprocess.run([MEMOPTCTL, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"paper_tables.py: {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def checkmate(self, path, limit):
        """What Checkmate's programme comes to, in words."""
        done = subprocess.run([MEMOPTCTL, "plan", path, "--recompute", "--strategy", "checkmate", "--limit", limit, "--no-bound"],
                              capture_output=True, text=True, check=False)
        found = re.search(r"(?m)^added time .*, ([\d.]+) %$", done.stdout)
        if done.returncode == 0 and found:
            return said(float(found.group(1)))
        large = re.search(r"has more than (\d+) columns", done.stderr)
        if done.returncode not in (1, 3) or not (large or "checkmate" in done.stderr):
            sys.exit(f"paper_tables.py: {path}: {done.stderr.strip()}")
        return f"too large here, more than {large.group(1)} columns" if large else "no plan in a minute" if done.returncode == 3 else "not in this build"


def gib(size):
    return f"{size / GIB:.2f} GiB"


def part(value, whole):
    return f"{100 * value / whole:.1f} %"


def added(table, row, strategy):
    """Of a comparison's row: what a plan adds, percent; infinite where there is none."""
    plan = row["plans"][strategy]
    return 100 * plan["added_ns"] / table["period_ns"] if plan else float("inf")


def said(percent):
    return f"+{percent:.2f} %" if percent < float("inf") else "no plan"


def best(table, row, strategies):
    """The one that adds least, with its name."""
    percent, name = min((added(table, row, name), name) for name in strategies)
    return f"{said(percent)} ({name})" if percent < float("inf") else "no plan"


def what_stays(path):
    """Bytes of an iteration that nothing computes again: blocks that are there all the time, or live on into the next one."""
    with open(path, encoding="utf-8") as file:
        iteration = json.load(file)
    on = {operation[1] for operation in iteration["ops"] if len(operation) > 3 and operation[3]}
    return sum(block["size"] for block in iteration["blocks"] if block.get("persistent") or block["id"] in on)


def missing(what):
    """The cells of a row behind the second."""
    return ("-", "-", f"not reproduced: {what}")


def chen(bench):
    quick = bench.options.quick
    name, batch = ("resnet50-imagenet", SMALL) if quick else ("resnet992-imagenet", 32)
    path = bench.network(name, batch, launches=True)
    stays = what_stays(path)
    limits = [str(7 * GIB), str(stays + 7 * GIB)] if not quick else ["80%", "90%"]
    table = bench.compared(path, [*limits, "60%", "45%", "30%", "20%"], ("memopt", *CHEN))
    peak = table["peak_load"]
    instance = f"`nets.py {name} --launches --batch {batch}`, {gib(peak)}"
    assumed = "how deep each stage is was not printed, so the network is ours; times are a roofline's, not measured"
    # A long search for the headline: an attempt takes long, with so many launches.
    longer = footprints.compared(MEMOPTCTL, path, bench.path("longer.json"), limits[:1], bench.options.seconds * LONGER, "--strategies", "memopt")
    later = f" in {bench.options.seconds:g} s; {said(added(longer, longer['limits'][0], 'memopt'))} in {bench.options.seconds * LONGER:g} s"
    for row, printed, why in zip(table["limits"][:2], ("1,000-layer ResNet, batch 32: 48 GB -> 7 GB at about 30 % more time", "the same, 7 GB beside what stays"),
                                 (f"{assumed}; of these bytes {gib(stays)} are weights, momentum, gradients of weights and workspaces, which stay",
                                  f"{assumed}; the limit has room for what stays, as if 7 GB were meant of feature maps"), strict=True):
        yield printed, f"{instance}, within {gib(row['limit'])}", best(table, row, CHEN), said(added(table, row, "memopt")) + later, why
        later = ""
    table = footprints.refined(table, [30], 2, lambda limits: bench.compared(path, limits, ("memopt", *CHEN)))
    found = [footprints.least(table, names, 30) or (peak, "none") for names in (CHEN, ("memopt",))]
    yield ("the same, 30 % more time", f"{instance}; the least footprint of plans within {len(table['limits'])} limits that add at most 30 % (as `footprints.py`)",
           f"{gib(found[0][0])}, {peak / found[0][0]:.1f} times less ({found[0][1]})", f"{gib(found[1][0])}, {peak / found[1][0]:.1f} times less",
           f"printed are {48 / 7:.1f} times; {assumed}")
    log = None if quick else bench.shared("dtr", "lstm-128.log.gz")
    printed = "LSTM, unrolled over a long sequence: more than 4 times less"
    if log is None:
        yield printed, "`lstm-128.log.gz` of DTR", *missing("left out by --quick" if quick else "the log is not there")
        return
    table = bench.compared(log, ("50%", "37%", "25%", "15%"), ("memopt", *CHEN))
    peak, row = table["peak_load"], table["limits"][2]
    loads = {name: min((row["plans"][name]["footprint"] for row in table["limits"] if row["plans"][name]), default=peak) for name in ("chen:sqrt", "memopt")}
    yield (printed, f"`lstm-128.log.gz` of DTR, {gib(peak)}, a quarter of it", best(table, row, CHEN), said(added(table, row, "memopt")),
           f"another LSTM, batch and framework, and the whole load is counted. sqrt(n) segments take {peak / loads['chen:sqrt']:.1f} times less, ours within 15 % "
           f"{peak / loads['memopt']:.1f} times at {said(added(table, table['limits'][3], 'memopt'))}")


PUBLISHED = ("dtr", "dtr:eq", "dtr:local", "dtr:msps", *CHEN, "chen:drop-cheap")


def monet(bench):
    batch = SMALL if bench.options.quick else 184
    path = bench.network("resnet50-imagenet", batch, launches=True)
    parts = [100 * size / MONET_PEAK for size, _ in MONET]
    table = bench.compared(path, [f"{each:.4f}%" for each in parts], ("memopt", *PUBLISHED))
    why = ("ours is a roofline of fp32 on a GTX 1080 Ti, theirs was measured, with a choice of each convolution's algorithm and workspace; their peak is "
           f"smaller, so the same part is compared, not the same bytes; {gib(what_stays(path))} stay here")
    for (size, percent), each, row in zip(MONET, parts, table["limits"], strict=True):
        bound = row["least_added_ns_bound"]
        yield (f"ResNet-50, batch 184: {MONET_PEAK} GB -> {size:.2f} GB ({each:.1f} %) at +{percent} %",
               f"`nets.py resnet50-imagenet --launches --batch {batch}`, {each:.1f} % of {gib(table['peak_load'])}",
               f"MONeT's programme: -; the best of DTR and Chen: {best(table, row, PUBLISHED)}",
               f"{said(added(table, row, 'memopt'))}; " + ("no plan is possible" if bound is None else f"bound {said(100 * bound / table['period_ns'])}"),
               why)


def dtr(bench):
    printed = "DTR comes close to the optimum (Checkmate's) on any program, online"
    quick = bench.options.quick
    for name in ("resnet32-56", "tv_densenet121-84", "treelstm-6"):
        left_out = quick and name != "treelstm-6"
        log = None if left_out else bench.shared("dtr", name + ".log.gz")
        if log is None:
            yield printed, f"DTR's `{name}.log.gz`", *missing("left out by --quick" if left_out else "the log is not there")
            continue
        table = bench.compared(log, ("70%",) if quick else ("70%", "50%", "30%"), ("memopt", "dtr", "dtr:eq"))
        for row in table["limits"]:
            bound = row["least_added_ns_bound"]
            yield (printed, f"DTR's `{name}.log.gz`, within {part(row['limit'], table['peak_load'])} of {table['peak_load'] / MIB:.0f} MiB",
                   best(table, row, ("dtr", "dtr:eq")), f"{said(added(table, row, 'memopt'))}; bound {said(100 * bound / table['period_ns']) if bound is not None else '-'}",
                   "ours knows the iteration before it begins, DTR does not; the optimum lies between the bound and ours")


def checkmate(bench):
    quick = bench.options.quick
    room, name = (GIB if quick else 16 * GIB), "resnet50-imagenet"
    small, large = (2, SMALL) if quick else (64, 128)
    peaks = {batch: bench.compared(bench.network(name, batch, launches=True), ("100%",), ("memopt",))["peak_load"] for batch in (small, large)}
    an_image = (peaks[large] - peaks[small]) / (large - small)
    fits = max(1, int(small + (room - peaks[small]) / an_image))
    for factor in (2,) if quick else (2, 3, 5.1):
        batch = int(fits * factor)
        path = bench.network(name, batch, launches=True)
        table = bench.compared(path, (str(room),), ("memopt", "dtr", *CHEN))
        row = table["limits"][0]
        yield ("up to 5.1 times larger inputs (of several networks), plans within an hour",
               f"`nets.py {name} --launches --batch {batch}` within {gib(room)}, where batch {fits} fits without: {factor:g} times, peak {gib(table['peak_load'])}",
               f"Checkmate's programme: {bench.checkmate(path, str(room))}; the best of DTR and Chen: {best(table, row, ('dtr', *CHEN))}", said(added(table, row, "memopt")),
               "printed is the most of several networks, by plans that may take a forward pass more; ours is ResNet-50 alone, with a roofline's times")


def fit_ratio(bench, csv, solver):
    """Height over the largest load, of a table of buffers."""
    printed = bench.memoptctl("solve", csv, "--solver", solver, "--time-limit", str(bench.options.seconds))
    return float(re.search(r"(?m)^ratio +([\d.]+)$", printed).group(1))


def zhang(bench):
    options = bench.options
    names = ("vgg11",) if options.quick else tuple(SMART_POOL)
    for name in names:
        csv = bench.path(name + ".csv")
        bench.memoptctl("plan", bench.network(name, 100, launches=False), "--strategy", "layout", "--buffers", csv)
        yield (f"Table I, {name}: SmartPool {SMART_POOL[name]}", f"`nets.py {name}`, its blocks laid out", f"{fit_ratio(bench, csv, 'smartpool-best-fit'):.4f} (smartpool-best-fit)",
               f"{fit_ratio(bench, csv, 'auto'):.4f}", "what is allocated when follows nets/model.py, not the paper's framework, and gradients live on into the next iteration; what programs hold under memopt: "
               "`published_table.py`, docs/results/layout-planning.md")
    swaps = argparse.Namespace(no_bound=True, bound_time="1", time_budget=str(options.seconds))
    for name in names:
        peak, load = swap_table.PUBLISHED[name]
        ours = swap_table.planned(bench.network(name, 100, launches=False), "gtx1080ti", swaps)
        yield (f"Table II, {name}: {peak} -> {load} MB ({swap_table.less(load, peak)}) without added time", f"`nets.py {name}` (`swap_table.py {name}`), {ours['peak']:.1f} MiB",
               "- (AutoSwap was not asked; of VGG16's trace, causal and laid out, it saves nothing without added time: docs/results/swap-planning.md)",
               f"{ours['footprint']:.1f} MiB ({swap_table.less(ours['footprint'], ours['peak'])}), +{ours['added']:.3f} ms",
               "printed loads are before layout, and copies in take no bytes until they are needed; a roofline leaves VGGs less time for copies than was measured")
    trace = bench.shared("traces", "vec_block_fresh_vgg.csv")
    if trace is None:
        yield "Figure 9, VGG16: tuned score under limits", "the published trace `vec_block_fresh_vgg.csv`", *missing("the trace is not there")
        return
    figure = FIGURE_9[:1] if options.quick else (*FIGURE_9, (None, None))
    out = bench.path("figure9.json")
    bench.memoptctl("plan", trace, "--compare", "--limits", ",".join(f"{size}MiB" if size else "40%" for size, _ in figure), "--strategies",
                    ",".join(("memopt", *SCORES)), "--no-bound", "--layout-time", "0.05", "--time-budget", str(options.seconds), "--json", out)
    with open(out, encoding="utf-8") as file:
        table = json.load(file)
    for row, (size, milliseconds) in zip(table["limits"], figure, strict=True):
        plans = {plan["strategy"]: plan for plan in row["plans"] if plan["feasible"]}
        theirs = min(((plans[name]["added_ns"], name) for name in SCORES if name in plans), default=None)
        ours = plans.get("memopt")
        yield (f"Figure 9, VGG16, tuned score within {size} MB: {milliseconds} ms added to 81.57 ms" if size else
               "Figures 10 and 11: at least 60 % less footprint at less than 15 % more time",
               f"the published trace `vec_block_fresh_vgg.csv`, {table['peak_load'] / MIB:.1f} MiB, {table['period_ns'] / 1e6:.2f} ms, within {row['limit'] / MIB:.1f} MiB",
               f"{theirs[0] / 1e6:.2f} ms ({theirs[1]})" if theirs else "no plan (single scores; tuned weights: docs/results/swap-planning.md)",
               f"{ours['added_ns'] / 1e6:.2f} ms ({part(ours['added_ns'], table['period_ns'])}) in {ours['footprint'] / MIB:.1f} MiB" if ours else "no plan",
               "ours are footprints with layout and chunks of 2 MiB, and copies in take their bytes when they begin; published here is the best of the four scores, untuned")


class Laid:
    """How high a table of buffers is laid out: the largest load, by best fit on offset lines, and by ours."""

    def __init__(self, bench, csv):
        self._bench, self._csv = bench, csv
        self.height, self.load = self._solved("offset-lines")

    def _solved(self, solver):
        printed = self._bench.memoptctl("solve", self._csv, "--solver", solver, "--time-limit", str(self._bench.options.seconds))
        return [int(re.search(rf"(?m)^{what} +(\d+)", printed).group(1)) for what in ("height", "lower bound")]

    def ours(self):
        return self._solved("auto")[0]


def laid_out(bench, trace):
    """Of a trace's iteration, with what is there all the time."""
    csv = trace + ".csv"
    bench.memoptctl("plan", trace, "--strategy", "layout", "--buffers", csv)
    return Laid(bench, csv)


def laid_out_alone(bench, trace):
    """Without what is there all the time, in units of 512 bytes. The trace: one iteration that frees all that it allocates."""
    live, rows = {}, []
    for time_of, (is_allocation, pointer, size) in enumerate(pool_models.allocations(trace, persistent=False)):
        if is_allocation:
            live[pointer] = time_of
        else:
            rows.append(f"{len(rows)},{live.pop(pointer)},{time_of},{-(-size // 512) * 512}\n")
    csv = trace + ".alone.csv"
    with open(csv, "w", encoding="ascii") as file:
        file.write("id,lower,upper,size\n" + "".join(rows))
    return Laid(bench, csv)


def largest(fits, guess):
    """The largest number that fits, where all below a number that fits do; 0: none. Asks few, if the guess is near."""
    guess, step = max(1, guess), 1
    if fits(guess):
        low = guess
        while fits(low + step):
            low, step = low + step, 2 * step
        high = low + step
    else:
        high = guess
        while high > 1 and not fits(max(1, high - step)):
            high, step = max(1, high - step), 2 * step
        low = max(1, high - step) if high > 1 else 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def held_in(pool, trace):
    """Bytes; infinite where its capacity does not suffice."""
    try:
        return pool_models.pooled(trace, pool)[1]
    except pool_models.OutOfMemory:
        return float("inf")


# CuPy's, by what Chainer's users call them here. Which of them the paper measured is not in our notes.
CHAINER_POOLS = {"of equal sizes": pool_models.ExactPool, "cut and merged": pool_models.Pool}
PRINTED_LOADS = {"alexnet": 10169344, "googlenet": 12202496}
PRINTED_LESS = {"googlenet": "12.6", "resnet50-imagenet": "10.0"}


def against_pools(trace, *heights):
    """What CuPy's pools hold, in words, and by how much less each of these is than both."""
    held = {name: pool_models.pooled(trace, pool())[1] for name, pool in CHAINER_POOLS.items()}
    words = ", ".join(f"{size / MIB:.1f} MiB ({name})" for name, size in held.items())
    return words, [f"{height / MIB:.1f} MiB, {' and '.join(part(size - height, size) for size in held.values())} less" for height in heights]


def sekiyama_inference(bench):
    for name, printed in PRINTED_LOADS.items():
        laid = laid_out_alone(bench, bench.network(name, 1, False, "--inference", "--iterations", "1"))
        yield (f"inference of {name}: {printed:,} B by the heuristic, the optimum", f"`nets.py {name} --inference --batch 1`, without weights, in units of 512 bytes",
               f"{laid.height:,} B (offset-lines); no layout is below {laid.load:,} B", f"{laid.ours():,} B",
               "the same bytes: image and label, what the first convolution puts out, and 8 MiB for it; so it was a batch of one, and weights were not counted")
    for name, printed in PRINTED_LESS.items():
        trace = bench.network(name, 1, False, "--inference")
        laid = laid_out(bench, trace)
        words, (theirs, ours) = against_pools(trace, laid.height, laid.ours())
        yield (f"inference of {name.split('-')[0]}: {printed} % less than Chainer's pool", f"`nets.py {name} --inference --batch 1`, with weights; CuPy's pools hold {words}",
               f"{theirs} (offset-lines)", ours, "of which batch, by which of CuPy's pools, and what else was counted is not in our notes; no layout is below the load")


def sekiyama_training(bench):
    quick = bench.options.quick
    instances = [("alexnet", SMALL)] if quick else [(name, 32) for name in ("alexnet", "googlenet", "resnet50-imagenet", "inception-resnet-v2")]
    printed = "up to 49.5 % less than Chainer's pool (training and inference of five networks)"
    why = "which of their networks saved that much is not in our notes; the pools are models of CuPy's; no layout is below the load"
    for name, batch in instances:
        trace = bench.network(name, batch, False)
        laid = laid_out(bench, trace)
        words, (theirs, ours) = against_pools(trace, laid.height, laid.ours())
        yield printed, f"training of `nets.py {name} --batch {batch}`; CuPy's pools hold {words}", f"{theirs} (offset-lines), {laid.height / laid.load:.4f} of the load", ours, why
    batch, minibatches = (2, 3) if quick else (64, 10)
    longest = laid_out(bench, bench.network("seq2seq", batch, False, "--length", "4" if quick else "49"))
    words, (theirs, ours) = against_pools(bench.network("seq2seq", batch, False, "--iterations", str(minibatches)), longest.height, longest.ours())
    yield (printed, f"training of `nets.py seq2seq --batch {batch}`, {minibatches} minibatches, each with sentences of another length; CuPy's pools then hold {words}",
           f"{theirs} (offset-lines, of the longest sentences that there may be), {longest.height / longest.load:.4f} of the load", ours,
           f"{why}; theirs plans anew where a minibatch needs more, here the largest is planned")


def sekiyama_batches(bench):
    """How large a batch may be within a memory."""
    quick = bench.options.quick
    room = 2 * GIB if quick else 16 * GIB
    for name, *more in (("alexnet",),) if quick else (("googlenet",), ("resnet50-imagenet",), ("inception-resnet-v2",), ("seq2seq", "--length", "49")):
        minibatches = ("--iterations", "10") if name == "seq2seq" else ()
        small, large = (laid_out(bench, bench.network(name, batch, False, *more)).load for batch in (8, 16))
        guess = 8 + int((room - small) / (large - small) * 8)  # loads are linear
        theirs, ours = (largest(lambda batch, height=height: height(laid_out(bench, bench.network(name, batch, False, *more))) <= room, guess)
                        for height in (lambda laid: laid.height, Laid.ours))
        def in_pool(pool, capacity, batch, name=name, minibatches=minibatches):
            return held_in(pool(capacity), bench.network(name, batch, False, *minibatches)) <= room
        pools = []
        for of, pool in CHAINER_POOLS.items():
            keeping, giving_back = (largest(lambda batch, pool=pool, capacity=capacity: in_pool(pool, capacity, batch), theirs) for capacity in (None, room))
            pools.append(f"{keeping}, or {giving_back} giving back ({of})")
        yield ("larger batches than with Chainer's pool in the same memory; up to 4 times faster by them and by faster allocation (how large was not at hand)",
               f"training of `nets.py {name}` within {gib(room)}; with CuPy's pools batch {'; '.join(pools)}"
               + (", of 10 minibatches, none longer than the one that is planned" if minibatches else ""),
               f"batch {theirs} (offset-lines)", f"batch {ours}", "the memory is ours to choose, as theirs was not at hand; a pool that is full gives back what is free, and asks for it again in each iteration, which takes time; nothing is run "
               "here, so no speed; allocation alone: docs/results/layout-planning.md")


def sekiyama(bench):
    for rows in sekiyama_inference, sekiyama_training, sekiyama_batches:
        yield from rows(bench)


PAPERS = {"chen": ("Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost", chen), "monet": ("MONeT (Shah et al. 2021)", monet),
          "dtr": ("DTR (Kirisame et al. 2021)", dtr), "checkmate": ("Checkmate (Jain et al. 2020)", checkmate),
          "zhang": ("Zhang et al. 2019, Efficient Memory Management for GPU-based Deep Learning Systems", zhang),
          "sekiyama": ("Sekiyama et al. 2018, Profile-guided Memory Optimization", sekiyama)}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", metavar="NAME,...", default=",".join(PAPERS))
    parser.add_argument("--seconds", type=float, metavar="S", help="of each search of memopt's own (3; with --quick 0.1)")
    parser.add_argument("--quick", action="store_true", help="small instances, to see that it works")
    parser.add_argument("--shared", default=SHARED, metavar="FOLDER")
    options = parser.parse_args()
    options.rows = options.rows.split(",")
    for name in options.rows:
        if name not in PAPERS:
            parser.error(f"unknown rows '{name}'; known: {' '.join(PAPERS)}")
    if options.seconds is None:
        options.seconds = 0.1 if options.quick else 3
    return options


def main():
    options = parse()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        for name in options.rows:
            title, rows = PAPERS[name]
            print(f"### {title}\n\n| " + " | ".join(HEADS) + " |\n|" + "---|" * len(HEADS), flush=True)
            why = None
            for *cells, its_why in rows(bench):
                print("| " + " | ".join((*cells, its_why if its_why != why else "as above")) + " |", flush=True)
                why = its_why
            print()
    print(f"{time.monotonic() - begin:.0f} s in all, {options.seconds:g} s for each search")


if __name__ == "__main__":
    main()
