"""The module of a program to interpret."""

from __future__ import annotations

from typing import Protocol

from xdsl.dialects.builtin import ModuleOp

from compiler.support.errors import InputError


class HasModule(Protocol):
    """A te function or a schedule: an object with a module."""

    @property
    def module(self) -> ModuleOp:
        """The module with the function."""


def module_in(program: ModuleOp | HasModule) -> ModuleOp:
    """The module of a te function or of a schedule; a module as it is. Raises InputError for anything else."""
    module = program if isinstance(program, ModuleOp) else getattr(program, "module", None)
    if not isinstance(module, ModuleOp):
        raise InputError(f"expected a module, a te function or a Schedule, not a {type(program).__name__}")
    return module
