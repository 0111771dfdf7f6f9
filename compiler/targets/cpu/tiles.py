"""Permission to use AMX's tile registers, which Linux grants on request."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from functools import cache

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.tile_intrinsics import TileDotOp, TileLoadOp, TileStoreOp
from compiler.dialects.upstream.walk import ops_in
from compiler.support.errors import TargetError

_TILE_OPS = (TileDotOp, TileLoadOp, TileStoreOp)
_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18


def uses_tiles(module: ModuleOp) -> bool:
    """Return whether a low-level module has an op on AMX tiles."""
    return any(type(op) in _TILE_OPS for op in ops_in(module))


@cache
def permit_tiles() -> None:
    """Request the tile registers for all threads of the process: without permission their first use ends the process. A
    further call does nothing. Raises TargetError if the system has no such request, or refuses. Source: Linux,
    Documentation/arch/x86/xstate."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        raise TargetError(f"tile registers are asked for from Linux on x86_64, not {sys.platform}")
    system = ctypes.CDLL(None, use_errno=True).syscall
    system.restype = ctypes.c_long
    if system(ctypes.c_long(_ARCH_PRCTL), ctypes.c_long(_ARCH_REQ_XCOMP_PERM), ctypes.c_long(_XFEATURE_XTILEDATA)):
        raise TargetError(f"Linux gives this process no tile registers: {os.strerror(ctypes.get_errno())}")
