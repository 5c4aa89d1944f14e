"""Compiles a sample by nvcc, as its user would: the checkout's headers, PTX for the simulated device, the shared runtime."""
import os
import shutil
import subprocess

import checkout

# The driver's newest PTX for the a100-40g. Machine code would not be run, and takes ptxas's time.
ARCHITECTURE = "-gencode=arch=compute_80,code=compute_80"
# Of a sample's folder, what its program may open is copied beside it; sources too: some are compiled at run time.
NOT_COPIED = shutil.ignore_patterns("doc", "*.o", "CMakeLists.txt", "README.md")


class Failed(Exception):
    """A sample could not be compiled."""


class Builder:
    """Builds into a folder, each sample in one of its own. Any number of threads may build different samples."""

    def __init__(self, toolkit, samples, build, folder):
        self.toolkit, self.samples, self.build, self.folder = toolkit, samples, build, folder

    @property
    def nvcc(self):
        return os.path.join(self.toolkit, "bin", "nvcc")

    def _commands(self, sample, source, target):
        """The program's file, and the commands that make it and its modules."""
        name, files = checkout.sources(source)
        program = os.path.join(target, name)
        includes = [f"-I{os.path.join(self.samples, 'Common')}", f"-I{source}", f"-I{os.path.join(source, 'inc')}"]
        libraries = [f"-L{os.path.join(self.build, 'cuda-link')}", f"-L{os.path.join(self.build, 'cudasim', 'lib')}",
                     f"-L{os.path.join(self.toolkit, 'lib')}", f"-L{os.path.join(self.toolkit, 'lib64')}"]
        common = [self.nvcc, "-std=c++17", "-O2", "--extended-lambda", "-Wno-deprecated-gpu-targets", "-w", ARCHITECTURE, *includes]
        commands = [[*common, *sample.options, *[os.path.join(source, file) for file in files], "-o", program, "-cudart", "shared", "-cudadevrt",
                     "none", *libraries, "-lcuda", *[f"-l{library}" for library in sample.libraries]]]
        for module, kernels in sample.modules.items():
            commands.append([*common, f"-{module.rsplit('.', 1)[-1]}", os.path.join(source, kernels), "-o", os.path.join(target, module)])
        return program, commands

    def _prepare(self, sample, source, target):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=NOT_COPIED)
        # Where samples look first: beside the program.
        data = os.path.join(target, "data")
        if os.path.isdir(data):
            shutil.copytree(data, target, dirs_exist_ok=True)
        for header in sample.headers:
            there = os.path.join(self.toolkit, "include", header)
            copy = os.path.join(target, os.path.basename(header))
            if os.path.isdir(there):
                shutil.copytree(there, copy, dirs_exist_ok=True)
            else:
                shutil.copy(there, copy)

    def program(self, sample):
        """The compiled program's path, in a folder with all that it opens. Compiled again only where a command is another one."""
        source = os.path.join(self.samples, "Samples", sample.path)
        target = os.path.join(self.folder, sample.name)
        program, commands = self._commands(sample, source, target)
        # The libraries of whichever build are found when a program is run; it is linked by their names alone.
        wanted = "\n".join(" ".join(command) for command in commands).replace(f"-L{self.build}/", "-L")
        stamp = target + ".commands"
        if os.path.exists(stamp) and os.path.exists(program):
            with open(stamp, encoding="utf-8") as file:
                if file.read() == wanted:
                    return program
        self._prepare(sample, source, target)
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                lines = [line for line in (done.stderr + done.stdout).splitlines() if "error" in line or "undefined" in line or "cannot" in line]
                raise Failed(lines[0][:200] if lines else f"nvcc: exit code {done.returncode}")
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(wanted)
        return program
