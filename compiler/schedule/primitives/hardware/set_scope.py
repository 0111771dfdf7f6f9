"""The primitive set_scope."""

from __future__ import annotations

from dataclasses import replace

from compiler.program.tree import Program
from compiler.schedule.layouts import temporary
from compiler.schedule.parameters import BLOCK, word
from compiler.schedule.plan import Plan
from compiler.schedule.primitive import primitive
from compiler.schedule.region import with_buffer
from compiler.types.scopes import SCOPES


@primitive(
    "$block $scope",
    'sched.set_scope %c "shared"',
    "set-scope{block=C scope=shared}",
    block=BLOCK,
    scope=word("scope", SCOPES),
)
def set_scope(program: Program, block: str, scope: str) -> Plan:
    """Set the scope of the buffers that a block writes.

        alloc T : memref<8xf32>                  // set_scope "shared"
      ->
        alloc T shared : memref<8xf32>

    Requires temporaries. Elsewhere: TVM set_scope, Exo set_memory, MLIR memory spaces.
    """
    after = program
    for name in program.blocks[block].targets:
        after = with_buffer(after, name, replace(temporary(program, block, name), scope=scope))
    return Plan(after, keeps_order=True)
