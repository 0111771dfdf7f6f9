"""The primitive pad."""

from __future__ import annotations

from compiler.affine import linear as lin
from compiler.analysis.sets import Undecided, points, sample
from compiler.program.tree import Access, Block, Buffer, Program
from compiler.schedule.copies import read_copy
from compiler.schedule.parameters import BLOCK, TEXT
from compiler.schedule.plan import Plan, block_place, no_table, refuse, require_read
from compiler.schedule.primitive import primitive
from compiler.schedule.region import inside, with_accesses


@primitive(
    "$block $buffer",
    '%p = sched.pad %c "A"',
    "pad{block=C buffer=A}",
    gives={"copy": "block"},
    block=BLOCK,
    buffer=TEXT,
)
def pad(program: Program, block: str, buffer: str) -> Plan:
    """Read a buffer through a copy with a border that holds the values read where a condition fails.

        S[i, r] = A[i + r - 1] where 0 <= i + r - 1 < 8 else 0        // pad A
      ->
        alloc A.pad[10];  A.pad[a] = A[a - 1] where 0 <= a - 1 < 8 else 0;  S[i, r] = A.pad[i + r]

    The copy is of all elements that the block may read, and the reads lose their condition. Requires one index into
    the buffer, up to constants, and conditions that fail only beyond the buffer's edge: not those of a stride.
    Elsewhere: MLIR tensor.pad and structured.pad, TVM decompose_padding, Halide boundary conditions.
    """
    reader, place = program.blocks[block], block_place(block)
    no_table(place, [reader], buffer)
    require_read(reader, buffer)
    reads = [access for access in reader.reads if access.buffer == buffer]
    if not any(access.where for access in reads):
        refuse(place, f"it reads '{buffer}' under no condition")
    paddings = {access.otherwise for access in reads if access.where}
    if len(paddings) > 1:
        refuse(place, f"it reads different values beyond the edge of '{buffer}'")
    source, ranges = program.buffers[buffer], reader.axis_ranges
    for access in reads:
        _require_edge(reader, access, source)
    spans = [[lin.bounds(access.index[d], ranges) for access in reads] for d in range(len(source.shape))]
    lows = [min(low for low, _ in span) for span in spans]
    shape = tuple(max(high for _, high in span) - low + 1 for span, low in zip(spans, lows, strict=True))
    copy = Buffer(program.fresh_buffer(f"{buffer}.pad"), shape, source.element)
    index = [lin.variable(d) + lin.constant(low) for d, low in enumerate(lows)]
    box = lin.box(shape)
    edge = inside(index, source.shape, box)
    padded_read = Access(buffer, tuple(index), tuple(edge), next(iter(paddings)) if edge else None)

    def redirect(access: Access) -> Access:
        moved = tuple(form - lin.constant(low) for form, low in zip(access.index, lows, strict=True))
        return Access(copy.name, moved)

    return read_copy(program, reader, with_accesses(reader, buffer, redirect), padded_read, copy)


def _require_edge(reader: Block, access: Access, source: Buffer) -> None:
    """Raise ScheduleError unless the index is outside the buffer where the condition fails, so that it reads the
    border; also if that is undecided."""
    # A[a0 + a1 - 1] under the condition a0 + a1 >= 1, of 8 elements: no point in
    #   [a0, a1] : 0 <= a0 < 8 and 0 <= a1 < 3 and 0 <= a0 + a1 - 1 < 8 and not (a0 + a1 - 1 >= 0)
    names = {n: f"a{n}" for n in range(len(reader.axes))}
    domain = [f"0 <= {names[n]} < {axis.size}" for n, axis in enumerate(reader.axes)]
    met = " and ".join(c.isl(names) for c in access.where) or "true"
    within = [f"0 <= {lin.to_isl(f, names)} < {size}" for f, size in zip(access.index, source.shape, strict=True)]
    try:
        point = sample(points(names.values(), [*domain, *within, f"not ({met})"]))
    except Undecided:
        refuse(block_place(reader.label), f"whether it leaves '{source.name}' only at its edge is undecided")
    if point is not None:
        where = ", ".join(f"{axis.label}={value}" for axis, value in zip(reader.axes, point, strict=True))
        reason = f"at {where} it reads no element of '{source.name}' though its index is inside"
        refuse(block_place(reader.label), reason)
