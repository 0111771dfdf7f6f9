"""Check that the regions of joint reductions are combiners."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.dominance import Refusal
from compiler.dialects.loop import BlockOp
from compiler.dialects.te import ComputeOp
from compiler.interpret.combination import fault
from compiler.support.errors import StrataError


class CombinerError(Refusal, StrataError):  # type: ignore[misc]  # whose op is any object
    """The error for a joint reduction whose region is no combiner; a VerifyException and a StrataError."""


def check_combiners(module: ModuleOp) -> None:
    """Check the region of each joint reduction on samples. Raises CombinerError at the op, with a counterexample."""
    for op in module.walk():
        if isinstance(op, ComputeOp | BlockOp) and op.joint is not None:
            reason = fault(op)
            if reason is not None:
                raise CombinerError(op, f"the combiner of '{op.label.data}' cannot be used: {reason}")
