#!/usr/bin/env python3
"""Draws what a command printed (standard input) as an SVG of a terminal (standard output).

usage: draw_terminal.py COMMAND < TEXT > PICTURE.svg
Renew the README's picture by: tools/quickstart --picture docs/images/quickstart.svg
"""
import sys
from xml.sax.saxutils import escape

CHARACTER_WIDTH, LINE_HEIGHT, MARGIN, BAR = 7.9, 19, 18, 30
STYLE = ("text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d7dce2;white-space:pre}"
         ".command{fill:#8fd18f}.heading{fill:#ffffff;font-weight:bold}.rule{fill:#5c6470}.word{fill:#9aa4b0}")


def is_rule(line):
    return bool(line) and not line.strip("─ ")


def draw(command, text):
    lines = [f"$ {command}"] + text.rstrip("\n").split("\n")
    columns = max(len(line) for line in lines)
    width = round(2 * MARGIN + columns * CHARACTER_WIDTH)
    height = BAR + MARGIN + len(lines) * LINE_HEIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
           f"<title>{escape(command)}</title>", f"<style>{STYLE}</style>",
           f'<rect width="{width}" height="{height}" rx="8" fill="#1d2127"/>']
    for n, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        out.append(f'<circle cx="{MARGIN + 4 + 18 * n}" cy="{BAR / 2:g}" r="5" fill="{colour}"/>')
    rules = [n for n, line in enumerate(lines) if is_rule(line)]
    for n, line in enumerate(lines):
        if not line.strip():
            continue
        if n == 0:
            kind = "command"
        elif n in rules:
            kind = "rule"
        elif rules and n < rules[0]:
            kind = "heading"
        elif len(rules) > 1 and rules[0] < n < rules[-1]:
            kind = ""
        else:
            kind = "word"
        # textLength keeps columns aligned whatever font the viewer has.
        length = len(line.rstrip()) * CHARACTER_WIDTH
        out.append(f'<text x="{MARGIN}" y="{BAR + MARGIN / 2 + n * LINE_HEIGHT + 5:g}" xml:space="preserve" textLength="{length:.1f}" '
                   f'lengthAdjust="spacingAndGlyphs"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{escape(line.rstrip())}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    text = sys.stdin.read()
    if not text.strip():
        sys.exit("draw_terminal.py: nothing to draw: standard input is empty")
    sys.stdout.write(draw(sys.argv[1], text))


if __name__ == "__main__":
    main()
