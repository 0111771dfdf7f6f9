"""Strata: a multi-dialect tensor compiler. `te` says what to compute, `build` makes it native code, `lower` loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.driver import build, lower

__all__ = ["build", "lower"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from compiler import driver

        return getattr(driver, name)
    raise AttributeError(f"module 'compiler' has no attribute '{name}'")
