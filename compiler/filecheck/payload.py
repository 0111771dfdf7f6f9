"""Payloads that several FileCheck tests share; `python -m compiler.filecheck.payload FILE` prints a test with them.

    // PAYLOAD: matmul
    // PAYLOAD: matmul @tiled s/"k" %k = 4/"k" %k = 4 unrolled/

stands for payloads/matmul.mlir of the file's folder or one above it: as it is; or with `@f` named `@tiled` and the
first occurrence of a text replaced, as sed does, but literally.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDER = "payloads"
"""The name of the folders of payloads, which are no tests."""

_LINE = re.compile(r"^// PAYLOAD:(.*)$", re.MULTILINE)
_WORDS = re.compile(r"\s*(\w+)(?:\s+(@\w+))?((?:\s+s/[^/]+/[^/]*/)*)\s*")
_CHANGE = re.compile(r"s/([^/]+)/([^/]*)/")


class FileCheckError(AssertionError):
    """A RUN line that did not end as it should, with what it printed, or a file that checks nothing."""


def expanded(path: Path) -> str:
    """The text of a test, with its payloads. Raises FileCheckError for an unknown one or a change that is none."""
    return _LINE.sub(lambda line: _payload(path, line[1]), path.read_text(encoding="utf-8"))


def _payload(path: Path, words: str) -> str:
    parsed = _WORDS.fullmatch(words)
    if parsed is None:
        raise FileCheckError(
            f"{path}: 'PAYLOAD:{words}' is not a name, '@' with another one for '@f', and changes s/A/B/"
        )
    files = [folder / FOLDER / f"{parsed[1]}.mlir" for folder in path.resolve().parents]
    file = next((file for file in files if file.exists()), None)
    if file is None:
        raise FileCheckError(f"{path}: there is no payload '{parsed[1]}'")
    text = file.read_text(encoding="utf-8").rstrip("\n")
    for before, after in [("@f", parsed[2] or "@f"), *_CHANGE.findall(parsed[3])]:
        if before not in text:
            raise FileCheckError(f"{path}: payload '{parsed[1]}' does not have '{before}'")
        text = text.replace(before, after, 1)
    return text


if __name__ == "__main__":
    print(expanded(Path(sys.argv[1])), end="")
