"""Shared by the tests of the GPU kit: a pack of this build, made once a process, and run-all on the simulated driver."""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile

import simulated

BUILD, SOURCE = os.environ["TEST_BUILD"], os.environ["TEST_SOURCE"]
SIMULATOR = os.path.join(BUILD, "cudasim")
STUBS = os.path.join(SOURCE, "tests", "gpu", "stubs")
PACK_PROGRAM = os.path.join(SOURCE, "tools", "lib", "pack.py")
FRAMEWORKS = os.path.join(SOURCE, "integration", "gpu", "frameworks")
NO_GPU = 77
CASES = ("torch_resnet50", "torch_gpt", "torch_lstm", "jax_mlp", "triton_kernel", "cupy_mlp")


def environment(**more):
    clean = {key: value for key, value in simulated.clean_environment().items() if key not in ("PYTHONPATH", "OUT")}
    return clean | {"PYTHONDONTWRITEBYTECODE": "1"} | more


def run(command, timeout=900, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout,
                          env=environment(**more))


def make_pack(output, *options):
    return run([sys.executable, PACK_PROGRAM, "--source", SOURCE, "--build", BUILD, "--output", output, *options])


_made = []


def pack():
    """A pack that was unpacked in another place than it was made in."""
    if not _made:
        folder = tempfile.mkdtemp(prefix="gpu-pack-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        archive = os.path.join(folder, "pack.tar.gz")
        done = make_pack(os.path.join(folder, "made"), "--archive", archive)
        assert done.returncode == 0, done.stdout + done.stderr
        shutil.rmtree(os.path.join(folder, "made"))
        shutil.unpack_archive(archive, os.path.join(folder, "elsewhere"))
        _made.extend([os.path.join(folder, "elsewhere", "gpu-pack"), done.stdout])
    return _made[0]


def pack_output():
    pack()
    return _made[1]


class RunAll:
    """run-all of the pack, to its end."""

    def __init__(self, folder, *options, simulated_driver=True, timeout=900, **more):
        self.folder = os.path.join(folder, "results")
        words = ["--simulated", "--simulator", SIMULATOR, "--small"] if simulated_driver else []
        # Room for machines that do much else: what is tested for its limit sets its own, behind these.
        done = run([os.path.join(pack(), "run-all"), "--output", self.folder, "--limit", "3000", "--run-limit", "400", *words, *options], timeout=timeout, **more)
        self.code, self.output, self.errors = done.returncode, done.stdout, done.stderr
        path = os.path.join(self.folder, "results.json")
        self.results = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.results = json.load(file)

    def rows(self, case, variant=None):
        return [row for row in self.results["rows"] if row["case"] == case and variant in (None, row["variant"])]

    def row(self, case, variant):
        found = self.rows(case, variant)
        assert len(found) == 1, (case, variant, self.output + self.errors)
        return found[0]

    @property
    def files(self):
        return sorted(os.listdir(self.folder))
