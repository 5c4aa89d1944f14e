#!/usr/bin/env python3
"""Trains a small two-layer network on handwritten digits through the CUDA driver API, with nothing but Python and ctypes.

Every activation, gradient and workspace is allocated and freed in each step. A second thread uploads the next batch on a stream of its own, and a
forked child does some reading. The last line is `checksum HEX` over all weights; runs repeat bit by bit.
"""
import argparse
import ctypes
import os
import queue
import struct
import sys
import threading
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

PIXELS = 64
CLASSES = 10
THREADS = 128
# The tiles of the kernels, see digits_cnn_kernels.cuh.
TILE_ROWS, TILE_COLUMNS, DOT_TILE, DOT_SPAN, ELEMENTS = 4, 8, 2, 1024, 8

EVENT_DISABLE_TIMING = 2
STREAM_NON_BLOCKING = 1

# Kernels by their mangled names, and the types of their parameters: p a device pointer, i an int, f a float.
KERNELS = {
    "gemm_nn": ("_Z7gemm_nnPKfS0_Pfiii", "pppiii"),
    "gemm_tn": ("_Z7gemm_tnPKfS0_Pfiii", "pppiii"),
    "gemm_nt_partial": ("_Z15gemm_nt_partialPKfS0_Pfiii", "pppiii"),
    "sum_partials": ("_Z12sum_partialsPKfPfii", "ppii"),
    "row_moments_partial": ("_Z19row_moments_partialPKfPfii", "ppii"),
    "relu_forward": ("_Z12relu_forwardPKfPfi", "ppi"),
    "relu_backward": ("_Z13relu_backwardPKfS0_Pfi", "pppi"),
    "add_bias": ("_Z8add_biasPKfS0_Pfii", "pppii"),
    "softmax_loss": ("_Z12softmax_lossPKfPKhPfS3_S3_ii", "pppppii"),
    "sgd_momentum": ("_Z12sgd_momentumPfS_PKfifff", "pppifff"),
    "pixels_to_columns": ("_Z17pixels_to_columnsPKhPfii", "ppii"),
}
C_TYPES = {"p": c_uint64, "i": c_int, "f": c_float}


def up(a, b):
    return (a + b - 1) // b


class CudaError(RuntimeError):
    pass


class Driver:
    """The driver's functions. Most come from the library's symbols, some from dlsym by hand and some from cuGetProcAddress, as in real programs."""

    BY_PROC_ADDRESS = {"cuStreamWaitEvent": 3020, "cuEventRecord": 2000, "cuMemcpyHtoDAsync": 3020}

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            sys.exit(f"train.py: {error}: a CUDA driver is needed")
        self.functions = {}
        dlsym = ctypes.CDLL(None).dlsym
        dlsym.restype, dlsym.argtypes = c_void_p, [c_void_p, c_char_p]
        self.dlsym = dlsym
        # Looked for by hand, as loaders of CUDA libraries do.
        for name in ("cuMemAlloc_v2", "cuMemFree_v2", "cuLaunchKernel"):
            address = dlsym(self.library._handle, name.encode())
            if not address:
                sys.exit(f"train.py: libcuda.so.1 has no {name}")
            self.functions[name] = ctypes.CFUNCTYPE(c_int)(address)

    def __call__(self, name, *arguments):
        function = self.functions.get(name)
        if function is None:
            function = self.functions[name] = self.find(name)
        status = function(*arguments)
        if status != 0:
            text = c_char_p()
            self.library.cuGetErrorName(status, byref(text))
            raise CudaError(f"{name}: {text.value.decode() if text.value else status}")

    def find(self, name):
        version = self.BY_PROC_ADDRESS.get(name)
        if version is None:
            return getattr(self.library, name)
        address, result = c_void_p(), c_int()
        self("cuGetProcAddress_v2", name.encode(), byref(address), c_int(version), c_uint64(0), byref(result))
        if not address.value:
            raise CudaError(f"cuGetProcAddress knows no {name} ({result.value})")
        return ctypes.CFUNCTYPE(c_int)(address.value)


class Device:
    def __init__(self, module_path):
        self.cuda = Driver()
        self.cuda("cuInit", c_uint(0))
        device = c_int()
        self.cuda("cuDeviceGet", byref(device), c_int(0))
        self.context = c_void_p()
        self.cuda("cuDevicePrimaryCtxRetain", byref(self.context), device)
        self.cuda("cuCtxSetCurrent", self.context)
        try:
            with open(module_path, "rb") as file:
                self.image = file.read()
        except OSError as error:
            sys.exit(f"train.py: cannot read the kernels: {error}; give their path by --module")
        module = c_void_p()
        self.cuda("cuModuleLoadData", byref(module), self.image)
        self.kernels = {}
        for name, (mangled, types) in KERNELS.items():
            function = c_void_p()
            self.cuda("cuModuleGetFunction", byref(function), module, mangled.encode())
            self.kernels[name] = function, [C_TYPES[t] for t in types]
        self.stream = c_void_p()
        self.cuda("cuStreamCreate", byref(self.stream), c_uint(0))

    def alloc(self, size):
        pointer = c_uint64()
        self.cuda("cuMemAlloc_v2", byref(pointer), c_size_t(size))
        return pointer.value

    def floats(self, count):
        return self.alloc(4 * count)

    def free(self, *pointers):
        for pointer in pointers:
            self.cuda("cuMemFree_v2", c_uint64(pointer))

    def launch(self, name, threads, *arguments):
        function, types = self.kernels[name]
        if len(types) != len(arguments):
            raise TypeError(f"{name} takes {len(types)} arguments, not {len(arguments)}")
        values = [kind(value) for kind, value in zip(types, arguments)]
        pointers = (c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        self.cuda("cuLaunchKernel", function, c_uint(up(threads, THREADS)), c_uint(1), c_uint(1), c_uint(THREADS), c_uint(1), c_uint(1),
                  c_uint(0), self.stream, pointers, None)

    def upload(self, data):
        pointer = self.alloc(len(data))
        self.cuda("cuMemcpyHtoD_v2", c_uint64(pointer), data, c_size_t(len(data)))
        return pointer

    def download_floats(self, pointer, count):
        data = ctypes.create_string_buffer(4 * count)
        self.cuda("cuMemcpyDtoHAsync_v2", data, c_uint64(pointer), c_size_t(4 * count), self.stream)
        self.cuda("cuStreamSynchronize", self.stream)
        return data.raw


class Random:
    """SplitMix64."""

    MASK = (1 << 64) - 1

    def __init__(self, seed):
        self.state = seed & self.MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & self.MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & self.MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & self.MASK
        return z ^ (z >> 31)

    def symmetric(self):
        return ((self.next() >> 40) - (1 << 23)) / (1 << 23)

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = self.next() % (i + 1)
            items[i], items[j] = items[j], items[i]


def read_digits(path):
    """Pixels and label of each image, split into those to learn and those held out."""
    images = []
    try:
        with open(path, encoding="ascii") as file:
            for number, line in enumerate(file, 1):
                values = bytes(map(int, line.split(",")))
                if len(values) != PIXELS + 1 or max(values[:PIXELS]) > 16 or values[PIXELS] >= CLASSES:
                    sys.exit(f"{path}:{number}: expected 64 pixels 0..16 and a label 0..9, separated by commas")
                images.append((values[:PIXELS], values[PIXELS]))
    except (OSError, ValueError) as error:
        sys.exit(f"train.py: cannot read the digits at '{path}': {error}; give the path of digits.csv by --data")
    if len(images) < 100:
        sys.exit(f"{path}: expected at least 100 images")
    Random(1998).shuffle(images)
    held_out = len(images) // 5
    return images[:-held_out], images[-held_out:]


class Uploader(threading.Thread):
    """Copies batches to the device ahead of their use, on its own thread, stream and page-locked memory."""

    def __init__(self, device, batches, largest):
        super().__init__(name="upload", daemon=True)
        self.device, self.batches = device, batches
        self.size = largest * (PIXELS + 1)
        self.ready = queue.Queue(maxsize=2)
        self.stream, self.host = c_void_p(), c_void_p()

    def run(self):
        try:
            self.work()
        except BaseException as error:  # the other thread waits for something
            self.ready.put(error)

    def work(self):
        cuda = self.device.cuda
        cuda("cuCtxSetCurrent", self.device.context)
        cuda("cuStreamCreate", byref(self.stream), c_uint(STREAM_NON_BLOCKING))
        cuda("cuMemAllocHost_v2", byref(self.host), c_size_t(self.size))
        for batch in self.batches:
            data = b"".join(pixels for pixels, _ in batch) + bytes(label for _, label in batch)
            # The page-locked memory may still be read. The event of that copy is not ours to ask: the other thread may have destroyed it.
            cuda("cuStreamSynchronize", self.stream)
            ctypes.memmove(self.host, data, len(data))
            pointer = self.device.alloc(len(data))
            copied = c_void_p()
            cuda("cuEventCreate", byref(copied), c_uint(EVENT_DISABLE_TIMING))
            cuda("cuMemcpyHtoDAsync", c_uint64(pointer), self.host, c_size_t(len(data)), self.stream)
            cuda("cuEventRecord", copied, self.stream)
            self.ready.put((pointer, len(batch), copied))
        self.ready.put(None)

    def __iter__(self):
        while True:
            item = self.ready.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item


class Parameter:
    def __init__(self, device, count, bound, random):
        self.device, self.count = device, count
        values = [bound * random.symmetric() for _ in range(count)]
        self.value = device.upload(struct.pack(f"<{count}f", *values))
        self.velocity = device.upload(bytes(4 * count))

    def update(self, gradient, rate):
        self.device.launch("sgd_momentum", up(self.count, ELEMENTS), self.value, self.velocity, gradient, self.count, rate, 0.9, 1e-4)


class Network:
    """64 pixels, one hidden layer of relu, ten classes. Matrices are [features, images]."""

    def __init__(self, device, hidden, random):
        self.device, self.hidden = device, hidden
        self.w1 = Parameter(device, hidden * PIXELS, (6 / PIXELS) ** 0.5, random)
        self.b1 = Parameter(device, hidden, 0.0, random)
        self.w2 = Parameter(device, CLASSES * hidden, (3 / hidden) ** 0.5, random)
        self.b2 = Parameter(device, CLASSES, 0.0, random)

    def parameters(self):
        return self.w1, self.b1, self.w2, self.b2

    def linear(self, weight, bias, x, rows, depth, images):
        device = self.device
        product, y = device.floats(rows * images), device.floats(rows * images)
        device.launch("gemm_nn", up(rows, TILE_ROWS) * up(images, TILE_COLUMNS), weight.value, x, product, rows, images, depth)
        device.launch("add_bias", rows * images, product, bias.value, y, rows, images)
        device.free(product)
        return y

    def linear_gradients(self, x, dy, rows, depth, images):
        """Gradients of weight and bias."""
        device = self.device
        spans = up(images, DOT_SPAN)
        partial, dweight = device.floats(spans * rows * depth), device.floats(rows * depth)
        device.launch("gemm_nt_partial", spans * up(rows, DOT_TILE) * up(depth, DOT_TILE), dy, x, partial, rows, depth, images)
        device.launch("sum_partials", rows * depth, partial, dweight, rows * depth, spans)
        device.free(partial)
        partial, dbias = device.floats(spans * 2 * rows), device.floats(2 * rows)
        device.launch("row_moments_partial", spans * rows, dy, partial, rows, images)
        device.launch("sum_partials", 2 * rows, partial, dbias, 2 * rows, spans)
        device.free(partial)
        return dweight, dbias

    def run(self, batch, images, rate=None):
        """Losses and hits of a batch; learns from it if there is a rate."""
        device, hidden = self.device, self.hidden
        x = device.floats(PIXELS * images)
        device.launch("pixels_to_columns", PIXELS * images, batch, x, PIXELS, images)
        h = self.linear(self.w1, self.b1, x, hidden, PIXELS, images)
        a = device.floats(hidden * images)
        device.launch("relu_forward", up(hidden * images, ELEMENTS), h, a, hidden * images)
        logits = self.linear(self.w2, self.b2, a, CLASSES, hidden, images)
        outcome, dlogits = device.floats(2 * images), device.floats(CLASSES * images)
        device.launch("softmax_loss", images, logits, batch + PIXELS * images, outcome, outcome + 4 * images, dlogits, CLASSES, images)
        device.free(logits)
        if rate is not None:
            da, dh = device.floats(hidden * images), device.floats(hidden * images)
            device.launch("gemm_tn", up(hidden, TILE_ROWS) * up(images, TILE_COLUMNS), self.w2.value, dlogits, da, hidden, images, CLASSES)
            dw2, db2 = self.linear_gradients(a, dlogits, CLASSES, hidden, images)
            device.launch("relu_backward", up(hidden * images, ELEMENTS), h, da, dh, hidden * images)
            device.free(da)
            dw1, db1 = self.linear_gradients(x, dh, hidden, PIXELS, images)
            device.free(dh)
            for parameter, gradient in zip(self.parameters(), (dw1, db1, dw2, db2)):
                parameter.update(gradient, rate)
            device.free(dw1, db1, dw2, db2)
        device.free(dlogits, a, h, x)
        values = struct.unpack(f"<{2 * images}f", device.download_floats(outcome, 2 * images))
        device.free(outcome)
        return sum(values[:images]), int(sum(values[images:]))


def batches_of(images, size):
    return [images[i:i + size] for i in range(0, len(images), size)]


def read_in_child(path):
    """A forked child that keeps away from CUDA: counts the lines of the data and writes the number into a pipe."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with open(path, "rb") as file:
                os.write(write_end, str(sum(1 for _ in file)).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit("train.py: the forked child failed")
    return int(text)


def parse():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="Trains a small network on handwritten digits through the CUDA driver API.")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch", type=int, default=120)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quiet", action="store_true", help="only accuracy and checksum")
    parser.add_argument("--data", default=os.path.join(here, "data", "digits.csv"), help="the digits (default: %(default)s)")
    parser.add_argument("--module", default=os.path.join(here, "digits_kernels.fatbin"), help="the kernels (default: %(default)s)")
    options = parser.parse_args()
    for name in ("epochs", "batch", "hidden"):
        if not 1 <= getattr(options, name) <= 4096:
            parser.error(f"--{name} expects a number from 1 to 4096")
    return options


def main():
    options = parse()
    train, test = read_digits(options.data)
    device = Device(options.module)
    random = Random(options.seed)
    network = Network(device, options.hidden, random)

    work = []
    for _ in range(options.epochs):
        random.shuffle(train)
        work += batches_of(train, options.batch)
    steps = len(work)
    work += batches_of(test, options.batch)
    # Forked from a process with a context and a kernel under way, before the second thread exists.
    images = read_in_child(options.data)
    if images != len(train) + len(test):
        sys.exit(f"train.py: the forked child counted {images} images instead of {len(train) + len(test)}")
    uploader = Uploader(device, work, options.batch)
    uploader.start()

    per_epoch = steps // options.epochs
    loss = hits = seen = 0
    for step, (batch, count, copied) in enumerate(uploader):
        device.cuda("cuStreamWaitEvent", device.stream, copied, c_uint(0))
        rate = 0.1 * (1 - step / steps) if step < steps else None
        batch_loss, batch_hits = network.run(batch, count, rate)
        device.free(batch)
        device.cuda("cuEventDestroy_v2", copied)
        loss, hits, seen = loss + batch_loss, hits + batch_hits, seen + count
        if step < steps and (step + 1) % per_epoch == 0:
            if not options.quiet:
                print(f"epoch {(step + 1) // per_epoch}: loss {loss / seen:.6f}, training accuracy {100 * hits / seen:.2f} %", flush=True)
            loss = hits = seen = 0
    print(f"test accuracy {100 * hits / seen:.2f} % ({hits} of {seen})")

    checksum = 0xCBF29CE484222325
    for parameter in network.parameters():
        for byte in device.download_floats(parameter.value, parameter.count):
            checksum = ((checksum ^ byte) * 0x100000001B3) & Random.MASK
    print(f"checksum {checksum:016x}")
    # Weights, streams, the module and the upload thread's page-locked memory are left to the end of the process, as scripts do.


if __name__ == "__main__":
    main()
