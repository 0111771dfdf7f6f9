"""Files of safetensors: JSON of names, dtypes and shapes behind its length in 8 bytes, then the elements.

Source: the format's page, https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from compiler.support.errors import TargetError
from compiler.targets.arguments import Array

_NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "bool": "BOOL"}
_NAMES |= {f"{sign}int{bits}": f"{sign.upper() or 'I'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
ALIGNMENT = 64
"""The alignment of each tensor in a file, in bytes: padding is a tensor of bytes with a name in brackets."""


@dataclass(frozen=True)
class Layout:
    """The layout of a file. head: its bytes before the elements. offsets: of each tensor in the file, in bytes. bytes:
    the size of the file."""

    head: bytes
    offsets: Mapping[str, int]
    bytes: int


def layout(arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> Layout:
    """Lay out arrays in their order, each at a multiple of ALIGNMENT of the file. metadata: the texts of the file's
    `__metadata__`. Raises TargetError for a dtype that safetensors files lack."""
    fields: dict[str, object] = {"__metadata__": dict(metadata)}
    offsets, end = dict[str, int](), 0
    for name, array in arrays.items():
        if array.dtype.name not in _NAMES:
            raise TargetError(f"the weight '{name}' is of {array.dtype}, which safetensors files lack")
        padding = -end % ALIGNMENT
        if padding:
            fields[f"[padding at {end}]"] = _field("U8", (padding,), end, end + padding)
        end += padding
        offsets[name] = end
        fields[name] = _field(_NAMES[array.dtype.name], array.shape, end, end + array.nbytes)
        end += array.nbytes
    text = json.dumps(fields, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    head = len(text).to_bytes(8, "little") + text
    return Layout(head, {name: len(head) + offset for name, offset in offsets.items()}, len(head) + end)


def _field(dtype: str, shape: Iterable[int], start: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}


def chunks(arrays: Mapping[str, Array], placed: Layout) -> Iterator[bytes]:
    """Yield the bytes of a file, in order: head, then padding and elements of each array. `placed` is the layout of
    these arrays."""
    yield placed.head
    position = len(placed.head)
    for name, array in arrays.items():
        yield bytes(placed.offsets[name] - position)
        yield array.tobytes()
        position = placed.offsets[name] + array.nbytes
