"""C as a target: the loops that the CPU's rules make, as text for gcc and clang."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from compiler.support.errors import TargetError
from compiler.support.validation import integer
from compiler.targets.arguments import Argument
from compiler.targets.c.kernel import CKernel, made
from compiler.targets.target import Device, Target
from compiler.types.machines import Machine, host

_LOW = "transpose-scatters,extend-floats"
_LOOP = f"check-combiners,loop-to-low,promote-buffers,{_LOW}"


MOST_THREADS = 1024
"""The most threads that loops are cut for."""


class CTarget(Target):
    """Text that a person reads and any compiler takes: one function, without the special instructions of a machine."""

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
        """The machine at hand, with its vectors and caches, and nothing that C has no words for."""
        return replace(host(), features="")

    def at_hand(self) -> Device:
        """This processor."""
        return Device(host().name, "")

    def threads(self, stated: object) -> int:
        """The stated count, one by default: a text is for any machine."""
        return 1 if stated is None else integer("the number of threads", stated, 1, MOST_THREADS, TargetError)

    def made(self, module: ModuleOp, host: FuncOp, arguments: Sequence[Argument], policy: str, arch: str) -> CKernel:
        """The text of a function."""
        return made(module, host, arguments, policy)
