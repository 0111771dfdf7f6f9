"""The workloads by name, and the harness that measures them beside other libraries.

workload.py      what a workload states
contractions.py  workloads bound by arithmetic
rows.py          workloads bound by memory
workloads.py     the table of names, and NAME:AxBxC
error_bounds.py  float64 references that carry the error a float32 result may have
contenders.py    who runs: strata, numpy, torch, onnxruntime, gcc
onnx_model.py    workloads as ONNX models
c_loops.py       the loops of mm_exp_mm in C
harness.py       the protocol: interleaved rounds, poisoned outputs, wrong results without a time
report.py        the rows of a result: rates, percentages, ratios, JSON
table.py         tables for people: the rows; what the groups of a tuned whole program take together
schedules.py     the workloads under schedules by hand
"""
