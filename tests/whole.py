"""A whole program of four groups, written by hand: three of a layer, of which one is called twice, and one that reads
constants alone."""

from __future__ import annotations

from compiler import te
from compiler.dialects.functions import find_function

M, N = 6, 8
CONSTANTS = ("W", "b", "g")


def _groups() -> list[te.Function]:
    x, w, b = te.placeholder((M, N), name="X"), te.placeholder((N, N), name="W"), te.placeholder((N,), name="b")
    product = te.nn.add(te.nn.matmul(x, w, name="mm"), b, name="sum")
    y, z = te.placeholder((M, N), name="Y"), te.placeholder((M, N), name="Z")
    g = te.placeholder((N,), name="g")
    return [
        te.function("group_0", [x, w, b], [product]),
        te.function("group_1", [y, z], [te.nn.add(y, z, name="residual")]),
        te.function("group_2", [z], [te.nn.relu(z, name="relu")]),
        te.function("group_3", [g], [te.nn.exp(g, name="scaled")]),
    ]


def whole(name: str = "net") -> str:
    """The text: `relu(X + dense(dense(X, W, exp(g)), W, b))`."""
    texts = [str(find_function(function.module)) for function in _groups()]
    private = [
        text.replace("func.func @", "func.func private @").replace("> {", "> attributes {te.group} {", 1)
        for text in texts
    ]
    x, w, b = f"tensor<{M}x{N}xf32>", f"tensor<{N}x{N}xf32>", f"tensor<{N}xf32>"
    return (
        f"""func.func @{name}(%X: {x}, %W: {w}, %b: {b}, %g: {b}) -> {x} {{
  %h = func.call @group_3(%g) : ({b}) -> {b}
  %1 = func.call @group_0(%X, %W, %h) : ({x}, {w}, {b}) -> {x}
  %2 = func.call @group_0(%1, %W, %b) : ({x}, {w}, {b}) -> {x}
  %3 = func.call @group_1(%X, %2) : ({x}, {x}) -> {x}
  %4 = func.call @group_2(%3) : ({x}) -> {x}
  func.return %4 : {x}
}}
"""
        + "\n".join(private)
        + "\n"
    )
