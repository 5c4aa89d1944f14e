#!/usr/bin/env python3
"""memoptctl metrics, read by Prometheus' own parser; the dashboard against what there is.

usage: metrics_test.py MEMOPTCTL SOURCE [unittest arguments]
"""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import unittest

import cases
import patience
import simulated

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:
    print("skipped: python3-prometheus-client is not installed")
    sys.exit(77)

MEMOPTCTL, SOURCE = [os.path.abspath(sys.argv.pop(1)) for _ in range(2)] if len(sys.argv) > 2 else sys.exit(__doc__)
PROGRAM = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
for code in (driver.cuInit(0), driver.cuDeviceGet(ctypes.byref(device), 0), driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
             driver.cuCtxSetCurrent(context), driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(100 << 20))):
    if code: sys.exit(f"CUDA error {code}")
print("ready", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def program(name):
    process = subprocess.Popen([MEMOPTCTL, "run", "--sim", "a100-40g", "--limit", "4GiB", "--", "bash", "-c", 'exec -a "$0" "$@"', name, sys.executable,
                                "-S", "-c", PROGRAM], env=simulated.clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout.readline() != "ready\n":
            raise AssertionError("the program did not start")
        yield process
    finally:
        process.stdin.close()
        process.wait(100)
        process.stdout.close()


def once():
    return subprocess.run([MEMOPTCTL, "metrics"], check=True, capture_output=True, text=True, timeout=patience.seconds(100)).stdout


def samples(text, pid):
    """{(name, further labels): value} of that process, by the parser."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = dict(sample.labels)
            if labels.pop("pid", None) == str(pid):
                program_name = labels.pop("program")
                found[(sample.name, *labels.values())] = sample.value
                found["program"] = program_name
    return found


class Text(unittest.TestCase):
    def test_a_program_with_a_limit_and_a_hostile_name(self):
        name = 'we"ird\\name{}\nx\x1b[2J'
        with program(name) as process:
            text = once()
            found = samples(text, process.pid)
        self.assertEqual(found["program"], 'we"ird\\name{}?x?[2J')
        self.assertEqual(found[("memopt_limit_bytes",)], 4 << 30)
        self.assertEqual(found[("memopt_live_bytes",)], 100 << 20)
        self.assertGreaterEqual(found[("memopt_footprint_bytes",)], 100 << 20)
        self.assertGreater(found[("memopt_calls_total",)], 3)
        self.assertEqual(found[("memopt_copied_bytes_total", "out")], 0)
        self.assertEqual(sum(value for key, value in found.items() if key[0] == "memopt_state"), 1)
        self.assertNotIn("\x1b", text)

    def test_each_family_is_as_the_format_has_it(self):
        families = {family.name: family for family in text_string_to_metric_families(once())}
        self.assertIn("memopt_processes", families)
        for name, family in families.items():
            self.assertTrue(family.documentation.endswith("."), name)
            self.assertTrue(not family.unit or name.endswith("_" + family.unit), name)
            self.assertIn(family.type, ("gauge", "counter", "stateset"))

    def test_the_page_and_the_dashboard_name_what_there_is(self):
        with program("p") as process:
            there = {key[0] for key in samples(once(), process.pid) if key != "program"} | {"memopt_processes"}
        listed = subprocess.run([MEMOPTCTL, "metrics", "--markdown"], check=True, capture_output=True, text=True).stdout
        on_page = set(re.findall(r"^\| `(memopt_\w+)", listed, re.MULTILINE))
        self.assertEqual(there - on_page, set())
        with open(os.path.join(SOURCE, "docs", "grafana", "memopt.json"), encoding="utf-8") as file:
            dashboard = json.load(file)
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        queries += [variable["definition"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
        self.assertGreater(len(queries), 10)
        for query in queries:
            names = set(re.findall(r"(?<![{\w])memopt_\w+(?!\w)", re.sub(r"\{\{.*?\}\}", "", query)))
            self.assertTrue(names, query)
            self.assertEqual(names - on_page, set(), query)
            for counter in (name for name in names if name.endswith("_total")):
                self.assertIn(f"rate({counter}", query, "a counter is shown as its rate")
        places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
        for number, (x, y, w, h) in enumerate(places):
            self.assertLessEqual(x + w, 24)
            for x2, y2, w2, h2 in places[:number]:
                self.assertTrue(x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y, "panels lie beside each other")


class Served(unittest.TestCase):
    def serve(self, address):
        server = subprocess.Popen([MEMOPTCTL, "metrics", "--listen", address], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.addCleanup(lambda: (server.kill(), server.wait(), server.stderr.close()))
        line = server.stderr.readline()
        match = re.fullmatch(r"memoptctl: metrics at http://\[?([0-9a-f.:]+?)\]?:(\d+)/metrics\n", line)
        self.assertIsNotNone(match, line)
        return server, match.group(1), int(match.group(2))

    def get(self, host, port, path="/metrics", method="GET", **headers):
        connection = http.client.HTTPConnection(host, port, timeout=patience.seconds(60))
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer, body

    def test_it_is_served_until_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            server, host, port = self.serve("127.0.0.1:0")
            with program("served") as process:
                answer, body = self.get(host, port)
                self.assertEqual((answer.status, answer.getheader("Content-Type")),
                                 (200, "application/openmetrics-text; version=1.0.0; charset=utf-8"))
                self.assertEqual(samples(body, process.pid)["program"], "served")
            server.send_signal(number)
            self.assertEqual(server.wait(patience.seconds(60)), 0)

    def test_what_is_refused(self):
        _, host, port = self.serve("127.0.0.1:0")
        self.assertEqual(self.get(host, port, "/")[0].status, 404)
        self.assertEqual(self.get(host, port, "/metrics?x=1")[0].status, 200)
        self.assertEqual(self.get(host, port, method="DELETE")[0].status, 405)
        self.assertEqual(self.get(host, port, Host="evil.example:9400")[0].status, 403)
        self.assertEqual(self.get(host, port, Host=f"localhost:{port}")[0].status, 200)
        self.assertEqual(self.get(host, port, method="HEAD")[1], "")
        for nonsense in (b"\0" * 100, b"GET /metrics", b"x" * 100000, b"GET / HTTP/9.9\r\n\r\n", b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"):
            with socket.create_connection((host, port)) as one, contextlib.suppress(ConnectionError):
                one.sendall(nonsense)
        # One that says nothing, while others are served.
        with socket.create_connection((host, port)):
            self.assertEqual(self.get(host, port)[0].status, 200)

    def test_addresses(self):
        if socket.has_ipv6:
            with contextlib.suppress(OSError):
                with socket.socket(socket.AF_INET6) as probe:
                    probe.bind(("::1", 0))
                _, host, port = self.serve("[::1]:0")
                self.assertEqual(self.get(host, port)[0].status, 200)
        _, _, port = self.serve("127.0.0.1:0")
        for address, code, why in ((f"127.0.0.1:{port}", 1, f"127.0.0.1:{port}: can't be listened at: Address already in use"),
                                   ("0.0.0.0:9400", 2, "'0.0.0.0:9400': expected an address of this machine alone and a port"),
                                   ("9400", 2, "'9400': expected an address")):
            done = subprocess.run([MEMOPTCTL, "metrics", "--listen", address], capture_output=True, text=True, timeout=patience.seconds(60))
            self.assertEqual((done.returncode, done.stdout), (code, ""), address)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    cases.main()
