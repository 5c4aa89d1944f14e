"""The samples of a checkout: what samples.toml says of each, and what its own CMakeLists.txt says of how it is built."""
import dataclasses
import os
import re
import tomllib

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples.toml")
KNOWN = {"path", "runs", "verdict", "modules", "options", "libraries", "headers", "ignored", "zeros", "left_out", "note"}


class Wrong(Exception):
    """The list or the checkout is not as it has to be."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """A row of the list; README.md says what each key means."""

    path: str
    runs: tuple = ((),)
    verdict: str = ""
    modules: dict = dataclasses.field(default_factory=dict)
    options: tuple = ()
    libraries: tuple = ()
    headers: tuple = ()
    ignored: str = ""
    zeros: bool = False
    left_out: str = ""
    note: str = ""

    @property
    def name(self):
        return self.path.rsplit("/", 1)[-1]


def read_list(path=LIST):
    """All samples, in the order of the file."""
    with open(path, "rb") as file:
        rows = tomllib.load(file).get("sample", [])
    samples = []
    for row in rows:
        unknown = row.keys() - KNOWN
        if "path" not in row or unknown:
            raise Wrong(f"{path}: {row.get('path', row)}: {'no path' if 'path' not in row else 'unknown: ' + ', '.join(sorted(unknown))}")
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
        values["runs"] = tuple(tuple(arguments) for arguments in row.get("runs", [[]]))
        samples.append(Sample(**values))
    if len({sample.path for sample in samples}) != len(samples):
        raise Wrong(f"{path}: a sample is listed twice")
    return samples


def sources(folder):
    """The program's name and sources, by the one add_executable() of its CMakeLists.txt."""
    path = os.path.join(folder, "CMakeLists.txt")
    try:
        with open(path, encoding="utf-8") as file:
            found = re.findall(r"^\s*add_executable\(\s*([\w-]+)\s+([^)$]+)\)", file.read(), re.MULTILINE)
    except OSError as problem:
        raise Wrong(f"{path}: {problem.strerror}") from problem
    if len(found) != 1:
        raise Wrong(f"{path}: expected one add_executable(), found {len(found)}")
    name, files = found[0]
    return name, files.split()


def unlisted(checkout, samples):
    """Samples that the checkout has, by its folders, and the list has not."""
    listed = {sample.path for sample in samples}
    there = set()
    root = os.path.join(checkout, "Samples")
    for group in sorted(os.listdir(root)):
        folder = os.path.join(root, group)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if os.path.exists(os.path.join(folder, name, "CMakeLists.txt")):
                there.add(f"{group}/{name}")
    return sorted(there - listed)
