"""Programs from torch and ONNX, and why a model was not compiled whole."""

from compiler.frontends.model import Imported
from compiler.frontends.torch import explain, from_torch
from compiler.frontends.torch.report import Report
from compiler.pipeline import from_onnx

__all__ = ["Imported", "Report", "explain", "from_onnx", "from_torch"]
