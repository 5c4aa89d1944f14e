"""Where memopt's programs and its library are: in this package."""
import os

_FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_files")


def _find(*path):
    found = os.path.join(_FILES, *path)
    if not os.path.isfile(found):
        raise FileNotFoundError(f"{found} is missing: this is no installed memopt (pip install memopt-*.whl)")
    return found


def memoptctl():
    """The path of the command line, a program."""
    return _find("bin", "memoptctl")


def library():
    """The path of the library that LD_PRELOAD can name."""
    return _find("lib", "libmemopt.so")
