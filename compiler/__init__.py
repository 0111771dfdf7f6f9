"""Strata: a multi-dialect tensor compiler. `te` says what to compute, `build` makes it native code, `lower` loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.defaults import build
    from compiler.driver import from_onnx, lower
    from compiler.frontends.torch import from_torch


__version__ = "0.1.0"
__all__ = ["build", "from_onnx", "from_torch", "lower"]


def __getattr__(name: str) -> Any:
    if name == "build":
        from compiler import defaults

        return defaults.build
    if name in ("from_onnx", "lower"):
        from compiler import driver

        return getattr(driver, name)
    if name == "from_torch":
        from compiler.frontends import torch

        return torch.from_torch
    raise AttributeError(f"module 'compiler' has no attribute '{name}'")
