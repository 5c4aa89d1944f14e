"""What the stand-ins for frameworks share. Their values mean nothing; that scripts ask for them in the right order, and that whoever runs the scripts
reads what they say, is what they are for.

STUB_CALLS: a file to which the name of every call is appended. STUB_NOISE: no value is ever the same again. STUB_HANG: the
framework whose import never returns. STUB_CRASH: the one whose import kills the process.
"""
import os
import signal
import time

_count = 0


def note(name):
    path = os.environ.get("STUB_CALLS")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(name + "\n")


def imported(name):
    note("import " + name)
    if os.environ.get("STUB_HANG") == name:
        time.sleep(3600)
    if os.environ.get("STUB_CRASH") == name:
        os.kill(os.getpid(), signal.SIGSEGV)


def value():
    """Another number each time, the same in each process."""
    global _count
    _count += 1
    return 1.0 / _count + (os.urandom(1)[0] + time.monotonic() if os.environ.get("STUB_NOISE") else 0)


class Array:
    """Stands for a tensor: any method or operator gives another one, and is noted."""

    dtype, shape = "float32", ()

    def item(self):
        return value()

    def __float__(self):
        return value()

    def tobytes(self):
        return repr(value()).encode()

    def split(self, *_, **__):
        return Array(), Array(), Array()

    def numel(self):
        return 1

    @property
    def T(self):
        return Array()

    def __setitem__(self, *_):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        note("array." + name)
        return lambda *_, **__: Array()


def _operator(name):
    def apply(self, *_):
        return Array()
    apply.__name__ = name
    return apply


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "matmul", "pow", "neg", "getitem", "gt", "iadd", "isub"):
    setattr(Array, f"__{_name}__", _operator(_name))


def makes(name, result=Array):
    """A function that gives a fresh `result` whatever it is given."""
    def call(*_, **__):
        note(name)
        return result()
    return call
