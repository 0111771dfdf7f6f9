"""The values of a function's sizes at a call: stated, or read off the shapes of its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir.affine import AffineConstraintExpr, AffineConstraintKind, AffineExpr

from compiler.affine.sized import Domain
from compiler.affine.text import SizedNames, constraint_text, to_text
from compiler.dialects.sizes import SizesAttr, sizes_of, stated_dims
from compiler.support.errors import InputError
from compiler.support.text import unknown

Shape = tuple[int, ...]


def checked_values(
    function: FuncOp, values: Mapping[str, int], sources: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Return a value for each size of a function, by name. `sources` has words of where a value comes from, by the name
    of its size; None: no words. Raises InputError for a name that is no size, a size without
    a value, a value that is no integer or outside the range, and values that a relation excludes."""
    sizes, name = sizes_of(function), function.sym_name.data
    if sizes is None:
        raise InputError(f"@{name} has no sizes to give values to")
    for label in values:
        if label not in sizes.names:
            raise InputError(unknown("size", str(label), sizes.names))
    for label, (least, most) in zip(sizes.names, sizes.ranges, strict=True):
        value = values.get(label)
        if value is None:
            raise InputError(f"the size '{label}' of @{name} has no value")
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"the size '{label}' of @{name} is {value!r}, expected an integer")
        if not least <= value <= most:
            source = f" {sources[label]}" if sources is not None and label in sources else ""
            raise InputError(f"the size '{label}' of @{name} is {value}{source}; it is from {least} to {most}")
    _check_relations(sizes, name, values)
    return {label: values[label] for label in sizes.names}


def _check_relations(sizes: SizesAttr, name: str, values: Mapping[str, int]) -> None:
    numbers = [values[label] for label in sizes.names]
    for constraint in sizes.relations.constraints if sizes.relations is not None else ():
        if not _holds(constraint, numbers):
            stated = ", ".join(f"{label} = {values[label]}" for label in sizes.names)
            text = constraint_text(constraint, SizedNames((), sizes.names))
            raise InputError(f"@{name} takes sizes of which {text} holds, not {stated}")


def _holds(constraint: AffineConstraintExpr, numbers: Sequence[int]) -> bool:
    difference = constraint.lhs.eval((), numbers) - constraint.rhs.eval((), numbers)
    if constraint.kind is AffineConstraintKind.eq:
        return difference == 0
    return difference >= 0 if constraint.kind is AffineConstraintKind.ge else difference <= 0


def values_of(function: FuncOp, shapes: Sequence[Shape], stated: Mapping[str, int]) -> dict[str, int]:
    """Return the value of each size of a function in a call with arguments of `shapes` and the values `stated`.

    An extent of one size, such as S, S + 4 or 4 * S, gives this size; the others, and what is stated, have to agree.
    Raises InputError if they do not, for a size that no extent gives and that is not stated, for shapes that the
    arguments do not have, and as `checked_values`.
    """
    sizes = sizes_of(function)
    if sizes is None:
        return checked_values(function, stated)
    count = len(function.body.block.args)
    if len(shapes) != count:
        raise InputError(f"@{function.sym_name.data} takes {count} inputs, not {len(shapes)}")
    ends = [_extents(function, number, sizes) for number in range(len(shapes))]
    values, sources = dict(stated), dict.fromkeys(stated, "as stated")
    for number, (shape, extents) in enumerate(zip(shapes, ends, strict=True)):
        if len(shape) != len(extents):
            raise InputError(f"'{_name(function, number)}' has {len(extents)} dimensions, not {len(shape)}")
        for dim, (actual, extent) in enumerate(zip(shape, extents, strict=True)):
            place = f"dimension {dim} of '{_name(function, number)}'"
            solved = _solved(extent, actual, sizes, place)
            if solved is not None and solved[0] not in values:
                values[solved[0]], sources[solved[0]] = solved[1], f"by {place}"
    checked = checked_values(function, values, sources)
    for number, (shape, extents) in enumerate(zip(shapes, ends, strict=True)):
        _check_shape(_name(function, number), shape, extents, sizes, checked, sources)
    return checked


def _name(function: FuncOp, number: int) -> str:
    return function.body.block.args[number].name_hint or f"arg{number}"


def _extents(function: FuncOp, number: int, sizes: SizesAttr) -> tuple[AffineExpr, ...]:
    stated = stated_dims(function, number)
    if stated is not None:
        return stated.over(sizes)
    return tuple(map(AffineExpr.constant, function.body.block.args[number].type.get_shape()))  # type: ignore[attr-defined]


def _solved(extent: AffineExpr, actual: int, sizes: SizesAttr, place: str) -> tuple[str, int] | None:
    """The size that an extent `a * S + b` of the actual value gives, and its value; None for other extents. Raises
    InputError if no integer gives the value."""
    form = Domain((), sizes.ranges).form(extent)
    match form.terms:
        case ((int() as number, factor),):
            value, left = divmod(actual - form.constant, factor)
            if left:
                text = to_text(extent, SizedNames((), sizes.names))
                raise InputError(f"{place} is {actual}, and {text} is not for any {sizes.names[number]}")
            return sizes.names[number], value
    return None


def _check_shape(
    name: str,
    shape: Shape,
    extents: Sequence[AffineExpr],
    sizes: SizesAttr,
    values: Mapping[str, int],
    sources: Mapping[str, str],
) -> None:
    numbers = [values[label] for label in sizes.names]
    for dim, (actual, extent) in enumerate(zip(shape, extents, strict=True)):
        expected = extent.eval((), numbers)
        if actual != expected:
            used = [label for n, label in enumerate(sizes.names) if AffineExpr.symbol(n) in extent.dfs()]
            given = ", ".join(f"{label} = {values[label]} {sources[label]}" for label in used)
            text = f", which is {to_text(extent, SizedNames((), sizes.names))} with {given}" if used else ""
            raise InputError(f"dimension {dim} of '{name}' is {actual}, expected {expected}{text}")
