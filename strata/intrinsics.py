"""Declared instructions, such as products of small tiles, and their match with loop nests."""

from compiler.intrinsics import INTRINSICS, Fit, Intrinsic, Misfit, find, fit, warp

__all__ = ["INTRINSICS", "Fit", "Intrinsic", "Misfit", "find", "fit", "warp"]
