"""Is there a real GPU, and how much of its memory is in use: the two questions quickstart asks without the toolkit's help."""
import ctypes
import subprocess
import sys
import threading
import time

_PROBE = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
if hasattr(driver, "cudasim_counters"):
    sys.exit("the driver in the library path is the simulated one")
count = ctypes.c_int(0)
code = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
if code or not count.value:
    sys.exit(f"the driver says {code}" if code else "the driver has no device")
name = ctypes.create_string_buffer(256)
driver.cuDeviceGetName(name, 256, 0)
print(name.value.decode(errors="replace"))
"""


def find():
    """(name of device 0, None), or (None, why there is none). Asked in a process of its own: drivers have been seen to crash."""
    probe = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if probe.returncode == 0 and probe.stdout.strip():
        return probe.stdout.strip(), None
    lines = probe.stderr.strip().splitlines()
    return None, lines[-1].removeprefix("OSError: ") if lines else f"the driver ended the probe with code {probe.returncode}"


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class MemorySampler:
    """Largest increase of the device's used memory by NVML's count, sampled. Everything on the device is in it, other programs too."""

    INTERVAL = 0.005

    def __init__(self):
        self.peak = None
        self._base = None
        self._device = ctypes.c_void_p()
        self._ended = threading.Event()
        self._thread = None
        try:
            self._nvml = ctypes.CDLL("libnvidia-ml.so.1")
            ready = self._nvml.nvmlInit_v2() == 0 and self._nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._device)) == 0
        except OSError:
            ready = False
        if ready:
            self._base = self._used()

    def _used(self):
        memory = _Memory()
        return memory.used if self._nvml.nvmlDeviceGetMemoryInfo(self._device, ctypes.byref(memory)) == 0 else None

    def _sample(self):
        while not self._ended.is_set():
            used = self._used()
            if used is not None:
                self.peak = max(self.peak or 0, used - self._base)
            time.sleep(self.INTERVAL)

    def __enter__(self):
        if self._base is not None:
            self._thread = threading.Thread(target=self._sample, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        if self._thread:
            self._thread.join()
