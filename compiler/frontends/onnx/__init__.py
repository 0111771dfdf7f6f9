"""Models of ONNX as te functions."""
