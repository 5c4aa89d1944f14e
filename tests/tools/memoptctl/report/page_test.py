#!/usr/bin/env python3
"""The page in a headless Chromium: what it shows, and what happens when it is used, by mouse and by keyboard.

usage: page_test.py MEMOPTCTL [unittest arguments]
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import cases
import chromium
import patience
import page_data

MEMOPTCTL = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else sys.exit(__doc__)
RECORDINGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "data", "recordings")
# Of the drawing, as page/layout.js has them.
LEFT, RIGHT, ABOVE, BELOW, SPARE = 58, 10, 4, 4, 1.02


def make(folder, file, *arguments, name="report.html", codes=(0,)):
    path = os.path.join(folder, name)
    done = subprocess.run([MEMOPTCTL, "report", file, "-o", path, *arguments], capture_output=True, text=True, timeout=patience.seconds(100))
    if done.returncode not in codes:
        raise RuntimeError(done.stderr)
    return path


def bytes_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            value = size / unit
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {name}"
    return f"{int(size)} B"


@unittest.skipUnless(chromium.find(), "no Chromium (Debian's chromium-headless-shell or chromium)")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        path = make(cls.scratch.name, os.path.join(RECORDINGS, "gpt.rec"), "--time-budget", "2", "--limit", "60%")
        with open(path, encoding="utf-8") as file:
            cls.data = page_data.of(file.read())
        cls.page = chromium.Page(path)
        cls.addClassCleanup(cls.page.__exit__)
        cls.plans = [plan for plan in cls.data["iteration"]["plans"] if plan["feasible"]]

    def setUp(self):
        self.page.choose("#limit", 0)
        self.page.key("Escape")
        self.page.click("#zoom-reset")

    def tearDown(self):
        self.assertEqual(self.page.errors, [])

    def point(self, block, plan=0):
        """Of the middle of its largest rectangle, as parts of the canvas."""
        drawn, sizes = self.plans[plan]["drawn"], self.data["iteration"]["blocks"]["bytes"]
        rectangles = drawn["blocks"]
        at = max((i for i, one in enumerate(rectangles["block"]) if one == block), key=lambda i: rectangles["to"][i] - rectangles["from"][i])
        top = max(offset + sizes[one] for offset, one in zip(rectangles["offset"], rectangles["block"]))
        width, height = self.page.value("[document.querySelector('#rectangles').clientWidth, document.querySelector('#rectangles').clientHeight]")
        middle = (rectangles["from"][at] + rectangles["to"][at]) / 2 * self.data["iteration"]["tick_ns"]
        x = LEFT + (width - LEFT - RIGHT) * middle / drawn["length_ns"]
        y = height - BELOW - (height - ABOVE - BELOW) * (rectangles["offset"][at] + sizes[block] / 2) / (SPARE * top)
        return x / width, y / height

    def largest(self, plan=0):
        """A block with a rectangle that can be met."""
        drawn, sizes = self.plans[plan]["drawn"]["blocks"], self.data["iteration"]["blocks"]["bytes"]
        return max(range(len(drawn["block"])), key=lambda i: sizes[drawn["block"][i]] * (drawn["to"][i] - drawn["from"][i]))

    def name(self, block):
        blocks = self.data["iteration"]["blocks"]
        return f"{'block' if blocks['flags'][block] & 1 else 'malloc at record'} {int(blocks['number'][block])}"

    def test_figures_are_those_of_the_data(self):
        figures = self.page.text("#figures")
        self.assertIn(f"Peak load{bytes_text(self.data['peak']['load'])}", figures)
        self.assertIn(f"memopt's layout{bytes_text(self.data['planned']['footprint'])}", figures)
        self.assertIn(f"Caching allocator{bytes_text(self.data['peak']['reserved_by_caching_allocator'])}", figures)
        self.assertEqual(self.page.text("h1"), "gpt.rec")

    def test_pointing_at_a_block_says_what_it_is(self):
        block = self.plans[0]["drawn"]["blocks"]["block"][self.largest()]
        before = self.page.pixels("#rectangles")
        self.page.hover("#rectangles", *self.point(block))
        tip = self.page.text("#tip")
        self.assertIn(bytes_text(self.data["iteration"]["blocks"]["bytes"][block]), tip)
        self.assertIn(self.name(block), tip)
        self.assertNotEqual(self.page.pixels("#rectangles"), before)
        self.page.hover("h1")
        self.assertTrue(self.page.value("document.querySelector('#tip').hidden"))

    def test_clicking_a_block_shows_all_about_it(self):
        blocks = self.data["iteration"]["blocks"]
        block = self.plans[0]["drawn"]["blocks"]["block"][self.largest()]
        self.page.click("#rectangles", *self.point(block))
        details = self.page.text("#details")
        self.assertIn(self.name(block), details)
        self.assertIn(f"{int(blocks['bytes'][block]):,} bytes", details)
        self.assertIn(f"{blocks['accesses'][block]} use", details)
        for use in blocks["use"][blocks["use_start"][block]:blocks["use_start"][block + 1]]:
            name = self.data["operations"][self.data["iteration"]["steps"]["name"][use & 0x7fffffff]]
            self.assertIn(name, details)
        self.assertIn(self.data["frames"][0], details)
        self.page.key("Escape")
        self.assertIn("No block selected", self.page.text("#details"))

    def test_the_slider_changes_the_plan(self):
        seen = set()
        for number, plan in enumerate(self.plans):
            self.page.choose("#limit", number)
            chosen = self.page.text("#chosen")
            self.assertIn(f"footprint{bytes_text(plan['footprint'])}", chosen)
            part = plan["added_ns"] / self.data["iteration"]["period_ns"]
            self.assertIn("none" if part < 0.0005 else f"({100 * part:.{1 if part < 0.0995 else 0}f} %)", chosen)
            self.assertEqual(self.page.value("document.querySelector('#limits-chart circle[r=\"7\"] title').textContent"),
                             self.page.value("document.querySelector('#limit').getAttribute('aria-valuetext')"))
            seen.add(self.page.pixels("#rectangles"))
        self.assertGreater(len(seen), 2)

    def test_the_wanted_limit_is_shown_first(self):
        self.page.reload()
        wanted = next(i for i, plan in enumerate(self.plans) if plan["wanted"])
        self.assertEqual(self.page.value("Number(document.querySelector('#limit').value)"), wanted)
        self.assertIn(f"limit{bytes_text(self.plans[wanted]['limit'])}", self.page.text("#chosen"))

    def test_lanes_show_copies(self):
        number = next(i for i, plan in enumerate(self.plans) if plan["swaps"] and plan["added_ns"] > 0)
        plan = self.plans[number]["drawn"]
        self.page.choose("#limit", number)
        longest = max(range(len(plan["copies"]["block"])), key=lambda i: plan["copies"]["to"][i] - plan["copies"]["from"][i])
        width, height = self.page.value("[document.querySelector('#lanes').clientWidth, document.querySelector('#lanes').clientHeight]")
        middle = (plan["copies"]["from"][longest] + plan["copies"]["to"][longest]) / 2 * self.data["iteration"]["tick_ns"]
        lane = 3 if plan["copies"]["in"][longest] else 2
        place = (LEFT + (width - LEFT - RIGHT) * middle / plan["length_ns"]) / width, (8 + 21 * lane + 8) / height
        self.page.hover("#lanes", *place)
        block = plan["copies"]["block"][longest]
        self.assertIn(f"Swap {'in' if lane == 3 else 'out'} of {bytes_text(self.data['iteration']['blocks']['bytes'][block])}, {self.name(block)}", self.page.text("#tip"))
        self.page.click("#lanes", *place)
        self.assertIn("In this plan", self.page.text("#details"))
        self.assertIn("copied out", self.page.text("#details"))

    def test_the_load_of_the_iteration_is_linked_to_its_blocks(self):
        peak = self.data["iteration"]["peak"]
        width = self.page.value("document.querySelector('#strip').clientWidth")
        across = (LEFT + (width - LEFT - RIGHT) * peak["at_ns"] / self.plans[0]["drawn"]["length_ns"] + 1) / width
        self.page.hover("#strip", across)
        self.assertIn(f"{bytes_text(peak['load'])} live", self.page.text("#tip"))
        self.page.click("#strip", across)
        self.assertEqual(self.page.value("document.querySelector('#peak-blocks').getAttribute('aria-pressed')"), "true")
        self.page.click("#strip", across)
        self.assertEqual(self.page.value("document.querySelector('#peak-blocks').getAttribute('aria-pressed')"), "false")

    def test_zoom_and_keyboard(self):
        self.page.value("document.querySelector('#rectangles').focus()")
        self.page.hover("h1")
        whole, axis = self.page.pixels("#rectangles"), self.page.text("#axes")
        self.page.key("+")
        self.page.key("+")
        self.assertNotEqual(self.page.text("#axes"), axis)
        for key in ("ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown"):
            before = self.page.pixels("#rectangles")
            self.page.key(key)
            self.assertNotEqual(self.page.pixels("#rectangles"), before, key)
        self.page.key("0")
        self.assertEqual(self.page.text("#axes"), axis)
        self.assertEqual(self.page.pixels("#rectangles"), whole)
        self.page.key("n")
        first = self.page.text("#details h3")
        self.page.key("n")
        second = self.page.text("#details h3")
        self.assertNotEqual(first, second)
        self.page.key("p")
        self.assertEqual(self.page.text("#details h3"), first)
        self.page.key("l")
        sizes = self.data["iteration"]["blocks"]["bytes"]
        self.assertIn(bytes_text(max(sizes[block] for block in self.plans[0]["drawn"]["blocks"]["block"])), self.page.text("#details h3"))
        self.page.key("z")
        self.assertNotEqual(self.page.text("#axes"), axis)
        self.page.click("#zoom-reset")
        self.page.click("#zoom-in")
        self.assertNotEqual(self.page.text("#axes"), axis)

    def test_the_wheel_zooms_once_the_layout_has_the_focus(self):
        self.page.value("document.activeElement.blur()")
        x, y = self.page.place("#rectangles")
        axis = self.page.text("#axes")
        self.page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
        self.page.frames()
        self.assertEqual(self.page.text("#axes"), axis)
        self.page.click("#rectangles")
        x, y = self.page.place("#rectangles")
        self.page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
        self.page.frames()
        self.assertNotEqual(self.page.text("#axes"), axis)

    def test_blocks_at_the_peak(self):
        live = len(self.data["iteration"]["peak"]["blocks"])
        self.page.click("#peak-blocks")
        self.assertEqual(self.page.value("document.querySelector('#peak-blocks').getAttribute('aria-pressed')"), "true")
        self.assertIn(f"{live} of {live} blocks", self.page.text("#table-count"))
        self.page.click("#peak-blocks")
        self.assertIn(f"{len(self.data['iteration']['blocks']['bytes'])} blocks", self.page.text("#table-count"))
        self.page.click("#recorded-peak")
        self.assertIn(f"of {self.data['peak']['blocks']} blocks, {bytes_text(self.data['peak']['load'])}", self.page.text("#table-count"))
        self.page.choose("#table-source", "iteration")

    def test_the_table_sorts_finds_and_selects(self):
        sizes = self.data["iteration"]["blocks"]["bytes"]
        first = "#table tbody tr:first-child"
        self.assertTrue(self.page.text(first).startswith(bytes_text(max(sizes))))
        self.page.click("#table thead th:first-child button")
        self.assertTrue(self.page.text(first).startswith(bytes_text(min(sizes))))
        self.assertEqual(self.page.value("document.querySelector('#table th').getAttribute('aria-sort')"), "ascending")
        self.page.click("#table thead th:first-child button")
        self.page.choose("#find", "memset")
        self.assertLess(self.page.value("document.querySelectorAll('#table tbody tr').length"), len(sizes))
        self.assertIn("memset", self.page.text(first))
        self.page.choose("#find", "")
        self.page.click(first, 0.05)
        self.assertEqual(self.page.value(f"document.querySelector('{first}').getAttribute('aria-selected')"), "true")
        self.assertIn(bytes_text(max(sizes)), self.page.text("#details h3"))
        rows = self.page.value("document.querySelectorAll('#table tbody tr').length")
        self.page.click("#more")
        self.assertGreater(self.page.value("document.querySelectorAll('#table tbody tr').length"), rows)

    def test_flame_graph(self):
        root = self.page.value("document.querySelector('#flame .node').getAttribute('aria-label')")
        self.assertIn(f"all live blocks: {bytes_text(self.data['iteration']['peak']['load'])}, 100 % of the peak", root)
        wide = self.page.value("[...document.querySelectorAll('#flame .node[aria-level=\"2\"]')].reduce((sum, node) => sum + parseFloat(node.style.width), 0)")
        self.assertAlmostEqual(wide, 100, delta=0.5)
        self.page.click("#flame .node[aria-level='2']")
        self.assertEqual(self.page.value("parseFloat(document.querySelector('#flame .node[aria-level=\"2\"]').style.width)"), 100)
        self.page.click("#flame-reset")
        self.page.value("document.querySelector('#flame .node').focus()")
        self.page.key("ArrowDown")
        self.assertEqual(self.page.value("document.activeElement.getAttribute('aria-level')"), "2")
        self.assertIn(self.page.value("document.activeElement.getAttribute('aria-label')"), self.page.text("#flame-readout"))
        self.page.choose("#flame-source", "recorded")
        self.assertIn(bytes_text(self.data["peak"]["load"]), self.page.value("document.querySelector('#flame .node').getAttribute('aria-label')"))
        self.page.choose("#flame-source", "iteration")

    def test_reading_the_load(self):
        self.page.hover("#load-chart", 0.5, 0.5)
        pointed = self.page.text("#load-readout")
        self.assertRegex(pointed, r"^At [\d.]+ s: .* live")
        self.page.value("document.querySelector('#load-chart').focus()")
        self.page.key("Home")
        first = self.page.text("#load-readout")
        self.page.key("ArrowRight")
        self.assertNotEqual(self.page.text("#load-readout"), first)

    def test_themes(self):
        def now():
            return self.page.value("[document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]")

        self.assertEqual(now()[0], "light")
        light = now()[1]
        self.page.dark(True)
        self.page.frames()
        self.assertEqual(now()[0], "dark")
        self.assertNotEqual(now()[1], light)
        self.page.click("#theme")
        self.assertEqual(now(), ["light", light])
        self.page.click("#theme")
        self.assertEqual(now()[0], "dark")
        self.page.click("#theme")
        self.page.dark(False)
        self.page.frames()
        self.assertEqual(now(), ["light", light])

    def test_colours(self):
        seen = {self.page.pixels("#rectangles")}
        for by in ("size", "life", "kernel", "stack", "kind"):
            self.page.choose("#colour", by)
            seen.add(self.page.pixels("#rectangles"))
            self.assertTrue(self.page.text("#layout-legend"))
        self.assertGreaterEqual(len(seen), 4)

    def test_narrow_screens(self):
        try:
            for width in (400, 320):
                self.page.size(width, 800)
                self.page.frames()
                self.assertLessEqual(self.page.value("document.documentElement.scrollWidth"), width)
                block = self.plans[0]["drawn"]["blocks"]["block"][self.largest()]
                self.page.click("#rectangles", *self.point(block))
                self.assertIn(self.name(block), self.page.text("#details"))
        finally:
            self.page.size(1440, 1000)
            self.page.frames()

    def test_all_that_can_be_used_has_a_name(self):
        nameless = self.page.value("""[...document.querySelectorAll('button, select, input, canvas[tabindex], [role=img], [role=treeitem], a, aside')].filter(one =>
            one.offsetParent !== null && !(one.getAttribute('aria-label') || one.textContent.trim() || (one.labels && one.labels.length))).map(one => one.outerHTML)""")
        self.assertEqual(nameless, [])
        self.assertEqual(self.page.value("[...document.querySelectorAll('[aria-labelledby], [aria-describedby]')].filter(one => !document.getElementById("
                                         "one.getAttribute('aria-labelledby') || one.getAttribute('aria-describedby'))).length"), 0)


@unittest.skipUnless(chromium.find(), "no Chromium (Debian's chromium-headless-shell or chromium)")
class OtherPages(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def trace(self, name, lines):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write("".join(f"{line} {1000 * at}\n" for at, line in enumerate(lines)))
        return path

    def test_names_of_files_are_no_markup(self):
        lines = 8 * ["Malloc 0xa0 1048576", "Mutable 0xa0 1048576", "Malloc 0xb0 99", "Read 0xa0 1048576", "Free 0xb0 99", "Free 0xa0 1048576"]
        path = self.trace("<img src=x onerror=alert(1)>.trace", lines)
        with chromium.Page(make(self.folder, path, "--time-budget", "0.2")) as page:
            self.assertEqual(page.text("h1"), "<img src=x onerror=alert(1)>.trace")
            self.assertEqual(page.value("document.images.length"), 0)
            self.assertEqual(page.value("document.title"), "<img src=x onerror=alert(1)>.trace – memopt report")
            self.assertEqual(page.errors, [])

    def test_without_an_iteration(self):
        path = self.trace("once.trace", ["Malloc 0xa0 1048576", "Mutable 0xa0 1048576", "Free 0xa0 1048576"])
        with chromium.Page(make(self.folder, path, codes=(4,))) as page:
            self.assertIn("Peak load1.00 MiB", page.text("#figures"))
            self.assertRegex(page.text("#notices"), "No iteration is shown: .+")
            self.assertRegex(page.text("#layout-lead"), "There is no layout to show")
            self.assertEqual(page.errors, [])

    def test_without_plans_within_limits(self):
        with chromium.Page(make(self.folder, os.path.join(RECORDINGS, "lstm_sgd.rec"), "--time-budget", "0")) as page:
            self.assertRegex(page.text("#limits .lead"), "There are no plans within limits: no time was given")
            self.assertEqual(page.value("document.querySelectorAll('#limit').length"), 0)
            page.key("Escape")
            page.click("#rectangles")
            page.key("l")
            self.assertIsNone(re.search("No block selected", page.text("#details")))
            self.assertEqual(page.errors, [])


@unittest.skipUnless(chromium.find(), "no Chromium (Debian's chromium-headless-shell or chromium)")
class Drawings(unittest.TestCase):
    """What `--plot` writes."""
    PLAN = {"format": "memopt-plan-1", "name": "<b>two", "period": 100000, "machine": {"out_bytes_per_ns": 40, "in_bytes_per_ns": 40},
            "blocks": [{"id": 5, "size": 2 << 20}, {"id": 9, "size": 2 << 20}],
            "ops": [["m", 5, 0], ["w", 5, 1000], ["x", -1, 2000], ["m", 9, 40000], ["w", 9, 41000], ["f", 9, 50000], ["x", -1, 51000], ["r", 5, 90000], ["f", 5, 91000]]}

    def drawn(self, text, *arguments):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        path, out = os.path.join(scratch.name, "file"), os.path.join(scratch.name, "plot.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([MEMOPTCTL, arguments[0], path, *arguments[1:], "--plot", out], capture_output=True, text=True, timeout=patience.seconds(100))
        self.assertEqual(done.returncode, 0, done.stderr)
        page = chromium.Page(out)
        self.addCleanup(page.__exit__)
        self.addCleanup(lambda: self.assertEqual(page.errors, []))
        return page

    def sections(self, page):
        return page.value("[...document.querySelectorAll('section')].map(one => one.id)")

    def test_a_plan(self):
        page = self.drawn(json.dumps(self.PLAN), "plan", "--limit", "2MiB", "--time-budget", "0.2", "--no-bound")
        self.assertEqual(self.sections(page), ["figures", "layout", "blocks", "about"])
        self.assertEqual(page.text("h1"), "<b>two")
        self.assertIn("This plan2.00 MiB50 % of the peak load, +27.9 µs an iteration, 28 %.", page.text("#figures"))
        page.value("document.querySelector('#rectangles').focus()")
        page.key("l")
        page.key("n")
        page.choose("#find", "block 5")
        page.click("#table tbody tr:first-child", 0.05)
        self.assertIn("copied out from", page.text("#details"))
        self.assertIsNone(page.value("document.querySelector('#colour option[value=stack]')"))

    def test_a_layout(self):
        page = self.drawn("id,lower,upper,size\n<i>a,100,103,4\nb,103,109,4\nc,100,109,4\n", "solve")
        self.assertEqual(self.sections(page), ["figures", "layout", "blocks", "about"])
        self.assertIn("Height8", page.text("#figures"))
        self.assertIn("time, from 100 on", page.text("#axes"))
        page.click("#table tbody tr:first-child", 0.05)
        self.assertIn("buffer ", page.text("#details h3"))
        self.assertEqual(page.text("#table tbody tr:first-child td:first-child"), "4")

    def test_a_comparison(self):
        page = self.drawn(json.dumps(self.PLAN), "plan", "--compare", "--strategies", "memopt,none", "--limits", "100%,50%,10%", "--time-budget", "0.2", "--no-bound")
        self.assertEqual(self.sections(page), ["figures", "comparison", "about"])
        self.assertEqual(page.value("[...document.querySelectorAll('#comparison-chart .line')].map(one => one.dataset.name)"), ["memopt", "none"])
        self.assertEqual(page.value("document.querySelector('#comparison-chart .line circle title').textContent"), "memopt: 2.00 MiB, 0.028 ms added")
        self.assertEqual(page.value("document.querySelectorAll('#comparison-table tbody tr').length"), page.value("document.querySelectorAll('#comparison-chart circle').length"))
        page.size(320, 800)
        page.frames()
        self.assertLessEqual(page.value("document.documentElement.scrollWidth"), 320)


if __name__ == "__main__":
    cases.main()
