"""Samples with special values, and in other layouts."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch


def _sprinkled(*values: float) -> Callable[[Any, random.Random], Any]:
    """A third of the elements replaced."""

    def change(tensor: Any, choose: random.Random) -> Any:
        flat = tensor.contiguous().clone().flatten()
        for n in range(flat.numel()):
            if choose.random() < 0.34:
                flat[n] = choose.choice(values)
        return flat.view(tensor.shape)

    return change


def _tied(tensor: Any, choose: random.Random) -> Any:
    """All elements of few values."""
    flat = tensor.contiguous().clone().flatten()
    few = [float(flat[choose.randrange(flat.numel())]) for _ in range(2)] if flat.numel() else [0.0]
    for n in range(flat.numel()):
        flat[n] = choose.choice(few)
    return flat.view(tensor.shape)


def _extreme(tensor: Any, choose: random.Random) -> Any:
    facts = torch.finfo(tensor.dtype)
    return _sprinkled(facts.max, -facts.max, facts.tiny, -facts.tiny, facts.tiny / 4, facts.eps)(tensor, choose)


VALUES: dict[str, Callable[[Any, random.Random], Any]] = {
    "nan": _sprinkled(float("nan")),
    "infinities": _sprinkled(float("inf"), float("-inf")),
    "all -inf": lambda tensor, choose: torch.full_like(tensor, float("-inf")),
    "zeros": _sprinkled(0.0, -0.0),
    "extremes": _extreme,
    "ties": _tied,
    "mixed": _sprinkled(float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.0),
}
"""Changes of a tensor's values: a kernel that is compiled once takes all of them."""


def _strided(tensor: Any) -> Any:
    wide = torch.repeat_interleave(tensor, 2, -1) if tensor.dim() else tensor
    return wide[..., ::2] if tensor.dim() else tensor


def _transposed(tensor: Any) -> Any:
    return tensor.transpose(0, -1).contiguous().transpose(0, -1) if tensor.dim() > 1 else tensor


def _expanded(tensor: Any) -> Any:
    return tensor[:1].expand(tensor.shape) if tensor.dim() and tensor.shape[0] else tensor


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "strided": _strided,
    "transposed": _transposed,
    "expanded": _expanded,
    "empty": lambda tensor: tensor[:0] if tensor.dim() else tensor,
    "one number": lambda tensor: tensor.flatten()[0] if tensor.numel() else tensor,
}
"""Other forms of all tensors: each is compiled for itself."""


def of_values(tensors: tuple[Any, ...], dtype: Any, kind: str, number: int) -> tuple[Any, ...]:
    """The tensors, those of the dtype changed."""
    choose = random.Random(f"{kind} {number}")
    return tuple(VALUES[kind](t, choose) if t.dtype is dtype and t.layout is torch.strided else t for t in tensors)


def of_layout(tensors: tuple[Any, ...], kind: str) -> tuple[Any, ...]:
    """The tensors in another layout."""
    return tuple(LAYOUTS[kind](t) if t.layout is torch.strided else t for t in tensors)
