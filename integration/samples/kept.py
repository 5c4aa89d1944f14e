"""Rows of earlier runs of the command: a file for each sample, with the build and the entry of the list of which it is."""
import dataclasses
import hashlib
import json
import os

import page

# What a row depends on, below the folder of a build: the simulated device and memopt.
PARTS = ("cudasim/lib/libcuda.so.1", "cudasim/lib/libcudart.so.13", "cudasim/lib/libcudasim_jit.so", "cudasim/lib/libcudasim_nvrtc.so",
         "lib/libmemopt.so", "bin/memoptd", "bin/memoptctl")


def identity(build, parts=PARTS):
    """Of a build's programs: the same bytes, the same identity, whatever commit they are of."""
    found = hashlib.sha256()
    for part in parts:
        with open(os.path.join(build, part), "rb") as file:
            found.update(hashlib.sha256(file.read()).digest())
    return found.hexdigest()[:16]


class Kept:
    """Reads and writes them. Any number of threads may write different ones."""

    def __init__(self, folder, build):
        self.folder, self.build = folder, build
        os.makedirs(folder, exist_ok=True)

    def _path(self, sample):
        return os.path.join(self.folder, sample.path.replace("/", ".") + ".json")

    @staticmethod
    def _entry(sample):
        return hashlib.sha256(repr(sample).encode()).hexdigest()[:16]

    def write(self, sample, row):
        value = {"build": self.build, "entry": self._entry(sample), "row": dataclasses.asdict(row)}
        path = self._path(sample)
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1)
        os.replace(path + ".new", path)  # a command that is stopped here leaves the old one

    def read(self, sample):
        """The last row, or one that says that there is none; `stale`: of another build, or of another entry of the list."""
        try:
            with open(self._path(sample), encoding="utf-8") as file:
                value = json.load(file)
            row = page.Row(**value["row"])
        except (OSError, ValueError, KeyError, TypeError):
            return page.Row(sample.path, verified=sample.note)
        row.stale = value["build"] != self.build or value["entry"] != self._entry(sample)
        return row

    def wants(self, sample, limit_s):
        """Whether --resume runs it: no row of this build, or one that had run out of a smaller limit."""
        row = self.read(sample)
        return not row.ran or row.stale or (row.ran_out and row.limit_s < limit_s)
