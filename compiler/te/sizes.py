"""`size`: an integer that each call gives, with a range; shapes over sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir.affine import AffineConstraintExpr, AffineExpr, AffineSet

from compiler.affine import linear as lin
from compiler.affine.sized import Domain, capacity, size_set
from compiler.affine.text import RESERVED
from compiler.dialects.sizes import MOST, SizesAttr
from compiler.support.errors import TeError
from compiler.te.index import Axis, Condition, Index, Size, as_index, as_int, check_extent, check_name, numbered

Dim = int | Index
"""An extent: an integer, or an expression of sizes."""


def size(name: str, least: int, most: int) -> Size:
    """An integer that each call gives, from `least` to `most`: an extent of arguments, or a number in indices and
    conditions.

    Shapes have sizes, and S + 4, 4 * S, S // 2 of them. An extent is 1 or more for all sizes. Raises TeError for a name
    that is no identifier, and a range that is empty, begins below 0 or ends at 2^31 or above.

    >>> S = te.size("S", 1, 512)
    >>> X = te.placeholder((S, 768), name="X")
    >>> X, te.function("f", [X], te.nn.exp(X, name="Y"))
    (<Tensor X: f32[S, 768]>, <Function f(X: f32[S, 768]) -> Y: f32[S, 768]>)
    """
    check_name("a size", name)
    if not name.isidentifier() or not name.isascii() or name in RESERVED:
        raise TeError(f"{name!r} cannot name a size: a name is an identifier, and not {', '.join(sorted(RESERVED))}")
    low, high = as_int(least), as_int(most)
    if low is None or high is None:
        raise TeError(f"size '{name}' is from {least!r} to {most!r}, expected integers")
    if not 0 <= low <= high < MOST:
        raise TeError(f"size '{name}' is from {low} to {high}; a range begins at 0 or more, and ends below 2^31")
    return Size(name, low, high)


def check_dim(what: str, extent: object) -> Dim:
    """Return an extent of an object called `what`: an integer, or an expression of sizes without axes; one without
    sizes is returned as an integer. Raises TeError for another object, and an extent that may be below 1, or 2^63 or
    more."""
    if not isinstance(extent, Index):
        return check_extent(what, extent)
    if extent.axes():
        raise TeError(f"{what} has extent {extent}, which has the axis '{extent.axes()[0].name}'; extents are of sizes")
    low, high = _range(extent)
    if low < 1:
        raise TeError(f"{what} has extent {extent}, which may be {low}; extents are at least 1")
    check_extent(what, high)
    return extent if extent.sizes() else high


def _range(extent: Index) -> lin.Range:
    sizes = extent.sizes()
    return capacity(extent.affine(numbered((), sizes)), [(s.least, s.most) for s in sizes])


def capacity_of(dim: Dim) -> int:
    """The most that an extent can be."""
    return dim if isinstance(dim, int) else _range(dim)[1]


def sizes_in(indices: Iterable[Dim | Condition | None]) -> list[Size]:
    """The sizes in extents, index expressions and conditions, each once."""
    forms = [form for x in indices for form in (_forms(x) if x is not None else ())]
    return list(dict.fromkeys(s for form in forms for s in form.sizes()))


def _forms(x: Dim | Condition) -> Sequence[Index]:
    if isinstance(x, Condition):
        return [form for form, _ in x.constraints]
    return [x] if isinstance(x, Index) else []


def same(left: Dim, right: Dim) -> bool:
    """Whether two extents are equal for all sizes: equal integers, or equal forms of the same sizes."""
    if isinstance(left, int) or isinstance(right, int):
        return left is right or (isinstance(left, int) and isinstance(right, int) and left == right)
    order = numbered((), sizes_in([left, right]))
    domain = Domain((), tuple((s.least, s.most) for s in order if isinstance(s, Size)))
    first, second = (domain.form(e.affine(order)) for e in (left, right))
    return first == second


def dims_text(dims: Sequence[Dim]) -> str:
    """Format extents as Python formats a tuple: (S, 768)."""
    return f"({', '.join(map(str, dims))}{',' if len(dims) == 1 else ''})"


def domain_of(axes: Sequence[Axis], sizes: Sequence[Size]) -> Domain:
    """The values of axes and sizes of a compute, without relations of sizes."""
    order = numbered(axes, sizes)
    return Domain(tuple(axis.end.affine(order) for axis in axes), tuple((s.least, s.most) for s in sizes))


def declared(function: str, sizes: Sequence[Size], where: Sequence[Condition]) -> SizesAttr | None:
    """The attribute of a function's sizes and of the relations `where` between them; None without sizes. Raises TeError
    for two sizes of one name, and a relation that is no condition over these sizes."""
    names = [s.name for s in sizes]
    for name in names:
        if names.count(name) > 1:
            raise TeError(f"two sizes of function '{function}' are named '{name}'")
    order = numbered((), sizes)
    constraints: list[AffineConstraintExpr] = []
    for condition in where:
        if not isinstance(condition, Condition) or any(form.axes() for form in _forms(condition)):
            raise TeError(f"in function '{function}': {condition!r} is no condition over sizes, such as pos + T <= 8")
        constraints += condition.affine(order)
    if not sizes:
        return None
    relations = size_set(0, constraints, len(sizes)) if constraints else None
    if relations is not None and not relations.num_symbols:
        relations = AffineSet(0, len(sizes), relations.constraints)
    return SizesAttr([(s.name, s.least, s.most) for s in sizes], relations)


def expression(dim: Dim, order: dict[Axis | Size, int]) -> AffineExpr:
    """An extent as an expression whose symbols are sizes."""
    index = as_index(dim)
    assert index is not None
    return index.affine(order)
