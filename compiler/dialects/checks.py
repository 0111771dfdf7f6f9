"""Checks shared by te.compute and loop.block; each raises VerifyException with a sentence that names the axis or
operand."""

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import AffineMapAttr, AnyFloat, ContainerType, IndexType, IntegerType, ShapedType, Signedness
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstraintExpr, AffineExpr, AffineMap, AffineSet
from xdsl.utils.exceptions import VerifyException

from compiler.affine.exact import Escape, escape
from compiler.affine.limits import bad_extent, bad_index, bad_shape
from compiler.affine.sized import escape_below
from compiler.affine.text import RESERVED, to_text
from compiler.dialects.access import AccessAttr, AxisAttr, names_of
from compiler.dialects.sizes import SizesAttr, extent_fault
from compiler.types.elements import scalar_type


def refuse(fault: str) -> None:
    """Raise VerifyException with the sentence `fault`, unless it is empty."""
    if fault:
        raise VerifyException(fault)


def check_axes(axes: Sequence[AxisAttr], sizes: SizesAttr | None = None) -> None:
    """Raise VerifyException unless extents are in [1, 2^63), labels unique and not reserved, spatial axes first, and
    axes below an expression only of `sizes`, which no axis has the name of."""
    labels = names_of(axes)
    for axis in axes:
        refuse(bad_extent(f"axis '{axis.label}'", axis.size))
        if axis.label in RESERVED:
            raise VerifyException(f"'{axis.label}' is a reserved word and cannot name an axis")
        if sizes is not None and axis.label in sizes.names:
            raise VerifyException(f"axis '{axis.label}' has the name of a size")
        if axis.below is not None:
            symbols = axis.limit.data.num_symbols if isinstance(axis.limit, AffineMapAttr) else 0
            if sizes is None or symbols != len(sizes.names):
                raise VerifyException(f"axis '{axis.label}' is below a size, which this op does not have")
            refuse(extent_fault(f"axis '{axis.label}'", axis.below, axis.size, sizes))
    for label in labels:
        if labels.count(label) > 1:
            raise VerifyException(f"axis '{label}' occurs twice")
    kinds = [axis.is_reduce for axis in axes]
    if kinds != sorted(kinds):
        raise VerifyException(f"reduce axis '{labels[kinds.index(True)]}' stands before a spatial axis")


Domain = tuple[AffineMap, AffineSet | None, Sequence[int]]
"""The domain of a block: the map from its loops to its axes, its guard over the loops (None: always), their extents."""


def check_access(
    subject: str,
    access: AccessAttr,
    shape: Sequence[int],
    axes: Sequence[AxisAttr],
    domain: Domain | None = None,
    sizes: SizesAttr | None = None,
    ends: Sequence[AffineExpr] = (),
) -> None:
    """Raise VerifyException unless an access has one index a dimension, stays inside the shape, and has a condition and
    an `else` value or neither; `subject` begins the sentence of a failure.

    Each axis takes all values below its extent; with a domain, only those that the loops bind to it under the guard.
    With sizes, `ends` are the extents of the shape over them, and the access stays inside these for all sizes.
    """
    indices = access.affine_map.results
    if access.affine_map.num_dims != len(axes):
        raise VerifyException(f"{subject} is indexed by {access.affine_map.num_dims} axes, the op has {len(axes)}")
    if access.affine_map.num_symbols not in (0, len(sizes.names) if sizes is not None else 0):
        raise VerifyException(f"{subject} is indexed by symbols; an index is an expression of axes")
    if len(indices) != len(shape):
        raise VerifyException(f"{subject} has {len(shape)} dimensions but {len(indices)} indices")
    if (access.condition is None) != (access.otherwise is None):
        raise VerifyException(f"{subject} needs both a condition and the value read where it fails")
    if sizes is not None:
        _check_sized(subject, access, axes, sizes, ends)
        return
    extents = [axis.size for axis in axes]
    check_condition(subject, access.condition, extents)
    for dim, (expr, size) in enumerate(zip(indices, shape, strict=True)):
        refuse(bad_index(f"the index of {subject} in dimension {dim}", expr, extents))
        outside = escape(expr, size, extents, access.condition)
        if outside is None:
            continue
        point = outside.point
        if domain is not None:
            inside = _escape_in(expr, size, access.condition, domain)
            if inside is None:
                continue
            outside, point = inside, tuple(e.eval(inside.point, ()) for e in domain[0].results)
        position = ", ".join(f"{axis.label}={value}" for axis, value in zip(axes, point, strict=True))
        raise VerifyException(
            f"{subject} is out of bounds in dimension {dim}: index {to_text(expr, names_of(axes))} is {outside.value} "
            f"at {position}, the size is {size}"
        )


def _check_sized(
    subject: str, access: AccessAttr, axes: Sequence[AxisAttr], sizes: SizesAttr, ends: Sequence[AffineExpr]
) -> None:
    """Raise VerifyException unless an access over axes and sizes is inside the extents `ends` for all sizes."""
    condition = access.condition
    if condition is not None and (condition.num_dims, condition.num_symbols) not in (
        (len(axes), 0),
        (len(axes), len(sizes.names)),
    ):
        raise VerifyException(f"the condition of {subject} must be over {len(axes)} axes and the sizes")
    names = names_of(axes, sizes.names)
    domain = sizes.domain([axis.end for axis in axes])
    capacities = [axis.size for axis in axes] + [most + 1 for _, most in sizes.ranges]
    for constraint in access.condition.constraints if access.condition is not None else ():
        form = domain.over_dims(constraint.lhs + constraint.rhs * -1)
        refuse(bad_index(f"the condition of {subject}", form, capacities))
    for dim, (expr, end) in enumerate(zip(access.affine_map.results, ends, strict=True)):
        refuse(bad_index(f"the index of {subject} in dimension {dim}", domain.over_dims(expr), capacities))
        outside = escape_below(expr, end, domain, access.condition)
        if outside is not None:
            labels = [*(axis.label for axis in axes), *sizes.names]
            position = ", ".join(f"{label}={value}" for label, value in zip(labels, outside.point, strict=True))
            raise VerifyException(
                f"{subject} is out of bounds in dimension {dim}: index {to_text(expr, names)} is {outside.value} at "
                f"{position}, the size is {to_text(end, names)}"
            )


def check_condition(subject: str, condition: AffineSet | None, extents: Sequence[int]) -> None:
    """Raise VerifyException unless a condition is None, or has one dimension for each extent, no symbols, and values
    that fit 64 bits for 0 <= d_i < extents[i]; `subject` names the condition's op or access in the sentence."""
    if condition is None:
        return
    if condition.num_dims != len(extents) or condition.num_symbols:
        raise VerifyException(f"the condition of {subject} must be over {len(extents)} values, without symbols")
    for constraint in condition.constraints:
        refuse(bad_index(f"the condition of {subject}", constraint.lhs + constraint.rhs * -1, extents))


def _escape_in(expr: AffineExpr, size: int, condition: AffineSet | None, domain: Domain) -> Escape | None:
    """Find a point of the loops of a block, in its domain and under the condition of an access, at which an expression
    over the axes is outside [0, size); None if there is none."""
    bindings, guard, extents = domain
    constraints = list(guard.constraints) if guard is not None else []
    for c in condition.constraints if condition is not None else ():
        sides = [side.replace_dims_and_symbols(bindings.results, ()) for side in (c.lhs, c.rhs)]
        constraints.append(AffineConstraintExpr(c.kind, *sides))
    index = expr.replace_dims_and_symbols(bindings.results, ())
    return escape(index, size, extents, AffineSet(len(extents), 0, tuple(constraints)))


def check_body(body: Region, inputs: Sequence[SSAValue], yield_op: type[Operation], prefix: str) -> Block:
    """Return the block of a body. Raises VerifyException unless it has an argument for each input, scalar ops of arith,
    math and the dialect `prefix` only, and ends with the yield."""
    block = body.block
    elements = [scalar_type(element_type(value)) for value in inputs]
    if [arg.type for arg in block.args] != elements:
        raise VerifyException("the body needs one argument an input, of its element type")
    check_scalars(block, yield_op, (prefix,))
    return block


def check_scalars(block: Block, yield_op: type[Operation], prefixes: Sequence[str]) -> None:
    """Raise VerifyException unless a block has only scalar ops of arith, math and dialects `prefixes`, and ends with
    the yield."""
    if not isinstance(block.last_op, yield_op):
        raise VerifyException(f"the body must end with {yield_op.name}")
    for op in block.ops:
        scalar = op.name.split(".")[0] in ("arith", "math", *prefixes) or op is block.last_op
        if op.regions or not scalar:
            raise VerifyException(f"'{op.name}' is not a scalar operation and cannot stand in a body")


def element_type(value: SSAValue) -> Attribute:
    """The element type of a tensor or memref. Raises VerifyException for a dynamic or empty dimension, an extent or a
    size in bytes of 2^63 or more, and elements other than floats, index, signless and unsigned integers."""
    return _element_of(value.type)


@lru_cache(maxsize=4096)
def _element_of(type: Attribute) -> Attribute:
    assert isinstance(type, ContainerType) and isinstance(type, ShapedType)
    if any(size < 1 for size in type.get_shape()):
        raise VerifyException(f"{type} has a dynamic or empty dimension; shapes are static and positive")
    refuse(bad_shape(type))
    element = type.get_element_type()
    signed = isinstance(element, IntegerType) and element.signedness.data is Signedness.SIGNED
    if signed or not isinstance(element, AnyFloat | IntegerType | IndexType):
        raise VerifyException(f"{type} does not hold scalars (floats, index, signless or unsigned integers)")
    return element


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The static shape of a tensor or memref."""
    assert isinstance(value.type, ShapedType)
    return value.type.get_shape()
