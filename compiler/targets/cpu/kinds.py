"""The array classes of the fast path, numpy's and torch's: their checks, as Python expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from compiler.targets.address import address
from compiler.targets.arguments import Argument, aligned_copy, native_order_copy
from compiler.targets.foreign import Torch, as_numpy, bump_version, imported_torch, is_array, result_wrapper, to_torch


@dataclass(frozen=True)
class ArrayKind:
    """The checks and conversions of an array class.

    copy: copies an array of the right shape and dtype to one that native code can read. convert: copies an array of
    another byte order, and returns None for another shape or dtype; None for a class without byte orders. dtype: maps
    numpy's dtype to that of the class. The strings are Python expressions of the caller's object `{g}`, the array
    `{a}`, the argument's `shape{n}`, `dtype{n}` and `label{n}`, and `names`. read, write: the array of an object to
    read or to write. fits: the array has the right shape and dtype. readable, writable: native code can access the
    array, alignment aside. address: of its first element. result: a new numpy array converted to this class.
    after_writing: a statement after the call.
    """

    cls: type
    copy: Callable[[Argument, Any], object]
    convert: Callable[[Argument, Any], object | None] | None
    dtype: Callable[[np.dtype], object]
    read: str
    write: str
    fits: str
    readable: str
    writable: str
    address: str
    result: str
    after_writing: str
    names: Mapping[str, object]


_HAS_SHAPE_AND_DTYPE = "type({a}) is Class and {a}.shape == shape{n} and {a}.dtype == dtype{n}"

NUMPY = ArrayKind(
    cls=np.ndarray,
    copy=aligned_copy,
    convert=native_order_copy,
    dtype=lambda dtype: dtype,
    read="{g}",
    write="{g}",
    fits=_HAS_SHAPE_AND_DTYPE,
    readable="{a}.flags.c_contiguous",
    writable="{a}.flags.carray",
    address="address({a})",
    result="{a}",
    after_writing="",
    names={"address": address},
)
"""Arrays of numpy itself, without subclasses."""

ANY_ARRAY = replace(
    NUMPY,
    read="as_numpy(label{n}, {g})",
    write="as_numpy(label{n}, {g}) if is_array({g}) else None",
    result="result_wrapper(g0)({a})",
    after_writing="bump_version({g})",
    names={
        "address": address,
        "as_numpy": as_numpy,
        "is_array": is_array,
        "result_wrapper": result_wrapper,
        "bump_version": bump_version,
    },
)
"""Arrays of any class, viewed as numpy's."""


def kind_of(cls: type) -> ArrayKind | None:
    """Return the checks for a class that is numpy's array or, if torch is imported, its tensor; None for other classes,
    subclasses included."""
    if cls is np.ndarray:
        return NUMPY
    library = imported_torch()
    return _torch_kind(library) if library is not None and cls is library.Tensor else None


def _torch_kind(library: Torch) -> ArrayKind:
    """Return the kind of torch tensors: dense ones on the CPU without gradient and without a lazy negation."""
    return ArrayKind(
        cls=library.Tensor,
        copy=lambda argument, tensor: tensor.clone(memory_format=library.contiguous_format),
        convert=None,
        dtype=lambda dtype: getattr(library, dtype.name, None),
        read="{g}",
        write="{g}",
        fits=_HAS_SHAPE_AND_DTYPE
        + " and {a}.layout is strided and {a}.is_cpu and not {a}.requires_grad and not {a}.is_neg()",
        readable="{a}.is_contiguous()",
        writable="{a}.is_contiguous()",
        address="{a}.data_ptr()",
        result="to_torch({a})",
        after_writing="bump_version({g})",
        names={"strided": library.strided, "bump_version": bump_version, "to_torch": to_torch},
    )
