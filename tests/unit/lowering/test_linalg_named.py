"""Named ops of linalg: each as te against numpy, by the layouts in its name, and against mlir-opt's generalisation."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import erf
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.functions import functions
from compiler.dialects.upstream.linalg.structures import KINDS, POINTWISE, STRUCTURES
from compiler.interpret.te import evaluate
from compiler.pipeline.source import level_of, parse
from compiler.te.hashes import canonical_hash
from tests.sample import some
from tests.upstream import MLIR_OPT, needs_mlir_opt

Array = np.ndarray[Any, Any]
EXTENTS = {"n": 2, "d": 3, "h": 4, "w": 3, "c": 3, "f": 4, "g": 2, "m": 3, "D": 2, "H": 3, "W": 2}
"""The extents of layouts' dimensions; D, H and W are those of windows."""
STRIDES, DILATIONS = {"d": 1, "h": 2, "w": 1}, {"d": 2, "h": 1, "w": 2}
PRODUCTS = {
    "matmul": "mk,kn->mn",
    "matmul_transpose_a": "km,kn->mn",
    "matmul_transpose_b": "mk,nk->mn",
    "batch_matmul": "bmk,bkn->bmn",
    "batch_matmul_transpose_a": "bkm,bkn->bmn",
    "batch_matmul_transpose_b": "bmk,bnk->bmn",
    "batch_reduce_matmul": "bmk,bkn->mn",
    "matvec": "mk,k->m",
    "vecmat": "k,kn->n",
    "batch_matvec": "bmk,bk->bm",
    "batch_vecmat": "bk,bkn->bn",
    "dot": "k,k->",
    "mmt4d": "mkxz,nkyz->mnxy",
    "batch_mmt4d": "bmkxz,bnkyz->bmnxy",
    "quantized_matmul": "mk,kn->mn",
    "quantized_batch_matmul": "bmk,bkn->bmn",
}
PLAIN = {"conv_1d": ("w", "w"), "conv_2d": ("hw", "hw"), "conv_3d": ("dhw", "dhw")}
"""Convolutions without strides, dilations or channels."""


@dataclass(frozen=True)
class Sample:
    """An op on random arrays: the text of a function, its arrays, the output's initial value last, and its result."""

    text: str
    arrays: Sequence[Array]
    expected: Array


def text_of(name: str, attributes: str, operands: Sequence[tuple[str, str]]) -> str:
    """The text of a function of one op; operands have a name or a constant, and a type, the output's last."""
    known = [f"  %c{n} = arith.constant {value} : {type}" for n, (value, type) in enumerate(operands) if value]
    names = [f"%c{n}" if value else f"%a{n}" for n, (value, _) in enumerate(operands)]
    types = [type for _, type in operands]
    taken = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True) if n.startswith("%a"))
    ins, outs = f"{', '.join(names[:-1])} : {', '.join(types[:-1])}", f"{names[-1]} : {types[-1]}"
    op = f"  %0 = linalg.{name}{attributes} ins({ins}) outs({outs}) -> {types[-1]}"
    return "\n".join([f"func.func @f({taken}) -> {types[-1]} {{", *known, op, f"  return %0 : {types[-1]}", "}"])


def type_of(array: Array) -> str:
    """The tensor type of an array, signless."""
    kind = "i1" if array.dtype == bool else f"{array.dtype.kind}{array.dtype.itemsize * 8}"
    return f"tensor<{'x'.join([*map(str, array.shape), kind])}>"


def draw(seed: int, shape: Sequence[int], dtype: str) -> Array:
    """Small integers, exact in every dtype."""
    return np.random.default_rng(seed).integers(-3, 4, tuple(shape)).astype(dtype)


def product(name: str) -> Sample:
    """A sample of a product without windows."""
    extents = dict(zip("bmnkxyz", (2, 3, 4, 5, 2, 3, 2), strict=True))
    maps = PRODUCTS[name].replace("->", ",").split(",")
    is_quantized = name.startswith("quantized")
    shapes = [[extents[letter] for letter in map] for map in maps]
    return _sum_of_products(name, "", shapes, PRODUCTS[name], lambda x: x, is_quantized)


def convolution(name: str) -> Sample:
    """A sample of a convolution whose name states the layouts of its operands."""
    is_quantized, is_depthwise = name.endswith("_q"), name.startswith("depthwise")
    image, kernel = PLAIN.get(name) or name.removesuffix("_q").split("_")[-2:]
    strided = name not in PLAIN
    output = image + ("m" if "m" in kernel else "") if is_depthwise else image.replace("c", "f")
    windows = [letter for letter in image if letter in "dhw"]
    kernel = "".join(letter.upper() if letter in windows else letter for letter in kernel)
    factors = [(STRIDES[d], DILATIONS[d]) if strided else (1, 1) for d in windows]
    spread = dict(zip(windows, factors, strict=True))
    sizes = [
        (EXTENTS[d] - 1) * spread[d][0] + (EXTENTS[d.upper()] - 1) * spread[d][1] + 1 if d in windows else EXTENTS[d]
        for d in image
    ]
    shapes = [sizes, [EXTENTS[letter] for letter in kernel], [EXTENTS[letter] for letter in output]]
    letters = image + "".join(d.upper() for d in windows)
    return _sum_of_products(
        name,
        attributes(factors) if strided else "",
        shapes,
        f"{letters},{kernel}->{output}",
        lambda x: windows_of(x, image, spread),
        is_quantized,
    )


def attributes(factors: Sequence[tuple[int, int]]) -> str:
    """The attribute dictionary with strides and dilations."""
    listed = [f"dense<{list(numbers)}> : tensor<{len(factors)}xi64>" for numbers in zip(*factors, strict=True)]
    return f" {{dilations = {listed[1]}, strides = {listed[0]}}}"


def windows_of(x: Array, layout: str, spread: dict[str, tuple[int, int]]) -> Array:
    """The windows of an image, their dimensions last: y[.., i, .., j] = x[.., i * stride + j * dilation, ..]."""
    for d, (stride, dilation) in spread.items():
        axis = layout.index(d)
        i, j = np.arange(EXTENTS[d]) * stride, np.arange(EXTENTS[d.upper()]) * dilation
        taken = np.take(x, (i[:, None] + j[None, :]).ravel(), axis)
        split = taken.reshape(*x.shape[:axis], len(i), len(j), *x.shape[axis + 1 :])
        x = np.moveaxis(split, axis + 1, -1)
    return x


def _sum_of_products(name: str, stated: str, shapes: Any, einsum: str, windows: Any, is_quantized: bool) -> Sample:
    dtypes = ("int8", "int8", "int32") if is_quantized else ("float32",) * 3
    arrays = [draw(n, shape, dtype) for n, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))]
    wide = [array.astype(np.int64) for array in arrays]
    zeros = [("2", "i32"), ("-1", "i32")] if is_quantized else []
    x, w = (wide[0] - 2, wide[1] + 1) if is_quantized else wide[:2]
    expected = wide[2] + np.einsum(einsum, windows(x), w)
    operands = [("", type_of(array)) for array in arrays]
    text = text_of(name, stated, [*operands[:2], *zeros, operands[2]])
    return Sample(text, arrays, expected.astype(arrays[2].dtype))


def pooling(name: str) -> Sample:
    """A sample of a pooling op: pooling_LAYOUT_KIND."""
    _, layout, kind = name.split("_", 2)
    dtype = "uint8" if "unsigned" in kind else "float32"
    windows = [letter for letter in layout if letter in "dhw"]
    factors = [(STRIDES[d], DILATIONS[d]) for d in windows]
    spread = dict(zip(windows, factors, strict=True))
    sizes = [
        (EXTENTS[d] - 1) * STRIDES[d] + (EXTENTS[d.upper()] - 1) * DILATIONS[d] + 1 if d in windows else EXTENTS[d]
        for d in layout
    ]
    arrays = [draw(n, shape, "int8").astype(dtype) for n, shape in enumerate((sizes, [EXTENTS[d] for d in layout]))]
    window = np.zeros([EXTENTS[d.upper()] for d in windows], np.float32)
    folds: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum}
    fold = folds[kind.partition("_")[0]]
    axes = tuple(range(len(layout), len(layout) + len(windows)))
    expected = fold(arrays[1], fold.reduce(windows_of(arrays[0], layout, spread), axis=axes))
    signless = [type_of(array).replace("u8", "i8") for array in (arrays[0], window, arrays[1])]
    text = text_of(name, attributes(factors), [("", type) for type in signless])
    stated = [array.view(np.int8) if dtype == "uint8" else array for array in (*arrays, expected)]
    return Sample(text, [stated[0], window, stated[1]], stated[2])


UNARY: dict[str, Any] = {
    "exp": np.exp,
    "log": np.log,
    "abs": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "negf": np.negative,
    "reciprocal": np.reciprocal,
    "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "square": np.square,
    "tanh": np.tanh,
    "erf": lambda x: np.vectorize(erf)(x).astype(x.dtype),
    "copy": np.copy,
}
BINARY: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "powf": np.power,
    "div_unsigned": lambda a, b: (a.view(np.uint32) // b.view(np.uint32)).view(np.int32),
    "max_unsigned": lambda a, b: np.maximum(a.view(np.uint32), b.view(np.uint32)).view(np.int32),
    "min_unsigned": lambda a, b: np.minimum(a.view(np.uint32), b.view(np.uint32)).view(np.int32),
}


def pointwise(name: str, body: str, stated: str = "") -> Sample:
    """A sample of a function of elements."""
    random = np.random.default_rng(0)
    x, y, out = (random.uniform(0.25, 3.0, (3, 4)).astype(np.float32) for _ in range(3))
    if "unsigned" in body:
        x, y, out = (random.integers(-50, -1, (3, 4)).astype(np.int32) for _ in range(3))
    if body == "select":
        arrays, expected = [x > y, x, y], np.where(x > y, x, y)
    else:
        arrays, expected = ([x], UNARY[body](x)) if body in UNARY else ([x, y], BINARY[body](x, y))
    return Sample(text_of(name, stated, [("", type_of(a)) for a in (*arrays, out)]), [*arrays, out], expected)


def sample(name: str) -> Sample:
    """The sample of an op of the tables."""
    if name in POINTWISE:
        return pointwise(name, name)
    if name in PRODUCTS:
        return product(name)
    return pooling(name) if name.startswith("pooling") else convolution(name)


SAMPLES = {name: sample(name) for name in (*STRUCTURES, *POINTWISE)} | {
    f"elementwise {kind}": pointwise("elementwise", body, f" kind=#linalg.elementwise_kind<{kind}>")
    for kind, body in KINDS.items()
}


@pytest.mark.parametrize("name", some(SAMPLES))
def test_named_ops_compute_what_their_names_state(name: str) -> None:
    chosen = SAMPLES[name]
    module = parse(chosen.text)
    assert level_of(module) == "te"
    (computed,) = evaluate(module, chosen.arrays)
    assert computed.dtype == chosen.expected.dtype
    np.testing.assert_allclose(computed, chosen.expected, rtol=2e-6)


def generalised(text: str, *flags: str) -> str:
    """The text that mlir-opt-22 makes of a module."""
    done = subprocess.run([str(MLIR_OPT), *flags], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


LATER = [name for name in SAMPLES if "_transpose_" in name]
"""The ops of MLIR before 22: since then the maps of a matmul say what is transposed."""


@cache
def generalisations(*flags: str) -> dict[str, ModuleOp]:
    """Map each sample to its function, as mlir-opt-22 prints it with these flags, converted to te."""
    texts = [SAMPLES[name].text.replace("@f(", f'@"{name}"(') for name in SAMPLES if name not in LATER]
    module = parse(generalised("\n".join(texts), *flags))
    return {function.sym_name.data: ModuleOp([function.clone()]) for function in functions(module)}


@pytest.mark.sampled
@needs_mlir_opt
@pytest.mark.parametrize("name", some(name for name in SAMPLES if name not in LATER))
def test_named_ops_are_what_mlir_generalises_them_to(name: str) -> None:
    here = canonical_hash(parse(SAMPLES[name].text))
    for flag in ("--linalg-generalize-named-ops", "--mlir-print-op-generic"):
        assert here == canonical_hash(generalisations(flag)[name])


@pytest.mark.sampled
@needs_mlir_opt
@pytest.mark.parametrize("cast", ["cast_signed", "cast_unsigned"])
@pytest.mark.parametrize("types", [("i8", "i32"), ("f16", "f32"), ("i8", "f32"), ("i1", "i32"), ("f32", "i32")])
def test_operands_are_converted_as_in_mlir(types: tuple[str, str], cast: str) -> None:
    narrow, wide = types
    operands = [("", f"tensor<3x3x{narrow}>"), ("", f"tensor<3x3x{narrow}>"), ("", f"tensor<3x3x{wide}>")]
    text = text_of("matmul", f" {{cast = #linalg.type_fn<{cast}>}}", operands)
    generic = generalised(text, "--linalg-generalize-named-ops")
    assert canonical_hash(parse(text)) == canonical_hash(parse(generic))
