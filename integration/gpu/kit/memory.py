"""Device memory as NVML counts it, sampled beside a program; on the simulated driver as its own report says."""
import ctypes
import json
import os
import threading
import time

SETTLE = 3  # seconds to wait for the device to let go of a program that has ended
NOISE = 32 << 20

class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Nvml:
    """The whole device: whoever else uses it is in the numbers too, which is why they are taken as the increase since before the program."""

    def __init__(self):
        self.failure = None
        self._device = ctypes.c_void_p()
        try:
            self._library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as error:
            self.failure = str(error)
            return
        self._lowest = None
        code = self._library.nvmlInit_v2() or self._library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._device))
        if code:
            self.failure = f"NVML: error {code}"

    def used(self):
        if self.failure:
            return None
        memory = _Memory()
        return memory.used if self._library.nvmlDeviceGetMemoryInfo(self._device, ctypes.byref(memory)) == 0 else None


    def settled(self):
        """What is used once programs that have ended are gone from the device, as far as that comes soon."""
        used = self.used()
        if used is None:
            return None
        self._lowest = used if self._lowest is None else min(self._lowest, used)
        deadline = time.monotonic() + SETTLE
        while used > self._lowest + NOISE and time.monotonic() < deadline:
            time.sleep(0.05)
            used = self.used()
        return used


class Sampler:
    """Footprint of what runs while it is entered: `peak`, and `now()`. None where NVML is not there."""

    INTERVAL = 0.01

    def __init__(self, nvml):
        self._nvml, self.peak, self._base = nvml, None, nvml.settled() if nvml else None
        self._ended = threading.Event()

    def now(self):
        used = self._nvml.used() if self._base is not None else None
        return None if used is None else max(0, used - self._base)

    def _sample(self):
        while not self._ended.wait(self.INTERVAL):
            found = self.now()
            if found is not None:
                self.peak = max(self.peak or 0, found)

    def __enter__(self):
        self._thread = threading.Thread(target=self._sample, daemon=True)
        if self._base is not None:
            self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        if self._base is not None:
            self._thread.join()


def simulated_report(path):
    """{"peak": …, "end": …} of a CUDASIM_REPORT file: held at most, and at most in the last third of the run. Empty where there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        os.remove(path)
    except (OSError, ValueError):
        return {}
    pieces = report.get("held_history", {}).get("peaks") or [report["counters"]["bytes_held_peak"]]
    return {"peak": report["counters"]["bytes_held_peak"], "end": max(pieces[2 * len(pieces) // 3:]),
            "races": report["counters"].get("races", 0), "unknown_kernels": report["counters"].get("unknown_kernels", 0)}
