"""Recordings, reduced to an iteration, small enough to be kept as test data."""
import os
import re

import processes

MOST_BYTES = 300 << 10


# Where memopt's own choice for a framework leaves nothing to be seen.
PLAIN = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


def record(setting, name, command, environment):
    """A row; a second one if the program had to be told to allocate plainly."""
    if not _record(setting, name, "recording", command, environment) and name.startswith("torch_") and setting.results.left() > 2:
        _record(setting, name, "recording, no caching", command, environment | PLAIN)


def _record(setting, name, variant, command, environment):
    results = setting.results
    row = {"case": name, "variant": variant}
    good = False
    whole = os.path.join(setting.scratch, name + ".whole")
    reduced = results.path(name + ".rec")

    def step(title, words, limit):
        ended = processes.run(words, setting.limit(limit), environment)
        results.log(f"{name}, {variant}, {title}", ended)
        return ended

    done = step("record", [setting.memoptctl, "record", "-o", whole, "--force", "--", *command], setting.run_limit)
    if not os.path.exists(whole):
        row["remark"] = "nothing was recorded: " + (done.why() or done.errors.strip()[-200:])
    else:
        made = step("reduce", [setting.memoptctl, "reduce", whole, "-o", reduced, "--force", "--iterations", "1", "--hash-names"], 30)
        if not made.ok:
            row["remark"] = f"{os.path.getsize(whole) >> 10} KiB, not reduced: {made.why()}"
        else:
            size = os.path.getsize(reduced)
            plan = step("plan", [setting.memoptctl, "plan", reduced], 30)
            ratio = re.search(r"^footprint / peak load\s+(\S+)", plan.output, re.MULTILINE)
            row["remark"] = f"{size >> 10} KiB of {os.path.getsize(whole) >> 10}" + (f", planned to {ratio.group(1)}" if ratio else
                                                                                    f", not planned: {plan.why()}")
            good = bool(ratio)
            if size > MOST_BYTES:
                row["remark"] += f"; larger than the {MOST_BYTES >> 10} KiB wanted"
        os.remove(whole)
    results.row(row)
    return good
