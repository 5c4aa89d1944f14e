"""A program that records as the agent does, in the wire protocol (docs/formats/wire.md), without CUDA: it connects to the planner
that MEMOPT_PLANNER_NAME names, and writes records into a ring.

usage: fake_agent.py [records=N] [batch=N] [drop=N] [forever] [ready=FILE] [fork] [kill=SIGNAL] [exit=N] [kernel=NAME]
                     [corrupt]
"""
import ctypes
import fcntl
import mmap
import os
import socket
import struct
import sys
import time

WIRE_VERSION = 1
RING_DATA = 4096
CAPACITY = 1 << 20
SEALS = 0x1 | 0x2 | 0x4  # F_SEAL_SEAL, SHRINK, GROW
F_ADD_SEALS = 1033
RING_MAGIC, CONTROL_MAGIC = 0x31474e5254504d4d, 0x314c5443544d4d4d
HELLO, WELCOME, RING = 1, 2, 4
MALLOC, FREE, LAUNCH, FUNCTION = 1, 2, 3, 12


def shared_memory(size):
    memory = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.posix_fallocate(memory, 0, size)
    fcntl.fcntl(memory, F_ADD_SEALS, SEALS)
    return memory, mmap.mmap(memory, size)


def word(memory, offset):
    """Eight bytes that are written and read as one: struct.pack_into writes them one by one."""
    return ctypes.c_uint64.from_buffer(memory, offset)


class Agent:
    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(f"\0memoptd-{os.geteuid()}-{WIRE_VERSION}-{name}")
        descriptor, self.control = shared_memory(4096)
        struct.pack_into("<QII", self.control, 0, CONTROL_MAGIC, WIRE_VERSION, 4096)
        struct.pack_into("<Q", self.control, 64 + 8, 1)  # recording
        struct.pack_into("<QQ", self.control, 64 + 32, 1, 1)  # the clock
        self.send(HELLO, struct.pack("<IIiI32s256s", WIRE_VERSION, 2, os.getpid(), 0, b"0.0.test", sys.executable.encode()[:255]), descriptor)
        kind, _ = struct.unpack_from("<II", self.socket.recv(4096))
        if kind != WELCOME:
            raise SystemExit("refused")
        descriptor, self.ring = shared_memory(RING_DATA + CAPACITY)
        struct.pack_into("<QIIQ", self.ring, 0, RING_MAGIC, WIRE_VERSION, 0, CAPACITY)
        self.send(RING, struct.pack("<IIQ", 0, 0, RING_DATA + CAPACITY), descriptor)
        self.head = self.sequence = 0
        self.shared_head, self.shared_tail, self.issued = word(self.ring, 64), word(self.ring, 128), word(self.control, 64)

    def send(self, kind, body, descriptor):
        socket.send_fds(self.socket, [struct.pack("<II", kind, len(body)) + body], [descriptor])
        os.close(descriptor)

    def record(self, kind, body, aux=0):
        self.sequence += 1
        size = 24 + len(body)
        record = struct.pack("<BBHIQQ", kind, 0, size // 8, aux, self.sequence, time.monotonic_ns()) + body
        at = self.head % CAPACITY
        if at + size > CAPACITY:
            pad = CAPACITY - at
            self.ring[RING_DATA + at:RING_DATA + at + 8] = struct.pack("<BBHI", 0, 0, pad // 8, 0)
            self.head += pad
            at = 0
        while self.head + size - self.shared_tail.value > CAPACITY:
            time.sleep(0.0005)  # unlike the agent, it waits: the test knows then what must be in the file
        self.ring[RING_DATA + at:RING_DATA + at + size] = record
        self.head += size

    def commit(self):
        self.shared_head.value = self.head
        self.issued.value = self.sequence


def work(options):
    agent = Agent(os.environ["MEMOPT_PLANNER_NAME"])
    name = options.get("kernel", "a_kernel").encode()
    agent.record(FUNCTION, struct.pack("<QQ", 5, len(name)) + name + bytes(-len(name) % 8))
    block, records, batch = 0, int(options.get("records", 9)), int(options.get("batch", 10))
    while "forever" in options or agent.sequence < records:
        block += 1
        agent.record(MALLOC, struct.pack("<6Q", block, 4096, 0, 0x1234, 0, 0x700000000000 + 4096 * (block % 64)))
        agent.record(LAUNCH, struct.pack("<Q8I", 0, 1, 1, 1, 32, 1, 1, 0, 1) + struct.pack("<Q", block), aux=5)
        agent.record(FREE, struct.pack("<QQ", block, 0))
        if block == int(options.get("drop", 0)):
            agent.sequence += 100
        if block % batch == 0:
            agent.commit()
            if "ready" in options and block == batch:
                open(options["ready"], "w", encoding="utf-8").close()
    if "corrupt" in options:  # a record that is not one: of no size
        agent.ring[RING_DATA + agent.head % CAPACITY:RING_DATA + agent.head % CAPACITY + 8] = bytes([9, 0, 0, 0, 0, 0, 0, 0])
        agent.head += 64
    agent.commit()
    if "kill" in options:
        os.kill(os.getpid(), int(options["kill"]))


def main():
    options = dict(word.partition("=")[::2] for word in sys.argv[1:])
    if "fork" in options and not (child := os.fork()):
        work(options)
        os._exit(0)
    work(options)
    if "fork" in options:
        os.waitpid(child, 0)
    raise SystemExit(int(options.get("exit", 0)))


if __name__ == "__main__":
    main()
