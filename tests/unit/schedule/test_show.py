"""The outline of a scheduled program."""

from __future__ import annotations

import compiler
from compiler import recipes
from compiler.schedule import Schedule, outline
from examples.primitives import matmul, matmul_exp


def test_outline_of_a_packed_matmul() -> None:
    s = Schedule(compiler.lower(matmul()))
    recipes.gebp(s, s.get_block("C"), 4, 2, 8, 2, 4)
    assert outline(s.program).splitlines()[:8] == [
        "n.0 = 1",
        "  k.0 = 2",
        "    alloc B.pack: 2x2x4",
        "    ax0 = 2",
        "      ax1 = 2",
        "        ax2 = 4 vectorized",
        "          B.pack = f(B)",
        "    m.0 = 2",
    ]
    assert outline(s.program).splitlines()[-3:] == [
        "            m.2 = 2 unrolled",
        "              n.2 = 4 vectorized",
        "                C += f(A.pack, B.pack), guarded",
    ]


def test_outline_says_scopes_and_labels() -> None:
    s = Schedule(compiler.lower(matmul_exp()))
    s.cache_write(s.get_block("D"), "local")
    lines = outline(s.program).splitlines()
    assert lines[0] == "alloc C: 6x8"
    assert "alloc D.local: 6x8 local" in lines
    assert "    D: D.local = f(C)" in lines
    assert "    D.local: D = f(D.local)" in lines
