"""Declared instructions, such as products of small tiles, and how a nest is matched with one."""

from compiler.intrinsics import INTRINSICS, Fit, Intrinsic, Misfit, find, fit, warp

__all__ = ["INTRINSICS", "Fit", "Intrinsic", "Misfit", "find", "fit", "warp"]
