"""Programs from torch, ONNX and JAX; reports of graph breaks; arguments and errors of a plugin's operators."""

from compiler.frontends.model import Imported
from compiler.frontends.onnx.table import Node, Refused
from compiler.frontends.torch import explain, from_torch
from compiler.frontends.torch.report import Report
from compiler.frontends.torch.table import Call, Unsupported
from compiler.pipeline.models import from_jax, from_onnx

__all__ = [
    "Call",
    "Imported",
    "Node",
    "Refused",
    "Report",
    "Unsupported",
    "explain",
    "from_jax",
    "from_onnx",
    "from_torch",
]
