"""What a command says of wrong input: one sentence, then perhaps the line that it is about with a caret."""

from __future__ import annotations

import re
from collections.abc import Callable

Strata = Callable[..., str]
"""The fixture `strata`, a command in this process: its words, and `status`; what it prints, or a refusal."""

_HEAD = re.compile(r"(strata|strata-opt|\S.*:\d+:\d+): error: \S")
_NOTE = re.compile(r"<passes>:\d+:\d+: note: by this pass")
_CARET = re.compile(r"[ \t]*\^~*")


def refusal(err: str) -> str:
    """The sentence on stderr, with its head; nothing else stands there but the pass that refuses,
    a line of a source, and a caret below it."""
    first, *excerpt = err.splitlines()
    assert _HEAD.match(first), err
    if excerpt and _NOTE.match(excerpt[0]):
        del excerpt[0]
    assert not excerpt or (len(excerpt) == 2 and _CARET.fullmatch(excerpt[1])), err
    return first
