"""Programs in less memory than they need: with memopt within parts of their peak load, and by what PyTorch itself offers, natively."""
import frameworks
import measured
import programs

PARTS = (100, 80, 60, 50)
SMALL_PARTS = (60,)
OWN = "replay vgg11"
FRAMEWORKS = ("torch_resnet50", "torch_gpt")
# What the scripts do of themselves (frameworks/torch_setup.py).
OFFERS = ("save_on_cpu", "checkpointing")


def said(status):
    """Of the agent's answer, how a limit was kept, in a few words."""
    swaps = (status or {}).get("swaps") or {}
    if not swaps.get("limit"):
        return ""
    planned = swaps.get("planned") or {}
    held, limit = swaps.get("held_peak", 0), swaps["limit"]
    text = f"limit {limit / 2**20:.0f} MiB, {held / 2**20:.0f} held at most"
    if swaps.get("beyond"):
        text += f", passed by {swaps['beyond'] / 2**20:.1f}"
    if planned.get("swaps"):
        expected = (planned["period_ns"] + planned["added_ns"]) / 1e6
        text += f"; {planned['swaps']} planned swaps an iteration, {expected:.2f} ms expected"
        if planned.get("measured_ns"):
            text += f", {planned['measured_ns'] / 1e6:.2f} taken"
        odd = sum(planned.get(name, 0) for name in ("left_out", "late", "unplanned"))
        text += f", {odd} of {planned.get('out', 0) + odd} not as planned"
    elif swaps.get("copied_out"):
        text += "; on demand"
    return text


def row(case, variant, found, native):
    made = measured.row(case, variant, found, measured.compared(found, native))
    swaps = said(found.status)
    if swaps:
        made["remark"] = swaps + ("; " + made["remark"] if made["remark"] else "")
        made["swaps"] = found.status["swaps"]
    return made


class Limits:
    def __init__(self, setting, kit):
        self._setting, self._kit = setting, kit

    def run(self):
        setting = self._setting
        for program in programs.named(setting, OWN):
            once = lambda variant, extra, shim, program=program: programs.once(setting, program, variant, shim, extra)  # noqa: E731
            self._within(program.name, once, once("native", {}, False), once("memopt", {}, True), ())
        for case in (case for case in FRAMEWORKS if setting.wants(case)):
            native = self._kit.native(case)
            if native is not None:
                self._within(case, lambda variant, extra, shim, case=case: self._kit.once(case, variant, extra, shim), native,
                             self._kit.memopt(case), OFFERS)

    def _within(self, case, once, native, whole, offers):
        """`whole`: the run with memopt and no limit."""
        results = self._setting.results
        for offer in offers:
            results.row(row(case, offer, once(offer, {frameworks.OFFER: offer}, False), native))
        plan = (whole.status or {}).get("plan") or {}
        results.row(row(case, "memopt, no limit", whole, native))
        if not plan.get("peak_load"):
            results.note(f"{case}: memopt was not asked for its peak load before it was over: nothing is limited")
            return
        for part in SMALL_PARTS if self._setting.small else PARTS:
            limit = plan["peak_load"] * part // 100
            results.row(row(case, f"memopt, {part} %", once(f"memopt, {part} %", {"MEMOPT_LIMIT": str(limit)}, True), native))
