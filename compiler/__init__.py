"""Strata: a multi-dialect tensor compiler. `te` says what to compute, `build` makes it native code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.driver import build

__all__ = ["build"]


def __getattr__(name: str) -> Any:
    if name == "build":
        from compiler.driver import build

        return build
    raise AttributeError(f"module 'compiler' has no attribute '{name}'")
