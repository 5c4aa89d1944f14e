"""The facts in a few lines for people, from facts.json; whatever is missing there is missing here."""
import json


def _at(tree, *keys):
    for key in keys:
        if not isinstance(tree, dict) or key not in tree:
            return None
        tree = tree[key]
    return tree


def _microseconds(value):
    return "-" if value is None else f"{value / 1000:.1f}"


def _vmm(values):
    calls = ("create", "map", "set_access", "unmap", "release")
    for key, case in values.items():
        if not isinstance(case, dict) or "create_ns" not in case:
            continue
        yield (f"{case['mappings']} chunks of {case['chunk_mib']} MiB, median us a call: "
               + ", ".join(f"{call} {_microseconds(_at(case, call + '_ns', 'median'))}" for call in calls)
               + f"; access of all at once {_microseconds(case.get('set_access_all_at_once_ns_per_mapping'))} each")


def _under_load(values):
    undisturbed = _at(values, "kernel_undisturbed", "longest_gap_ns")
    for key, case in values.items():
        if not isinstance(case, dict) or "call_ns" not in case:
            continue
        gap = _at(case, "kernel", "longest_gap_ns")
        yield (f"{key} beside a kernel: median {_microseconds(_at(case, 'call_ns', 'median'))} us, max {_microseconds(_at(case, 'call_ns', 'max'))} us; "
               + ("the kernel outlasted the calls" if case.get("kernel_still_ran_after_the_last") else "the kernel was over first")
               + ("" if gap is None else f"; its longest gap {_microseconds(gap)} us, undisturbed {_microseconds(undisturbed)}"))


def _drains(values):
    waited, free = [], []
    for key, case in values.items():
        if isinstance(case, dict) and "kernel_was_over_after_the_call" in case and key != "nothing":
            (waited if case["kernel_was_over_after_the_call"] else free).append(key)
    yield "waited for the device: " + (", ".join(waited) or "none") + "; did not: " + (", ".join(free) or "none")


def _coherence(values):
    cases = {key: case for key, case in values.items() if isinstance(case, dict) and "words_different" in case}
    bad = [key for key, case in cases.items() if case["words_different"] or case.get("words_different_at_first_look")]
    rounds = sum(case["rounds"] for case in cases.values())
    yield f"{rounds} rounds of ordered access through two mappings: " + ("differences in " + ", ".join(bad) if bad else "no difference")
    old = _at(values, "within_one_grid_unordered", "words_that_looked_old")
    if old is not None:
        yield f"within one grid, unordered: {old} words looked old"


def _tensor_map(values):
    for key, case in values.items():
        if isinstance(case, dict) and "map" in case:
            yield (f"tensor map {key}: words that equal the address: {case['words_equal_to_the_address']}; "
                   + ("address bits are the same bits of word 0" if case["each_is_the_same_bit_of_word_0"] else "address bits lie otherwise, see the file"))


def _bandwidth(values):
    for key, case in values.items():
        if isinstance(case, dict) and "in_alone" in case:
            yield f"{key}, GB/s at best: " + ", ".join(f"{way} {_at(case, way, 'best_gb_per_s')}" for way in
                                                      ("in_alone", "out_alone", "in_with_out", "out_with_in", "in_beside_a_kernel"))


def _host_memory(values):
    for key, case in values.items():
        if isinstance(case, dict) and "cuMemHostAlloc_ns" in case:
            yield f"cuMemHostAlloc {key}: median {_microseconds(_at(case, 'cuMemHostAlloc_ns', 'median'))} us"


def _host_calls(values):
    found = [f"{key} {_at(case, 'median'):.0f}" for key, case in values.items() if isinstance(case, dict) and _at(case, "median") is not None]
    if found:
        yield "median ns on the host: " + ", ".join(found)


def _clock(values):
    step = _at(values, "two_events_in_a_row", "smallest_distance_ns")
    ratio = _at(values, "against_the_host_clock", "device_to_host")
    yield f"clock of events: step {step} ns, to the host's clock {ratio}"


def _kinds(part):
    return ", ".join(f"{kind} {both['cupti']['count']} of {both['cupti']['bytes']} bytes" for kind, both in part.items()
                     if kind not in ("missing_in_memopt", "missing_in_cupti", "unknown_in_memopt") and both["cupti"]["count"])


def _named(missing):
    names = [f"{name} ({number if isinstance(number, int) else str(number['count']) + ', ' + str(number['bytes']) + ' bytes'})" for name, number in missing.items()]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _completeness(values):
    for name, case in values.get("programs", {}).items():
        if case["verdict"] == "not compared":
            yield f"CUPTI beside memopt, {name}: not compared: {case['why']}"
            continue
        line = f"CUPTI beside memopt, {name}: {case['verdict']}; CUPTI saw {case['kernels']['cupti']} launches of {case['kernels']['names']} kernels"
        for part in "copies", "memsets":
            line += f"; {part}: " + (_kinds(case[part]) or "none")
        for side in "memopt", "cupti":
            for part in "kernels", "copies", "memsets":
                missing = case[part]["missing_in_" + side]
                if missing:
                    line += f"; not seen by {side}: {part}: {_named(missing)}"
        yield line


PARTS = (("access_completeness", _completeness), ("vmm_costs", _vmm), ("vmm_under_load", _under_load), ("free_drains", _drains), ("alias_coherence", _coherence), ("tensor_map", _tensor_map),
         ("pinned_bandwidth", _bandwidth), ("host_memory", _host_memory), ("host_calls", _host_calls), ("event_clock", _clock))


def of(path):
    """Lines; one that says why where there are none."""
    try:
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)["facts"]
    except (OSError, ValueError, KeyError) as error:
        return [f"no facts: {error}"]
    lines = []
    for name, part in PARTS:
        fact = facts.get(name, {})
        if fact.get("error"):
            lines.append(f"{name}: {fact['error'].splitlines()[0]}")
        try:
            lines += [line for line in part(fact.get("values", {})) if fact.get("values")]
        except (TypeError, KeyError, AttributeError) as error:
            lines.append(f"{name}: of another shape than expected: {error}")
    return lines
