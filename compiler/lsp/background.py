"""Slow questions about documents, answered by a worker process: the newest version of each wins, with a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Condition, Thread

from compiler.lsp.analysis import Finding
from compiler.lsp.checks import deep_findings, ir_after
from compiler.lsp.snapshot import Snapshot
from compiler.support.processes import Death, Worker
from compiler.support.worker import Calls, Ready, Refused, Reply, Unable, try_call

SECONDS = 10.0
"""The time limit of a question, in seconds, by default."""
GRACE_SECONDS = 1.0
"""The time after which a question is abandoned for a newer version of it, in seconds."""
POLL_SECONDS = 0.05
_latest: dict[str, Snapshot] = {}


@dataclass(frozen=True)
class Question:
    """A call for the worker, and the receiver of its reply, which is called in another thread: the result of the call,
    or Refused with a sentence, also if the call takes too long or ends the worker. The receiver is not called for a
    question that a newer one replaces."""

    call: Callable[[], Reply]
    receive: Callable[[Reply], None]


class _Replaced:
    """The reply to a question that a newer one replaces."""


class Background:
    """A worker process, started at the first question, and the thread that talks to it. `seconds` is the limit of a
    question; the start of the process does not count."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._questions: dict[str, Question] = {}
        self._changed = Condition()
        self._is_closed = False
        self._worker: Worker | None = None
        self._thread: Thread | None = None

    def ask(self, key: str, question: Question) -> None:
        """Ask a question; it replaces an unanswered one of the same key."""
        with self._changed:
            self._questions[key] = question
            if self._thread is None:
                self._thread = Thread(target=self._serve, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def drop(self, key: str) -> None:
        """Drop a question that was not begun yet; nothing if there is none."""
        with self._changed:
            self._questions.pop(key, None)

    def close(self) -> None:
        """End the worker process; questions are not answered any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._questions) or self._is_closed)
                if self._is_closed:
                    break
                key = next(iter(self._questions))
                question = self._questions.pop(key)
            reply = self._answer(key, question)
            if not isinstance(reply, _Replaced) and not self._is_closed:
                question.receive(reply)
        self._end_worker()

    def _answer(self, key: str, question: Question) -> Reply:
        """The reply of the worker to a question; `_Replaced` if a newer version of it waits."""
        worker = self._ready_worker()
        if worker is None:
            return Refused("the worker process does not start")
        worker.send(question.call)
        start = time.monotonic()
        while not worker.connection.poll(POLL_SECONDS):
            seconds = time.monotonic() - start
            is_replaced = seconds > GRACE_SECONDS and key in self._questions
            if self._is_closed or is_replaced or seconds > self._seconds:
                self._end_worker()
                return _Replaced() if is_replaced else Refused(f"not done after {self._seconds:g} seconds")
        reply = worker.receive()
        if isinstance(reply, Death):
            self._end_worker()
            return Refused(f"the worker process failed: {reply.reason}")
        return Refused(str(reply)) if isinstance(reply, Unable) else reply

    def _ready_worker(self) -> Worker | None:
        if self._worker is None:
            self._worker = Worker(Calls())
        if not self._worker.ready:
            self._worker.ready = isinstance(self._worker.receive(), Ready)
        if not self._worker.ready:
            self._end_worker()
        return self._worker

    def _end_worker(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker = None


def findings_call(path: Path, text: str) -> Callable[[], Reply]:
    """The call whose result are the `deep_findings` of a document."""
    return partial(try_call, partial(_findings, path, text))


def ir_call(path: Path, text: str, number: int, count: int) -> Callable[[], Reply]:
    """The call whose result is the text of `ir_after`, or Refused."""
    return partial(try_call, partial(_ir, path, text, number, count))


def _findings(path: Path, text: str) -> list[Finding]:
    return deep_findings(_snapshot(path, text))


def _ir(path: Path, text: str, number: int, count: int) -> str:
    return ir_after(_snapshot(path, text), number, count)


def _snapshot(path: Path, text: str) -> Snapshot:
    """The snapshot of a document in the worker, made with the analyses of the one before it."""
    former = _latest.get(str(path))
    if former is None or former.text != text:
        _latest.clear()
        _latest[str(path)] = Snapshot.of(path, text, former=former)
    return _latest[str(path)]
