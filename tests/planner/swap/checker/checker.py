"""The checker of plans that shares no code with ours: MEMOPT_SHARED/tools/check_plan.py."""
import importlib.util
import os

PATH = os.path.join(os.environ.get("MEMOPT_SHARED", ""), "tools", "check_plan.py")


def load(case):
    """Skips the test case where the checker is missing."""
    if not os.path.exists(PATH):
        case.skipTest("MEMOPT_SHARED names no folder with tools/check_plan.py")
    spec = importlib.util.spec_from_file_location("check_plan", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
