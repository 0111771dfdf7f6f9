"""Conversions between types, and addresses between state spaces: cvt, cvta."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from compiler.targets.ptx.addresses import WINDOWS
from compiler.targets.ptx.arithmetic import flush, saturated
from compiler.targets.ptx.rounding import ROUNDINGS, added
from compiler.targets.ptx.syntax import PtxInstruction
from compiler.targets.ptx.table import Computation, modifiers_of, one_type, pure, types_of
from compiler.targets.ptx.values import Array, dtype_of_type, is_float_type

_TO_INTEGER: Mapping[str, Callable[[Any], Any]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


@pure("cvt")
def conversion(instruction: PtxInstruction) -> Computation:
    """Return the computation of a `cvt`, such as `cvt.rn.f16.f32 d, a`. `cvt.rn.f16x2.f32 d, a, b` puts a in the high
    half. Floats become integers, toward zero without a mode such as `.rni`, with saturation, NaN 0 or, of 64 bits or
    from f64, the top bit alone; without `.sat` integers wrap, with it they saturate, and floats are clamped to [0, 1].
    Raises PtxError for a modifier or pair of types that is not implemented."""
    to, of = types_of(instruction)
    modifiers = modifiers_of(instruction, *_TO_INTEGER, *ROUNDINGS, "ftz", "sat", "rna")
    if "x2" in to:
        return _packed(instruction, to, of, modifiers)
    integral = next((_TO_INTEGER[name] for name in _TO_INTEGER if name in modifiers), None)
    convert: Callable[[Array], Array]
    if to == "tf32":
        convert = _to_tf32
    elif is_float_type(to):
        convert = _to_float(instruction, to, of, modifiers)
    elif is_float_type(of):
        convert = _float_to_integer(to, of)
    else:
        convert = _integer_to_integer(to, "sat" in modifiers)

    def compute(values: Array) -> Array:
        if "ftz" in modifiers and values.dtype == np.float32:
            values = flush(values)
        result = convert(values if integral is None else integral(values).astype(values.dtype))
        return saturated(result) if "sat" in modifiers and is_float_type(to) else result

    return Computation((of,), "b32" if to == "tf32" else to, compute)


def _packed(instruction: PtxInstruction, to: str, of: str, modifiers: set[str]) -> Computation:
    convert = _to_float(instruction, to.removesuffix("x2"), of, modifiers)
    return Computation((of, of), to, lambda high, low: np.stack([convert(low), convert(high)], axis=1).reshape(-1))


def _to_float(instruction: PtxInstruction, to: str, of: str, modifiers: set[str]) -> Callable[[Array], Array]:
    dtype = dtype_of_type(to)
    mode = next((mode for mode in ("rz", "rm", "rp") if mode in modifiers), None)
    if mode is None:
        return lambda values: values.astype(dtype)
    if (to, of) != ("f32", "f64"):
        raise instruction.refused(f"rounding '.{mode}' between these types")
    return lambda values: _narrowed(values, mode)


def _narrowed(values: Array, mode: str) -> Array:
    """Return float64 values as float32, rounded in the mode rz, rm or rp; overflows and non-finite values are rounded
    to nearest."""
    nearest = values.astype(np.float32)
    rest = (values - nearest.astype(np.float64)).astype(np.float32)
    return np.where(np.isfinite(nearest), added(nearest, rest, mode), nearest)


def _to_tf32(values: Array) -> Array:
    """Return the bits of float32 values rounded to 10 bits of fraction, halves away from zero."""
    return (values.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)


def _float_to_integer(to: str, of: str) -> Callable[[Array], Array]:
    dtype = dtype_of_type(to)
    limits = np.iinfo(dtype)
    of_nan = 0 if of != "f64" and dtype.itemsize < 8 else (1 << (8 * dtype.itemsize - 1))

    def convert(values: Array) -> Array:
        wide = values.astype(np.float64)
        low, high = wide <= float(limits.min), wide >= float(limits.max)
        inside = np.where(low | high | np.isnan(wide), 0.0, wide).astype(dtype)
        clamped = np.where(low, dtype.type(limits.min), np.where(high, dtype.type(limits.max), inside))
        return np.where(np.isnan(wide), np.array(of_nan, f"u{dtype.itemsize}").view(dtype), clamped)

    return convert


def _integer_to_integer(to: str, saturates: bool) -> Callable[[Array], Array]:
    dtype = dtype_of_type(to)
    if not saturates:
        return lambda values: values.astype(dtype)
    limits = np.iinfo(dtype)

    def convert(values: Array) -> Array:
        own = np.iinfo(values.dtype)
        return np.clip(values, max(limits.min, own.min), min(limits.max, own.max)).astype(dtype)

    return convert


@pure("cvta")
def address_conversion(instruction: PtxInstruction) -> Computation:
    """Return the computation of `cvta`, which adds the base of a state space's window to get a generic address, or
    `cvta.to`, which subtracts it. Raises PtxError for addresses other than of 64 bits, and for an unknown state space;
    ValueError without one.
    """
    type_ = one_type(instruction)
    modifiers = modifiers_of(instruction, "to", *WINDOWS)
    (space,) = modifiers - {"to"}
    base = np.uint64(WINDOWS[space])
    if type_ != "u64":
        raise instruction.refused("addresses have 64 bits")
    if "to" in modifiers:
        return Computation((type_,), type_, lambda address: address - base)
    return Computation((type_,), type_, lambda address: address + base)
