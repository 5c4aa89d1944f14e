#!/usr/bin/env python3
"""What memopt makes of PyTorch's programs on the simulated device, beside PyTorch's caching allocator: prints a table, and writes it as a
page.

The programs are those of tests/data/recordings/recordings.txt, and of --also. Each runs natively with PyTorch's caching allocator and with
cudaMallocAsync, and under memopt by both routes; integration/launch_effects gives launches their time, and, in shorter runs, contents.
What a run has shown is kept in the build folder, so that a table that was interrupted goes on. TEST_BUILD names the build folder
(default: build/release of this checkout). Exit code 1: a program has failed, or its contents were not equal."""
import argparse
import concurrent.futures
import os
import sys
import threading
import time

import figures
import page
import program_runs

LISTED = os.path.join(program_runs.ROOT, "tests", "data", "recordings", "recordings.txt")
KEPT = "kept"
MOST_ROUNDS = 5
FRAMEWORKS = os.path.join(program_runs.ROOT, "build", "frameworks", "bin", "python")


def parse(known):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--also", metavar="'NAME PROGRAM ARGUMENTS'", type=unlisted, action="append", default=[],
                        help="a program of integration/workloads/pytorch with other arguments; with --programs, those and this one")
    parser.add_argument("--free-running", action="store_true",
                        help="memopt does not wait for its planner, as in everyday use: runs differ")
    return parse_common(parser, known, steps=60, contents_steps=10, kept="frameworks-table, or frameworks-table-free,")


def unlisted(text):
    name, program, *arguments = text.split() if len(text.split()) > 1 else ("", "")
    if not os.path.exists(os.path.join(program_runs.PROGRAMS, program)) or not program:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a name and a program of {program_runs.PROGRAMS}, then its arguments")
    return program_runs.Program(name, program, arguments)


def parse_common(parser, known, steps, contents_steps, kept):
    """What each table of these programs takes."""
    parser.add_argument("--python", default=FRAMEWORKS, help="with PyTorch (default: what tools/fetch-frameworks has fetched)")
    parser.add_argument("--programs", nargs="*", metavar="NAME", choices=known, default=known, help="rows (default: all)")
    parser.add_argument("--steps", type=int, default=steps, metavar="N", help=f"of the runs for sizes and times (default {steps})")
    parser.add_argument("--contents-steps", type=int, default=contents_steps, metavar="N", help=f"of the runs for contents (default {contents_steps})")
    parser.add_argument("--no-contents", action="store_true", help="sizes and times alone")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time (default 1)")
    parser.add_argument("--timeout", type=int, default=1800, metavar="SECONDS", help="for a run (default 1800)")
    parser.add_argument("--output", metavar="FILE", help="write the page there, as Markdown")
    parser.add_argument("--kept", metavar="FOLDER", help=f"for results of runs (default: {kept} in the build folder)")
    parser.add_argument("--from-kept", action="store_true", help="run nothing: what was kept is put together")
    options = parser.parse_args()
    if min(options.steps, options.contents_steps) < figures.FEWEST_STEPS or min(options.jobs, options.timeout) < 1:
        parser.error(f"--steps, --contents-steps: expected {figures.FEWEST_STEPS} or more; --jobs, --timeout: 1 or more")
    if not os.path.exists(options.python):
        parser.error(f"{options.python} is not there: tools/fetch-frameworks, or --python")
    return options


class Progress:
    def __init__(self, total):
        self.total, self.done, self.lock = total, set(), threading.Lock()

    def report(self, name, how):
        """A run that is made again counts once."""
        with self.lock:
            if how in (KEPT, figures.NOT_RUN) and name in self.done:
                return
            self.done.add(name)
            print(f"[{len(self.done)}/{self.total}] {name}: {how}", flush=True)


def run_in_turn(runner, program, configurations, progress, only_kept):
    """A program's runs one after the other: those that others go by come first."""
    found = {}
    for configuration in configurations:
        began = time.monotonic()
        result = runner.kept(program, configuration)
        how = KEPT
        if result is None:
            result = {"failed": figures.NOT_RUN} if only_kept else runner.run(program, configuration)
            how = f"{time.monotonic() - began:.1f} s"
        found[configuration.name] = result
        progress.report(f"{program.name} {configuration.name}", result.get("failed") or how)
    return found


def compare_in_turn(runner, program, configurations, progress, only_kept):
    """The same for contents: once more, if a run has left out words that others went by."""
    for _ in range(MOST_ROUNDS):
        found = run_in_turn(runner, program, configurations, progress, only_kept)
        if only_kept or all("failed" in found[c.name] or runner.kept(program, c) for c in configurations):
            break
    return found


def measure(options, rows):
    """Results by program and configuration. Sizes and times of all programs come before the contents of any, then one order of all."""
    build = os.environ.get("TEST_BUILD") or os.path.join(program_runs.ROOT, "build", "release")
    kept = options.kept or os.path.join(build, "frameworks-table" + ("-free" if options.free_running else ""))
    runner = program_runs.Runner(build, options.python, kept, options.timeout)
    decided = max(options.steps, options.contents_steps)
    rounds = [(run_in_turn, program_runs.deciding(decided) + program_runs.measuring(options.steps, options.free_running))]
    for last in range(len(figures.SEEDS) if not options.no_contents else 0):
        seeds = figures.SEEDS[:last + 1]
        compared = {c.name: c for seed in seeds for c in program_runs.comparing(options.contents_steps, seed, options.free_running)}
        rounds.append((compare_in_turn, list(compared.values())))
    progress = Progress(len(rows) * len({c.name for _, configurations in rounds for c in configurations}))
    results = {program.name: {} for program in rows}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for in_turn, configurations in rounds:
            waiting = {}
            for program in rows:
                future = pool.submit(in_turn, runner, program, configurations, progress, options.from_kept)
                waiting[future] = program.name
            for done in concurrent.futures.as_completed(waiting):
                results[waiting[done]] |= done.result()
    return results


def main():
    known = program_runs.programs(LISTED)
    options = parse([program.name for program in known])
    rows = [program for program in known if program.name in options.programs] + options.also
    results = measure(options, rows)
    conditions = page.Conditions(device=program_runs.DEVICE, steps=options.steps, contents_steps=options.contents_steps,
                                 contents=not options.no_contents, free_running=options.free_running, versions=page.versions_of(options.python, results))
    measured = [figures.Row(program.name, program.text, results[program.name], options.steps) for program in rows]
    text = page.markdown(measured, conditions)
    print(text)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)
    return 1 if page.broken(measured) else 0


if __name__ == "__main__":
    sys.exit(main())
