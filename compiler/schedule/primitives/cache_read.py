"""The primitive cache_read."""

from __future__ import annotations

from dataclasses import replace

from compiler.affine import linear as lin
from compiler.program.tree import Access, Buffer, Program
from compiler.schedule.copies import read_copy, redirected
from compiler.schedule.parameters import BLOCK, INT, TEXT, word
from compiler.schedule.plan import Plan, block_place, refuse, require_read
from compiler.schedule.primitive import primitive
from compiler.types.scopes import SCOPES


@primitive(
    "$block $buffer `in` $scope (`read` $read^)?",
    '%copy = sched.cache_read %c "A" in "shared"',
    "cache-read{block=C buffer=A scope=shared at=C.m}",
    gives={"copy": "block"},
    placed_by="compute_at",
    block=BLOCK,
    buffer=TEXT,
    scope=word("scope", SCOPES),
    read=INT.or_else(-1),
)
def cache_read(program: Program, block: str, buffer: str, scope: str = "local", read: int = -1) -> Plan:
    """Copy a buffer that a block reads into another scope, and read the copy.

        loop.for "i" { S[i] = f(A[i]) }
      ->
        alloc A.shared;  loop.for "ax0" { A.shared[ax0] = A[ax0] }  loop.for "i" { S[i] = f(A.shared[i]) }

    The copy is of the whole buffer, before the outermost loop around the block in which nothing writes it; compute_at
    then makes it a copy of a tile. With `read`, the number of one of the block's reads, only that one reads the copy.
    Requires a buffer that the block reads and does not write, by that read if it is stated; the table of a gather is
    copied whole and stays so. Elsewhere: TVM cache_read, Halide in(), Exo stage_mem, MLIR promote.
    """
    reader = program.blocks[block]
    require_read(reader, buffer)
    source = program.buffers[buffer]
    copy = Buffer(program.fresh_buffer(f"{buffer}.{scope}"), source.shape, source.element, scope)
    whole_access = Access(buffer, lin.variables(len(source.shape)))
    through = redirected(reader, {buffer: copy.name})
    if read >= 0:
        if read >= len(reader.reads) or reader.reads[read].buffer != buffer:
            refuse(block_place(block), f"its read {read} is not one of '{buffer}'")
        reads = (
            new if n == read else old for n, (old, new) in enumerate(zip(reader.reads, through.reads, strict=True))
        )
        through = replace(reader, reads=tuple(reads))
    return read_copy(program, reader, through, whole_access, copy)
