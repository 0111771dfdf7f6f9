"""Workloads bound by memory, unless exp is the bottleneck."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler import te
from compiler.bench import error_bounds as ref
from compiler.bench.error_bounds import Array, Bounded
from compiler.bench.onnx_model import Graph
from compiler.bench.workload import Input, Workload, by_numpy

EPS = 1e-5


def softmax(rows: int, columns: int) -> Workload:
    """Softmax of each row of X[rows, columns].

    Tolerance: of exp, of a row's sum in any order, and of a quotient; the maximum is exact, subtracting it rounds.
    """

    def numpy(out: Array, x: Array) -> None:
        np.subtract(x, x.max(-1, keepdims=True), out=out)
        np.exp(out, out=out)
        np.divide(out, out.sum(-1, keepdims=True), out=out)

    def reference(x: Bounded) -> Bounded:
        powers = ref.exp(ref.sub(x, ref.largest(x)))
        return ref.div(powers, ref.total(powers))

    return Workload(
        name=f"softmax_{rows}x{columns}",
        what=f"softmax of the rows of X[{rows},{columns}]",
        inputs=(Input("X", (rows, columns)),),
        shape=(rows, columns),
        compute=te.nn.softmax,
        reference=reference,
        numpy=by_numpy(numpy),
        torch=lambda torch, x: torch.softmax(x, -1),
        onnx=lambda graph, x: graph("Softmax", x, axis=-1),
        flops=4 * rows * columns,
        limit="bytes",
    )


def layernorm(rows: int, columns: int) -> Workload:
    """Each row of X[rows, columns] normalised, scaled by gamma and shifted by beta.

    Tolerance: of two passes, the mean, then the variance of the centred elements, both sums in any order. The mean of a
    row is half its deviation, so that one pass (the mean of squares less the square of the mean) is within it too.
    """

    def numpy(out: Array, squares: Array, x: Array, gamma: Array, beta: Array) -> None:
        np.subtract(x, x.mean(-1, keepdims=True), out=out)
        variance = np.multiply(out, out, out=squares).mean(-1, keepdims=True)
        np.multiply(out, 1 / np.sqrt(variance + np.float32(EPS)), out=out)
        np.multiply(out, gamma, out=out)
        np.add(out, beta, out=out)

    def reference(x: Bounded, gamma: Bounded, beta: Bounded) -> Bounded:
        centred = ref.sub(x, _mean(x))
        variance = _mean(ref.mul(centred, centred))
        scale = ref.rsqrt(ref.add(variance, ref.exact(np.array(EPS))))
        return ref.add(ref.mul(ref.mul(centred, scale), gamma), beta)

    def torch(torch: Any, x: Any, gamma: Any, beta: Any) -> Any:
        return torch.nn.functional.layer_norm(x, (columns,), gamma, beta, EPS)

    vector = (columns,)
    return Workload(
        name=f"layernorm_{rows}x{columns}",
        what=f"layer norm of the rows of X[{rows},{columns}]",
        inputs=(Input("X", (rows, columns), mean=0.5), Input("gamma", vector, 0.5, 1.0), Input("beta", vector)),
        shape=(rows, columns),
        compute=lambda x, gamma, beta: te.nn.layer_norm(x, gamma, beta, EPS),
        reference=reference,
        numpy=by_numpy(numpy, (rows, columns)),
        torch=torch,
        onnx=lambda graph, *inputs: graph("LayerNormalization", *inputs, axis=-1, epsilon=EPS),
        flops=7 * rows * columns,
        limit="bytes",
    )


def _mean(x: Bounded) -> Bounded:
    return ref.div(ref.total(x), ref.exact(np.array(x.value.shape[-1])))


def swish(rows: int, columns: int) -> Workload:
    """X * sigmoid(X) * Y + bias, X and Y [rows, columns], bias [columns].

    Tolerance: of two products and a sum, and that of `error_bounds.sigmoid`, in units of 1/2 where the sigmoid is
    small: times X and Y it exceeds the rounding of results near 0, which a bound relative to the sigmoid would not
    allow.
    """

    def compute(x: te.Tensor, y: te.Tensor, bias: te.Tensor) -> te.Tensor:
        def element(i: Any, j: Any) -> Any:
            return x[i, j] * te.sigmoid(x[i, j]) * y[i, j] + bias[j]

        output: te.Tensor = te.compute((rows, columns), element, "Z")
        return output

    def numpy(out: Array, x: Array, y: Array, bias: Array) -> None:
        np.exp(np.negative(x, out=out), out=out)
        np.divide(x, np.add(out, 1, out=out), out=out)
        np.multiply(out, y, out=out)
        np.add(out, bias, out=out)

    def reference(x: Bounded, y: Bounded, bias: Bounded) -> Bounded:
        return ref.add(ref.mul(ref.mul(x, ref.sigmoid(x)), y), bias)

    def onnx(graph: Graph, x: str, y: str, bias: str) -> str:
        gated = graph("Mul", graph("Mul", x, graph("Sigmoid", x)), y)
        return graph("Add", gated, bias)

    return Workload(
        name=f"swish_{rows}x{columns}",
        what=f"x * sigmoid(x) * y + bias on {rows} x {columns}",
        inputs=(Input("X", (rows, columns)), Input("Y", (rows, columns)), Input("bias", (columns,))),
        shape=(rows, columns),
        compute=compute,
        reference=reference,
        numpy=by_numpy(numpy),
        torch=lambda torch, x, y, bias: torch.nn.functional.silu(x) * y + bias,
        onnx=onnx,
        flops=6 * rows * columns,
        limit="bytes",
    )
