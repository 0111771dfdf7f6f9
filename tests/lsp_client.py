"""A scripted client of the language server: requests over the standard streams, and the seconds that they take."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import deque
from pathlib import Path
from queue import Queue
from threading import Thread
from time import perf_counter
from typing import Any

ROOT = Path(__file__).parents[1]


class Client:
    """A client of a server process, in plain JSON, so that the protocol itself is tested.

    `seconds` has the time of each request by its method; `published` the diagnostics by document, newest last.
    """

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "compiler", "lsp", *arguments]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.messages: Queue[dict[str, Any]] = Queue()
        self.seconds: dict[str, list[float]] = {}
        self.published: dict[str, list[dict[str, Any]]] = {}
        self.notes: deque[dict[str, Any]] = deque()
        self._number = 0
        self._versions: dict[str, int] = {}
        Thread(target=self._read, daemon=True).start()
        Thread(target=self._drain, daemon=True).start()
        self.capabilities = self.ask("initialize", processId=None, rootUri=None, capabilities={})["capabilities"]
        self.tell("initialized")

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            length = 0
            while (line := stream.readline().strip()) != b"":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not length:
                return
            self.messages.put(json.loads(stream.read(length)))

    def _drain(self) -> None:
        assert self.process.stderr is not None
        self.errors = b""
        for line in self.process.stderr:
            self.errors += line

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def tell(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request, and return its result; an error of the server is an AssertionError."""
        self._number += 1
        start, number = perf_counter(), self._number
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._next(60)
            if message.get("id") == number and "method" not in message:
                self.seconds.setdefault(method, []).append(perf_counter() - start)
                assert "error" not in message, message
                return message["result"]

    def _next(self, timeout: float) -> dict[str, Any]:
        message = self.messages.get(timeout=timeout)
        if message.get("method") == "textDocument/publishDiagnostics":
            params = message["params"]
            self.published.setdefault(params["uri"], []).append(params)
        elif "method" in message:
            self.notes.append(message)
        return message

    def open(self, uri: str, text: str) -> list[dict[str, Any]]:
        """Open a document, and return its first diagnostics."""
        self._versions[uri] = 1
        start = perf_counter()
        document = {"uri": uri, "languageId": "mlir", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)
        return self._diagnostics(uri, "open", start)

    def change(self, uri: str, text: str) -> list[dict[str, Any]]:
        """Replace the text of a document, and return the first diagnostics of the new version."""
        self._versions[uri] += 1
        start = perf_counter()
        version = {"uri": uri, "version": self._versions[uri]}
        self.tell("textDocument/didChange", textDocument=version, contentChanges=[{"text": text}])
        return self._diagnostics(uri, "change", start)

    def _diagnostics(self, uri: str, name: str, start: float) -> list[dict[str, Any]]:
        while True:
            self._next(60)
            newest = self.published.get(uri, [{}])[-1]
            if newest.get("version") == self._versions[uri]:
                self.seconds.setdefault(name, []).append(perf_counter() - start)
                return list(newest["diagnostics"])

    def later(self, uri: str, timeout: float = 30) -> list[dict[str, Any]]:
        """Wait for further diagnostics of the same version, those of passes."""
        count = len(self.published[uri])
        while len(self.published[uri]) == count:
            self._next(timeout)
        return list(self.published[uri][-1]["diagnostics"])

    def at(self, method: str, uri: str, text: str, word: str, shift: int = 1, **params: Any) -> Any:
        """Ask about the first occurrence of a word in an ASCII text, `shift` characters behind its start."""
        before = text[: text.index(word) + shift]
        position = {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}
        return self.ask(f"textDocument/{method}", textDocument={"uri": uri}, position=position, **params)

    def memory_bytes(self) -> int:
        """The peak of the server's resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def close(self) -> int:
        """End the server as the protocol says, and return its exit status."""
        self.ask("shutdown")
        self.tell("exit")
        return self.process.wait(timeout=20)


def measured() -> dict[str, list[float]]:
    """Ask a server about the encoder layer of BERT, as te and as loops, as an editor would: the seconds by request."""
    from io import StringIO

    from xdsl.printer import Printer

    from benchmarks.networks import bert
    from compiler import universe
    from strata.passes import parse_passes, run

    module = bert(layers=1).module
    client = Client()
    for level in ("te", "loop"):
        if level == "loop":
            run(universe.context(), module, parse_passes("te-to-loop"))
        stream = StringIO()
        Printer(stream).print_op(module)
        _ask_all(client, f"file:///no/bert_{level}.mlir", stream.getvalue() + "\n")
    print(f"peak of the server: {client.memory_bytes() / 1e6:.0f} MB")
    assert client.close() == 0
    return client.seconds


def _ask_all(client: Client, uri: str, text: str) -> None:
    """Open a document; then in turns change it, with an error in every other version, and ask everything about it."""
    lines = text.count("\n")
    print(f"{uri}: {lines} lines, {len(text)} characters")
    assert client.open(uri, text) == []
    words = list(re.finditer(r"(?<=[ (])%\w+|\b(?:te|loop)\.[a-z]+", text))
    for number, match in enumerate(words[:: max(1, len(words) // 30)]):
        is_wrong = number % 2
        version = text[: match.start()] + ("%%" if is_wrong else "") + text[match.start() :] + f"// {number}\n"
        assert bool(client.change(uri, version)) == bool(is_wrong)
        before = text[: match.start() + 1]
        position = {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}
        for method in ("hover", "definition", "completion"):
            client.ask(f"textDocument/{method}", textDocument={"uri": uri}, position=position)
        context = {"includeDeclaration": True}
        client.ask("textDocument/references", textDocument={"uri": uri}, position=position, context=context)
        for method in ("documentSymbol", "foldingRange", "codeLens"):
            client.ask(f"textDocument/{method}", textDocument={"uri": uri})


if __name__ == "__main__":
    for name, seconds in measured().items():
        ordered = sorted(seconds)
        middle, tail = (1e3 * ordered[min(len(ordered) - 1, int(part * len(ordered)))] for part in (0.5, 0.95))
        print(f"{name:32} {len(ordered):4} times, median {middle:6.1f} ms, 95% {tail:6.1f} ms")
