#!/usr/bin/env python3
"""Prints how large the page of so many blocks is, and how long a headless Chromium takes for it: until something is seen, until all can be
used, for a step of zoom, and to find what is under the pointer. Times are this machine's, without a GPU.

usage: paint_times.py MEMOPTCTL [BLOCKS (100000)]
"""
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import chromium  # noqa: E402
import traces  # noqa: E402

STEP = """(async () => {
    const canvas = document.querySelector('#rectangles'), times = [];
    const frame = () => new Promise(done => requestAnimationFrame(done));
    for (const key of '++++++++----------') {
        await frame();
        const begin = performance.now();
        canvas.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
        await frame();
        times.push(performance.now() - begin);
    }
    return times;
})()"""
POINT = """(() => {
    const canvas = document.querySelector('#rectangles'), box = canvas.getBoundingClientRect(), begin = performance.now();
    for (let i = 0; i < 50; ++i) {
        canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.x + 100 + 10 * i, clientY: box.y + 5 * i, bubbles: true}));
    }
    return (performance.now() - begin) / 50;
})()"""


def main():
    if len(sys.argv) < 2 or not chromium.find():
        sys.exit(__doc__ if len(sys.argv) < 2 else "no Chromium (Debian's chromium-headless-shell or chromium)")
    blocks = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        trace, path = os.path.join(folder, "blocks.trace"), os.path.join(folder, "report.html")
        traces.write(trace, blocks)
        subprocess.run([sys.argv[1], "report", trace, "-o", path, "--time-budget", "0"], check=True)
        print(f"blocks              {blocks}\npage                {os.path.getsize(path) / 1e6:.1f} MB")
        with chromium.Page(path) as page:
            paint = page.value("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            ready = page.value("performance.getEntriesByName('memopt ready')[0].startTime")
            page.place("#rectangles")
            times = page.value(STEP)
            print(f"first paint         {paint:.0f} ms\nall of it           {ready:.0f} ms\n"
                  f"a step of zoom      {statistics.median(times):.0f} ms, at most {max(times):.0f} ms\nunder the pointer   {page.value(POINT):.1f} ms")


if __name__ == "__main__":
    main()
