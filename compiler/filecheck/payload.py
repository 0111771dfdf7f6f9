"""Payloads that several FileCheck tests share; `python -m compiler.filecheck.payload FILE` prints a test with them.

    // PAYLOAD: matmul
    // PAYLOAD: matmul @tiled s/"k" %k = 4/"k" %k = 4 unrolled/

is replaced by payloads/matmul.mlir in the file's folder or one above it: unchanged, or with `@f` renamed to `@tiled`
and the first occurrence of a text replaced (every one: `s/A/B/g`), as by sed, but literally. A line that ends in a
backslash continues in the next comment.

    // PAYLOAD: loops_D_i
      sched.unroll %i

is a payload with a line `// STEPS`, such as a script that begins with its handles: the lines below, up to an empty
line, another payload or `// -----`, take the place of that line.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDER = "payloads"
"""The name of the folders of payloads, which are no tests."""

_LINE = re.compile(r"^// PAYLOAD:((?:.*\\\n//)*.*)\n?((?:(?!// -----|// PAYLOAD:).+\n?)*)", re.MULTILINE)
_WORDS = re.compile(r"\s*(\w+)(?:\s+(@\w+))?((?:\s+s/[^/]+/[^/]*/g?)*)\s*")
_CHANGE = re.compile(r"s/([^/]+)/([^/]*)/(g?)")
_STEPS = "  // STEPS\n"


class FileCheckError(AssertionError):
    """The failure of a RUN line, with its output, or a file that checks nothing."""


def expanded(path: Path) -> str:
    """Return the text of a test with its PAYLOAD comments replaced by the payloads. Raises FileCheckError for a
    malformed comment, an unknown payload, and a replacement of text that the payload does not have."""
    return _LINE.sub(lambda line: _with_steps(_payload(path, line[1]), line[2]), path.read_text(encoding="utf-8"))


def _with_steps(payload: str, below: str) -> str:
    before, steps, after = payload.partition(_STEPS)
    return before + below + after if steps else payload + below


def _payload(path: Path, words: str) -> str:
    words = words.replace("\\\n//", " ")
    parsed = _WORDS.fullmatch(words)
    if parsed is None:
        raise FileCheckError(
            f"{path}: 'PAYLOAD:{words}' is not a name, '@' with another one for '@f', and changes s/A/B/"
        )
    files = [folder / FOLDER / f"{parsed[1]}.mlir" for folder in path.resolve().parents]
    file = next((file for file in files if file.exists()), None)
    if file is None:
        raise FileCheckError(f"{path}: there is no payload '{parsed[1]}'")
    text = file.read_text(encoding="utf-8")
    name = [("@f", parsed[2], "")] if parsed[2] else []
    for before, after, each in [*name, *_CHANGE.findall(parsed[3])]:
        if before not in text:
            raise FileCheckError(f"{path}: payload '{parsed[1]}' does not have '{before}'")
        text = text.replace(before, after, -1 if each else 1)
    return text


if __name__ == "__main__":
    print(expanded(Path(sys.argv[1])), end="")
