"""memopt for Python: unmodified CUDA programs, less GPU memory.

    python -m memopt run train.py     trains under memopt; `python -m memopt --help` says what else there is

    import memopt
    memopt.status()                   what memopt does in this process, or None where it is not in it
"""
from memopt._programs import memoptctl, library
from memopt._status import StatusError, status
from memopt._version import __version__

__all__ = ["StatusError", "__version__", "library", "memoptctl", "status"]
