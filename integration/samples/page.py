"""The table of docs/results/samples.md, and its summary."""
import dataclasses

# What outcome.py says of a run that was stopped.
TOO_LONG = "takes longer than its limit"


@dataclasses.dataclass
class Row:
    """What is known of a sample: '' in `native`, `memopt` or `limit` is a pass, None that it was not run so."""

    path: str
    native: str | None = None
    memopt: str | None = None
    limit: str | None = None
    differs: str = ""
    left_out: str = ""
    limit_mib: int = 0
    verified: str = ""
    # What a run of it had at most, and the day.
    limit_s: float = 0
    date: str = ""
    # A row that was kept (kept.py), of another build or of another entry of the list.
    stale: bool = False

    @property
    def ran_out(self):
        """A run of it took longer than its limit."""
        return TOO_LONG in (self.native, self.memopt, self.limit)

    @property
    def ran(self):
        return self.native is not None

    @property
    def passes(self):
        return self.native == "" and self.memopt == "" and self.limit in (None, "") and not self.differs

    @property
    def text(self):
        def cell(failure):
            return "-" if failure is None else "no" if failure else "yes"

        why = self.left_out or self.native or self.memopt or self.limit or (f"differs: {self.differs}" if self.differs else "")
        if self.ran_out and self.limit_s:
            why = f"{why} ({self.limit_s:.0f} s)"
        if not self.ran and not self.left_out:
            why = "not run yet"
        limit = f"{cell(self.limit)}, {self.limit_mib} MiB" if self.limit is not None else "-"
        equal = "-" if not self.ran or self.memopt is None else "no" if self.differs else "yes"
        note = "; ".join(part for part in (why or self.verified, "of another build" if self.stale else "") if part)
        note = note.replace("|", "\\|").replace("\n", " ")
        return f"| {self.path} | {cell(self.native)} | {cell(self.memopt)} | {limit} | {equal} | {note} |"


HEAD = "| sample | passes natively | under memopt | within a limit | equal | its verdict, or what is missing |\n|---|---|---|---|---|---|"


def summary(rows):
    """One line of counts."""
    ran = [row for row in rows if row.ran]
    limited = [row for row in ran if row.limit is not None]
    out = [row for row in ran if row.ran_out]
    left_out = sum(bool(row.left_out) for row in rows)
    parts = [f"{len(rows)} samples: {sum(row.passes for row in rows)} pass natively and under memopt, {sum(row.limit == '' for row in limited)} of "
             f"{len(limited)} within a limit too", f"{sum(bool(row.differs) for row in rows)} differ",
             f"{sum(not row.passes for row in ran) - len(out)} do not pass, {len(out)} take longer than their limit, "
             f"{len(rows) - len(ran) - left_out} have not been run, {left_out} left out"]
    if stale := sum(row.stale for row in ran):
        parts.append(f"{stale} rows are of another build")
    if dates := sorted(row.date for row in ran if row.date):
        parts.append(f"run on {dates[0]}" if dates[0] == dates[-1] else f"run from {dates[0]} to {dates[-1]}")
    return "; ".join(parts)


def table(rows):
    return "\n".join([HEAD, *(row.text for row in rows)])
