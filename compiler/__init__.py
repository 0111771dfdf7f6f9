"""Strata, a multi-dialect tensor compiler: `te` defines programs, `build` compiles them, `lower` converts to loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.support.deferral import lazy_names

if TYPE_CHECKING:
    from compiler.driver.building import build
    from compiler.frontends.torch import from_torch
    from compiler.pipeline.loops import lower
    from compiler.pipeline.models import from_jax, from_onnx


__version__ = "0.1.0"
__all__ = ["build", "from_jax", "from_onnx", "from_torch", "lower"]
__getattr__ = lazy_names(
    __name__,
    {
        "build": "driver",
        "from_jax": "pipeline.models",
        "from_onnx": "pipeline.models",
        "from_torch": "frontends.torch",
        "lower": "pipeline.loops",
    },
)
