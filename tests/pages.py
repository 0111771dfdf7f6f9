"""Pages of `strata view`: their data, and the page in a headless browser."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import time
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def parts_of(page: str) -> list[dict[str, Any]]:
    """The data of the parts of a page."""
    blobs = re.findall(r'<script type="text/plain" id="part-\d+">([^<]*)</script>', page)
    return [json.loads(gzip.decompress(b64decode(blob))) for blob in blobs]


class Elements(HTMLParser):
    """The elements of a page: those that are open, and the values of attributes that load something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "!doctype"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


class Browser:
    """A headless browser, driven through a pipe by the DevTools protocol: messages of JSON that end in a zero byte."""

    def __init__(self, profile: Path) -> None:
        assert BROWSER is not None
        theirs, ours = os.pipe(), os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        shell = f'exec "$@" 3<&{theirs[0]} 4>&{ours[1]}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", BROWSER, *flags], pass_fds=(theirs[0], ours[1]), stderr=subprocess.DEVNULL
        )
        os.close(theirs[0])
        os.close(ours[1])
        self._input, self._output = os.fdopen(theirs[1], "wb", 0), os.fdopen(ours[0], "rb")
        self._count, self._session = 0, ""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def _call(self, method: str, **params: object) -> dict[str, Any]:
        """Send a command and return its result."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        self._input.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                values: dict[str, Any] = answer["result"]
                return values

    def _message(self) -> dict[str, Any]:
        received = bytearray()
        while (byte := self._output.read(1)) != b"\0":
            assert byte, "the browser has ended"
            received += byte
        message: dict[str, Any] = json.loads(received)
        return message

    def show(self, path: Path, place: str, *clicks: str, width: int = 1200) -> str:
        """Open a page at the hash `place`, click on the first element of each selector, and return the document."""
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", **size)
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=f"file://{path}#{place}")
        self.wait("main > *")
        for selector in clicks:
            self.wait(selector)
            self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")
            self.evaluate("new Promise((done) => setTimeout(done, 60))")
        document: str = self.evaluate("document.documentElement.outerHTML")
        return document

    def wait(self, selector: str) -> None:
        """Wait until the document has an element; AssertionError after ten seconds."""
        there = f"document.querySelector({json.dumps(selector)}) !== null"
        for _ in range(200):
            if self.evaluate(there):
                return
            time.sleep(0.05)
        raise AssertionError(f"there is no {selector}")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, of a promise when it is there."""
        answer = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self, path: Path) -> None:
        """Write what is visible as a PNG."""
        path.write_bytes(b64decode(self._call("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        """End the browser."""
        self._session = ""
        self._call("Browser.close")
        self._process.wait(timeout=20)
        self._input.close()
        self._output.close()
