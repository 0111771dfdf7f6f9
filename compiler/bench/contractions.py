"""Workloads bound by arithmetic: matrix products, convolutions, attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from compiler import te
from compiler.bench import error_bounds as ref
from compiler.bench.error_bounds import Array, Bounded
from compiler.bench.onnx_model import Graph
from compiler.bench.workload import Input, Workload, by_numpy


def matmul(m: int, k: int, n: int) -> Workload:
    """A[m, k] @ B[k, n]. Tolerance: of a sum of k rounded products, in any order."""
    return _product("matmul", (), m, k, n, te.nn.matmul)


def batched(batch: int, m: int, k: int, n: int) -> Workload:
    """A[batch, m, k] @ B[batch, k, n]. Tolerance: of a sum of k rounded products, in any order."""
    return _product("batched", (batch,), m, k, n, te.nn.batch_matmul)


def _product(
    name: str, batch: tuple[int, ...], m: int, k: int, n: int, compute: Callable[[te.Tensor, te.Tensor], te.Tensor]
) -> Workload:
    a, b = Input("A", (*batch, m, k)), Input("B", (*batch, k, n))
    return Workload(
        name=f"{name}_{'x'.join(map(str, (*batch, m, k, n)))}",
        what=f"A[{','.join(map(str, a.shape))}] @ B[{','.join(map(str, b.shape))}]",
        inputs=(a, b),
        shape=(*batch, m, n),
        compute=compute,
        reference=ref.matmul,
        numpy=by_numpy(lambda out, a, b: np.matmul(a, b, out=out)),
        torch=lambda torch, a, b: a @ b,
        onnx=lambda graph, a, b: graph("MatMul", a, b),
        flops=2 * prod((*batch, m, k, n)),
    )


def mm_exp_mm(m: int, k: int, l: int, n: int) -> Workload:
    """exp(A[m, k] @ B[k, l]) @ E[l, n]; B is small enough that exp sees numbers around 1.

    Tolerance: of two sums of rounded products; exp turns the absolute error of the first into a relative error.
    """

    def numpy(out: Array, middle: Array, a: Array, b: Array, e: Array) -> None:
        np.matmul(a, b, out=middle)
        np.exp(middle, out=middle)
        np.matmul(middle, e, out=out)

    return Workload(
        name=f"mm_exp_mm_{m}x{k}x{l}x{n}",
        what=f"exp(A[{m},{k}] @ B[{k},{l}]) @ E[{l},{n}]",
        inputs=(Input("A", (m, k)), Input("B", (k, l), spread=k**-0.5), Input("E", (l, n))),
        shape=(m, n),
        compute=lambda a, b, e: te.nn.matmul(te.nn.exp(te.nn.matmul(a, b, name="T"), name="X"), e, name="C"),
        reference=lambda a, b, e: ref.matmul(ref.exp(ref.matmul(a, b)), e),
        numpy=by_numpy(numpy, (m, l)),
        torch=lambda torch, a, b, e: (a @ b).exp_() @ e,
        onnx=lambda graph, a, b, e: graph("MatMul", graph("Exp", graph("MatMul", a, b)), e),
        flops=2 * m * l * (k + n),
    )


def windows(x: Array, height: int, width: int) -> Array:
    """The 3x3 windows of X[n, c, h, w] at the first `height` rows and `width` columns, as an array [n, c * 9, height *
    width] (im2col), as a view if numpy can. X has at least two rows and two columns more."""
    batch, channels = x.shape[:2]
    view = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, :height, :width]
    return view.transpose(0, 1, 4, 5, 2, 3).reshape(batch, channels * 9, height * width)


def conv(channels: int, height: int, width: int, filters: int) -> Workload:
    """relu(conv2d(X[1, channels, height, width], W[filters, channels, 3, 3]) + bias), stride 1, padding 1.

    Tolerance: of a sum of 9 * channels products in any order, and of adding the bias; relu passes errors on. A Winograd
    convolution has larger errors and exceeds it.
    """
    shape = (1, filters, height, width)
    border = ((0, 0), (0, 0), (1, 1), (1, 1))

    def numpy(out: Array, padded: Array, x: Array, w: Array, bias: Array) -> None:
        flat = out.reshape(filters, -1)
        padded[:, :, 1:-1, 1:-1] = x
        np.matmul(w.reshape(filters, -1), windows(padded, height, width)[0], out=flat)
        np.add(flat, bias[:, None], out=flat)
        np.maximum(flat, 0, out=flat)

    def reference(x: Bounded, w: Bounded, bias: Bounded) -> Bounded:
        taps = x.map(lambda a: windows(np.pad(a, border), height, width))
        product = ref.matmul(w.map(lambda a: a.reshape(filters, -1)), taps)
        activated = ref.relu(ref.add(product, bias.map(lambda a: a[:, None])))
        return activated.map(lambda a: a.reshape(shape))

    return Workload(
        name=f"conv_{channels}x{height}x{width}x{filters}",
        what=f"relu(conv 3x3 of X[1,{channels},{height},{width}], {filters} filters, + bias)",
        inputs=(
            Input("X", (1, channels, height, width)),
            Input("W", (filters, channels, 3, 3), spread=(9 * channels) ** -0.5),
            Input("bias", (filters,)),
        ),
        shape=shape,
        compute=lambda x, w, bias: te.nn.relu(te.nn.conv2d(x, w, bias, padding=1)),
        reference=reference,
        numpy=by_numpy(numpy, (1, channels, height + 2, width + 2)),
        torch=lambda torch, x, w, bias: torch.nn.functional.conv2d(x, w, bias, padding=1).relu_(),
        onnx=lambda graph, x, w, bias: graph("Relu", graph("Conv", x, w, bias, pads=[1, 1, 1, 1])),
        flops=2 * 9 * channels * filters * height * width,
        constants=("W", "bias"),
    )


def conv_grad_weight(batch: int, channels: int, height: int, width: int) -> Workload:
    """E[o, c, r, s] = sum over n, h, w of A[n, c, h + r, w + s] * B[n, o, h, w], as one reduction.

    Tolerance: of a sum of n * h * w products, in any order, which includes the order in steps.
    """
    shape = (channels, channels, 3, 3)

    def compute(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        n, h, w = te.reduce_axis(batch, "n"), te.reduce_axis(height, "h"), te.reduce_axis(width, "w")

        def element(o: Any, c: Any, r: Any, s: Any) -> Any:
            return te.sum(a[n, c, h + r, w + s] * b[n, o, h, w], axis=(n, h, w))

        gradient: te.Tensor = te.compute(shape, element, "E", axes=("o", "c", "r", "s"))
        return gradient

    def columns(a: Array) -> Array:
        return windows(a, height, width).transpose(0, 2, 1).reshape(-1, channels * 9)

    def rows(b: Array) -> Array:
        return b.transpose(1, 0, 2, 3).reshape(channels, -1)

    def numpy(out: Array, a: Array, b: Array) -> None:
        np.matmul(rows(b), columns(a), out=out.reshape(channels, -1))

    return Workload(
        name=f"conv_grad_weight_{batch}x{channels}x{height}x{width}",
        what=f"weight gradient of a 3x3 conv, n={batch}, {channels} channels, {height}x{width}, one reduction",
        inputs=(
            Input("A", (batch, channels, height + 2, width + 2)),
            Input("B", (batch, channels, height, width)),
        ),
        shape=shape,
        compute=compute,
        reference=lambda a, b: ref.matmul(b.map(rows), a.map(columns)).map(lambda e: e.reshape(shape)),
        numpy=by_numpy(numpy),
        torch=lambda torch, a, b: torch.nn.grad.conv2d_weight(a, shape, b),
        flops=2 * 9 * batch * channels * channels * height * width,
    )


def conv_grad_weight_steps(batch: int, channels: int, height: int, width: int) -> Workload:
    """The same as `conv_grad_weight` in steps: P[n, c, o, r, s] sums over h and w, S[c, o, r, s] over n; E transposes
    S."""
    in_one_step = conv_grad_weight(batch, channels, height, width)
    pixels = height * width

    def compute(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        n, h, w = te.reduce_axis(batch, "n"), te.reduce_axis(height, "h"), te.reduce_axis(width, "w")
        taps = (channels, channels, 3, 3)

        def product(n: Any, c: Any, o: Any, r: Any, s: Any) -> Any:
            return te.sum(a[n, c, h + r, w + s] * b[n, o, h, w], axis=(h, w))

        each = te.compute((batch, *taps), product, "P", axes=("n", "c", "o", "r", "s"))
        total = te.compute(taps, lambda *i: te.sum(each[(n, *i)], axis=n), "S", axes=("c", "o", "r", "s"))
        gradient: te.Tensor = te.compute(taps, lambda o, c, r, s: total[c, o, r, s], "E", axes=("o", "c", "r", "s"))
        return gradient

    def numpy(out: Array, each: Array, a: Array, b: Array) -> None:
        np.matmul(windows(a, height, width), b.reshape(batch, channels, pixels).swapaxes(1, 2), out=each)
        np.copyto(out, each.sum(0).reshape(channels, 3, 3, channels).transpose(3, 0, 1, 2))

    def torch(torch: Any, a: Any, b: Any) -> Any:
        conv = torch.nn.functional.conv2d
        each = torch.stack([conv(x[:, None], y[:, None]) for x, y in zip(a, b, strict=True)])
        return each.sum(0).transpose(0, 1).contiguous()

    return replace(
        in_one_step,
        name=f"conv_grad_weight_steps_{batch}x{channels}x{height}x{width}",
        what=f"weight gradient of a 3x3 conv, n={batch}, {channels} channels, {height}x{width}, in steps",
        compute=compute,
        numpy=by_numpy(numpy, (batch, channels * 9, channels)),
        torch=torch,
    )


def mlp(batch: int, features: int, hidden: int, classes: int) -> Workload:
    """relu(X[batch, features] @ V^T + p) @ W^T + q, weights as [outputs, inputs].

    Tolerance: of two sums of products in any order, the second of which passes on the errors of the first.
    """

    def numpy(out: Array, middle: Array, x: Array, v: Array, p: Array, w: Array, q: Array) -> None:
        np.matmul(x, v.T, out=middle)
        np.add(middle, p, out=middle)
        np.maximum(middle, 0, out=middle)
        np.matmul(middle, w.T, out=out)
        np.add(out, q, out=out)

    def reference(x: Bounded, v: Bounded, p: Bounded, w: Bounded, q: Bounded) -> Bounded:
        middle = ref.relu(ref.add(ref.matmul(x, v.map(np.transpose)), p))
        return ref.add(ref.matmul(middle, w.map(np.transpose)), q)

    def torch(torch: Any, x: Any, v: Any, p: Any, w: Any, q: Any) -> Any:
        linear = torch.nn.functional.linear
        return linear(linear(x, v, p).relu_(), w, q)

    def onnx(graph: Graph, x: str, v: str, p: str, w: str, q: str) -> str:
        middle = graph("Relu", graph("Gemm", x, v, p, transB=1))
        return graph("Gemm", middle, w, q, transB=1)

    return Workload(
        name=f"mlp_{batch}x{features}x{hidden}x{classes}",
        what=f"X[{batch},{features}] -> dense {hidden}, relu -> dense {classes}",
        inputs=(
            Input("X", (batch, features)),
            Input("V", (hidden, features), spread=features**-0.5),
            Input("p", (hidden,)),
            Input("W", (classes, hidden), spread=hidden**-0.5),
            Input("q", (classes,)),
        ),
        shape=(batch, classes),
        compute=lambda x, v, p, w, q: te.nn.dense(te.nn.relu(te.nn.dense(x, v, p)), w, q),
        reference=reference,
        numpy=by_numpy(numpy, (batch, hidden)),
        torch=torch,
        onnx=onnx,
        flops=2 * batch * hidden * (features + classes),
        constants=("V", "p", "W", "q"),
    )


def attention(heads: int, length: int, depth: int) -> Workload:
    """softmax(Q K^T / sqrt depth) V for Q, K, V of [heads, length, depth].

    Tolerance: of a sum of products, of softmax, and of a sum again, each in any order; the factor is rounded once.
    """
    scale = depth**-0.5

    def compute(q: te.Tensor, k: te.Tensor, v: te.Tensor) -> te.Tensor:
        scores = te.nn.batch_matmul(q, k, transpose_b=True, name="scores")
        return te.nn.batch_matmul(te.nn.softmax(te.nn.mul(scores, scale)), v, name="O")

    def numpy(out: Array, scores: Array, q: Array, k: Array, v: Array) -> None:
        np.matmul(q, k.swapaxes(1, 2), out=scores)
        np.multiply(scores, np.float32(scale), out=scores)
        np.subtract(scores, scores.max(-1, keepdims=True), out=scores)
        np.exp(scores, out=scores)
        np.divide(scores, scores.sum(-1, keepdims=True), out=scores)
        np.matmul(scores, v, out=out)

    def reference(q: Bounded, k: Bounded, v: Bounded) -> Bounded:
        factor = Bounded(np.array(scale), np.array(scale * ref.UNIT))
        scores = ref.mul(ref.matmul(q, k.map(lambda a: a.swapaxes(1, 2))), factor)
        powers = ref.exp(ref.sub(scores, ref.largest(scores)))
        return ref.matmul(ref.div(powers, ref.total(powers)), v)

    def torch(torch: Any, *qkv: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(*(x[None] for x in qkv))[0]

    def onnx(graph: Graph, q: str, k: str, v: str) -> str:
        scores = graph("MatMul", q, graph("Transpose", k, perm=[0, 2, 1]))
        powers = graph("Softmax", graph("Mul", scores, graph.scalar(scale)), axis=-1)
        return graph("MatMul", powers, v)

    return Workload(
        name=f"attention_{heads}x{length}x{depth}",
        what=f"softmax(Q K^T / sqrt {depth}) V, {heads} heads, {length} x {depth}",
        inputs=tuple(Input(name, (heads, length, depth)) for name in "QKV"),
        shape=(heads, length, depth),
        compute=compute,
        reference=reference,
        numpy=by_numpy(numpy, (heads, length, length)),
        torch=torch,
        onnx=onnx,
        flops=4 * heads * length * length * depth,
    )
