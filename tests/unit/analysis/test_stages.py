"""Replicated stages: what all threads compute for themselves, without a barrier, and what they may not."""

from __future__ import annotations

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.analysis import barriers as analysis
from compiler.analysis.barriers import barriers
from compiler.analysis.stages import replicated
from compiler.program.tree import Loop
from compiler.schedule import Schedule
from compiler.support.errors import LoweringError
from compiler.targets import simt
from strata.passes import lower_to_kernels


def scaled(scope: str = "local") -> Schedule:
    """Y[i, j] = X[i, j] * S[i], S[i] the sum of P[i, k], which threads put into shared memory."""
    x = te.placeholder((3, 64), name="X")
    p = te.compute((3, 4), lambda i, k: x[i, k] + 1.0, name="P")
    k = te.reduce_axis(4, "k")
    t = te.compute((3, 1), lambda i, _: te.sum(p[i, k], axis=k), name="S")
    y = te.compute((3, 64), lambda i, j: x[i, j] * t[i, 0], name="Y")
    s = Schedule(compiler.lower(te.function("scaled", [x], [y])))
    row, j = s.get_loops("Y")
    for label in ("S", "P"):
        s.compute_at(s.get_block(label), row)
    s.set_scope(s.get_block("P"), "shared")
    s.set_scope(s.get_block("S"), scope)
    s.bind(s.get_loops("P")[-1], "thread_x")
    s.bind(j, "thread_x")
    s.bind(row, "block_x")
    return s


def test_each_thread_has_its_own() -> None:
    s = scaled()
    (kernel,) = (node for node in s.program.body if isinstance(node, Loop))
    assert set(replicated(s.program, kernel)) == {"S"}
    assert len(barriers(s.program, kernel)) == 1  # from P to S
    text = compiler.build(s, "cuda").text
    assert "float S[1][1];" in text and "  S[0][0] = 0.0f;" in text and text.count("__syncthreads();") == 1
    x = np.random.default_rng(0).standard_normal((3, 64), np.float32)
    checked = simt.run(lower_to_kernels(s.module)[0], [x])
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    np.testing.assert_allclose(checked.outputs[0], x * (x[:, :4] + 1).sum(axis=1, keepdims=True), rtol=1e-5)


def test_a_shared_one_needs_a_barrier_more() -> None:
    s = scaled("shared")
    (kernel,) = (node for node in s.program.body if isinstance(node, Loop))
    assert not replicated(s.program, kernel) and len(barriers(s.program, kernel)) == 2


def test_what_other_threads_overwrite_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """In rounds: all threads read P, and thread 0 alone overwrites P[0] in the next round, which needs a barrier. If a
    replicated stage is taken for one of thread 0, none is placed, and simt names the race."""
    x = te.placeholder((3, 64), name="X")
    p = te.compute((3, 1), lambda i, _: x[i, 0] + 1.0, name="P")
    t = te.compute((3, 1), lambda i, _: p[i, 0] * 2.0, name="S")
    y = te.compute((3, 64), lambda i, j: x[i, j] * t[i, 0], name="Y")

    def rounds() -> Schedule:
        s = Schedule(compiler.lower(te.function("rounds", [x], [y])))
        row, j = s.get_loops("Y")
        for label, scope in (("S", "local"), ("P", "shared")):
            s.compute_at(s.get_block(label), row)
            s.set_scope(s.get_block(label), scope)
        s.bind(j, "thread_x")
        return s

    array = np.random.default_rng(0).standard_normal((3, 64), np.float32)
    s = rounds()
    (kernel,) = (node for node in s.program.body if isinstance(node, Loop))
    assert len(barriers(s.program, kernel)) == 2
    checked = simt.run(lower_to_kernels(s.module)[0], [array])
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    monkeypatch.setattr(analysis._Walker, "_free", lambda self, statement: {})
    assert any("race" in str(fault) for fault in simt.run(lower_to_kernels(rounds().module)[0], [array]).faults)


def test_a_stage_that_writes_shared_memory_too_is_not_replicated() -> None:
    """T is set in the threads of x at y = 0 alone, and read in all."""
    x = te.placeholder((3, 2, 32), name="X")
    t = te.compute((3, 32), lambda i, j: x[i, 0, j] + 1.0, name="T")
    u = te.compute((3, 32), lambda i, j: x[i, 1, j] * 2.0, name="U")
    y = te.compute((3, 2, 32), lambda i, k, j: t[i, j] * u[i, 31 - j] + x[i, k, j], name="Y")
    s = Schedule(compiler.lower(te.function("f", [x], [y])))
    row, k, j = s.get_loops("Y")
    for label, scope in (("U", "shared"), ("T", "local")):
        s.compute_at(s.get_block(label), row)
        s.set_scope(s.get_block(label), scope)
    s.bind(s.merge(s.get_loops("U")[-1], s.get_loops("T")[-1]), "thread_x")
    for loop, kind in ((j, "thread_x"), (k, "thread_y"), (row, "block_x")):
        s.bind(loop, kind)
    (kernel,) = (node for node in s.program.body if isinstance(node, Loop))
    assert not replicated(s.program, kernel)
    with pytest.raises(LoweringError, match="threads share elements of the local buffer 'T'"):
        lower_to_kernels(s.module)


def test_a_local_buffer_of_one_thread_is_refused() -> None:
    """T is written by the threads of x alone and read by all: a copy along y is nobody's."""
    x = te.placeholder((3, 2, 32), name="X")
    t = te.compute((3, 32), lambda i, j: x[i, 0, j] + 1.0, name="T")
    u = te.compute((3, 32), lambda i, j: t[i, 31 - j] * 2.0, name="U")
    y = te.compute((3, 2, 32), lambda i, k, j: x[i, k, j] * u[i, j], name="Y")
    s = Schedule(compiler.lower(te.function("f", [x], [y])))
    row, k, j = s.get_loops("Y")
    for label in ("U", "T"):
        s.compute_at(s.get_block(label), row)
        s.set_scope(s.get_block(label), "local")
        s.bind(s.get_loops(label)[-1], "thread_x")
    s.bind(j, "thread_x")
    s.bind(k, "thread_y")
    s.bind(row, "block_x")
    with pytest.raises(LoweringError, match="threads share the local buffer 'T'"):
        lower_to_kernels(s.module)
