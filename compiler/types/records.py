"""Dataclasses as bytes, and back: JSON for their fields, followed by the bytes of their blobs.

Fields may be texts, numbers, booleans, None, bytes, tuples, mappings with text keys, dataclasses, element types and
numpy dtypes. Decoding executes no code from the bytes; values that the class does not declare are refused.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Attribute
from xdsl.parser import Parser

from compiler.types.dtypes import DTYPES

Kind = TypeVar("Kind")
_LENGTH = 8
"""The number of bytes that hold the length of the JSON."""


def to_bytes(value: object) -> bytes:
    """Encode a dataclass. Raises TypeError for a field that is no text, number, bool, None, bytes, tuple, mapping,
    dataclass, element type or dtype of numpy."""
    blobs = bytearray()
    head = json.dumps(_plain(value, blobs), separators=(",", ":")).encode()
    return b"".join((len(head).to_bytes(_LENGTH, "little"), head, blobs))


def from_bytes(kind: type[Kind], payload: bytes) -> Kind:
    """Decode a dataclass of class `kind`. Raises ValueError for bytes that do not encode one."""
    end = _LENGTH + int.from_bytes(payload[:_LENGTH], "little")
    record: Kind = _of(kind, json.loads(payload[_LENGTH:end]), memoryview(payload)[end:])
    return record


def _plain(value: Any, blobs: bytearray) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, bytes):
        blobs += value
        return [len(blobs) - len(value), len(value)]
    if isinstance(value, tuple):
        return [_plain(member, blobs) for member in value]
    if isinstance(value, Mapping):
        return {name: _plain(member, blobs) for name, member in value.items()}
    if isinstance(value, Attribute):
        return str(value)
    if isinstance(value, np.dtype):
        return value.name
    if is_dataclass(value):
        return [_plain(getattr(value, field.name), blobs) for field in fields(value)]
    raise TypeError(f"{type(value).__name__} has no place in a record")


def _of(kind: Any, plain: Any, blobs: memoryview) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (inner_kind,) = (option for option in inner if option is not types.NoneType)
        return None if plain is None else _of(inner_kind, plain, blobs)
    if kind is bytes:
        start, length = _checked(list, plain)
        return bytes(blobs[start : start + length])
    if kind is np.dtype or origin is np.dtype:
        return _dtype(_checked(str, plain))
    if origin is tuple:
        members = _checked(list, plain)
        kinds = [inner[0]] * len(members) if inner[1:] == (...,) else inner
        return tuple(_of(member_kind, member, blobs) for member_kind, member in zip(kinds, members, strict=True))
    if origin is not None and issubclass(origin, Mapping):
        return {name: _of(inner[1], member, blobs) for name, member in _checked(dict, plain).items()}
    if isinstance(kind, type) and issubclass(kind, Attribute):
        return _attribute(_checked(str, plain))
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        return kind(*(_of(hint, member, blobs) for hint, member in zip(hints, _checked(list, plain), strict=True)))
    return _checked(kind, plain)


def _checked(kind: type[Kind], plain: object) -> Kind:
    if type(plain) is not kind:
        raise ValueError(f"expected {kind.__name__}, got {type(plain).__name__}")
    return plain


@cache
def _hints(kind: Any) -> tuple[Any, ...]:
    """The types of the fields of a dataclass."""
    hints = get_type_hints(kind)
    return tuple(hints[field.name] for field in fields(kind))


@cache
def _dtype(name: str) -> np.dtype[Any]:
    by_name = {row.numpy: row for row in DTYPES.values()}
    if name not in by_name:
        raise ValueError(f"there is no dtype {name}")
    return by_name[name].array


@cache
def _attribute(text: str) -> Attribute:
    context = Context()
    context.load_dialect(Builtin)
    return Parser(context, text).parse_attribute()
