"""Front ends: models of other tools as te functions. Each is a table, one short function an operator, over `te.nn`.

model.py  what a front end makes of a model
onnx/     ONNX models
torch/    graphs that torch has captured
"""
