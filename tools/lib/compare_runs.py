#!/usr/bin/env python3
"""Trains digits_cnn natively, over a caching pool, under memopt and under memopt with a limit, and prints what the driver counted in each,
beside each other; on the simulated device also the largest batch that a small one takes."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import gpu
import largest_batch

MIB = 1 << 20
EPOCHS, BATCH = 10, 288
STEPS = EPOCHS * (largest_batch.TRAINING_IMAGES // BATCH)
TRAINING = ["--epochs", str(EPOCHS), "--batch", str(BATCH)]
LIMIT = "60MiB"  # of the run below the peak load
TIME_LIMIT = 900  # seconds a run may take before it counts as hung
STATUS_INTERVAL = 0.5


class Failure(Exception):
    pass


class Run:
    """One row: what it is called, how it is started, and what came of it."""

    def __init__(self, name, command, environment):
        self.name, self.command, self.environment = name, command, environment
        self.footprint = self.steady_footprint = self.own_ns = self.peak_load = self.virtual_ns = self.wall_s = self.accuracy = self.checksum = None
        self.races = 0
        self.pool_report = None  # where the caching pool writes what it knows, if it is in this run
        self.status = None  # memopt's own words while it ran

    def result(self):
        return {key: value for key, value in vars(self).items() if key not in ("environment", "pool_report")}


def find_number(report, name):
    """A number by its name, wherever the report nests it."""
    if isinstance(report, dict):
        if isinstance(report.get(name), (int, float)):
            return report[name]
        for value in report.values():
            found = find_number(value, name)
            if found is not None:
                return found
    return None


def read_json(path, what):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise Failure(f"{what} left no readable report: {error}") from error


def execute(run, status_command):
    """Runs it to its end; fills in what its output says. While it runs, memopt is asked how it is doing."""
    environment = {**os.environ, **run.environment}
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(run.command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            while True:
                try:
                    process.wait(STATUS_INTERVAL)
                    break
                except subprocess.TimeoutExpired:
                    pass
                if time.monotonic() - started > TIME_LIMIT:
                    raise Failure(f"{run.name}: not done after {TIME_LIMIT} s")
                if status_command:
                    run.status = ask_status(status_command, process.pid) or run.status
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        run.wall_s = time.monotonic() - started
        output.seek(0)
        text = output.read()
    lines = text.strip().splitlines()
    if process.returncode != 0:
        raise Failure(f"{run.name}: exit code {process.returncode}\n" + "\n".join("  " + line for line in lines[-15:]))
    checksum = re.fullmatch(r"checksum ([0-9a-f]+)", lines[-1] if lines else "")
    if not checksum:
        raise Failure(f"{run.name}: its last line is no checksum\n" + "\n".join("  " + line for line in lines[-5:]))
    run.checksum = checksum.group(1)
    accuracy = re.search(r"^test accuracy ([\d.]+)", text, re.MULTILINE)
    run.accuracy = float(accuracy.group(1)) if accuracy else None


def ask_status(status_command, pid):
    answer = subprocess.run([*status_command, "--pid", str(pid)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    try:
        processes = json.loads(answer.stdout)["processes"]
    except (ValueError, KeyError):
        return None
    return processes[0] if processes and processes[0].get("calls") else None


def run_simulated(run, status_command, folder):
    report = os.path.join(folder, f"{re.sub(r'[^A-Za-z0-9]+', '-', run.name)}.json")
    run.environment = {**run.environment, "CUDASIM_REPORT": report}
    execute(run, status_command)
    counters = read_json(report, run.name)
    run.footprint = find_number(counters, "bytes_held_peak")
    # Served from chunks, the driver's count of what the program asked for is a count of chunks: then memopt knows.
    run.peak_load = find_number(counters, "bytes_live_peak") if not run.status else run.status.get("peak_bytes")
    pieces = counters.get("held_history", {}).get("peaks", [])
    # The last third of the driver's calls, as far as it lies before the end, where everything is freed.
    run.steady_footprint = max(pieces[2 * len(pieces) // 3:], default=None)
    run.races = find_number(counters, "races") or 0
    host, device = find_number(counters, "host_end_ns"), find_number(counters, "device_end_ns")
    if run.footprint is None or run.peak_load is None or host is None:
        raise Failure(f"{run.name}: the driver's report {report} lacks what was expected of it")
    run.virtual_ns = max(host, device or 0) / STEPS


def add_pool_report(run):
    """Over a pool the driver sees segments only: the program's own blocks are known to the pool alone."""
    if run.pool_report:
        run.peak_load = find_number(read_json(run.pool_report, f"{run.name}'s library"), "peak_requested_bytes")


def add_own_cost(run):
    """What our code costs the host per step, which virtual time does not contain: sampled by the shim itself in the steady state."""
    plan = (run.status or {}).get("agent", {}).get("plan") or {}
    calls = (run.status or {}).get("agent", {}).get("calls", {}).get("entry_points", {})
    if plan.get("own_ns_per_call") and calls:
        served = sum(count for name, count in calls.items() if re.match(r"cu(MemAlloc_v2|MemFree_v2|Launch|Memcpy|Memset)", name))
        # The status was read a little before the end: its own share of the steps is not known, so the whole run's is taken.
        run.own_ns = plan["own_ns_per_call"] * served / STEPS


def run_on_gpu(run, status_command):
    with gpu.MemorySampler() as memory:
        execute(run, status_command)
    run.footprint = memory.peak
    run.peak_load = run.status.get("peak_bytes") if run.status else None


def mib(number):
    return "-" if number is None else f"{number / MIB:.1f} MiB"


def table(runs, simulated):
    heads = ["", "footprint", "steady", "peak load", "virtual time/step" if simulated else "wall time/step", "memopt's own", "wall time",
             "test accuracy", "checksum"]
    lines = [heads]
    for run in runs:
        step = f"{run.virtual_ns / 1e6:.3f} ms" if simulated else f"{run.wall_s * 1e3 / STEPS:.1f} ms"
        equal = "-" if run is runs[0] else "equal" if run.checksum == runs[0].checksum else "DIFFERS"
        own = "-" if run.own_ns is None else f"{run.own_ns / 1e6:.3f} ms"
        lines.append([run.name, mib(run.footprint), mib(run.steady_footprint), mib(run.peak_load), step, own, f"{run.wall_s:.1f} s",
                      "-" if run.accuracy is None else f"{run.accuracy:.2f} %", run.checksum[:8] if equal == "-" else equal])
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    rows = ["  ".join(cell.ljust(width) if column == 0 else cell.rjust(width) for column, (cell, width) in enumerate(zip(line, widths)))
            for line in lines]
    rule = "─" * len(rows[0])
    return "\n".join([rows[0], rule, *rows[1:], rule])


def explanation(runs, simulated, device, why_simulated):
    raw, pool, ours, limited = runs
    if simulated:
        words = [f"Simulated device ({device}): {why_simulated}.",
                 "Footprint (largest of the whole run), steady (largest of its last third) and virtual time are the simulated driver's",
                 "own counts; peak load is what the program itself had allocated at most. A step's virtual time is the whole run's, start",
                 f"and test included, over its {STEPS} training steps; memopt's own is the processor time of its code per step, sampled,",
                 "which virtual time does not contain (the simulator's own work for the events that memopt records is in it, though).",
                 "Wall time is what the simulation took here and says nothing about a GPU."]
    else:
        words = [f"{device}. Footprint: largest growth of the device's used memory by NVML, sampled each 5 ms, CUDA context included."]
    if ours.status:
        plan = ours.status.get("agent", {}).get("plan") or {}
        live = plan.get("iteration_at_live")
        words.append(f"memopt (memoptctl status): {ours.status['state']}" + (f", plan live at iteration {live}" if live else "") +
                     f", {plan.get('deviations', 0)} deviations.")
        if not live and plan.get("note"):
            words.append(f"It did not plan: {plan['note']}.")
    if simulated and raw.peak_load and pool.footprint:
        beyond = mib(max(0, pool.footprint - raw.peak_load))
        words.append(f"Planning the layout can save at most what the pool holds beyond the peak load ({beyond}), and the time that raw")
        words.append("cudaMalloc and cudaFree take. Until the plan is live, memopt holds more: blocks are rounded up to whole chunks of")
        words.append("2 MiB, and freed ones are kept for the next iteration.")
    else:
        words.append("Planning the layout can save at most what the pool holds beyond the peak load, and allocation time.")
    swaps = (limited.status or {}).get("agent", {}).get("swaps")
    if swaps:
        made = (swaps.get("planned") or {}).get("out", 0)
        words.append(f"With a limit (memoptctl run --limit {LIMIT}) it goes below the peak load: blocks wait in host memory while they are not used, on")
        words.append("demand at first, so that the program waits for each copy, then as planned, beside the computation. By the last look at it,")
        words.append(f"{mib(swaps['copied_out'])} had been copied to the host and {mib(swaps['copied_in'])} back, {made} swaps of these as planned.")
    for run in runs:
        if run.races:
            words.append(f"{run.name}: the happens-before checker reported {run.races} races.")
    return "\n".join(words)


def prepare(options, simulated, folder_of_reports):
    build = options.build
    workload = os.path.join(build, "workloads", "digits_cnn")
    pool = os.path.join(build, "cudasim", "lib", "libcaching_pool.so")
    memoptctl = os.path.join(build, "bin", "memoptctl-running")
    for path in (workload, pool, memoptctl):
        if not os.path.exists(path):
            raise Failure(f"{path} is missing: the build is not whole")
    folder = os.path.join(build, "cudasim", "lib") if simulated else os.path.join(options.cuda, "lib64")
    environment = {"LD_LIBRARY_PATH": ":".join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")]))}
    if simulated:
        environment["CUDASIM_DEVICE"] = options.device
    train = [workload, *TRAINING]
    under_memopt = [memoptctl, "run", *(["--sim", options.device] if simulated else []), "--", *train]
    pool_report = os.path.join(folder_of_reports, "pool.json")
    limited = [*under_memopt[:2], "--limit", LIMIT, *under_memopt[2:]]
    runs = [Run("raw cudaMalloc", train, environment),
            Run("caching pool", train, {**environment, "LD_PRELOAD": pool, "CACHING_POOL_REPORT": pool_report}),
            Run("memopt", under_memopt, environment),
            Run(f"memopt, limit {LIMIT}", limited, environment)]
    runs[1].pool_report = pool_report
    return runs, [memoptctl, "status", "--json"]


def find_largest_batches(runs):
    """Name -> batch, and the same in words."""
    print("   largest batch on a small device ...", flush=True)
    raw, _, (command, environment), _ = ((run.command[:-len(TRAINING)], run.environment) for run in runs)
    try:
        batches = largest_batch.find({"natively": raw, "memopt without swaps": (command, {**environment, "MEMOPT_SWAP": "0"}),
                                   "memopt": (command, environment)}, raw)
    except largest_batch.Failure as failure:
        raise Failure(f"the largest batch: {failure}") from failure
    return batches, (f"Largest batch that trains on a simulated device of {largest_batch.CAPACITY_MIB} MiB, in steps of {largest_batch.PART} images: "
                     + ", ".join(f"{name} {batch}" for name, batch in batches.items()) + ".\n"
                     "Where the device is full, blocks wait in host memory, and the program for copies until they are planned. The results are\n"
                     "those of a large device.")


def write(options, text, found):
    with open(options.table, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--cuda", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--sim", action="store_true")
    parser.add_argument("--table", required=True)
    parser.add_argument("--json", required=True)
    options = parser.parse_args()
    name, why = (None, "asked for by --sim") if options.sim else gpu.find()
    simulated = name is None
    with tempfile.TemporaryDirectory() as folder:
        runs, status_command = prepare(options, simulated, folder)
        for run in runs:
            print(f"   {run.name} ...", flush=True)
            ask = status_command if run.command[0] == status_command[0] else None
            if simulated:
                run_simulated(run, ask, folder)
            else:
                run_on_gpu(run, ask)
            add_pool_report(run)
            add_own_cost(run)
    why_simulated = why if options.sim else f"no GPU here ({why})"
    text = table(runs, simulated) + "\n" + explanation(runs, simulated, options.device if simulated else name, why_simulated)
    print("\n" + text + "\n")
    found = {"simulated": simulated, "device": options.device if simulated else name, "steps": STEPS, "runs": [run.result() for run in runs]}
    write(options, text, found)
    if any(run.checksum != runs[0].checksum for run in runs):
        raise Failure("the results differ: memopt or the pool changed what the program computes")
    if any(run.races for run in runs):
        raise Failure("the happens-before checker found races")
    if simulated:
        found["largest_batches"], words = find_largest_batches(runs)
        print(words + "\n")
        write(options, f"{text}\n{words}", found)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"quickstart: {failure}")
