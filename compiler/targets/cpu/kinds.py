"""The kinds of arrays that the usual call takes, numpy's and torch's: their checks, as Python expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from compiler.targets.address import address
from compiler.targets.arguments import Argument, copied, in_native_order
from compiler.targets.foreign import Torch, as_numpy, is_array, note_writing, returned_as, to_torch, torch


@dataclass(frozen=True)
class ArrayKind:
    """The arrays of a class, and the copies that native code can read: `copied` of an array that fits, `converted` of
    some that do not.

    Expressions are of what a caller gives `{g}`, of `shape{n}`, `dtype{n}` and `place{n}` of the argument at its
    position, and of `names`: `read` and `written` are the array `{a}` for it; `fits` is a condition of arrays with the
    right elements; `reads` and `writes` are those under which native code can do so with one that fits, apart from its
    alignment; `start` is its address; `returned` makes one of numpy's array.
    """

    cls: type
    copied: Callable[[Argument, Any], object]
    converted: Callable[[Argument, Any], object | None] | None
    dtype: Callable[[np.dtype], object]
    read: str
    written: str
    fits: str
    reads: str
    writes: str
    start: str
    returned: str
    after_writing: str
    names: Mapping[str, object]


_SAME = "type({a}) is Class and {a}.shape == shape{n} and {a}.dtype == dtype{n}"

NUMPY = ArrayKind(
    cls=np.ndarray,
    copied=copied,
    converted=in_native_order,
    dtype=lambda dtype: dtype,
    read="{g}",
    written="{g}",
    fits=_SAME,
    reads="{a}.flags.c_contiguous",
    writes="{a}.flags.carray",
    start="address({a})",
    returned="{a}",
    after_writing="",
    names={"address": address},
)
"""Arrays of numpy, of no subclass."""

ANY = replace(
    NUMPY,
    read="as_numpy(place{n}, {g})",
    written="as_numpy(place{n}, {g}) if is_array({g}) else None",
    returned="returned_as(g0)({a})",
    after_writing="note_writing({g})",
    names={
        "address": address,
        "as_numpy": as_numpy,
        "is_array": is_array,
        "returned_as": returned_as,
        "note_writing": note_writing,
    },
)
"""Arrays of any classes, seen as numpy's."""


def kind_of(cls: type) -> ArrayKind | None:
    """The kind of the arrays of a class; None for all others."""
    if cls is np.ndarray:
        return NUMPY
    library = torch()
    return _of_torch(library) if library is not None and cls is library.Tensor else None


def _of_torch(library: Torch) -> ArrayKind:
    """Dense tensors on the CPU that have no gradient and are not negated lazily."""
    return ArrayKind(
        cls=library.Tensor,
        copied=lambda argument, tensor: tensor.clone(memory_format=library.contiguous_format),
        converted=None,
        dtype=lambda dtype: getattr(library, dtype.name, None),
        read="{g}",
        written="{g}",
        fits=_SAME + " and {a}.layout is strided and {a}.is_cpu and not {a}.requires_grad and not {a}.is_neg()",
        reads="{a}.is_contiguous()",
        writes="{a}.is_contiguous()",
        start="{a}.data_ptr()",
        returned="to_torch({a})",
        after_writing="note_writing({g})",
        names={"strided": library.strided, "note_writing": note_writing, "to_torch": to_torch},
    )
