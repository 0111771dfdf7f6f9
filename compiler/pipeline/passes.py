"""The order of passes: the named pipelines, and `run`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.dominance import Refusal, verify_module
from compiler.support.errors import InputError
from compiler.support.origins import inherit_locations

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

_LOW_TO_CPU = "transpose-scatters,extend-floats,expand-math,plan-buffers"

PIPELINES: dict[str, str] = {
    "te-to-low": "check-combiners,te-to-loop,reorder-contiguous,loop-to-low,promote-buffers",
    "low-to-cpu": f"check-bounds,{_LOW_TO_CPU}",
    "loop-to-cpu": f"check-combiners,loop-to-low,promote-buffers,{_LOW_TO_CPU}",
    "cpu": f"check-combiners,te-to-loop,reorder-contiguous,loop-to-low,promote-buffers,{_LOW_TO_CPU}",
}
"""The passes of each named pipeline, as text."""

TO_LOOPS = "check-combiners,lift-constants,te-to-loop"
"""The passes from te to loops in the order written."""
TO_LLVM = {"te": "cpu", "loop": "loop-to-cpu", "low": "low-to-cpu"}
"""The pipeline from each level to the input of LLVM emission."""

Watch = Callable[["ModulePass", ModuleOp], None]

VERIFY_EACH = "STRATA_VERIFY_EACH"
"""The environment variable that, set to 1, enables verification after each pass."""


def verifies_each() -> bool:
    """Whether the environment variable STRATA_VERIFY_EACH enables verification after each pass."""
    return os.environ.get(VERIFY_EACH) == "1"


def run(
    ctx: Context, module: ModuleOp, passes: Sequence[ModulePass], after: Watch | None = None, verify: bool = False
) -> None:
    """Apply passes to a module in order; `after` is called with the pass and the module after each. New ops without a
    location get those of their users, or of the op around them.

    The module is verified after each pass with `verify`, or if the environment variable STRATA_VERIFY_EACH is 1, as in
    the tests. Raises the passes' errors, InputError for a program nested too deeply, and Refusal, at the op, if a pass
    leaves an invalid program.

    >>> from xdsl.context import Context
    >>> A = te.placeholder((64,), name="A")
    >>> module = te.function("f", [A], te.nn.exp(A, name="B")).module
    >>> strata.passes.run(Context(), module, strata.passes.parse_passes("te-to-loop"))
    >>> print(strata.schedule.outline(Schedule(module).program))
    i0 = 64
      B = f(A)
    """
    verify = verify or verifies_each()
    try:
        for module_pass in passes:
            module_pass.apply(ctx, module)
            if after is not None or module_pass is passes[-1]:
                inherit_locations(module)
            if verify:
                _verify_after(module_pass.name, module)
            if after is not None:
                after(module_pass, module)
    except RecursionError as error:
        raise InputError("the program is nested too deeply") from error


def _verify_after(name: str, module: ModuleOp) -> None:
    try:
        verify_module(module)
    except Refusal as error:
        raise Refusal(error.op, f"the pass '{name}' leaves an invalid program: {error}") from error
