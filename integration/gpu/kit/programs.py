"""The project's own programs: native twice, then with memopt."""
import os
import subprocess
import sys

import measured


class Program:
    def __init__(self, name, command, needs, runtime=False):
        self.name, self.command, self.needs, self.runtime = name, command, needs, runtime


def _net(setting, name, batch):
    """A generated trace; its folder is the run's own."""
    path = os.path.join(setting.scratch, name + ".trace")
    if not os.path.exists(path):
        subprocess.run([sys.executable, setting.file("workloads", "nets", "nets.py"), name, "--batch", str(batch), "-o", path], check=True,
                       capture_output=True, timeout=60)
    return path


def _programs(setting):
    workloads = lambda *parts: setting.file("workloads", *parts)  # noqa: E731
    small = setting.small
    epochs = "1" if small else "4" if setting.simulator else "60"
    shape = ["--epochs", epochs] + (["--batch", "96", "--width", "2"] if small else [])
    for suffix in "", "_static":
        yield Program("digits_cnn" + suffix, [workloads("digits_cnn" + suffix), *shape], "digits_cnn" + suffix, runtime=not suffix)
    for name in "vector_runtime", "vector_driver", "vector_async", "vector_runtime_static", "vector_async_static":
        shape = ["--elements", "4096"] if small else [] if setting.simulator else ["--iterations", "500"]
        yield Program(name, [workloads(name), *shape], name, runtime=name in ("vector_runtime", "vector_async"))
    yield Program("train.py", [setting.python, workloads("train.py"), *(["--epochs", "2"] if small else [])], "train.py")
    rounds, scale = ("12", 4) if setting.simulator or small else ("60", 100)
    for net, batch in (("vgg11", scale), *(() if small else (("resnet18", scale),))):
        yield Program("replay " + net, [workloads("replay"), lambda net=net, batch=batch: _net(setting, net, batch), "--iterations", rounds],
                      "replay")


def unable_to_run(setting, program):
    """Why the program can't be run here; empty if it can."""
    if not setting.has("workloads", program.needs):
        return "not in the pack"
    if program.name.endswith("_static") and setting.simulator and setting.manifest.get("static_runtime") == "nvidia":
        return "NVIDIA's runtime is linked in, which the simulated driver can't serve"
    if program.runtime and not setting.simulator and not setting.runtime:
        return "no libcudart.so.13 was found on this machine"
    return ""


def named(setting, name):
    """The program of that name, if it is wanted and can run here."""
    return [program for program in _programs(setting) if program.name == name and setting.wants(name) and not unable_to_run(setting, program)]


def once(setting, program, variant, shim, extra=None, limit=None):
    command = [word() if callable(word) else word for word in program.command]
    return measured.measure(setting, f"{program.name}, {variant}", command, setting.limit(limit or setting.run_limit),
                            setting.environment(extra, shim=shim, runtime=program.runtime))


def run(setting):
    for program in filter(lambda one: setting.wants(one.name), _programs(setting)):
        unable = unable_to_run(setting, program)
        if unable:
            setting.results.row({"case": program.name, "variant": "native", "remark": unable})
            continue
        native = once(setting, program, "native", False)
        if not native.ended.ok:
            setting.results.row(measured.row(program.name, "native", native))
            continue
        again = once(setting, program, "native again", False)
        repeats = measured.compared(again, native)
        setting.results.row(measured.row(program.name, "native", native, "repeats" if repeats == "same" else repeats,
                                         "" if again.ended.ok else "again: " + again.ended.why()))
        shimmed = once(setting, program, "memopt", True, limit=3 * native.ended.seconds + setting.run_limit / 4)
        setting.results.row(measured.row(program.name, "memopt", shimmed, measured.compared(shimmed, native)))
