"""Options of operators that are not used leave programs as they were: records, defaults and caches have their keys."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler import te

PROGRAMS: dict[str, tuple[tuple[int, ...], Callable[[te.Tensor], te.Tensor], str]] = {
    "max_pool2d": ((1, 2, 6, 6), lambda x: te.nn.max_pool2d(x, 2), "cf410097a9fd3d40"),
    "avg_pool2d": ((1, 2, 6, 6), lambda x: te.nn.avg_pool2d(x, 3, 2, 1), "5be0485d0a7b4b91"),
    "softmax": ((3, 5), te.nn.softmax, "92c27da4881e0bb8"),
    "gelu": ((3, 5), te.nn.gelu, "5680304c9b68c7f2"),
    "clamp": ((3, 5), lambda x: te.nn.clamp(x, 0.0, 6.0), "2284990fac1c1fb2"),
    "pad": ((3, 5), lambda x: te.nn.pad(x, [(1, 1), (0, 2)]), "f9413ebac0da0ae4"),
    "mean": ((3, 5), lambda x: te.nn.mean(x, 1), "4a4e7b33fbada3de"),
    "attention": ((1, 2, 4, 3), lambda x: te.nn.attention(x, x, x, causal=True), "c30bc93602f6734b"),
    "clamp_of_one_row": ((1, 5), lambda x: te.nn.clamp(x, 0, 6), "167ad8e52bd99153"),
    "masked_attention": ((4, 2, 2), lambda x: te.nn.attention(x, x, x, te.nn.sum(x, 0)), "0ef72b4a9bac9009"),
    "layer_norm": ((5, 5), lambda x: te.nn.layer_norm(x, te.nn.sum(x, 0), te.nn.mean(x, 1)), "cac8d3162f5319d6"),
    "batch_norm": ((1, 3, 3), lambda x: te.nn.batch_norm(x, *[te.nn.sum(x, (0, 1))] * 4), "170e4723a5907fec"),
    "argmax": ((3, 5), te.nn.argmax, "156155d10e7a450d"),
    "gather": ((3, 5), lambda x: te.nn.gather(x, te.nn.argmax(x)), "05af23000a1f1ea3"),
    "cross_entropy": ((3, 5), lambda x: te.nn.cross_entropy(x, te.nn.argmax(x)), "a174e748383e2330"),
    "conv2d_transpose": ((2, 2, 3, 3), lambda x: te.nn.conv2d_transpose(x, x, stride=2), "cbd219f0ed23b375"),
}
"""Common programs, and what their keys have been since operators had fewer options; that of attention with a mask of
numbers since rows of -inf give 0, that of batch_norm since it is a product and a sum,
that of layer_norm since its sums are of differences from the first element."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_keys_stay(name: str) -> None:
    shape, build, key = PROGRAMS[name]
    x = te.placeholder(shape, name="X")
    assert te.canonical_hash(te.function("f", [x], build(x))).startswith(key)
