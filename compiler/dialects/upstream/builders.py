"""Fast constructors of the most frequent ops and types of unrolled nests: xDSL's own take several times as long, to
sort and check their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.arith import IntegerOverflowAttr
from xdsl.dialects.builtin import BoolAttr, MemRefType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from compiler.dialects.upstream.memref import PrefetchOp
from compiler.dialects.upstream.vector import ScatterOp

Constant: TypeAlias = Any  # an attribute of arith.constant: xDSL's are generic in an element type that is not static

_TRUE = BoolAttr.from_bool(True)
_MAY_WRAP = {"overflowFlags": IntegerOverflowAttr("none")}


@lru_cache(maxsize=256)
def vector_type(element: Attribute, lanes: int) -> VectorType:
    """The type of a vector of `lanes` elements, in one dimension."""
    return VectorType(element, [lanes])


def load(buffer: SSAValue, indices: Sequence[SSAValue]) -> memref.LoadOp:
    """Build the load of the element buffer[indices]."""
    assert isinstance(buffer.type, MemRefType)
    return memref.LoadOp.create(operands=[buffer, *indices], result_types=[buffer.type.element_type])


def store(value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue]) -> memref.StoreOp:
    """Build the store of a scalar to the element buffer[indices]."""
    return memref.StoreOp.create(operands=[value, buffer, *indices])


def load_lanes(buffer: SSAValue, indices: Sequence[SSAValue], lanes: int) -> vector.LoadOp:
    """Build the load of `lanes` contiguous elements from buffer[indices] on, along the last dimension."""
    assert isinstance(buffer.type, MemRefType)
    type = vector_type(buffer.type.element_type, lanes)
    return vector.LoadOp.create(operands=[buffer, *indices], result_types=[type])


def store_lanes(
    value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue], streamed: bool = False
) -> vector.StoreOp:
    """Build the store of a vector to contiguous elements from buffer[indices] on, nontemporal if `streamed`."""
    properties = {"nontemporal": _TRUE} if streamed else {}
    return vector.StoreOp.create(operands=[value, buffer, *indices], properties=properties)


def load_masked(
    buffer: SSAValue, indices: Sequence[SSAValue], mask: SSAValue, otherwise: SSAValue
) -> vector.MaskedLoadOp:
    """Build the load of elements from buffer[indices] on where the mask is true; elsewhere the lane is that of the
    vector `otherwise`."""
    operands = [buffer, *indices, mask, otherwise]
    return vector.MaskedLoadOp.create(operands=operands, result_types=[otherwise.type])


def store_masked(
    buffer: SSAValue, indices: Sequence[SSAValue], mask: SSAValue, value: SSAValue
) -> vector.MaskedStoreOp:
    """Build the store of the lanes where the mask is true to elements from buffer[indices] on."""
    return vector.MaskedStoreOp.create(operands=[buffer, *indices, mask, value])


def scatter(
    buffer: SSAValue, indices: Sequence[SSAValue], steps: SSAValue, mask: SSAValue, value: SSAValue
) -> ScatterOp:
    """Build the store of each lane l whose mask is true to the element `steps[l]` elements after buffer[indices]."""
    return ScatterOp.create(operands=[buffer, *indices, steps, mask, value])


def prefetch(buffer: SSAValue, indices: Sequence[SSAValue], written: bool, locality: int) -> PrefetchOp:
    """Build the prefetch of an element's cache line, to write it if `written`; locality from 0 (used once) to 3
    (reused)."""
    return PrefetchOp.create(operands=[buffer, *indices], properties=_prefetching(written, locality))


@lru_cache(maxsize=8)
def _prefetching(written: bool, locality: int) -> Mapping[str, Attribute]:
    """The properties of a prefetch, cached since few differ."""
    return PrefetchOp.stated(written, locality)


def added(lhs: SSAValue, rhs: SSAValue) -> arith.AddiOp:
    """Build the sum of integers or vectors of integers, which may wrap."""
    return arith.AddiOp.create(operands=[lhs, rhs], result_types=[lhs.type], properties=_MAY_WRAP)


def multiplied(lhs: SSAValue, rhs: SSAValue) -> arith.MuliOp:
    """Build the product of integers or vectors of integers, which may wrap."""
    return arith.MuliOp.create(operands=[lhs, rhs], result_types=[lhs.type], properties=_MAY_WRAP)


def elementwise(kind: type[Operation], *operands: SSAValue) -> Operation:
    """Build an op of the class `kind`, without properties, whose operands, at least one, and result have the same
    type."""
    return kind.create(operands=operands, result_types=[operands[0].type])


def constant(value: Constant) -> arith.ConstantOp:
    """Build the arith.constant whose value is an attribute."""
    return arith.ConstantOp.create(result_types=[value.type], properties={"value": value})


def broadcast(value: SSAValue, lanes: int) -> vector.BroadcastOp:
    """Build the broadcast of a scalar to a vector of `lanes` lanes."""
    return vector.BroadcastOp.create(operands=[value], result_types=[vector_type(value.type, lanes)])
