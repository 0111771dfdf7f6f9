"""What `compiler.targets.gpus` loads: kernels, and the GPUs that they are made for."""

from __future__ import annotations

from compiler.errors import TargetError
from compiler.targets.cuda.kernel import made
from compiler.targets.cuda.machines import MACHINES
from compiler.targets.cuda.runtime import at_hand
from compiler.targets.machine import Gpu


def machine(arch: str) -> Gpu:
    """The GPU that stands for an architecture. Raises TargetError for one that is not described."""
    found = MACHINES.get(arch)
    if found is None:
        raise TargetError(f"no GPU of the architecture '{arch}' is described (there are {', '.join(MACHINES)})")
    return found


__all__ = ["MACHINES", "at_hand", "machine", "made"]
