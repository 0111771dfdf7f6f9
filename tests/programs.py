"""Small programs that many tests share, of any shape and dtype; names matter to keys, texts and drawn schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler import te
from compiler.dialects.functions import find_function
from compiler.graph.canonical import canonical
from compiler.graph.read import read
from compiler.graph.tree import Graph


def matmul(
    m: int = 64,
    n: int = 64,
    k: int = 64,
    dtype: str = "f32",
    name: str = "product",
    inputs: str = "AB",
    output: str = "C",
) -> te.Function:
    """A [m, k] times B [k, n], as the operator."""
    return applied(lambda a, b: te.nn.matmul(a, b, name=output), (m, k), (k, n), dtype=dtype, name=name, inputs=inputs)


def sum_of_products(m: int, k: int, n: int) -> te.Function:
    """A [m, k] times B [k, n], as a sum over an axis k of the compute C."""
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis(k, "k")
    return te.function("mm", [a, b], [te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")])


def applied(
    make: Callable[..., Any], *shapes: tuple[int, ...], dtype: str = "f32", name: str = "f", inputs: str = "XYZ"
) -> te.Function:
    """A function of inputs of some shapes that returns what `make` computes of them."""
    tensors = [te.placeholder(shape, dtype, name=x) for shape, x in zip(shapes, inputs, strict=False)]
    return te.function(name, tensors, make(*tensors))


def graph_of(function: te.Function) -> Graph:
    """The graph of a program as it is written."""
    return read(find_function(function.module))


def canonical_graph(function: te.Function) -> Graph:
    """The canonical graph of a program."""
    return canonical(graph_of(function)).graph
