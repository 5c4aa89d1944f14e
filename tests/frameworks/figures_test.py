#!/usr/bin/env python3
"""From runs to figures, verdicts and the page: on runs made up here, none is made."""
import tempfile
import unittest

import cases
import figures
import page
import program_runs

MIB = 1 << 20
STEPS = 20


def said(step, live_at, displaced_each=0, note=""):
    """memopt's status after a step: a hundred allocations each."""
    live = step >= live_at
    return {"version": "0.1.0", "state": "planned" if live else "recording", "note": note, "allocations": 100 * step,
            "iteration_at_live": live_at if live else 0, "generation": int(live), "deviations": 0,
            "displaced": 30 + displaced_each * (step - live_at) if live else 0}


def run(held=lambda step: 100 * MIB, load=95 * MIB, step_ns=10_000_000, memopt=None, each=1, counters=(80.0, 95.0, 110.0)):
    """A run whose steps all take the same time; `held` by step, `memopt` by step."""
    marks = []
    for step in range(1, STEPS + 1):
        for part in range(1, each + 1):
            marks.append({"bytes_held_peak": held(step) - (each - part) * MIB, "bytes_live_peak": load, "bytes_held": held(step),
                          "host_now_ns": int((step - 1 + part / each) * step_ns), "memopt": memopt(step) if memopt else None})
    end = {"bytes_held_peak": held(STEPS), "bytes_live_peak": load, "host_now_ns": STEPS * step_ns + 1_000_000, "memopt": None}
    return {"notes": {"marks": marks, "end": end}, "counters": list(counters),
            "effects": {"launches": 500, "uses_checksum": "ab", "live_checksum": "cd", "live_blocks": 7, "live_unreadable": 0,
                        "undecided": 0, "disagreed": 0}, "device": {"races": 0}}


def good():
    """Results of a program of which nothing falls short."""
    results = {"pool": run(held=lambda step: 110 * MIB), "driver": run()}
    for route in figures.ROUTES:
        results[route] = run(held=lambda step: (110 if step < 6 else 99) * MIB, memopt=lambda step: said(step, 4))
        for seed in figures.SEEDS:
            results[f"contents-{route}-{seed}"] = run(memopt=lambda step: said(step, 4))
    return results | {"contents": run()}


def row(results, text="gpt.py"):
    return figures.Row("gpt", text, results, STEPS)


def missed(results, text="gpt.py"):
    return sorted({(verdict.what, verdict.route) for verdict in figures.verdicts(row(results, text)) if not verdict.met})


CONDITIONS = page.Conditions(device="a100-40g", steps=STEPS, contents_steps=10, contents=True, free_running=False, versions={"PyTorch": "2"})


class Figures(unittest.TestCase):
    def test_the_steady_steps_are_those_at_the_end(self):
        measured = figures.Measured(run(held=lambda step: (500 if step <= 12 else 100 + step) * MIB), STEPS)
        self.assertEqual(measured.window, 8)
        self.assertEqual(measured.steady, 120 * MIB)
        self.assertEqual(measured.largest, 500 * MIB)
        self.assertEqual(measured.step_ns, 10_000_000)
        self.assertEqual(measured.run_ns, STEPS * 10_000_000 + 1_000_000)
        self.assertIsNone(measured.live_at)

    def test_several_optimizers_take_one_step(self):
        measured = figures.Measured(run(each=2, memopt=lambda step: said(step, 4)), STEPS)
        self.assertEqual(len(measured.steps), STEPS)
        self.assertEqual(measured.live_at, 4)
        self.assertEqual(measured.step_ns, 10_000_000)
        self.assertEqual(measured.steady, 100 * MIB, "of both parts")
        with self.assertRaises(ValueError):
            figures.Measured(run(), STEPS + 1)

    def test_the_share_is_of_the_steps_after_that_in_which_the_plan_went_live(self):
        self.assertEqual(figures.Measured(run(memopt=lambda step: said(step, 4)), STEPS).share, 1)
        self.assertAlmostEqual(figures.Measured(run(memopt=lambda step: said(step, 4, displaced_each=3)), STEPS).share, 0.97)
        self.assertIsNone(figures.Measured(run(memopt=lambda step: said(step, 99)), STEPS).share)
        self.assertEqual(figures.floor_percent(0.99999), "99.99 %")

    def test_nothing_falls_short(self):
        self.assertEqual(missed(good()), [])
        self.assertFalse(page.broken([row(good())]))

    def test_what_falls_short(self):
        late = good() | {"async": run(memopt=lambda step: said(step, 7), held=lambda step: 99 * MIB)}
        self.assertEqual(missed(late), [("live", "async")])
        never = good() | {"plain": run(memopt=lambda step: said(step, 99, note="no iteration"), held=lambda step: 99 * MIB)}
        self.assertEqual(missed(never), [("live", "plain")])
        beside = good() | {"plain": run(memopt=lambda step: said(step, 4, displaced_each=3), held=lambda step: 99 * MIB)}
        self.assertEqual(missed(beside), [("share", "plain")])
        self.assertEqual(missed(beside, "gpt.py --evaluate-every 4"), [])
        fat = good() | {"async": run(memopt=lambda step: said(step, 4), held=lambda step: 111 * MIB)}
        self.assertEqual(missed(fat), [("reserved", "async"), ("steady", "async")])
        high = good() | {"async": run(memopt=lambda step: said(step, 4), held=lambda step: (119 if step == 4 else 99) * MIB)}
        self.assertEqual(missed(high), [("largest", "async")])
        slow = good() | {"async": run(memopt=lambda step: said(step, 4), held=lambda step: 99 * MIB, step_ns=10_300_000)}
        self.assertEqual(missed(slow), [("step", "async")])
        other = good() | {"async": run(memopt=lambda step: said(step, 4), held=lambda step: 99 * MIB, counters=(80.0, 96.0, 110.0))}
        self.assertEqual(missed(other), [("counters", "async")])

    def test_contents(self):
        for change in ({"uses_checksum": "x"}, {"live_checksum": "x"}, {"live_unreadable": 1}, {"launches": 1}):
            wrong = run()
            wrong["effects"] |= change
            self.assertEqual(missed(good() | {"contents-async-3": wrong}), [("contents", "async")])
        race = run()
        race["device"]["races"] = 1
        self.assertEqual(missed(good() | {"contents-plain-none": race}), [("contents", "plain")])
        self.assertTrue(page.broken([row(good() | {"contents-plain-none": race})]))
        few = {name: result for name, result in good().items() if not name.startswith("contents-plain")}
        self.assertEqual(missed(few), [])

    def test_a_program_that_fails_is_a_row_that_says_why(self):
        for missing in ("pool", "driver", "async", "contents", "contents-async-2"):
            results = good() | {missing: {"failed": "exit code 1: out of memory"}}
            text = page.markdown([row(results), row(good())], CONDITIONS)
            self.assertIn(f"- `gpt`, `{missing}`: exit code 1: out of memory", text)
            self.assertTrue(page.broken([row(results)]))
        nothing = {name: {"failed": figures.NOT_RUN} for name in good()}
        text = page.markdown([row(nothing), row(good())], CONDITIONS)
        [line] = [line for line in text.splitlines() if line.startswith("- Not run yet: ")]
        self.assertTrue(line.endswith("`contents` of `gpt`."), line)
        self.assertFalse(page.broken([row(nothing)]))

    def test_the_page(self):
        text = page.markdown([row(good())], CONDITIONS)
        self.assertNotIn("**9", text)
        self.assertNotIn("but for", text)
        self.assertNotIn("less sure", text)
        self.assertIn("5 of 5", text)
        fat = good() | {"async": run(memopt=lambda step: said(step, 4), held=lambda step: 111 * MIB)}
        text = page.markdown([row(fat)], CONDITIONS)
        self.assertIn("**111.0**", text)
        self.assertIn("- `gpt`, async: 111.0 MiB for a load of 95.0 (1.168)", text.replace("  - `gpt` (async)", "- `gpt`, async"))

    def test_words_on_which_runs_do_not_agree_are_left_out(self):
        decided = ("launch-effects 1\nkernel 0 _Z1fPf\nkernel 1 g\nlaunch 0 1 0 ab 64 0:0.1+0 8:0.2+4\nlaunch 0 2 1 cd 64 0:0.1+0\n"
                   "launch 1 1 1 cd 64\n")
        # Another run is shorter, and numbers kernels as it meets them.
        found = "launch-effects 1\nkernel 0 g\nkernel 1 _Z1fPf\nlaunch 0 1 1 ab 64 8:0.2+4\n"
        self.assertEqual(program_runs.agreed(decided, found), decided.replace(" 0:0.1+0 8:0.2+4", " 8:0.2+4"))
        self.assertEqual(program_runs.agreed(decided, decided), decided)

    def test_programs_are_those_of_the_list(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("# NAME PROGRAM ARGUMENTS\ngpt gpt.py 7\nsmall gpt.py 13 --layers 2\n\n")
            file.flush()
            self.assertEqual([(p.name, p.text) for p in program_runs.programs(file.name)], [("gpt", "gpt.py"), ("small", "gpt.py --layers 2")])

    def test_runs_differ_in_what_they_are_for(self):
        names = [c.name for c in program_runs.deciding(8) + program_runs.measuring(8)]
        self.assertEqual(names, ["decide", "decide-again", "pool", "driver", "async", "plain"])
        for seed in figures.SEEDS:
            native, *others = program_runs.comparing(8, seed)
            self.assertFalse(native.memopt or "CUDASIM_SEED" in native.environment)
            for route, run in zip(figures.ROUTES, others, strict=True):
                self.assertTrue(run.memopt)
                self.assertEqual(run.environment["MEMOPT_FRAMEWORK_ENV"], route)
                self.assertEqual(run.environment.get("CUDASIM_SEED", "none"), seed)
                self.assertNotIn("MEMOPT_SYNC_PLAN", run.environment)
        [*_, free] = program_runs.measuring(8, free_running=True)
        self.assertEqual(free.environment["MEMOPT_SYNC_PLAN"], "0")


if __name__ == "__main__":
    cases.main()
