"""Workloads, found by name, and the harness that measures them beside other libraries.

workload.py      `Workload`: a function to measure
contractions.py  workloads bound by arithmetic
rows.py          workloads bound by memory
workloads.py     the table of names, and NAME:AxBxC
error_bounds.py  float64 references with bounds on the error of a float32 result
contenders.py    the contenders: strata, numpy, torch, onnxruntime, gcc
onnx_model.py    workloads as ONNX models
c_loops.py       the loops of mm_exp_mm in C
harness.py       the protocol: interleaved rounds, poisoned outputs, wrong results without a time
report.py        the rows of a result: rates, percentages, ratios, JSON
table.py         tables of the rows, and of the groups of a tuned whole program
schedules.py     hand-written schedules of the workloads
"""
