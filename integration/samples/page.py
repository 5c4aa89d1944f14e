"""The table of docs/results/samples.md, and its summary."""
import dataclasses


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
        limit = f"{cell(self.limit)}, {self.limit_mib} MiB" if self.limit is not None else "-"
        equal = "-" if not self.ran or self.memopt is None else "no" if self.differs else "yes"
        note = (why or self.verified).replace("|", "\\|").replace("\n", " ")
        return f"| {self.path} | {cell(self.native)} | {cell(self.memopt)} | {limit} | {equal} | {note} |"


HEAD = "| sample | passes natively | under memopt | within a limit | equal | its verdict, or what is missing |\n|---|---|---|---|---|---|"


def summary(rows):
    """One line of counts."""
    ran = [row for row in rows if row.ran]
    limited = [row for row in ran if row.limit is not None]
    return (f"{len(rows)} samples: {sum(row.passes for row in rows)} pass natively and under memopt, {sum(row.limit == '' for row in limited)} of "
            f"{len(limited)} within a limit too; {sum(bool(row.differs) for row in rows)} differ; {sum(not row.passes for row in ran)} do not pass, "
            f"{len(rows) - len(ran)} left out")


def table(rows):
    return "\n".join([HEAD, *(row.text for row in rows)])
