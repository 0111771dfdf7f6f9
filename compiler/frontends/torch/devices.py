"""The devices of a graph's nodes."""

from __future__ import annotations

import torch
from torch import fx


def other_device(node: fx.Node, device: torch.device) -> str | None:
    """Return the reason for which a node cannot be in a part for a device: a result or an operand is a tensor on
    another one; None if all are there. Example: "a tensor on the device cpu, beside others on xpu:0"."""
    for value in (node.meta.get("val"), *(n.meta.get("val") for n in node.all_input_nodes)):
        for tensor in value if isinstance(value, tuple | list) else (value,):
            if isinstance(tensor, torch.Tensor) and tensor.device != device:
                return f"a tensor on the device {tensor.device}, beside others on {device}"
    return None
