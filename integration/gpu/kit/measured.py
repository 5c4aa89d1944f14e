"""One program, run once, with everything that is counted beside it; and what becomes of that in a row of the table."""
import os

import agent
import memory
import processes

# What of the agent's answer goes into results.json.
KEPT = ("state", "reason", "memory", "plan", "stack_walker", "driver", "problems", "version")
BEFORE_A_PLAN = ("passthrough", "bootstrap", "recording")
ALLOCATIONS = ("Alloc", "Free", "Pool", "MemCreate", "MemMap", "Trim")


class Measured:
    def __init__(self, ended, peak, end, status, simulated):
        self.ended, self.status, self.simulated = ended, status, simulated
        self.peak = simulated.get("peak", peak)
        self.end = simulated.get("end", end)

    @property
    def losses(self):
        return [event.get("loss") for event in self.ended.events if event.get("event") == "iteration"]

    @property
    def bits(self):
        """What has to be equal: every loss, and the checksum at the end."""
        done = self.ended.event("done")
        if done or self.losses:
            return self.losses, (done or {}).get("checksum")
        lines = self.ended.output.strip().splitlines()
        return lines[-1] if lines else ""

    @property
    def missing(self):
        event = self.ended.event("missing")
        return event["what"] if event else None


def measure(setting, title, command, limit, environment, folder=None):
    if os.path.exists(setting.report):
        os.remove(setting.report)
    watch = agent.Watch()
    with memory.Sampler(setting.nvml) as sampler:
        def at_done(pid):
            watch(pid)
            return {"footprint": sampler.now()}

        ended = processes.run(command, limit, environment, folder, at_done, watch)
    setting.results.log(title, ended)
    simulated = memory.simulated_report(setting.report) if setting.simulator else {}
    return Measured(ended, sampler.peak, ended.at_done.get("footprint"), watch.last, simulated)


def compared(measured, native):
    """"same", "differ", or nothing where there is nothing to compare."""
    if not native or not native.ended.ok or not measured.ended.ok:
        return None
    return "same" if measured.bits == native.bits else "differ"


def row(case, variant, measured, bits=None, remark=""):
    done = measured.ended.event("done") or {}
    driver = done.get("driver_memory") or {}
    result = {"case": case, "variant": variant, "bits": bits, "seconds": round(measured.ended.seconds, 2),
              "footprint_peak": measured.peak, "footprint_end": measured.end, "driver_used": driver.get("used"),
              "seconds_per_iteration": done.get("seconds_per_iteration"), "framework_memory": done.get("framework_memory"),
              "iterations": len(measured.losses) or None, "checksum": done.get("checksum"), "start": measured.ended.event("start")}
    if measured.missing:
        remark = "missing: " + measured.missing
    elif not measured.ended.ok:
        remark = measured.ended.why()
    if measured.simulated.get("races"):
        remark = (remark + "; " if remark else "") + f"{measured.simulated['races']} races"
    status = measured.status
    if variant.startswith("memopt"):
        result["said"] = agent.said(measured.ended.errors)
        result["live_at"] = agent.live_at(measured.ended.errors)
        if status:
            plan = status.get("plan") or {}
            result["state"], result["deviations"] = status["state"], plan.get("deviations")
            # The line that a plan is live may be newer than the last answer.
            if result["live_at"] and status["state"] in BEFORE_A_PLAN:
                result["state"] = "planned"
            result["live_at"] = result["live_at"] or plan.get("iteration_at_live") or None
            result["memopt_footprint"] = plan.get("footprint")
            # Asked at the same moment only where the program waits at its end.
            if measured.ended.at_done and result["footprint_end"] is not None and plan.get("footprint") is not None:
                result["unseen"] = max(0, result["footprint_end"] - plan["footprint"])
            result["status"] = {key: status[key] for key in KEPT if key in status}
            result["allocation_calls"] = {name: calls for name, calls in status.get("calls", {}).get("entry_points", {}).items()
                                          if any(part in name for part in ALLOCATIONS)}
            if not remark and status.get("problems"):
                remark = "; ".join(str(problem.get("code")) for problem in status["problems"])
        elif not measured.missing and measured.ended.ok:
            # Short programs are over before they are asked.
            result["state"] = "planned" if result["live_at"] else None
            remark = remark or ("" if result["live_at"] else "over before memopt was asked, without a plan")
    result["remark"] = remark
    return result
