"""`DTYPES`: the dtypes, a row each, and their element types in the IR.

Only the element types of tensors and buffers are unsigned, such as `ui8`; a scalar is an `i8`. A new dtype is a row
here, and conversions in `te.emit`, `interpret.conversions`, `lowering.low_to_llvm.conversions` and the targets'
operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute

from compiler.support.errors import InputError, TeError

if TYPE_CHECKING:
    import numpy as np

DType: TypeAlias = "np.dtype[Any]"  # of elements chosen by the program


@dataclass(frozen=True)
class Dtype:
    """The facts of a dtype.

    name: its name in te.
    kind: f, i, u or b as in numpy: floats, integers with a sign and without one, truth values.
    type: the element type of tensors and buffers.
    numpy: numpy's name, or that of the package ml_dtypes.
    llvm: the type of values in LLVM IR.
    c: the type of values in C++; `vector` is the prefix of its short vectors in C++, if any.
    infinite: the smallest number that rounds to infinity, of a float dtype; 0 for others.
    """

    name: str
    kind: str
    bits: int
    type: Attribute
    numpy: str
    llvm: str
    c: str
    vector: str = ""
    infinite: int = 0

    @property
    def scalar(self) -> Attribute:
        """The type of a scalar value; integers are signless."""
        return IntegerType(self.bits) if self.kind == "u" else self.type

    @property
    def array(self) -> DType:
        """numpy's dtype. Raises InputError if it needs the package ml_dtypes, which is not installed."""
        import numpy as np

        if self.name != "bf16":
            return np.dtype(self.numpy)
        try:
            from ml_dtypes import bfloat16
        except ImportError as error:
            raise InputError("arrays of bf16 need the package ml_dtypes: install strata-compiler[bf16]") from error
        dtype: DType = np.dtype(bfloat16)
        return dtype

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest value of an integer dtype, 0 and 1 for i1; without a meaning for floats."""
        return (-(1 << self.bits - 1), (1 << self.bits - 1) - 1) if self.kind == "i" else (0, (1 << self.bits) - 1)


def _integer(bits: int, c: str, vector: str = "") -> Dtype:
    return Dtype(f"i{bits}", "i", bits, IntegerType(bits), f"int{bits}", f"i{bits}", c, vector)


def _unsigned(bits: int, c: str) -> Dtype:
    return Dtype(f"u{bits}", "u", bits, IntegerType(bits, Signedness.UNSIGNED), f"uint{bits}", f"i{bits}", c)


DTYPES = {
    row.name: row
    for row in (
        Dtype("f16", "f", 16, Float16Type(), "float16", "half", "__half", infinite=65520),
        # LLVM's bfloat aborts for some operations ("cannot soft promote"): a bf16 is an integer of its bits there
        Dtype("bf16", "f", 16, BFloat16Type(), "bfloat16", "i16", "__nv_bfloat16", infinite=2**128 - 2**119),
        Dtype("f32", "f", 32, Float32Type(), "float32", "float", "float", "float", 2**128 - 2**103),
        Dtype("f64", "f", 64, Float64Type(), "float64", "double", "double", "double", 2**1024 - 2**970),
        _integer(8, "signed char", "char"),
        _integer(16, "short", "short"),
        _integer(32, "int", "int"),
        _integer(64, "long long"),
        _unsigned(8, "unsigned char"),
        _unsigned(16, "unsigned short"),
        _unsigned(32, "unsigned"),
        _unsigned(64, "unsigned long long"),
        Dtype("i1", "b", 1, IntegerType(1), "bool", "i1", "bool"),
    )
}
"""Map each dtype's name to its row."""

TYPES = {name: row.type for name, row in DTYPES.items()}
"""Map each dtype's name to the element type of its tensors."""

SCALARS = {name: row.scalar for name, row in DTYPES.items()}
"""Map each dtype's name to the type of its scalar values."""

FLOATS = tuple(type(row.type) for row in DTYPES.values() if row.kind == "f")
"""The classes of float types."""

INDICES = tuple(row.name for row in DTYPES.values() if row.kind in "iu")
"""The names of the integer dtypes, whose values may be indices."""

_BY_TYPE = {row.type: row for row in DTYPES.values()} | {
    IntegerType(row.bits, Signedness.SIGNED): row for row in DTYPES.values() if row.kind == "i"
}


def row_of(type: Attribute) -> Dtype | None:
    """The row of an element or scalar type; signless integers are signed. None for a type that is no dtype."""
    return _BY_TYPE.get(type)


_SPELLINGS = {row.numpy: row.name for row in DTYPES.values()}
"""Map the names of dtypes in numpy, torch and TVM to ours."""
_AMBIGUOUS = {float: "f32 or f64", int: "i32 or i64", "float": "f32 or f64", "int": "i32 or i64"}
"""Map names whose meaning differs between libraries to the dtypes they may mean."""


def check_dtype(dtype: object) -> str:
    """Return te's name of a dtype, from a name in te or numpy ("float32") or a dtype of numpy or torch. Raises TeError
    for any other object."""
    if isinstance(dtype, str) and dtype in DTYPES:
        return dtype
    name = _spelled(dtype)
    if name in _SPELLINGS:
        return _SPELLINGS[name]
    meant = _AMBIGUOUS.get(dtype) if isinstance(dtype, str | type) else None
    hint = f"write {meant}" if meant else f"there are {', '.join(DTYPES)}"
    raise TeError(f"unknown dtype {dtype!r} ({hint})")


def _spelled(dtype: object) -> str:
    """A library's name of its dtype: `float32` for numpy.float32, numpy.dtype("f4") and torch.float32; else empty."""
    if isinstance(dtype, str):
        return dtype
    if isinstance(dtype, type):
        return "bool" if dtype is bool else dtype.__name__ if dtype.__module__.startswith(("numpy", "ml_d")) else ""
    name = getattr(dtype, "name", None)
    if isinstance(name, str):
        return name
    return str(dtype).removeprefix("torch.") if type(dtype).__module__ == "torch" else ""


def is_float(dtype: str) -> bool:
    """Whether a dtype, given by its name, is of floating point."""
    return DTYPES[dtype].kind == "f"


def has_sign(dtype: str) -> bool:
    """Whether a dtype, given by its name, has negative numbers; i1 has none."""
    return DTYPES[dtype].kind in "if"


def width(dtype: str) -> int:
    """The number of bits of a dtype, given by its name."""
    return DTYPES[dtype].bits


def limits(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype, given by its name; 0 and 1 for i1."""
    return DTYPES[dtype].limits
