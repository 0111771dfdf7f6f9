"""`SourceOrigin`: the part of a user's model that an op computes, read from the op's location.

loc("encoder.0.q_proj"("model.py":12:9))    a module of torch, and the line of its source
loc("/layer1/Conv"("onnx.Conv"))            a node of ONNX, and its operator
loc("model.py":12:9)                        a line of Python, or of MLIR
loc(fused["model.py":12:9, "model.py":13:9])  several, that of the arithmetic first
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr
    from xdsl.ir import Operation

OPERATOR = "onnx."
"""The prefix of an ONNX operator as the inner name of a location."""


@dataclass(frozen=True)
class SourceOrigin:
    """A module or node, a line of source, or both.

    name: the path of a torch module, `encoder.0.q_proj`, or the name of an ONNX node; "" for neither. operator: the
    operator of an ONNX node, such as `Conv`; else "". file, line: of the source, line from 1; "" and 0 if unknown.
    """

    name: str = ""
    operator: str = ""
    file: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        """The line of the source, `model.py:12`: below the current folder by its path from there, elsewhere by the
        name of its file; "" if unknown."""
        if not self.file:
            return ""
        path = Path(self.file)
        folder = Path.cwd()
        return f"{path.relative_to(folder) if path.is_relative_to(folder) else path.name}:{self.line}"

    def __str__(self) -> str:
        """The name with the operator or the line in parentheses; without a name the line alone."""
        detail = self.operator or self.place
        return f"{self.name} ({detail})" if self.name and detail else self.name or detail or "unknown"


def components(location: object) -> Iterator[object]:
    """Yield a location and its components, recursively: of a call the callee before the caller."""
    from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FusedLoc, NameLoc

    yield location
    match location:
        case CallSiteLoc():
            inner: list[object] = [location.callee, location.caller]
        case NameLoc():
            inner = [location.location]
        case FusedLoc(locations=ArrayAttr() as locations):
            inner = [*locations]
        case _:
            return
    for part in inner:
        yield from components(part)


def location_of(name: str, operator: str, location: LocationAttr) -> LocationAttr:
    """Return `location` under the name of a module or node, with an ONNX operator inside; unchanged if both are "". An
    unknown location is dropped."""
    from xdsl.dialects.builtin import NameLoc, NoneAttr, StringAttr, UnknownLoc

    inner = NoneAttr() if isinstance(location, UnknownLoc) else location
    if operator:
        inner = NameLoc(StringAttr(f"{OPERATOR}{operator}"), inner)
    if name:
        inner = NameLoc(StringAttr(name), inner)
    return location if isinstance(inner, NoneAttr) else inner


@lru_cache(maxsize=4096)
def origins(location: LocationAttr) -> tuple[SourceOrigin, ...]:
    """Return the origins in a location, in order and each once; () for an unknown location."""
    return tuple(dict.fromkeys(_origins(location)))


def _origins(location: object) -> Iterator[SourceOrigin]:
    from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc

    match location:
        case FusedLoc(locations=ArrayAttr() as parts):
            for part in parts:
                yield from _origins(part)
        case CallSiteLoc():
            yield from _origins(location.callee)
        case NameLoc():
            yield _named(location)
        case FileLineColLoc():
            yield SourceOrigin("", "", location.filename.data, location.line.data)


def _named(location: object) -> SourceOrigin:
    """Return the origin of a NameLoc: its outermost name, the operator and the first file inside."""
    from xdsl.dialects.builtin import NameLoc

    assert isinstance(location, NameLoc)
    names = [part.desc.data for part in components(location) if isinstance(part, NameLoc)]
    operator = next((name.removeprefix(OPERATOR) for name in names if name.startswith(OPERATOR)), "")
    inner = next((origin for part in components(location.location) for origin in _origins(part)), SourceOrigin())
    name = "" if names[0].startswith(OPERATOR) else names[0]
    return SourceOrigin(name, operator, inner.file, inner.line)


def fused(locations: Iterable[LocationAttr]) -> LocationAttr:
    """Return a location of all these, in order: fused ones are flattened, equal ones kept once, unknown ones dropped.
    One is returned as it is; UNKNOWN_LOC without any.

        fused["a":1:1, "b":2:2], "a":1:1, "c":3:3  ->  fused["a":1:1, "b":2:2, "c":3:3]
    """
    from xdsl.dialects.builtin import UNKNOWN_LOC

    distinct = dict.fromkeys(part for location in locations for part in _parts(location))
    if len(distinct) < 2:
        return next(iter(distinct), UNKNOWN_LOC)
    return _fused(tuple(distinct))


@lru_cache(maxsize=4096)
def _fused(parts: tuple[LocationAttr, ...]) -> LocationAttr:
    from xdsl.dialects.builtin import ArrayAttr, FusedLoc, NoneAttr

    return FusedLoc(ArrayAttr(parts), NoneAttr())


def _parts(location: LocationAttr) -> Iterator[LocationAttr]:
    """Yield the components of a fused location without metadata, else the location itself unless it is unknown."""
    from xdsl.dialects.builtin import ArrayAttr, FusedLoc, NoneAttr, UnknownLoc

    match location:
        case UnknownLoc():
            return
        case FusedLoc(locations=ArrayAttr() as parts, metadata=NoneAttr()):
            for part in parts:
                yield from _parts(part)
        case _:
            yield location


def inherit_locations(module: Operation) -> None:
    """Set the locations of those ops inside an op that have none: those of the users of its results, for an op with
    regions those of the ops inside, else that of the op around it.

        scf.for %i = ... { %x = arith.addf ...  memref.store %x ... loc("m.py":3:1) }
      ->
        scf.for %i = ... { %x = arith.addf ... loc("m.py":3:1)  memref.store %x ... loc("m.py":3:1) } loc("m.py":3:1)
    """
    from xdsl.dialects.builtin import UnknownLoc

    without = [op for op in module.walk() if op is not module and isinstance(op.location, UnknownLoc)]
    for op in reversed(without):
        users = (use.operation.location for result in op.results for use in result.uses)
        inner = (inner.location for region in op.regions for block in region.blocks for inner in block.ops)
        op.location = fused((*users, *inner))
    for op in without:
        around = op.parent_op()
        if isinstance(op.location, UnknownLoc) and around is not None:
            op.location = around.location
