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
