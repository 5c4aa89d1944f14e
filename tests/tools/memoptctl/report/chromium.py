"""A headless Chromium that shows one page, by the Chrome DevTools protocol over a pipe: nothing listens anywhere."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

import patience

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def find():
    """Its path; None: there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Page:
    """Shows a file, or an address. Errors and console messages of the page are in `errors`."""

    def __init__(self, path, width=1440, height=1000, dark=False):
        self.errors = []
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # helpers of it may still write
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def pipes():  # it reads from 3 and writes to 4
            first, second = os.dup(to_browser), os.dup(from_browser)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=pipes, close_fds=False)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.session, self.events = b"", 0, None, []
        target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.size(width, height)
        self.dark(dark)
        self.call("Page.navigate", url=path if "://" in path else "file://" + os.path.abspath(path))
        self.await_ready()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, RuntimeError):
            self.process.kill()
        self.process.wait(patience.seconds(20))
        os.close(self.write_end)
        os.close(self.read_end)
        self.profile.cleanup()

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        end = time.monotonic() + patience.seconds(60)
        while True:
            answer = self.receive(end)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def receive(self, end):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], max(0, end - time.monotonic()))
            read = os.read(self.read_end, 1 << 20) if ready else b""
            if not read:
                raise RuntimeError("Chromium has ended" if ready else "Chromium does not answer")
            self.buffer += read
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        self.note(message)
        return message

    def note(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled":
            self.errors.append(" ".join(str(one.get("value")) for one in parameters["args"]))
        elif method == "Log.entryAdded":
            self.errors.append(parameters["entry"]["text"])

    def value(self, expression):
        """Of JavaScript in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']['exception'].get('description')}")
        return answer["result"].get("value")

    def wait(self, expression):
        end = time.monotonic() + patience.seconds(30)
        while not self.value(expression):
            if time.monotonic() > end:
                raise RuntimeError(f"it never came that {expression}")
            time.sleep(0.02)

    def await_ready(self):
        self.wait("document.documentElement !== null && 'ready' in document.documentElement.dataset")
        self.frames()

    def reload(self):
        self.value("delete document.documentElement.dataset.ready")
        self.call("Page.reload")
        self.await_ready()

    def frames(self):
        """Two of them: what was asked for has been drawn."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)}).textContent")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def place(self, selector, across=0.5, down=0.5):
        """A point of an element, which is scrolled into view."""
        x, y, width, height = self.value(f"""(() => {{
            const found = document.querySelector({json.dumps(selector)});
            found.scrollIntoView({{block: 'center', behavior: 'instant'}});
            const box = found.getBoundingClientRect();
            return [box.x, box.y, box.width, box.height];
        }})()""")
        return x + across * width, y + down * height

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def hover(self, selector, across=0.5, down=0.5):
        x, y = self.place(selector, across, down)
        self.mouse("mouseMoved", x, y)
        self.frames()

    def click(self, selector, across=0.5, down=0.5):
        x, y = self.place(selector, across, down)
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.frames()

    def key(self, key, text=None):
        text = text if text is not None else key if len(key) == 1 else ""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.frames()

    def choose(self, selector, value):
        """An option of a select, or the value of a slider or a field, as if by hand."""
        self.value(f"""(() => {{
            const found = document.querySelector({json.dumps(selector)});
            found.value = {json.dumps(value)};
            for (const event of ['input', 'change']) found.dispatchEvent(new Event(event, {{bubbles: true}}));
        }})()""")
        self.frames()

    def pixels(self, selector):
        """Of a canvas: something that differs when another picture is drawn."""
        return self.value(f"document.querySelector({json.dumps(selector)}).toDataURL()")

    def picture(self, path, clip=None):
        """Of what is in view, or of a part of the page: (x, y, width, height)."""
        options = {"format": "png"}
        if clip:
            options |= {"captureBeyondViewport": True, "clip": dict(zip(("x", "y", "width", "height"), clip)) | {"scale": 1}}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))
