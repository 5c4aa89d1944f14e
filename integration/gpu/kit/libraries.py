"""Where a machine with CUDA may have a library of NVIDIA's."""
import glob
import os
import subprocess
import sys


def in_path(name):
    """Of the folders in LD_LIBRARY_PATH."""
    folders = filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    return [path for path in (os.path.join(folder, name) for folder in folders) if os.path.exists(path)]


def _folders(name, in_toolkit, wheel):
    for root in filter(None, [os.environ.get("CUDA_HOME"), *sorted(glob.glob("/usr/local/cuda*"), reverse=True)]):
        yield from (os.path.join(root, folder) for folder in in_toolkit)
    for entry in sys.path:
        yield from (os.path.join(entry, "nvidia", "cu13", "lib"), os.path.join(entry, "nvidia", wheel, "lib"))
    try:
        listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        listed = ""
    for line in listed.splitlines():
        if name in line and "=>" in line:
            yield os.path.dirname(line.split("=>")[1].strip())


def find(name, in_toolkit, wheel):
    """Paths of `name`, likeliest first: `in_toolkit` are folders of a toolkit, `wheel` that of an older wheel of pip's."""
    yield from in_path(name)
    for folder in _folders(name, in_toolkit, wheel):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            yield path
