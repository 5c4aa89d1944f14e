"""Blocks and time of a simulated training run, written down as operations: a trace, or one iteration with its launches."""
import collections
import json
import os
import re

HOST_CALL_NS = 10000     # each allocation and each free, whatever the device
PRESETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cudasim", "driver", "presets")


class Device:
    def __init__(self, flops_per_ns, bytes_per_ns, kernel_ns, copy_out, copy_in):
        self.flops_per_ns, self.bytes_per_ns = flops_per_ns, bytes_per_ns    # single precision; device memory
        self.kernel_ns = kernel_ns    # each kernel, however small
        # To the host and back, as memopt-plan-1 has a machine.
        self.copies = {f"{way}_{what}": copy[what] for what in ("bytes_per_ns", "latency_ns") for way, copy in (("out", copy_out), ("in", copy_in))}


GTX_1080_TI = Device(11300, 484, 3000, {"bytes_per_ns": 13.23, "latency_ns": 47200}, {"bytes_per_ns": 12.15, "latency_ns": 9700})


def device(name):
    """As the simulated driver has it; the GTX 1080 Ti with its rate rounded, so that traces stay as they are. Raises OSError."""
    if name == "gtx1080ti":
        return GTX_1080_TI
    with open(os.path.join(PRESETS, name + ".json"), encoding="utf-8") as file:
        preset = json.loads(re.sub(r"^\s*//.*", "", file.read(), flags=re.MULTILINE))
    return Device(preset["fp32_flops_per_ns"], preset["memory_bytes_per_ns"], preset["kernel_latency_ns"], preset["copy_out"], preset["copy_in"])


class Block:
    def __init__(self, pointer, size):
        self.pointer, self.size = pointer, size


class Recorder:
    """Operations as (verb, pointer, size, nanoseconds)."""

    def __init__(self, its_device=GTX_1080_TI):
        self.operations = []
        self.device = its_device
        self._now = 0
        self._end = 0x7f0000000000
        self._free = collections.defaultdict(list)   # by rounded size: pointers are used again, as by a real allocator

    def _place(self, size):
        rounded = -(-size // 512) * 512
        if self._free[rounded]:
            return Block(self._free[rounded].pop(), size)
        self._end += rounded
        return Block(self._end - rounded, size)

    def persistent(self, size):
        """A block that exists before the trace begins."""
        return self._place(size)

    def malloc(self, size):
        block = self._place(size)
        self._note("Malloc", block, HOST_CALL_NS)
        return block

    def free(self, block):
        self._note("Free", block, HOST_CALL_NS)
        self._free[-(-block.size // 512) * 512].append(block.pointer)

    def kernel(self, reads, writes, flops=0, updates=(), updated_from=()):
        """One launch: its accesses share its time by the roofline, reads first. `updates`: what it also changes in place, by what
        it has written to `updated_from`; a trace has these as written."""
        del updated_from
        touched = [("Read", block) for block in reads] + [("Mutable", block) for block in (*updates, *writes)]
        share = self._duration(touched, flops) // len(touched)
        for verb, block in touched:
            self._note(verb, block, share)

    def _duration(self, touched, flops):
        moved = sum(block.size for _, block in touched)
        return int(self.device.kernel_ns + max(flops / self.device.flops_per_ns, moved / self.device.bytes_per_ns))

    def scratch(self, size):
        """A block that is filled and freed directly after."""
        block = self.malloc(size)
        self.kernel([], [block])
        self.free(block)

    def layer(self, block):
        self._note("Layer", block, 0)

    def _note(self, verb, block, nanoseconds):
        self.operations.append((verb, block.pointer, block.size, self._now))
        self._now += nanoseconds


class LaunchRecorder(Recorder):
    """Keeps which accesses are one launch. What a launch changes in place beside its results is changed by a launch of its own
    behind it, so that the first can be run once more."""

    def __init__(self, its_device=GTX_1080_TI):
        super().__init__(its_device)
        self.steps = []    # each a list of (kind, blocks, nanoseconds); of a launch a list of (kind, block)

    def begin_step(self):
        self.steps.append([])

    def kernel(self, reads, writes, flops=0, updates=(), updated_from=()):
        touched = [("r", block) for block in reads] + [("w", block) for block in writes]
        self.steps[-1].append(("launch", touched, self._duration(touched, flops)))
        if updates:
            self.kernel([*updated_from, *updates], updates)

    def layer(self, block):
        pass

    def _note(self, verb, block, nanoseconds):
        self.steps[-1].append(("m" if verb == "Malloc" else "f", [block], nanoseconds))

    def iteration(self, name):
        """The last of two steps or more, as memopt-plan-2 with launches. Raises ValueError where it is not as the one before."""
        born = [[entry[1][0] for entry in step if entry[0] == "m"] for step in self.steps[-2:]]
        if len(born) != 2 or [block.size for block in born[0]] != [block.size for block in born[1]]:
            raise ValueError("the steps differ: there is no iteration")
        # By block: its number, and how many iterations ago it was allocated; what was not is there all the time.
        known = {id(block): (number, age) for age, step in enumerate(reversed(born)) for number, block in enumerate(step)}
        blocks = [{"id": number, "size": block.size} for number, block in enumerate(born[1])]
        ops, launches, now = [], [], 0
        for kind, touched, nanoseconds in self.steps[-1]:
            accesses = touched if kind == "launch" else [(kind, touched[0])]
            if kind == "launch":
                launches.append([len(ops), len(accesses)])
            for verb, block in accesses:
                if id(block) not in known:
                    known[id(block)] = len(blocks), 0
                    blocks.append({"id": len(blocks), "size": block.size, "persistent": True})
                number, age = known[id(block)]
                ops.append([verb, number, now, age] if age else [verb, number, now])
            now += nanoseconds
        return {"format": "memopt-plan-2", "name": name, "period": now, "machine": self.device.copies, "blocks": blocks, "ops": ops,
                "launches": launches}
