"""Programs from torch and ONNX, and why a model was not compiled whole; what a plugin's operators take and raise."""

from compiler.frontends.model import Imported
from compiler.frontends.onnx.table import Node, Refused
from compiler.frontends.torch import explain, from_torch
from compiler.frontends.torch.report import Report
from compiler.frontends.torch.table import Call, Unsupported
from compiler.pipeline import from_onnx

__all__ = ["Call", "Imported", "Node", "Refused", "Report", "Unsupported", "explain", "from_onnx", "from_torch"]
