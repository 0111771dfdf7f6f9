"""Actions: the passes, laws and steps of scripts that a process performs, for logs and counters, as MLIR's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from compiler.support.spans import Span

REMARKS = ("passed", "missed", "failed", "analysis")
"""The categories of remarks: of what a pass has done, has not done, could not do, and has found out."""


@dataclass(frozen=True)
class Action:
    """An action, or a remark on one.

    category: `pass`, `law`, `step`, `legality`, or one of REMARKS. name: that of the pass, law or primitive. subject:
    its text, or its result; may be empty. optional: whether it may be omitted. span: its location, or None.
    """

    category: str
    name: str
    subject: str = ""
    optional: bool = False
    span: Span | None = None

    def __str__(self) -> str:
        return f"{self.category} {self.name}{f': {self.subject}' if self.subject else ''}"


Watcher = Callable[[Action], bool]
_watchers: list[Watcher] = []


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` with each action of the process in the context; an optional action is omitted if it returns
    False."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def is_watched() -> bool:
    """Whether there are watchers, for callers that would build a text for them."""
    return bool(_watchers)


def perform(category: str, name: str, subject: object = "", optional: bool = False) -> bool:
    """Report an action that is about to be performed to all watchers. Return False if one of them omits it, which is
    possible for an optional one only."""
    if not _watchers:
        return True
    action = Action(category, name, str(subject), optional)
    answers = [watcher(action) for watcher in _watchers]  # each is asked, also after a refusal
    return all(answers) or not optional


def remark(category: str, name: str, sentence: str, span: Span | None = None) -> None:
    """Report a remark of the pass `name` to all watchers; `category` is one of REMARKS, `span` its place in a text,
    None if unknown."""
    for watcher in _watchers:
        watcher(Action(category, name, sentence, span=span))
