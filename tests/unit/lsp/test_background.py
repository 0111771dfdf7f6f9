"""Slow questions: replies, limits, replaced versions, crashes of the worker."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from queue import Queue

from compiler.lsp.background import Background, Question, findings_call, ir_call
from compiler.support.worker import Refused

TEXT = """func.func @f(%A: tensor<8xf32>) -> tensor<8xf32> {
  %E = te.compute "E" [i = 8] (%a = %A[i] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %a : f32
  }
  func.return %E : tensor<8xf32>
}
"""


def test_questions_and_what_ends_them() -> None:
    background, replies = Background(seconds=25.0), Queue[object]()
    ask = partial(Question, receive=replies.put)
    try:
        background.ask("ir", ask(ir_call(Path("t.mlir"), TEXT, 0, 2)))
        assert "loop.for" in str(replies.get(timeout=60))
        background.ask("ir", ask(ir_call(Path("t.mlir"), TEXT, 7, 1)))
        assert replies.get(timeout=60) == Refused("the program has errors: its passes cannot run")
        refused = "// RUN: strata-opt %s -p loop-to-low\n" + TEXT
        background.ask("t", ask(findings_call(Path("t.mlir"), refused)))
        (finding,) = replies.get(timeout=60)  # type: ignore[misc]
        assert "takes the loop level" in finding.sentence
        start = time.monotonic()
        background.ask("t", ask(partial(time.sleep, 60)))
        while "t" in background._questions:
            time.sleep(0.01)
        background.ask("t", ask(partial(str, "newer")))
        assert replies.get(timeout=60) == "newer" and time.monotonic() - start < 20
        background.ask("crash", ask(partial(os._exit, 7)))
        assert "status 7" in str(replies.get(timeout=60))
        background._seconds = 2.0
        background.ask("slow", ask(partial(time.sleep, 60)))
        assert replies.get(timeout=20) == Refused("not done after 2 seconds")
    finally:
        background.close()
    assert background._worker is None
