"""Programs of real frameworks: native twice (do they repeat bit by bit at all?), with memopt, then the frameworks' own ways to hold less memory."""
import measured

# Would decide what this is to find out.
SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING", "XLA_PYTHON_CLIENT_ALLOCATOR",
            "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_FLAGS", "CUDA_LAUNCH_BLOCKING", "GPU_KIT_OFFER")
ITERATIONS = 30
OFFER = "GPU_KIT_OFFER"  # what a PyTorch script does of itself to hold less (torch_setup.py)

_TORCH = (("expandable segments", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, False),
          ("cudaMallocAsync", {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}, False),
          ("memopt, no caching", {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, True))
# Script, and variants beside native and memopt: name, environment, with memopt.
CASES = (("torch_resnet50", _TORCH), ("torch_gpt", _TORCH), ("torch_lstm", _TORCH),
         ("jax_mlp", (("platform allocator", {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, False),
                      ("no preallocation", {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, False))),
         ("triton_kernel", ()),
         ("cupy_mlp", (("no pool", {"GPU_KIT_CUPY_POOL": "off"}, False), ("memopt, no pool", {"GPU_KIT_CUPY_POOL": "off"}, True))))


class Frameworks:
    def __init__(self, setting):
        self._setting = setting
        self._native = {}
        self._memopt = {}

    def once(self, case, variant, extra, shim):
        setting = self._setting
        command = [setting.python, setting.file("frameworks", case + ".py"), "--hold", "--iterations", str(3 if setting.small else ITERATIONS),
                   *(["--small"] if setting.small else [])]
        environment = setting.environment({**{name: None for name in SETTINGS}, **extra}, shim=shim)
        native = self._native.get(case)
        # A program that hangs costs the ones behind it: it gets what the native run makes likely.
        limit = setting.limit(3 * native.ended.seconds + setting.run_limit / 4 if native else setting.run_limit)
        return measured.measure(setting, f"{case}, {variant}", command, limit, environment)

    def native(self, case):
        """Natively, run now if it was not yet; None, and a row that says why, where it can't run."""
        if case not in self._native:
            native = self.once(case, "native", {}, False)
            if native.missing or not native.ended.ok:
                self._setting.results.row(measured.row(case, "native", native))
                return None
            self._native[case] = native
        return self._native[case]

    def memopt(self, case):
        """With memopt and no limit, run now if it was not yet."""
        if case not in self._memopt:
            self._memopt[case] = self.once(case, "memopt", {}, True)
        return self._memopt[case]

    def first(self):
        """Every case native, native again and with memopt."""
        for case in (case for case, _ in CASES if self._setting.wants(case)):
            native = self.native(case)
            if native is None:
                continue
            again = self.once(case, "native again", {}, False)
            repeats = measured.compared(again, native)
            self._setting.results.row(measured.row(case, "native", native, "repeats" if repeats == "same" else repeats,
                                                   "" if again.ended.ok else "again: " + again.ended.why()))
            shimmed = self.memopt(case)
            self._setting.results.row(measured.row(case, "memopt", shimmed, measured.compared(shimmed, native)))

    def others(self):
        for case, variants in CASES:
            if case not in self._native:
                continue
            for variant, extra, shim in variants:
                found = self.once(case, variant, extra, shim)
                self._setting.results.row(measured.row(case, variant, found, measured.compared(found, self._native[case])))

    def recorded(self):
        """(case, command, environment) of what is worth a recording here."""
        setting = self._setting
        for case in (case for case, _ in CASES if case.startswith("torch_") and case in self._native):
            command = [setting.python, setting.file("frameworks", case + ".py"), "--iterations", "12", *(["--small"] if setting.small else [])]
            yield case, command, setting.environment({name: None for name in SETTINGS})
