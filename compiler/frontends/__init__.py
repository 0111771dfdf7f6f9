"""Front ends: import models of other tools as te functions, by a table with a short function for each operator.

model.py  `Imported`, the result of an import
onnx/     ONNX models
torch/    graphs captured by torch
jax/      functions of JAX as StableHLO text, for convert-stablehlo-to-te
"""
