"""Single nodes at the edges of their inputs: operators at all opsets where their meaning changed, in all te dtypes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from compiler.types.dtypes import DTYPES

FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
NUMBERS = (*FLOATS, *INTEGERS)


@dataclass(frozen=True)
class Probe:
    """One node with its inputs; those at the positions `known` are initialisers.

    today: the same node in an opset that the oracles know, where they do not know this one.
    """

    operator: str
    opset: int
    inputs: tuple[Any, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    known: tuple[int, ...] = ()
    outputs: int = 1
    today: Probe | None = None

    def __str__(self) -> str:
        shown = ", ".join("none" if a is None else f"{a.dtype}{list(a.shape)}" for a in self.inputs)
        return f"{self.operator}-{self.opset}({shown}){self.attributes or ''}"


def edges(dtype: str, extra: Sequence[float] = ()) -> Any:
    """The extremes of a dtype, and small numbers."""
    array = DTYPES[dtype].array
    if dtype == "i1":
        return np.array([True, False])
    if dtype in FLOATS:
        import ml_dtypes

        facts = ml_dtypes.finfo(array)
        tiny = [facts.smallest_subnormal, facts.smallest_normal, facts.eps, facts.max]
        values = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.5, 88.0, np.inf, *(float(n) for n in tiny), *extra]
        return np.array([*values, *(-n for n in values), np.nan]).astype(array)
    low, high = np.iinfo(array).min, np.iinfo(array).max
    return np.unique(
        np.array([0, 1, 2, 3, 7, 100, high, high - 1, low, low + 1, *([-1, -2, -7] if low else [])], array)
    )


def shapes_of(values: Any) -> Iterator[Any]:
    """Values as a vector, as a matrix, and one of them without dimensions."""
    yield values
    yield values[: len(values) // 2 * 2].reshape(-1, 2)
    yield values[-1].reshape(())


def versions(operator: str, newest: int = 25) -> list[int]:
    """The opsets in which an operator changed."""
    import onnx

    return sorted(
        {
            s.since_version
            for s in onnx.defs.get_all_schemas_with_history()
            if s.name == operator and not s.domain and s.since_version <= newest
        }
    )


def allowed(operator: str, opset: int, position: int = 0) -> set[str]:
    """The dtypes of te that an input of an operator may have."""
    import onnx

    from compiler.frontends.onnx.types import TYPE_OF

    schema = onnx.defs.get_schema(operator, opset, "")
    stated = schema.inputs[min(position, len(schema.inputs) - 1)]
    texts = {t for c in schema.type_constraints if c.type_param_str == stated.type_str for t in c.allowed_type_strs}
    names = {f"tensor({onnx.TensorProto.DataType.Name(element).lower()})": dtype for dtype, element in TYPE_OF.items()}
    return {dtype for name, dtype in names.items() if name in texts or (not texts and name == stated.type_str)}


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


UNARY = words(
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid "
    "HardSwish IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin "
    "Sinh Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Identity"
)
BINARY = words(
    "Add Sub Mul Div Pow And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual BitwiseAnd BitwiseOr "
    "BitwiseXor Max Min Mean Sum PRelu Mod"
)
REDUCTIONS = words(
    "ReduceSum ReduceProd ReduceMax ReduceMin ReduceMean ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp"
)


def unary() -> Iterator[Probe]:
    """Functions of one element."""
    for operator in UNARY:
        for opset in versions(operator):
            for dtype in sorted(allowed(operator, opset)):
                for values in shapes_of(edges(dtype)):
                    yield Probe(operator, opset, (values,))


def _divisors(operator: str, dtype: str, values: Any) -> Any:
    """Values that the operator's second input may have: quotients by 0, and powers that are none, are undefined."""
    if dtype in FLOATS or operator not in ("Div", "Mod", "Pow"):
        return values
    return values[(values > 0) & (values < 8)] if operator == "Pow" else values[(values != 0) & (values != -1)]


def binary() -> Iterator[Probe]:
    """Functions of two elements, of all pairs."""
    for operator in BINARY:
        for opset in versions(operator):
            for dtype in sorted(allowed(operator, opset)):
                values = edges(dtype)
                others = _divisors(operator, dtype, values)
                more = {"fmod": 1} if operator == "Mod" and dtype in FLOATS else {}
                old = {"broadcast": 1} if opset < 7 and operator in BINARY[:11] else {}
                if opset < 8 and operator in ("Max", "Min", "Mean", "Sum"):
                    pairs = np.array(list(product(range(len(values)), repeat=2)))
                    yield Probe(operator, opset, (values[pairs[:, 0]], values[pairs[:, 1]]))
                    continue
                if old or (operator == "PRelu" and opset < 7):
                    yield from _legacy(operator, opset, values, others, old)
                    continue
                yield Probe(
                    operator,
                    opset,
                    (values[:, None], others[None, :])
                    if operator != "PRelu"
                    else (np.repeat(values[:, None], len(others), 1), others),
                    more,
                )
                for known in ((), (1,)):
                    yield Probe(operator, opset, (values, others[1].reshape(())), more, known)
                yield Probe(operator, opset, (values[1].reshape(()), others[1].reshape(())), more)


def _legacy(operator: str, opset: int, values: Any, others: Any, old: dict[str, Any]) -> Iterator[Probe]:
    """The broadcasting of opsets below 7: the second input along an axis of the first."""
    x = np.resize(values, (2, 3, 2, 3))
    ways = (
        (1, (3,), (3, 1, 1)),
        (-3, (3,), (3, 1, 1)),
        (1, (3, 2), (3, 2, 1)),
        (None, (2, 3), (2, 3)),
        (None, (1,), (1,)),
    )
    for axis, shape, today in ways if operator != "PRelu" else ((None, (3,), (3, 1, 1)), (None, (1,), (1,))):
        second = np.resize(others, shape)
        twin = Probe(operator, 13, (x, second.reshape(today)))
        yield Probe(operator, opset, (x, second), old | ({} if axis is None else {"axis": axis}), today=twin)


def reductions() -> Iterator[Probe]:
    """Reductions over one axis, all of them, and none."""
    for operator in REDUCTIONS:
        for opset in versions(operator):
            for dtype in sorted(allowed(operator, opset)):
                by_input = opset >= (13 if operator == "ReduceSum" else 18)
                rows = _rows(dtype)
                if operator not in REDUCTIONS[:4] and dtype not in FLOATS:  # beyond the integers, and logarithms of 0
                    rows = [rows[0] + rows[0].dtype.type(1)]
                    rows += [-rows[0]] if operator == "ReduceMean" and dtype.startswith("i") else []
                for values in (*rows, rows[0].reshape(-1)[-1].reshape(())):
                    for axes in ((0,), (-1,), None) if values.ndim else (None,):
                        if axes is None:
                            yield Probe(operator, opset, (values,), {"keepdims": 0})
                        elif by_input:
                            yield Probe(operator, opset, (values, np.array(axes, np.int64)), {}, (1,))
                        else:
                            yield Probe(operator, opset, (values,), {"axes": list(axes)})


def _rows(dtype: str) -> list[Any]:
    """Matrices: small numbers, extremes."""
    values = edges(dtype)
    array = values.dtype
    small = np.arange(12).reshape(3, 4).astype(array)
    if dtype == "i1":
        return [np.array([[True, False], [False, False], [True, True]])]
    if dtype in FLOATS:
        bad = np.array(
            [[1, np.nan, 2], [np.inf, -np.inf, 0], [-np.inf, -np.inf, -np.inf], [-0.0, 0.0, -0.0], [60000, 60000, 1]]
        )
        return [small, bad.astype(array)]
    return [small, np.resize(values, (3, 4))]


def places() -> Iterator[Probe]:
    """The places of extremes, with ties."""
    for operator in ("ArgMax", "ArgMin"):
        for opset in versions(operator):
            for dtype in sorted(allowed(operator, opset)):
                for values in (*_rows(dtype), np.array([[1, 1, 0], [0, 0, 0]]).astype(DTYPES[dtype].array)):
                    for last in (0, 1) if opset >= 12 else (0,):
                        yield Probe(
                            operator, opset, (values,), {"axis": 1, **({"select_last_index": 1} if last else {})}
                        )
    for opset in versions("TopK"):
        for dtype in sorted(allowed("TopK", opset)):
            for values in (*_rows(dtype), np.array([[1, 1, 0, 1], [0, 0, 0, 2]]).astype(DTYPES[dtype].array)):
                if opset < 10:
                    yield Probe("TopK", opset, (values,), {"k": 2, "axis": 1}, (), 2)
                for largest in (1, 0) if opset >= 11 else (1,):
                    if opset >= 10:
                        given = {"axis": 1} | ({"largest": largest} if opset >= 11 else {})
                        yield Probe("TopK", opset, (values, np.array([2], np.int64)), given, (1,), 2)


def normalised() -> Iterator[Probe]:
    """Softmax and its relatives, which flatten their input below opset 13."""
    for operator in ("Softmax", "LogSoftmax", "Hardmax"):
        for opset in versions(operator):
            for dtype in sorted(allowed(operator, opset)):
                x = np.linspace(-3, 3, 24).reshape(2, 3, 4).astype(DTYPES[dtype].array)
                for axis in (None, 0, 1, 2) + ((-1,) if opset >= 11 else ()):
                    yield Probe(operator, opset, (x,), {} if axis is None else {"axis": axis})
                yield Probe(operator, opset, (_rows(dtype)[1],), {"axis": 1})


def casts() -> Iterator[Probe]:
    """Conversions of all pairs of dtypes, of values that the result's dtype holds."""
    from compiler.frontends.onnx.types import TYPE_OF

    dtypes = (*NUMBERS, "i1")
    for opset in (6, 9, 13, 19, 25):
        for source, wanted in product(dtypes, dtypes):
            if not {source, wanted} <= allowed("Cast", opset):
                continue
            values = edges(source)
            if source in FLOATS and wanted in INTEGERS:
                bounds = np.iinfo(DTYPES[wanted].array)
                with np.errstate(all="ignore"):
                    wide = values.astype(np.float64)
                    values = values[(wide > float(bounds.min) - 1) & (wide < float(bounds.max))]
            for part in shapes_of(values):
                yield Probe("Cast", opset, (part,), {"to": TYPE_OF[wanted]})


def quantised() -> Iterator[Probe]:
    """Quantised tensors: scales of the tensor, along an axis, and by blocks."""
    x = np.concatenate([np.linspace(-3, 3, 8), [-200.0, 200.0, 0.25, 0.75]]).reshape(3, 4)
    for opset in versions("QuantizeLinear"):
        for dtype in ("u8", "i8", *(("u16", "i16") if opset >= 21 else ())):
            array = DTYPES[dtype].array
            for scale, zero, more in _scales(array, opset):
                for wide in ("f32", "f16") if opset >= 19 else ("f32",):
                    real = x.astype(DTYPES[wide].array)
                    yield Probe("QuantizeLinear", opset, (real, scale.astype(real.dtype), zero), more)
                    yield Probe(
                        "DequantizeLinear",
                        opset,
                        (np.resize(edges(dtype), (3, 4)), scale.astype(real.dtype), zero),
                        more,
                    )
    for zero in (np.float32(0), np.float32(5)):
        yield Probe("DynamicQuantizeLinear", 11, (x.astype(np.float32) + zero,), {}, (), 3)
    yield Probe("DynamicQuantizeLinear", 11, (np.zeros((2, 2), np.float32),), {}, (), 3)


def _scales(array: Any, opset: int) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    yield np.array(0.5), np.array(3, array), {}
    if opset >= 13:
        yield np.array([0.5, 1.0, 2.0]), np.array([1, 2, 3], array), {"axis": 0}
        yield np.array([0.5, 1.0, 2.0, 0.25]), np.array([1, 2, 3, 0], array), {"axis": -1}
    if opset >= 21:
        yield (
            np.array([[0.5, 1.0], [2.0, 3.0], [0.25, 4.0]]),
            np.resize(np.arange(6).astype(array), (3, 2)),
            {"axis": 1, "block_size": 2},
        )


def products() -> Iterator[Probe]:
    """Products of integers: zero points of the tensor, by row, by column, and by batch."""
    rng = np.random.default_rng(0)
    for left, right in (("u8", "u8"), ("u8", "i8"), ("i8", "i8"), ("i8", "u8")):
        a, b = (
            rng.integers(np.iinfo(t).min, np.iinfo(t).max, shape, t, endpoint=True)
            for t, shape in ((DTYPES[left].array, (2, 3, 4)), (DTYPES[right].array, (4, 5)))
        )
        zeros = lambda n, t: rng.integers(1, 100, n, DTYPES[t].array)  # noqa: E731
        yield Probe("MatMulInteger", 10, (a, b))
        yield Probe("MatMulInteger", 10, (a, b, zeros((), left), zeros((), right)))
        yield Probe("MatMulInteger", 10, (a[0], b, zeros(3, left), zeros(5, right)))
        yield Probe("MatMulInteger", 10, (a, b, zeros((2, 3, 1), left), zeros(5, right)))
        yield Probe("MatMulInteger", 10, (a, np.stack([b, b]), zeros((), left), zeros((2, 1, 5), right)))
        for opset in versions("QLinearMatMul"):
            yield from _quantised_products(opset, a, b, left, right, zeros)
    image, kernel = rng.integers(0, 255, (1, 2, 5, 5), np.uint8), rng.integers(0, 255, (3, 2, 3, 3), np.uint8)
    yield Probe("ConvInteger", 10, (image, kernel, np.uint8(3).reshape(())))
    yield Probe(
        "ConvInteger", 10, (image, kernel, np.uint8(3).reshape(()), np.uint8(7).reshape(())), {"pads": [1, 1, 1, 1]}
    )
    yield Probe("ConvInteger", 10, (image, kernel, np.uint8(3).reshape(()), np.array([7, 8, 9], np.uint8)))
    yield from _quantised_convolutions(image, kernel)


def _quantised_products(opset: int, a: Any, b: Any, left: str, right: str, zeros: Any) -> Iterator[Probe]:
    one = np.float32(0.01).reshape(())
    rows, columns = np.array([0.01, 0.02, 0.03], np.float32), np.array([0.01, 0.02, 0.03, 0.04, 0.05], np.float32)
    y = np.float32(0.7).reshape(())
    yield Probe("QLinearMatMul", opset, (a, one, zeros((), left), b, one, zeros((), right), y, zeros((), left)))
    yield Probe("QLinearMatMul", opset, (a, one, zeros((), left), b, columns, zeros(5, right), y, zeros((), left)))
    yield Probe("QLinearMatMul", opset, (a[0], rows, zeros(3, left), b, columns, zeros(5, right), y, zeros((), left)))
    by_row = np.float32([0.5, 0.6, 0.7])
    yield Probe("QLinearMatMul", opset, (a[0], rows, zeros(3, left), b, one, zeros((), right), by_row, zeros(3, left)))
    batched = np.resize(rows, (2, 3, 1))
    yield Probe(
        "QLinearMatMul", opset, (a, batched, zeros((2, 3, 1), left), b, columns, zeros(5, right), y, zeros((), left))
    )


def _quantised_convolutions(image: Any, kernel: Any) -> Iterator[Probe]:
    one, zero, y = np.float32(0.01).reshape(()), np.uint8(3).reshape(()), np.float32(0.5).reshape(())
    by_channel, zeros = np.array([0.01, 0.02, 0.03], np.float32), np.array([7, 8, 9], np.uint8)
    bias = np.array([100, -100, 7], np.int32)
    for scale, offset in ((one, zero), (by_channel, zeros), (by_channel, np.full(3, 5, np.uint8))):
        yield Probe("QLinearConv", 10, (image, one, zero, kernel, scale, offset, y, zero, bias))


def recurrent() -> Iterator[Probe]:
    """Recurrent layers: directions, layouts, and sequences of other lengths than the tensor."""
    rng = np.random.default_rng(0)
    for operator, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        for opset, way, length in product(
            (7, 14, 22), ("forward", "reverse", "bidirectional"), (None, (4, 2, 1), (3, 3, 0))
        ):
            ways = 2 if way == "bidirectional" else 1
            draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
            more = [None if length is None else np.array(length, np.int32), draw(ways, 3, 2)]
            more += [draw(ways, 3, 2), draw(ways, 6)] if operator == "LSTM" else []
            inputs = (draw(4, 3, 5), draw(ways, gates * 2, 5), draw(ways, gates * 2, 2), draw(ways, gates * 4), *more)
            outputs = 3 if operator == "LSTM" else 2
            for known in ((4,), ()) if length else ((),):
                yield Probe(operator, opset, inputs, {"hidden_size": 2, "direction": way}, known, outputs)


def moved() -> Iterator[Probe]:
    """Operators whose attributes became inputs, at all opsets."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
    for opset in versions("Clip"):
        for dtype in sorted(allowed("Clip", opset)):
            values = edges(dtype)
            low, high = (np.array(n, values.dtype) for n in (1, 3))
            if opset < 11:
                yield Probe("Clip", opset, (values,), {"min": 1.0, "max": 3.0})
                yield Probe("Clip", opset, (values,))
                continue
            for bounds in ((low, high), (high, low), (low,), (None, high), ()):
                for known in ((1, 2), ()):
                    yield Probe(
                        "Clip",
                        opset,
                        (values, *bounds),
                        {},
                        tuple(k for k in known if k <= len(bounds) and bounds[k - 1] is not None),
                    )
    for opset in versions("Pad"):
        pads = [0, 1, 0, 0, 0, 2]
        for mode in ("constant", "reflect", "edge"):
            if opset < 11:
                yield Probe(
                    "Pad", opset, (x,), {"paddings" if opset == 1 else "pads": pads, "mode": mode, "value": 2.5}
                )
            else:
                yield Probe(
                    "Pad", opset, (x, np.array(pads, np.int64), np.float32(2.5).reshape(())), {"mode": mode}, (1, 2)
                )
    for opset in versions("Split"):
        by = {"split": [1, 2]} if opset < 13 else {}
        stated = () if opset < 13 else (np.array([1, 2], np.int64),)
        yield Probe("Split", opset, (x, *stated), {"axis": 1, **by}, (1,) if stated else (), 2)
    for operator, axes in (("Squeeze", [0]), ("Unsqueeze", [0])):
        for opset in versions(operator):
            value = x[:1] if operator == "Squeeze" else x
            if opset < 13:
                yield Probe(operator, opset, (value,), {"axes": axes})
            else:
                yield Probe(operator, opset, (value, np.array(axes, np.int64)), {}, (1,))
    for opset in versions("Slice"):
        bounds = {"starts": [0, -2], "ends": [1, 1000], "axes": [0, 2]}
        if opset < 10:
            yield Probe("Slice", opset, (x,), bounds)
        else:
            yield Probe("Slice", opset, (x, *(np.array(v, np.int64) for v in bounds.values())), {}, (1, 2, 3))
    for opset in versions("Concat"):
        yield Probe("Concat", opset, (x, x), {} if opset < 4 else {"axis": 1})
    for opset in versions("Reshape"):
        shape = [0, -1]
        yield (
            Probe("Reshape", opset, (x,), {"shape": shape})
            if opset < 5
            else Probe("Reshape", opset, (x, np.array(shape)), {}, (1,))
        )
    for opset in versions("Dropout"):
        yield Probe("Dropout", opset, (x,), {"is_test": 1} if opset < 7 else {})
    for opset in versions("Tile"):
        if opset >= 6:
            yield Probe("Tile", opset, (x, np.array([1, 2, 1])), {}, (1,))
    for opset in versions("Gemm"):
        a, b = x[0], x[1].T.copy()
        for bias in ((3,), (3, 3), (1,), (3, 1)):
            yield Probe("Gemm", opset, (a, b, np.resize(x, bias)), {"broadcast": 1} if opset < 7 else {})
    yield from _images()


def _images() -> Iterator[Probe]:
    image = (np.arange(48, dtype=np.float32).reshape(1, 3, 4, 4) - 20) / 3
    channel = [np.array(v, np.float32) for v in ([1, 2, 3], [0, 1, -1], [0.5, 1, 2], [1, 2, 4])]
    for opset in versions("BatchNormalization"):
        yield Probe("BatchNormalization", opset, (image, *channel), {"is_test": 1} if opset < 7 else {})
    for opset in versions("InstanceNormalization"):
        yield Probe("InstanceNormalization", opset, (image, *channel[:2]))
    for opset in versions("Upsample"):
        if opset >= 7:
            for mode in ("nearest", "linear"):
                scales = [1.0, 1.0, 2.0, 1.5 if mode == "nearest" else 2.0]
                more = {"scales": scales} if opset < 9 else {}
                inputs = (image,) if opset < 9 else (image, np.array(scales, np.float32))
                yield Probe("Upsample", opset, inputs, {"mode": mode, **more}, (1,) if opset >= 9 else ())
    for opset in versions("Resize"):
        for mode, by in product(("nearest", "linear"), (2.0, 0.5, 1.3)):
            scales = np.array([1, 1, by, by], np.float32)
            inputs = (
                (image, scales) if opset == 10 else (image, np.zeros(0, np.float32) if opset == 11 else None, scales)
            )
            yield Probe(
                "Resize", opset, inputs, {"mode": mode}, (1,) if opset == 10 else (1, 2) if opset == 11 else (2,)
            )
    for operator in ("MaxPool", "AveragePool", "LpPool"):
        for opset in versions(operator):
            if opset < (2 if operator == "LpPool" else 7):  # no oracle has their defaults
                continue
            yield Probe(operator, opset, (image,), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]})
    for operator in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"):
        for opset in versions(operator):
            yield Probe(operator, opset, (image,), {"p": 2} if operator == "GlobalLpPool" and opset > 1 else {})
    for opset in versions("LRN"):
        yield Probe("LRN", opset, (image,), {"size": 3})
    for operator in ("DepthToSpace", "SpaceToDepth"):
        for opset in versions(operator):
            yield Probe(operator, opset, (np.resize(image, (1, 4, 2, 2)),), {"blocksize": 2})


def transforms() -> Iterator[Probe]:
    """Fourier transforms of real and complex numbers, shortened and padded."""
    rng = np.random.default_rng(0)
    for opset, extent, parts, axis, inverse, half in product((17, 20), (1, 6, 7), (1, 2), (0, 1), (0, 1), (0, 1)):
        if (half and parts == (1 if inverse else 2)) or (opset < 20 and inverse and half):
            continue
        x = rng.standard_normal((*([extent, 3] if axis == 0 else [3, extent]), parts)).astype(np.float32)
        for length in (None, 5, 8) if extent > 1 else (4,):
            stated = None if length is None else np.array(length)
            inputs, more = ((x, stated, np.array(axis)), {}) if opset >= 20 else ((x, stated), {"axis": axis})
            known = tuple(n for n, value in enumerate(inputs) if n and value is not None)
            yield Probe("DFT", opset, inputs, {"inverse": inverse, "onesided": half, **more}, known)


def probes() -> list[Probe]:
    families = (unary, binary, reductions, places, normalised, casts, quantised, products, recurrent, moved, transforms)
    return [probe for family in families for probe in family()]
