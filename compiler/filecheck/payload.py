"""Payloads that several FileCheck tests share; `python -m compiler.filecheck.payload FILE` prints a test with them.

    // PAYLOAD: matmul
    // PAYLOAD: matmul @tiled s/"k" %k = 4/"k" %k = 4 unrolled/

is replaced by payloads/matmul.mlir in the file's folder or one above it: unchanged, or with `@f` renamed to `@tiled`
and the first occurrence of a text replaced (every one: `s/A/B/g`), as by sed, but literally. A line that ends in a
backslash continues in the next comment.

    // PAYLOAD: matmul @unrolled C(m, n, k) D()
      sched.unroll %k

is the payload with a script, payloads/script.mlir, which has a line `// STEPS`: the lines below, up to an empty line,
another payload or `// -----`, take the place of that line. Before them `C(m, n, k)` stands for the handles of a block
and of its loops: `%c = sched.get_block %f "C"` and `%m, %n, %k = sched.get_loops %c`. A script without another payload
is `// PAYLOAD: script C(m, n, k)`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = "payloads"
"""The name of the folders of payloads, which are no tests."""

_LINE = re.compile(r"^// PAYLOAD:((?:.*\\\n//)*.*)\n?((?:(?!// -----|// PAYLOAD:).+\n?)*)", re.MULTILINE)
_WORDS = re.compile(r"\s*(\w+)(?:\s+(@\w+))?((?:\s+\w+\([^()/]*\))*)((?:\s+s/[^/]+/[^/]*/g?)*)\s*")
_CHANGE = re.compile(r"s/([^/]+)/([^/]*)/(g?)")
_HANDLES = re.compile(r"(\w+)\(([^()]*)\)")
_STEPS = "  // STEPS\n"


class FileCheckError(AssertionError):
    """Raised for a RUN line that fails, with its output, and for a malformed RUN line or payload, and a file without
    checks."""


@dataclass(frozen=True)
class Segment:
    """A part of an expanded test: its text, and the offsets in the file of the first and behind the last character of
    this text, or of the PAYLOAD comment that `is_payload` text replaces."""

    text: str
    start: int
    end: int
    is_payload: bool = False


def expanded(path: Path) -> str:
    """Return the text of a test with its PAYLOAD comments replaced by the payloads. Raises FileCheckError for a
    malformed comment, an unknown payload, and a replacement of text that the payload does not have."""
    return "".join(segment.text for segment in segments(path, path.read_text(encoding="utf-8")))


def segments(path: Path, text: str) -> Iterator[Segment]:
    """Yield the parts of the text of a test, with its PAYLOAD comments replaced by the payloads of the folders above
    `path`. Raises FileCheckError as `expanded` does."""
    end = 0
    for line in _LINE.finditer(text):
        yield Segment(text[end : line.start()], end, line.start())
        payload, end = _payload(path, line[1]), line.end()
        before, steps, after = payload.partition(_STEPS)
        yield Segment(before, line.start(), line.end(1), is_payload=True)
        yield Segment(line[2], *line.span(2))
        if steps:
            yield Segment(after, line.start(), line.end(1), is_payload=True)
    yield Segment(text[end:], end, len(text))


def _payload(path: Path, words: str) -> str:
    words = words.replace("\\\n//", " ")
    parsed = _WORDS.fullmatch(words)
    if parsed is None:
        raise FileCheckError(
            f"{path}: 'PAYLOAD:{words}' is not a name, '@' with another one for '@f', blocks with their loops as "
            "'C(m, n)', and changes s/A/B/"
        )
    text = _read(path, parsed[1])
    name = [("@f", parsed[2], "")] if parsed[2] else []
    for before, after, each in [*name, *_CHANGE.findall(parsed[4])]:
        if before not in text:
            raise FileCheckError(f"{path}: payload '{parsed[1]}' does not have '{before}'")
        text = text.replace(before, after, -1 if each else 1)
    handles = "".join(_handles(*match) for match in _HANDLES.findall(parsed[3]))
    if handles and _STEPS not in text:
        text += _read(path, "script")
    return text.replace(_STEPS, handles + _STEPS)


def _read(path: Path, name: str) -> str:
    files = [folder / FOLDER / f"{name}.mlir" for folder in path.resolve().parents]
    file = next((file for file in files if file.exists()), None)
    if file is None:
        raise FileCheckError(f"{path}: there is no payload '{name}'")
    return file.read_text(encoding="utf-8")


def _handles(block: str, loops: str) -> str:
    lines = f'  %{block.lower()} = sched.get_block %f "{block}"\n'
    if loops:
        names = loops.split(", ")
        results, types = ", ".join(f"%{name}" for name in names), ", ".join(["!sched.loop"] * len(names))
        lines += f"  {results} = sched.get_loops %{block.lower()} : {types}\n"
    return lines


if __name__ == "__main__":
    print(expanded(Path(sys.argv[1])), end="")
