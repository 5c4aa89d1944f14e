"""What run-all writes: results.json and table.txt, after each row anew, and log.txt. With facts.json and the recordings at most eight files, each below
a bound, so that they can be carried off any machine."""
import json
import os
import re
import time

MOST_FILES, MOST_BYTES = 8, 16 << 20
MOST_LOG = 4 << 20
NAME = re.compile(r"[A-Za-z0-9._-]+\Z")


class Results:
    def __init__(self, folder, limit):
        self.folder, self.begin, self.limit = folder, time.monotonic(), limit
        self._part_end = limit
        os.makedirs(folder, exist_ok=True)
        self.data = {"format": 1, "environment": {}, "parts": [], "rows": [], "notes": []}
        self.facts = []  # lines for people
        self._logged = 0
        open(self.path("log.txt"), "w", encoding="utf-8").close()

    def path(self, name):
        if not NAME.match(name):
            raise ValueError(f"{name!r} is no name for a result: letters, digits, '.', '_' and '-' only")
        return os.path.join(self.folder, name)

    def elapsed(self):
        return time.monotonic() - self.begin

    def begin_part(self, seconds):
        """From here on `left` ends after so many seconds, or with the whole."""
        self._part_end = min(self.limit, self.elapsed() + seconds)

    def left(self):
        """Seconds that may be used until this part has to be over."""
        return self._part_end - self.elapsed()

    def log(self, title, ended):
        """What a program printed goes to the log, shortened."""
        text = f"=== {title} ({ended.seconds:.1f} s, {ended.why() or 'ok'})\n"
        for name, stream in (("output", ended.output), ("errors", ended.errors)):
            if stream.strip():
                text += f"--- {name}\n" + (stream if len(stream) <= 20000 else stream[:8000] + "\n[…]\n" + stream[-12000:]).rstrip() + "\n"
        if self._logged + len(text) > MOST_LOG:
            text = text[:200] + "[the log is full]\n"
        self._logged += len(text)
        with open(self.path("log.txt"), "a", encoding="utf-8", errors="replace") as file:
            file.write(text)

    def note(self, text):
        self.data["notes"].append(text)
        print(f"   {text}", flush=True)
        self.save()

    def row(self, row):
        self.data["rows"].append(row)
        self.save()
        print(f"   {self.elapsed():5.0f} s  {line_of(row)}", flush=True)

    def save(self):
        self.data["seconds"] = round(self.elapsed(), 1)
        for name, text in (("results.json", json.dumps(self.data, indent=1) + "\n"), ("table.txt", self.report())):
            beside = self.path(name + ".new")
            with open(beside, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            os.replace(beside, self.path(name))

    def report(self):
        return table(self.data["rows"]) + "".join("\n" + line for line in self.facts) + ("\n" if self.facts else "")

    def check(self):
        """Removes what is more or larger than can be carried off; says so."""
        names = sorted(os.listdir(self.folder), key=lambda name: (name not in ("results.json", "table.txt", "facts.json", "log.txt"), name))
        for index, name in enumerate(names):
            path = os.path.join(self.folder, name)
            if os.path.isfile(path) and (index >= MOST_FILES or os.path.getsize(path) > MOST_BYTES or not NAME.match(name)):
                self.note(f"{name} is left out: too many files, too large, or of an odd name")
                os.remove(path)


def mib(value):
    return "-" if value is None else f"{value / (1 << 20):,.0f}"


def _milliseconds(seconds):
    return "-" if seconds is None else f"{1000 * seconds:.2f}"


COLUMNS = (
    ("case", lambda row: row["case"]),
    ("variant", lambda row: row["variant"]),
    ("bits", lambda row: row.get("bits") or "-"),
    ("peak MiB", lambda row: mib(row.get("footprint_peak"))),
    ("end MiB", lambda row: mib(row.get("footprint_end"))),
    ("driver MiB", lambda row: mib(row.get("driver_used"))),
    ("ms/iteration", lambda row: _milliseconds(row.get("seconds_per_iteration"))),
    ("state", lambda row: row.get("state") or "-"),
    ("live at", lambda row: str(row["live_at"]) if row.get("live_at") else "-"),
    ("deviations", lambda row: str(row["deviations"]) if row.get("deviations") is not None else "-"),
    ("memopt MiB", lambda row: mib(row.get("memopt_footprint"))),
    ("unseen MiB", lambda row: mib(row.get("unseen"))),
    ("remark", lambda row: row.get("remark") or ""),
)


def line_of(row):
    return f"{row['case']} {row['variant']}: " + (row.get("remark") or "ok") + (f", bits {row['bits']}" if row.get("bits") else "")


def table(rows):
    cells = [[title for title, _ in COLUMNS]] + [[text(row) for _, text in COLUMNS] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]
    return "\n".join(lines) + """

bits: "repeats" native runs twice with equal losses and weights; "same" as native; "differ". peak, end: increase of the device's used memory by NVML
(on the simulated driver: what it holds), at most and when the iterations are done. driver: total - free as cuMemGetInfo tells the program.
memopt: what memopt says it holds. unseen (provisional: it includes the context and loaded code): end - memopt.
"""
