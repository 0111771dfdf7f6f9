"""Facts about one compute: its kind, its scalar operations, its bytes, and how it reads a value."""

from __future__ import annotations

from enum import Enum
from math import prod

from xdsl.dialects.arith import ConstantOp

from compiler.program.body import Apply, Read, Scalar, leaves
from compiler.program.combiner import Joint
from compiler.program.tree import Block, Buffer
from compiler.types.elements import element_bytes

_PRODUCTS = ("arith.mulf", "arith.muli")


class Kind(Enum):
    """The kind of a compute: its reduction and the access pattern of its reads.

    >>> A = te.placeholder((4, 8), name="A")
    >>> f = te.function("f", [A], te.nn.sum(A, axis=1, name="B"))
    >>> strata.graph.View(strata.graph.read(strata.dialects.find_function(f.module))).kind("B")
    <Kind.ROWS: 'rows'>
    """

    ELEMENTWISE = "elementwise"
    GATHER = "gather"
    CONTRACTION = "contraction"
    """A sum of products of two factors that depend on different axes, such as a matrix product or a convolution."""
    ROWS = "rows"
    """Any other reduction over whole axes, such as the sum of each row."""
    WINDOW = "window"
    """Any other reduction in which an index is a sum of axes, such as a pooling."""

    @property
    def is_anchor(self) -> bool:
        """Whether the compute is a reduction, around which a group is built."""
        return self in (Kind.CONTRACTION, Kind.ROWS, Kind.WINDOW)


def kind_of(block: Block) -> Kind:
    """The kind of a compute. A reduction without operands, such as the element counts of a pooling's windows, is
    elementwise, so that it joins its readers."""
    if block.table is not None:
        return Kind.GATHER
    if not block.combiners or not block.reads:
        return Kind.ELEMENTWISE
    if _is_contraction(block):
        return Kind.CONTRACTION
    slides = any(len(form.variables()) > 1 for access in block.reads for form in access.index)
    return Kind.WINDOW if slides else Kind.ROWS


def _is_contraction(block: Block) -> bool:
    if block.combiners != ("add",):
        return False
    root = block.body[0]
    while isinstance(root, Apply) and len(root.operands) == 1:
        root = root.operands[0]
    if not isinstance(root, Apply) or root.kind.name not in _PRODUCTS:
        return False
    left_factor, right = (_moved(block, factor) for factor in root.operands)
    return bool(left_factor) and bool(right) and left_factor != right


def _moved(block: Block, factor: Scalar) -> set[int]:
    """The numbers of the axes that a factor of a product depends on, through the indices of its reads."""
    reads = [leaf.position for leaf in leaves([factor]) if isinstance(leaf, Read)]
    return set().union(*(form.variables() for n in reads for form in block.reads[n].index))


def scalar_operations(block: Block) -> int:
    """Count the operations of a block's body and of its combiners with regions; literals do not count, and a shared
    operation counts once."""
    joint = [value for c in block.combiners if isinstance(c, Joint) for value in c.body]
    operations: dict[int, Scalar] = {}
    stack = [*block.body, *joint]
    while stack:
        scalar = stack.pop()
        if isinstance(scalar, Apply) and id(scalar) not in operations and scalar.kind is not ConstantOp:
            operations[id(scalar)] = scalar
            stack += scalar.operands
    return len(operations)


def points(block: Block) -> int:
    """The number of elements of each result of a block."""
    return prod(axis.size for axis in block.axes[: block.spatial])


def size(value: Buffer) -> int:
    """The size of a value in bytes."""
    return prod(value.shape) * element_bytes(value.element)


def is_pointwise(block: Block, value: Buffer) -> bool:
    """Whether a block has as many elements as a value and no condition on its reads of the value, which are then taken
    for reads of each element once, permuted or reshaped; their indices are not compared. A block without such a read is
    judged by the elements alone."""
    reads = [access for access in block.reads if access.buffer == value.name]
    return points(block) == prod(value.shape) and not any(access.where for access in reads)


def rows_of(block: Block) -> tuple[int, ...]:
    """The extents of a block's spatial axes, in order, except extents of 1."""
    return tuple(axis.size for axis in block.axes[: block.spatial] if axis.size > 1)
