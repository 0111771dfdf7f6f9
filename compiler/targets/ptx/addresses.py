"""Addresses: each buffer of global memory, and each other state space, has a range of 2^40 bytes of its own."""

from __future__ import annotations

from collections.abc import Mapping

SHIFT = 40
"""The bits of an offset within a range."""
_SHARED, _LOCAL = 0x7F0001, 0x7F0002
WINDOWS: Mapping[str, int] = {
    "global": 0,
    "const": 0,
    "shared": _SHARED << SHIFT,
    "local": _LOCAL << SHIFT,
    "param": _LOCAL << SHIFT,
}
"""The first generic address of each state space."""
SPACES: Mapping[int, str] = {_SHARED: "shared", _LOCAL: "local"}
"""The state space of a range of generic addresses; the other ranges are buffers of global memory."""
