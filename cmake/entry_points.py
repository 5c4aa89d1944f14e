#!/usr/bin/env python3
"""The one list of the driver's entry points, read from the toolkit's own headers (12.x and 13.x).

Everything that has to name entry points is derived from here: the shim's trampolines, its export map and hook table, the simulated
driver's cuGetProcAddress, the fake driver of the tests, and docs/entry-points.md.

cudaTypedefs.h has one typedef per (base name, ABI version, stream mode), for instance PFN_cuMemcpyHtoD_v7000_ptds; the base name and the
version are what a program passes to cuGetProcAddress. What it lacks is the ELF symbol behind each. The rule:

  * the versions of one base without a stream suffix, ascending, are exported as base, base_v2, base_v3, ...
  * a per-thread version has the ABI, and therefore the _vN, of the newest plain version that is not newer than itself, plus its suffix:
    cuMemcpyHtoD_v7000_ptds is cuMemcpyHtoD_v2_ptds. Several per-thread versions of one ABI do not exist.
  * cuda.h's own "#define base target" must name one of the symbols so found (the newest, or an older one: cuCtxGetDevice stays the old one
    for source compatibility although 13.0 added a _v2). Where it names another base
    (cuGraphInstantiate -> cuGraphInstantiateWithFlags) the typedefs do not say which ABI a new request gets: such bases are listed
    as redirected, and the shim trusts only the address that the driver returned.

A header that contradicts the rule stops the build: a wrapper with a wrong ABI is worse than none.
"""

import argparse
import collections
import dataclasses
import os
import re
import sys

SUFFIXES = ("_ptsz", "_ptds")

TYPEDEF = re.compile(
    r"typedef\s+(?P<result>[\w \*]+?)\s*\(\s*CUDAAPI\s*\*\s*PFN_(?P<base>cu\w+?)(?:_v(?P<version>\d+)(?P<suffix>_ptsz|_ptds)?)?\s*\)"
    r"\s*\((?P<parameters>[^;]*)\)\s*;")
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(?P<base>cu\w+)[ \t]+(?P<target>[\w()]+)[ \t]*$", re.MULTILINE)
PER_THREAD_TARGET = re.compile(r"__CUDA_API_PT(?:DS|SZ)\((\w+)\)")
SYMBOL_VERSION = re.compile(r"(?P<base>cu\w+?)(?:_v(?P<number>[2-9]))?(?P<suffix>_ptsz|_ptds)?")

# CUDA 12.4 and 12.5 forgot the version in four names; later headers have it.
UNVERSIONED = dict.fromkeys(
    ("cuModuleGetFunctionCount", "cuModuleEnumerateFunctions", "cuLibraryGetKernelCount", "cuLibraryEnumerateKernels"), 12040)


class HeaderError(Exception):
    """The headers say something that this reader does not understand."""


@dataclasses.dataclass(frozen=True)
class Entry:
    base: str  # what a program passes to cuGetProcAddress
    version: int  # ABI version in CUDA's numbering: 3020 is CUDA 3.2
    suffix: str  # "", "_ptsz" or "_ptds"
    symbol: str  # what libcuda.so.1 exports
    typedef: str  # its pointer type in cudaTypedefs.h
    result: str
    parameters: tuple  # each as written, e.g. "CUdeviceptr_v2 *dptr"; empty for (void)

    @property
    def per_thread(self):
        return bool(self.suffix)


def strip_comments(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    return re.sub(r"//[^\n]*", " ", text)


def split_parameters(text):
    text = " ".join(text.split())
    if text in ("", "void"):
        return ()
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return tuple(parts)


def read_defines(cuda_h):
    """base -> symbol of the newest ABI without stream suffix, as cuda.h redirects the plain name."""
    newest = {}
    for match in DEFINE.finditer(strip_comments(cuda_h)):
        base, target = match["base"], match["target"]
        wrapped = PER_THREAD_TARGET.fullmatch(target)
        target = wrapped[1] if wrapped else target
        # cuGetProcAddress_v2 -> cuGetProcAddress_v2_ptsz is an inline helper for per-thread compilation, not an export.
        if target.endswith(SUFFIXES) or not target.startswith("cu") or target == base:
            continue
        newest[base] = target
    return newest


def toolkit_version(cuda_h):
    match = re.search(r"^#define\s+CUDA_VERSION\s+(\d+)", cuda_h, re.MULTILINE)
    if not match:
        raise HeaderError("cuda.h has no '#define CUDA_VERSION number'")
    return int(match[1])


def symbol_name(base, index):
    return base if index == 0 else f"{base}_v{index + 1}"


def read_entries(cuda_h, typedefs_h):
    """All rows, ordered by base, stream mode, version."""
    found = collections.defaultdict(dict)
    for match in TYPEDEF.finditer(strip_comments(typedefs_h)):
        versions = found[(match["base"], match["suffix"] or "")]
        version = match["version"] or UNVERSIONED.get(match["base"])
        if version is None:
            raise HeaderError(f"PFN_{match['base']} has no version in its name, and is not one of those known without")
        version = int(version)
        typedef = "PFN_" + match["base"] + (f"_v{version}" if match["version"] else "") + (match["suffix"] or "")
        if version in versions:
            raise HeaderError(f"cudaTypedefs.h has two typedefs PFN_{match['base']}_v{version}{match['suffix'] or ''}")
        versions[version] = (" ".join(match["result"].split()), split_parameters(match["parameters"]), typedef)
    if not found:
        raise HeaderError("cudaTypedefs.h has no typedef of the form 'typedef CUresult (CUDAAPI *PFN_cuName_vNNNN)(...)'")
    declared = len(re.findall(r"\*\s*PFN_cu\w+\s*\)", strip_comments(typedefs_h)))
    parsed = sum(len(versions) for versions in found.values())
    if declared != parsed:
        raise HeaderError(f"cudaTypedefs.h has {declared} function pointer typedefs, of which {parsed} were understood")

    newest = read_defines(cuda_h)
    entries = []
    for (base, suffix), versions in sorted(found.items()):
        plain = sorted(found.get((base, ""), {}))
        for version in sorted(versions):
            if suffix:
                older = [v for v in plain if v <= version]
                if not older:
                    raise HeaderError(f"PFN_{base}_v{version}{suffix}: no plain version of {base} is as old as that")
                of_plain = older[-1]
            else:
                of_plain = version
            symbol = symbol_name(base, plain.index(of_plain))
            result, parameters, typedef = versions[version]
            entries.append(Entry(base, version, suffix, symbol + suffix, typedef, result, parameters))
    check_unique(entries)
    check_defines(newest, entries)
    return entries


def check_defines(newest, entries):
    symbols = {e.symbol for e in entries}
    bases = {e.base for e in entries}
    for base, target in newest.items():
        if base in bases and target not in symbols:
            raise HeaderError(f"cuda.h says that {base} is {target}, which none of the typedefs leads to")


def redirected(cuda_h, entries):
    """Bases which cuda.h sends to another base."""
    bases = {e.base for e in entries}
    newest = read_defines(cuda_h)
    return sorted(base for base in bases & set(newest) if SYMBOL_VERSION.fullmatch(newest[base])["base"] != base)


def check_unique(entries):
    """One ABI, one symbol."""
    by_symbol = {}
    for entry in entries:
        other = by_symbol.setdefault(entry.symbol, entry)
        if other is not entry:
            raise HeaderError(f"{entry.typedef} and {other.typedef} would both be {entry.symbol}")


def hooks(entries):
    """The entries sorted by exported symbol: the position is the hook's index everywhere."""
    return sorted(entries, key=lambda e: e.symbol)


def banner(version, comment="//"):
    return (f"{comment} Generated by cmake/entry_points.py from the CUDA {version // 1000}.{version % 1000 // 10} headers. "
            "Do not edit.\n")


def emit_table(entries, version, _):
    yield banner(version)
    yield ("// MEMOPT_ENTRY(base name, ABI version, per-thread stream?, exported symbol): one row per typedef of cudaTypedefs.h.\n"
           "// cuda.h #defines many plain names (cuMemAlloc is cuMemAlloc_v2): use the symbol with # or ## only, or define\n"
           "// __CUDA_API_VERSION_INTERNAL before cuda.h, or the preprocessor turns old ABIs into new ones.\n"
           "// Define MEMOPT_ENTRY before including; it is undefined at the end.\n")
    for e in entries:
        yield f'MEMOPT_ENTRY("{e.base}", {e.version}, {"true" if e.per_thread else "false"}, {e.symbol})\n'
    yield "#undef MEMOPT_ENTRY\n"


def emit_hooks(entries, version, redirects):
    rows = hooks(entries)
    index = {e.symbol: i for i, e in enumerate(rows)}
    yield banner(version)
    yield ("// MEMOPT_HOOK(index, symbol, pointer type) for each exported symbol, in order of index;\n"
           '// MEMOPT_ABI("base", ABI version, per-thread stream?, hook index) for each row of cuGetProcAddress, by base, stream, version.\n'
           "// All are optional and undefined at the end. Use the symbol with # or ## only: cuda.h has macros of those names.\n")
    yield f"#ifdef MEMOPT_TOOLKIT\nMEMOPT_TOOLKIT({version}, {len(rows)}, {len(entries)})\n#undef MEMOPT_TOOLKIT\n#endif\n"
    yield "#ifdef MEMOPT_HOOK\n"
    for i, e in enumerate(rows):
        yield f"MEMOPT_HOOK({i}, {e.symbol}, {e.typedef})\n"
    yield "#undef MEMOPT_HOOK\n#endif\n#ifdef MEMOPT_ABI\n"
    for e in entries:
        yield f'MEMOPT_ABI("{e.base}", {e.version}, {"true" if e.per_thread else "false"}, {index[e.symbol]})\n'
    yield "#undef MEMOPT_ABI\n#endif\n#ifdef MEMOPT_REDIRECTED\n"
    for base in redirects:
        yield f'MEMOPT_REDIRECTED("{base}")\n'
    yield "#undef MEMOPT_REDIRECTED\n#endif\n"


def emit_asm(entries, version, _):
    rows = hooks(entries)
    yield banner(version, "#")
    yield '#include "preload/trampoline.inc"\n'
    for i, e in enumerate(rows):
        yield f"TRAMPOLINE {e.symbol}, {i}\n"
    yield f"TARGETS_BEGIN {len(rows)}\n"
    for i in range(len(rows)):
        yield f"TARGET {i}\n"
    yield "TARGETS_END\n"


def emit_exports(entries, version, _):
    yield banner(version, "#")
    yield "# An anonymous version: a named one would silently not interpose on unversioned references.\n"
    yield "{\n  global:\n"
    for e in hooks(entries):
        yield f"    {e.symbol};\n"
    yield "    InitializeInjection;\n    dlsym;\n    dlvsym;\n    memopt_version;\n  local: *;\n};\n"


def emit_markdown(entries, version, _):
    yield f"# Intercepted entry points\n\nGenerated by `cmake/entry_points.py --emit markdown` from the CUDA {version // 1000}.{version % 1000 // 10} headers.\n\n"
    yield ("Every function that `cudaTypedefs.h` knows is counted and forwarded, whichever way the program gets at it: as exported symbol, "
           "by `dlsym`/`dlvsym`, or by `cuGetProcAddress[_v2]`. A program asks `cuGetProcAddress` for the first column, a version that is at least "
           "the second, and a stream mode. Anything not in this table is passed through untouched and unseen, `cuGetExportTable`'s private tables included.\n\n"
           "The last column says what else happens: a hook, by its file in `preload/`, whose function has the signature of the pointer type in the fifth column; "
           "*relief*: the call is made again where it finds no memory, after memopt has given back what is idle; *passed on*: it has to do with memory, and why it has no hook. "
           "Empty: it has nothing to do with memory. A test compares the lists with the headers, and fails where an entry point that allocates, frees, copies, "
           "launches or tells of memory is in none.\n\n")
    handling = read_handling()
    kinds = collections.Counter(handling.get(e.symbol, "counted").split(":")[0] for e in entries)
    yield (f"{len(entries)} rows, {len(hooks(entries))} exported symbols: {kinds['hook']} with a hook, {kinds['relief']} with relief, "
           f"{kinds['passed on']} passed on, {kinds['counted']} counted alone.\n\n")
    yield "| asked for | since CUDA | default stream | exported symbol | type | what else |\n|---|---|---|---|---|---|\n"
    for e in entries:
        stream = "per thread" if e.per_thread else ""
        yield (f"| `{e.base}` | {e.version // 1000}.{e.version % 1000 // 10} | {stream} | `{e.symbol}` | `{e.typedef}` | "
               f"{handling.get(e.symbol, '')} |\n")


# ---- what memopt does about each ----------------------------------------------------------------------------------------

PRELOAD = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "preload")
# Allocates, frees, copies, launches, or tells of memory: by name, or because a device address is among its parameters.
MEMORY_NAME = re.compile(
    r"Alloc|Free|Memcpy|Memset|Launch|^cuMem|^cuIpc|^cuPointer|MemPool|GraphMem|Array\w*(Create|Destroy)|GraphAdd|GraphInstantiate|GraphExec|GraphUpload"
    r"|SetParams|NodeSet|TensorMap|TexRefSet|TexObjectCreate|Surf\w*(Create|Set)|ExternalMemory|GraphicsResource|GraphicsMap|StreamWriteValue|StreamWaitValue"
    r"|StreamBatch|StreamAttach|Capture|Ctx(Create|Destroy|Detach|Attach)|PrimaryCtx(Re|Ret)|GreenCtx|GetGlobal|GetManaged|GetUnifiedFunction|Bind(Mem|Addr)"
    r"|Decompress|Prefetch|Discard|TotalMem|ParamSet|Checkpoint")
MEMORY_PARAMETER = re.compile(r"\bCUdeviceptr(_v\d)?\b")


def concerns_memory(entry):
    return bool(MEMORY_NAME.search(entry.base) or MEMORY_PARAMETER.search(" ".join(entry.parameters)))


def read_handling(preload=PRELOAD):
    """Exported symbol -> what preload/ does about it, from its lists: "hook: FILE", "relief", or "passed on: WHY"."""
    handling = {}

    def add(symbol, what):
        if symbol in handling:
            raise HeaderError(f"{symbol} is in two of preload's lists: {handling[symbol]}, and {what}")
        handling[symbol] = what

    for name in ("memory_hooks.inc", "operation_hooks.inc", "relieved_hooks.inc", "passed_through.txt"):
        heading = ""
        with open(os.path.join(preload, name), encoding="utf-8") as lines:
            for line in lines:
                if match := re.match(r"// (\w+)\.cpp$", line):
                    heading = match[1]
                elif match := re.match(r"MEMOPT_TYPED\((\w+)\)", line):
                    add(match[1], f"hook: `{heading}`")
                elif match := re.match(r"MEMOPT_RELIEVED\((\w+)\)", line):
                    add(match[1], "relief")
                elif match := re.match(r"([^#\s].*):$", line):
                    heading = match[1]
                elif match := re.match(r"  (\w+)$", line):
                    add(match[1], f"passed on: {heading}")
    return handling


def unhandled(entries, handling):
    """Symbols that concern memory and are in no list, and symbols of the lists that the headers do not have."""
    return (sorted(e.symbol for e in entries if concerns_memory(e) and e.symbol not in handling),
            sorted(set(handling) - {e.symbol for e in entries}))


EMITTERS = {"table": emit_table, "hooks": emit_hooks, "asm": emit_asm, "exports": emit_exports, "markdown": emit_markdown}


def load(include):
    """(entries, toolkit version, redirected bases) of an include folder."""
    texts = []
    for name in ("cuda.h", "cudaTypedefs.h"):
        with open(os.path.join(include, name), encoding="utf-8", errors="replace") as header:
            texts.append(header.read())
    entries = read_entries(*texts)
    return entries, toolkit_version(texts[0]), redirected(texts[0], entries)


def write_if_changed(path, text):
    try:
        with open(path, encoding="utf-8") as old:
            if old.read() == text:
                return
    except OSError:
        pass
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--include", required=True, help="folder with cuda.h and cudaTypedefs.h")
    parser.add_argument("--emit", required=True, choices=sorted(EMITTERS))
    parser.add_argument("-o", "--output", help="file to write (left alone if it is the same already); default: standard output")
    options = parser.parse_args(arguments)
    try:
        loaded = load(options.include)
    except (OSError, HeaderError) as error:
        print(f"entry_points.py: {error}", file=sys.stderr)
        return 1
    text = "".join(EMITTERS[options.emit](*loaded))
    if options.output:
        write_if_changed(options.output, text)
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
