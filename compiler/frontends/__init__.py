"""Front ends: models of other tools as te functions. Each is a table, one short function an operator, over `te.nn`.

onnx/      ONNX models
torch/     graphs that torch has captured
"""
