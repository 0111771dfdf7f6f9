"""C as a target: loops that the CPU's rules schedule, as text for gcc and clang."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from compiler.support.errors import TargetError
from compiler.support.validation import integer
from compiler.targets.arguments import Argument
from compiler.targets.c.kernel import CKernel, make_kernel
from compiler.targets.target import Device, Target
from compiler.types.machines import Machine, host

_LOW = "transpose-scatters,extend-floats"
_LOOP = f"check-combiners,loop-to-low,promote-buffers,{_LOW}"


MAX_THREADS = 1024
"""The largest number of threads for which loops are scheduled."""


class CTarget(Target):
    """Readable text for any compiler: one function without target-specific instructions."""

    name, family = "c", "cpu"
    texts = ("c",)
    suffixes: ClassVar[Mapping[str, str]] = {".c": "c"}
    passes: ClassVar[Mapping[str, str]] = {
        "te": f"reorder-contiguous,{_LOOP}",
        "loop": _LOOP,
        "low": f"check-bounds,{_LOW}",
    }
    takes_threads = True
    is_tuned = False

    def machine(self, arch: str) -> Machine:
        """Return the local machine without instruction set features, which C cannot spell; `arch` has no effect."""
        return replace(host(), features="")

    def local_device(self) -> Device:
        """Return this processor, with "" as its architecture."""
        return Device(host().name, "")

    def threads(self, requested: object) -> int:
        """Return the requested count, one by default. Raises TargetError unless it is from 1 to MAX_THREADS."""
        return 1 if requested is None else integer("the number of threads", requested, 1, MAX_THREADS, TargetError)

    def make_kernel(
        self, module: ModuleOp, host: FuncOp, arguments: Sequence[Argument], policy: str, arch: str
    ) -> CKernel:
        """Write the function `host` of a module as C; `arch` is unused, `policy` recorded. Raises LoweringError for an
        op that C lacks."""
        return make_kernel(module, host, arguments, policy)
