#!/usr/bin/env python3
"""Takes the pictures of docs/images/report-*.png: the page of a recording of PyTorch's GPT (tests/data/recordings), as a headless Chromium shows it.

usage: pictures.py MEMOPTCTL FOLDER
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
import chromium  # noqa: E402
import page_data  # noqa: E402

RECORDING = os.path.join(HERE, "..", "..", "..", "data", "recordings", "gpt.rec")
WIDTH = 1280


def part(page, first, last):
    """Of the page, from the top of an element to the end of another: (x, y, width, height)."""
    top, bottom = page.value(f"""[document.querySelector('{first}').getBoundingClientRect().top + scrollY,
                                  document.querySelector('{last}').getBoundingClientRect().bottom + scrollY]""")
    return 0, top - 14, WIDTH, bottom - top + 28


def moved(path):
    """The record of the malloc of the largest block that the wanted plan copies out."""
    with open(path, encoding="utf-8") as file:
        iteration = page_data.of(file.read())["iteration"]
    plan = next(plan for plan in iteration["plans"] if plan["wanted"])
    blocks = iteration["blocks"]
    return int(blocks["number"][max((block for block in plan["drawn"]["copies"]["block"] if not blocks["flags"][block] & 1), key=lambda block: blocks["bytes"][block])])


def main():
    if len(sys.argv) != 3 or not chromium.find():
        sys.exit(__doc__ if len(sys.argv) != 3 else "no Chromium (Debian's chromium-headless-shell or chromium)")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.html")
        subprocess.run([sys.argv[1], "report", RECORDING, "-o", path, "--machine", "a100-40g", "--limit", "80%", "--time-budget", "30"], check=True)
        with chromium.Page(path, WIDTH, 1000) as page:
            page.picture(os.path.join(sys.argv[2], "report-overview.png"), part(page, ".title", "#limits"))
        with chromium.Page(path, WIDTH, 1000, dark=True) as page:
            page.choose("#find", f"record {moved(path)}")
            page.click("#table tbody tr:first-child", 0.05)
            page.value("document.activeElement.blur()")
            page.hover("h1")
            page.picture(os.path.join(sys.argv[2], "report-layout.png"), part(page, "#layout", "#layout"))


if __name__ == "__main__":
    main()
