"""The primitives of plugins: their planning functions by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler.support import plugins


def plugin_plans() -> dict[str, Callable[..., Any]]:
    """Map the name of each primitive of a plugin to its planning function; a crash in one raises PluginError."""
    return {name: part.guarded for name, part in plugins.parts("primitive").items()}
