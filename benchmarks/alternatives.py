"""Programs as written and in the forms of laws that are choices, in turns.

Run as `python -m benchmarks.alternatives [--rounds N] [--policy fast] [PART ...]`, for cases whose names have a part.
Both forms are built without a trial for one thread, and their results are compared. `refused` are sums of sums that the
law leaves as they are. `joined` is the study of a law that does not exist, since it does not pay: products of one
operand by several constant matrices as one product.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from statistics import median

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import compiler
from benchmarks.equal_programs import FAMILIES, pairs
from benchmarks.equal_programs.gradients import by_rows, gradient, in_steps
from compiler import te
from compiler.alternatives import PROGRAM_LAWS
from compiler.alternatives.flattened import one_block
from compiler.alternatives.law import Conditions
from compiler.alternatives.program import rewrite_graph
from compiler.dialects.functions import find_function
from compiler.graph.canonical import canonical
from compiler.graph.grouped_module import group_program
from compiler.graph.read import read
from compiler.graph.tree import Compute
from compiler.graph.write import write
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.types.machines import host

P = te.placeholder


def sums(shape: Sequence[int], *axes: int, reduce: Callable[..., Expr] = te.sum) -> te.Function:
    """Reduce a tensor along each of `axes` in turn, by a compute each; an axis counts in the result of the reduction
    before."""
    x = made = P(tuple(shape), name="X")
    for axis in axes:
        r = te.reduce_axis(made.shape[axis], "r")
        left = (*made.shape[:axis], *made.shape[axis + 1 :])

        def element(*i: Index, x: te.Tensor = made, axis: int = axis, r: Index = r) -> Expr:
            return reduce(x[(*i[:axis], r, *i[axis:])], axis=r)

        made = te.compute(left, element, name=f"S{axis}")
    return te.function("sums", [x], made)


def chain(*sizes: int) -> te.Function:
    """A B C ... from the left to the right, of matrices sizes[0] x sizes[1], sizes[1] x sizes[2] and so on."""
    matrices = [P(pair, name=f"A{n}") for n, pair in enumerate(pairwise(sizes))]
    made = matrices[0]
    for matrix in matrices[1:]:
        made = te.nn.matmul(made, matrix)
    return te.function("chain", matrices, made)


def linear_attention(heads: int, rows: int, depth: int) -> te.Function:
    """(Q K^T) V for each of `heads` heads of [rows, depth], without a softmax."""
    q, k, v = (P((heads, rows, depth), name=name) for name in "QKV")
    scores = te.nn.batch_matmul(q, k, transpose_b=True)
    return te.function("attention", [q, k, v], te.nn.batch_matmul(scores, v))


def spelled(family: str, name: str) -> te.Function:
    """The program of a spelling of `benchmarks.equal_programs`, by the names of its family and its spelling, in the
    large sizes."""
    (pair,) = [pair for pair in pairs(FAMILIES) if (pair.family.name, pair.name) == (family, name)]
    return pair.functions(pair.family.large)[1]


CASES = {
    "flattened: gradient in steps, 8 16 16 14": lambda: gradient(in_steps, 8, 16, 16, 14),
    "flattened: gradient in steps, 8 64 64 28": lambda: gradient(in_steps, 8, 64, 64, 28),
    "flattened: gradient by rows, 8 16 16 14": lambda: gradient(by_rows, 8, 16, 16, 14),
    "flattened: sums of 512x512": lambda: sums((512, 512), 1, 0),
    "flattened: sums of 1000x64": lambda: sums((1000, 64), 1, 0),
    "flattened: sums of 64x128x256, 2 then 1": lambda: sums((64, 128, 256), 2, 1),
    "flattened: sums of 64x128x256, 1 then 2": lambda: sums((64, 128, 256), 1, 1),
    "flattened: maxima of 256x28x28": lambda: sums((256, 28, 28), 2, 1, reduce=te.max),
    "flattened: sums of 256x7x7": lambda: sums((256, 7, 7), 2, 1),
    "chain: 512 512 512 1": lambda: chain(512, 512, 512, 1),
    "chain: 1024 16 1024 16": lambda: chain(1024, 16, 1024, 16),
    "chain: 256 512 64 512": lambda: chain(256, 512, 64, 512),
    "chain: 300 35 150 50 100 200": lambda: chain(300, 35, 150, 50, 100, 200),
    "chain: 16 256 256 256": lambda: chain(16, 256, 256, 256),
    "chain: 256 256 256 16": lambda: chain(256, 256, 256, 16),
    "chain: linear attention 8 512 64": lambda: linear_attention(8, 512, 64),
    "chain: 30 20 40 1": lambda: chain(30, 20, 40, 1),
    "flattened: pooling of rows, then columns": lambda: spelled("pooling", "of rows, then of columns"),
    "normalised: attention, 8 heads of 256 by 64": lambda: spelled("attention", "normalised behind the product"),
}


def summed_products(batches: int, size: int) -> te.Function:
    """The sum of `batches` products of matrices of `size` x `size`, as a batch of products and a reduction over it."""
    a, b = P((batches, size, size), name="A"), P((batches, size, size), name="B")
    products, r = te.nn.batch_matmul(a, b), te.reduce_axis(batches, "r")
    total = te.compute((size, size), lambda i, j: te.sum(products[r, i, j], axis=r), name="total")
    return te.function("summed", [a, b], total)


REFUSED = {
    "refused: 16 products of 64 by 64, added up": lambda: summed_products(16, 64),
    "refused: 32 products of 128 by 128, added up": lambda: summed_products(32, 128),
    "refused: sums of 64x128x256, 2 then 0": lambda: sums((64, 128, 256), 2, 0),
    "refused: maxima of 64x128x256, 2 then 0": lambda: sums((64, 128, 256), 2, 0, reduce=te.max),
}
"""Sums of sums that are not flattened."""


def flat(function: te.Function) -> ModuleOp:
    """Return a module in which the last two computes of a function, a reduction of a reduction, are one reduction."""
    graph = canonical(read(find_function(function.module))).graph
    *_, inner, outer = graph.nodes
    assert isinstance(inner, Compute) and isinstance(outer, Compute)
    outer = replace(outer, block=one_block(outer.block, inner.block))
    return ModuleOp([write(replace(graph, nodes=(*graph.nodes[:-2], outer)))])


def joined(rows: int, inner: int, columns: int, count: int, together: bool) -> te.Function:
    """max(P0, 0) * P1, plus P2 if `count` > 2, of the products Pn of X by `count` matrices: by one product of the
    concatenated matrices if `together`, else by one each."""
    x, weights = P((rows, inner), name="X"), [P((inner, columns), name=f"W{n}") for n in range(count)]
    parts = [te.nn.concat(weights, 1)] if together else weights
    products = [te.nn.matmul(x, part) for part in parts]

    def element(i: Index, j: Index) -> Expr:
        each = [products[0][i, j + n * columns] if together else products[n][i, j] for n in range(count)]
        value = te.maximum(each[0], 0.0) * each[1]
        return value + each[2] if count > 2 else value

    return te.function("joined", [x, *weights], te.compute((rows, columns), element, name="out"))


def studied() -> Iterator[tuple[str, te.Function, te.Function]]:
    """Yield pairs of products, apart and joined, each with its name: q, k and v of a layer, gate and up of an MLP."""
    for rows, inner in product((1, 4, 16, 128), (256, 512, 768, 1024)):
        for name, columns, count in (("q, k, v", inner, 3), ("gate and up", 2 * inner, 2)):
            apart, together = (joined(rows, inner, columns, count, way) for way in (False, True))
            yield f"joined: {name}, {rows} rows, {inner} wide", apart, together


def measured(
    apart: te.Function, other: te.Function | ModuleOp, rounds: int, policy: str, weights: int = 0
) -> tuple[float, float]:
    """The median seconds of a call of two forms of a program, in turns; the last `weights` inputs are constant. Raises
    AssertionError if their results differ."""
    random, inputs = np.random.default_rng(0), read(find_function(apart.module)).inputs
    arrays = {buffer.name: random.standard_normal(buffer.shape, np.float32) for buffer in inputs}
    names = list(arrays)[len(arrays) - weights :]
    constants = {name: arrays.pop(name) for name in names} if weights else None
    modules = [group_program(x, single=True).module for x in (apart, other)]  # groups stay as they are
    kernels = [compiler.build(x, threads=1, policy=policy, constants=constants) for x in modules]
    first, second = (np.asarray(kernel(*arrays.values())) for kernel in kernels)
    np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-3 * np.abs(first).max())
    times = [[kernel.time(*arrays.values()).median for kernel in kernels] for _ in range(rounds)]
    return median(time for time, _ in times), median(time for _, time in times)


def main() -> None:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", default=["flattened", "chain", "normalised"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--policy", default="fast")
    options = parser.parse_args()
    print(f"{'':44}      written, us   other, us   factor   estimated")

    def show(name: str, times: tuple[float, float], estimate: str) -> None:
        written, other = (time * 1e6 for time in times)
        print(f"{name:44} {written:16.1f} {other:11.1f} {written / other:8.2f}   {estimate}", flush=True)

    for name, make in CASES.items():
        if any(part in name for part in options.parts):
            function = make()
            graph = canonical(read(find_function(function.module))).graph
            made = rewrite_graph(graph, Conditions(host(), options.policy), PROGRAM_LAWS)
            other = ModuleOp([write(made.graph)])
            gains = ", ".join(f"{applied.gain:.2f}" for applied in made.applied) or "stays"
            show(name, measured(function, other, options.rounds, options.policy), gains)
    for name, make in REFUSED.items():
        if any(part in name for part in options.parts):
            show(name, measured(make(), flat(make()), options.rounds, options.policy), "")
    for name, apart, together in studied():
        if any(part in name for part in options.parts):
            show(name, measured(apart, together, options.rounds, options.policy, len(apart.inputs) - 1), "")


if __name__ == "__main__":
    main()
