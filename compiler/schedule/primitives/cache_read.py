"""The primitive cache_read."""

from __future__ import annotations

from compiler.affine import linear as lin
from compiler.program.tree import Access, Buffer, Program
from compiler.schedule.copies import read_copy, redirected
from compiler.schedule.parameters import BLOCK, TEXT, word
from compiler.schedule.plan import Plan, require_read
from compiler.schedule.primitive import primitive
from compiler.types.scopes import SCOPES


@primitive(
    "$block $buffer `in` $scope",
    '%copy = sched.cache_read %c "A" in "shared"',
    "cache-read{block=C buffer=A scope=shared at=C.m}",
    gives={"copy": "block"},
    placed_by="compute_at",
    block=BLOCK,
    buffer=TEXT,
    scope=word("scope", SCOPES),
)
def cache_read(program: Program, block: str, buffer: str, scope: str = "local") -> Plan:
    """Copy a buffer that a block reads into another scope, and read the copy.

        loop.for "i" { S[i] = f(A[i]) }
      ->
        alloc A.shared;  loop.for "ax0" { A.shared[ax0] = A[ax0] }  loop.for "i" { S[i] = f(A.shared[i]) }

    The copy is of the whole buffer, before the outermost loop around the block in which nothing writes it; compute_at
    then makes it a copy of a tile. Requires a buffer that the block reads and does not write; the table of a gather is
    copied whole and stays so. Elsewhere: TVM cache_read, Halide in(), Exo stage_mem, MLIR promote.
    """
    reader = program.blocks[block]
    require_read(reader, buffer)
    source = program.buffers[buffer]
    copy = Buffer(program.fresh_buffer(f"{buffer}.{scope}"), source.shape, source.element, scope)
    whole_access = Access(buffer, lin.variables(len(source.shape)))
    return read_copy(program, reader, redirected(reader, {buffer: copy.name}), whole_access, copy)
