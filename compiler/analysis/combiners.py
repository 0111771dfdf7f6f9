"""Whether the regions that combine results are combiners."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.dominance import Refusal
from compiler.dialects.loop import BlockOp
from compiler.dialects.te import ComputeOp
from compiler.interpret.combination import fault
from compiler.support.errors import StrataError


class CombinerError(Refusal, StrataError):  # type: ignore[misc]  # whose op is any object
    """A region that combines results and is no combiner; both a verifier's refusal and an error of a user's."""


def check_combiners(module: ModuleOp) -> None:
    """Every region that combines results is a combiner. Raises CombinerError at the op, with values that show
    otherwise."""
    for op in module.walk():
        if isinstance(op, ComputeOp | BlockOp) and op.joint is not None:
            reason = fault(op)
            if reason is not None:
                raise CombinerError(op, f"the combiner of '{op.label.data}' cannot be used: {reason}")
