"""Which modules are at the level of StableHLO."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.upstream.walk import ops_in

DIALECTS = ("stablehlo", "chlo")


def has_stablehlo(module: ModuleOp) -> bool:
    """Whether a module has an op of StableHLO or CHLO."""
    return any(op.name.partition(".")[0] in DIALECTS for op in ops_in(module))
