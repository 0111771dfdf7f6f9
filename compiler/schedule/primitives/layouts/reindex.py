"""The primitive reindex."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir.affine import AffineExpr

from compiler.affine import linear as lin
from compiler.affine.condition import to_set
from compiler.affine.exact import escape
from compiler.program.tree import Access, Buffer, Program
from compiler.schedule.copies import read_copy
from compiler.schedule.parameters import BLOCK, TEXT
from compiler.schedule.plan import Plan, block_place, no_table, refuse, require_read
from compiler.schedule.primitive import primitive
from compiler.schedule.region import with_accesses


def _outside(read: Access, shape: Sequence[int], extents: Sequence[int]) -> tuple[int, ...] | None:
    """Return values of the axes, below `extents`, for which a read under its conditions is outside the shape of its
    buffer; None if there are none, which is decided exactly."""
    dims = {number: AffineExpr.dimension(number) for number in range(len(extents))}
    condition = to_set(read.where, dims, len(dims)) if read.where else None
    escapes = (escape(lin.to_affine(f, dims), n, extents, condition) for f, n in zip(read.index, shape, strict=True))
    return next((found.point for found in escapes if found is not None), None)


@primitive(
    "$block $buffer",
    '%x = sched.reindex %c "X"',
    "reindex{block=C buffer=X}",
    gives={"copy": "block"},
    block=BLOCK,
    buffer=TEXT,
)
def reindex(program: Program, block: str, buffer: str) -> Plan:
    """Read a buffer through a copy that is indexed by the axes of the block: a matrix of windows, for example.

        S[i, r] = f(X[i + r - 1] where 0 <= i + r - 1 < 8 else 0)        // reindex X
      ->
        alloc X.axes[i, r];  X.axes[i, r] = X[i + r - 1] where ... else 0;  S[i, r] = f(X.axes[i, r])

    The dimensions of the copy are the axes that the read depends on, in the block's order; elements that several of
    them read are copied several times. Requires one read of the buffer, which the block does not write, and which stays
    inside the buffer for all values of the axes, also those that the block's guard or bindings exclude. Elsewhere: TVM
    reindex, im2col.
    """
    reader, place = program.blocks[block], block_place(block)
    no_table(place, [reader], buffer)
    require_read(reader, buffer)
    reads = [access for access in reader.reads if access.buffer == buffer]
    if len(reads) > 1:
        refuse(place, f"it reads '{buffer}' {len(reads)} times")
    (read,) = reads
    forms = [*read.index, *(condition.form for condition in read.where)]
    axes = sorted(set[int]().union(*(form.variables() for form in forms)))
    if not axes:
        refuse(place, f"it reads one element of '{buffer}'")
    copy = Buffer(
        program.fresh_buffer(f"{buffer}.axes"),
        tuple(reader.axes[a].size for a in axes),
        program.buffers[buffer].element,
    )
    values = {axis: lin.variable(number) for number, axis in enumerate(axes)}
    box = lin.box(copy.shape)
    source = replace(
        read,
        index=tuple(lin.substitute(form, values, box) for form in read.index),
        where=tuple(condition.substitute(values, box) for condition in read.where),
    )
    outside = _outside(source, program.buffers[buffer].shape, copy.shape)
    if outside is not None:
        at = ", ".join(f"{reader.axes[a].label}={value}" for a, value in zip(axes, outside, strict=True))
        refuse(place, f"the copy would read '{buffer}' outside its shape, at {at}, which the block does not reach")
    through = with_accesses(reader, buffer, lambda _: Access(copy.name, tuple(map(lin.variable, axes))))
    return read_copy(program, reader, through, source, copy)
