#!/usr/bin/env python3
"""Prints, beside the published table of eight networks (Zhang et al. 2019, Table I), what their generated traces come to: natively, over
a caching pool, and under memopt, on the simulated device. Usage: published_table.py [NETWORK]...; TEST_BUILD names the build folder
(default: build/release of this checkout).

Footprint and virtual time are the simulated driver's counts, of two iterations after the twelfth: all are alike by then. The pool is a model (pool_models.py), by the same rules as
the caching pool of tools/quickstart, fed with the trace's mallocs and frees. Virtual time does not contain memopt's own code, which takes
about as long per allocation as agent_planned_benchmark says."""
import os
import sys

os.environ.setdefault("TEST_SOURCE", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
os.environ.setdefault("TEST_BUILD", os.path.join(os.environ["TEST_SOURCE"], "build", "release"))
sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "tools"))
from pool_models import PyTorchPool, pooled  # noqa: E402
from runs import WORKLOADS, PlanningCase, Run  # noqa: E402

MIB = 1 << 20
# Peak load in MiB, SmartPool's ratio, CnMem's ratio.
PUBLISHED = {"vgg11": (389, 1.013, 1.169), "vgg13": (509, 1.016, 1.115), "vgg16": (647, 1.012, 1.113), "vgg19": (785, 1.011, 1.072),
             "resnet18": (1452, 1.003, 1.033), "resnet34": (2824, 1.001, 1.028), "resnet50": (4418, 1.003, 1.030),
             "resnet101": (8367, 1.0005, 1.028)}


def measure(trace, planned):
    run = Run([os.path.join(WORKLOADS, "replay"), trace, "--iterations", 14, "--warm-up", 12], numbers=True, planned=planned, timeout=7200,
              CUDASIM_DEVICE="h200", CUDASIM_POISON="off", CUDASIM_CHECK="off")
    if run.code != 0:
        sys.exit(f"{trace}: {run.output}{run.errors}")
    return run


def main():
    names = sys.argv[1:] or list(PUBLISHED)
    for name in names:
        if name not in PUBLISHED:
            sys.exit(f"published_table: unknown network '{name}'; known: {' '.join(PUBLISHED)}")
    PlanningCase.setUpClass()
    print("             peak load (MiB)      footprint / peak load                           time per iteration")
    print("             published  here      SmartPool  CnMem   pool here  memopt  (plan)    native/memopt   live at")
    for name in names:
        trace = PlanningCase().net(name)
        its_peak, held = pooled(trace, PyTorchPool())
        ours, native = measure(trace, True), measure(trace, False)
        peak = ours.numbers["peak_load"]
        published, smart_pool, cnmem = PUBLISHED[name]
        slab = ours.plan_bytes
        print(f"{name:12} {published:9} {peak / MIB:7.1f}   {smart_pool:9.4f}  {cnmem:6.3f}  {held / its_peak:9.4f}  "
              f"{ours.numbers['footprint_after_warm_up'] / peak:6.4f}  {slab / peak if slab else 0:6.4f}  "
              f"{native.numbers['per_iteration']['virtual_ns'] / ours.numbers['per_iteration']['virtual_ns']:14.2f}  "
              f"{ours.live_at or 'never':>8}", flush=True)
    PlanningCase.doClassCleanups()


if __name__ == "__main__":
    main()
