"""`to_code`: the passes from a level to the input of LLVM emission, under a floating-point policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler import universe
from compiler.pipeline.parser import parse_passes
from compiler.pipeline.passes import TO_LLVM, run


@cache
def passes_from(level: str, policy: str) -> tuple[ModulePass, ...]:
    """The passes from a level (te, loop or low) to the input of LLVM emission, under a floating-point policy. Raises
    KeyError for another level."""
    return tuple(with_policy(policy, parse_passes(TO_LLVM[level])))


def with_policy(policy: str, passes: Sequence[ModulePass]) -> list[ModulePass]:
    """Return the passes, with the floating-point policy set in those that have the option `policy`."""
    has_policy = [any(field.name == "policy" for field in fields(unset)) for unset in passes]
    return [replace(p, policy=policy) if has else p for p, has in zip(passes, has_policy, strict=True)]  # type: ignore[call-arg]


def to_code(module: ModuleOp, level: str, policy: str) -> None:
    """Lower a module from a level to the input of LLVM emission under a floating-point policy, in place."""
    run(_context(), module, passes_from(level, policy))


@cache
def _context() -> Context:
    """A cached context, for passes that parse no text."""
    return universe.context()
