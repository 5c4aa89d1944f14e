"""Whether memopt's recording and CUPTI tell of the same operations: one fact of facts.json.

Whole operations are compared: kernels by name, copies by direction, memsets; their number and bytes. That a kernel touches only what memopt found in its
parameters is not shown by this: CUPTI's activities have no addresses.
"""
import json
import os
import time

import cupti
import programs

NAME = "access_completeness"
QUESTION = "Is each kernel, copy and memset that CUPTI sees in memopt's recording, and the other way round?"
HOW = ("own programs under memoptctl record, with CUPTI's activities counted in the same process; launches by kernel's name, copies by direction, memsets, "
       "number and bytes of each; not the addresses that kernels touch")
MOST_NAMED = 40  # kernels that are named, on either side
NOTHING = {"count": 0, "bytes": 0}


def _missing(wanted, given):
    """What `wanted` has more of, the most first, not too many."""
    missing = {name: number - given.get(name, 0) for name, number in wanted.items() if number > given.get(name, 0)}
    return dict(sorted(missing.items(), key=lambda one: (-one[1], one[0]))[:MOST_NAMED])


def kernels(seen, recorded):
    named = {}
    for kernel in recorded["kernels"]:
        named[kernel["name"]] = named.get(kernel["name"], 0) + kernel["launches"]
    theirs = seen["kernels"]
    return {"cupti": sum(theirs.values()), "memopt": sum(named.values()), "names": len(set(theirs) | set(named)),
            "missing_in_memopt": _missing(theirs, named), "missing_in_cupti": _missing(named, theirs)}


def _amount(theirs, ours):
    return {"cupti": dict(theirs), "memopt": dict(ours)}


def _judged(amounts, loose):
    """Adds what is missing on either side to `amounts` (by kind); `loose` are operations of memopt that may be of any kind."""
    result = dict(amounts)
    for side, other in ("memopt", "cupti"), ("cupti", "memopt"):
        missing = {}
        for kind, both in amounts.items():
            less = {key: both[other][key] - both[side][key] for key in NOTHING}
            if less["count"] > 0 or less["bytes"] > 0:
                missing[kind] = {key: max(0, number) for key, number in less.items()}
        result["missing_in_" + side] = missing
    if loose["count"]:
        lacking = {key: sum(one[key] for one in result["missing_in_memopt"].values()) for key in NOTHING}
        result["unknown_in_memopt"] = dict(loose)
        if all(lacking[key] == loose[key] for key in NOTHING):
            result["missing_in_memopt"] = {}
        elif any(loose[key] > lacking[key] for key in NOTHING):
            result["missing_in_cupti"]["unknown"] = {key: max(0, loose[key] - lacking[key]) for key in NOTHING}
    return result


def copies(seen, recorded):
    theirs, ours = seen["copies"], dict(recorded["copies"])
    loose = ours.pop("unknown", NOTHING)
    kinds = sorted(set(theirs) | set(ours))
    return _judged({kind: _amount(theirs.get(kind, NOTHING), ours.get(kind, NOTHING)) for kind in kinds}, loose)


def memsets(seen, recorded):
    ours = {"count": recorded["operations"]["memset"], "bytes": recorded["set_bytes"]}
    return _judged({"all": _amount(seen["sets"], ours)}, NOTHING)


def _pieces(part):
    """Only the number differs, not the bytes: an operation in several pieces."""
    return all(not one["bytes"] for side in ("memopt", "cupti") for one in part["missing_in_" + side].values())


def compare(seen, recorded):
    """The answer for one program. verdict: "equal"; "equal bytes" where only the number of copies or memsets differs; "different"; "not compared"."""
    result = {"kernels": kernels(seen, recorded), "copies": copies(seen, recorded), "memsets": memsets(seen, recorded), "cupti_version": seen["cupti"]}
    holes = [text for text, number in ((f"CUPTI dropped {seen['dropped']} records", seen["dropped"]),
                                       (f"{seen['failures']} of CUPTI's buffers could not be read", seen["failures"]),
                                       (f"memopt's recording lacks {recorded['missing']} records", recorded["missing"]),
                                       ("memopt's recording is not whole", not recorded["whole"])) if number]
    differing = [name for name in ("kernels", "copies", "memsets") if result[name]["missing_in_memopt"] or result[name]["missing_in_cupti"]]
    if holes:
        result["verdict"], result["why"] = "not compared", "; ".join(holes)
    elif not seen["kernels"] and not recorded["kernels"]:
        result["verdict"], result["why"] = "not compared", "neither saw a kernel"
    elif not differing:
        result["verdict"] = "equal"
    elif "kernels" not in differing and all(_pieces(result[name]) for name in differing):
        result["verdict"] = "equal bytes"
    else:
        result["verdict"] = "different"
    return result


def _chosen(setting):
    """The programs with the shared runtime; with the static one where the machine lacks it."""
    shapes = {"digits_cnn": ["--epochs", "1" if setting.small else "3", *(["--batch", "96", "--width", "2"] if setting.small else [])]}
    for name in "digits_cnn", "vector_runtime", "vector_driver", "vector_async":
        if not setting.wants(name):
            continue
        shape = shapes.get(name) or (["--elements", "4096"] if setting.small else ["--iterations", "10" if setting.simulator else "100"])
        unable = ""
        for one in (name,) if name == "vector_driver" else (name, name + "_static"):
            program = programs.Program(one, [setting.file("workloads", one), *shape], one, runtime=one == name != "vector_driver")
            unable = programs.unable_to_run(setting, program)
            if not unable:
                break
        yield program, unable


def _one(setting, program, unable, path):
    if unable:
        return {"verdict": "not compared", "why": unable}
    observed = cupti.observe(setting, program.name, program.command, path, program.runtime)
    if observed.failure:
        return {"verdict": "not compared", "why": observed.failure, "injected_by": observed.way}
    return compare(observed.seen, observed.recorded) | {"injected_by": observed.way}


def ask(setting):
    """Adds the fact to facts.json, after each program anew."""
    begin = time.monotonic()
    fact = {"question": QUESTION, "how": HOW, "seconds": 0, "values": {}}
    chosen = list(_chosen(setting))
    if not chosen:
        return
    try:
        path, version = cupti.choose(setting)
        fact["values"] = {"cupti": path, "cupti_version": version, "programs": {}}
        for program, unable in chosen:
            if setting.results.left() < 1:
                fact["values"]["programs"][program.name] = {"verdict": "not compared", "why": "the time for it is over"}
            else:
                fact["values"]["programs"][program.name] = _one(setting, program, unable, path)
            found = fact["values"]["programs"][program.name]
            print(f"   {program.name}: {found['verdict']}" + (f": {found['why']}" if found.get("why") else ""), flush=True)
            _write(setting, fact, begin)
    except cupti.Unavailable as error:
        fact["error"] = str(error)
        print(f"   {error}", flush=True)
    _write(setting, fact, begin)


def _write(setting, fact, begin):
    """Beside whatever facts there are."""
    path = setting.results.path("facts.json")
    try:
        with open(path, encoding="utf-8") as file:
            everything = json.load(file)
    except (OSError, ValueError):
        everything = {"format": 1, "small": setting.small, "facts": {}}
    fact["seconds"] = round(time.monotonic() - begin, 3)
    everything["facts"][NAME] = fact
    with open(path + ".new", "w", encoding="utf-8", errors="replace") as file:
        json.dump(everything, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)
