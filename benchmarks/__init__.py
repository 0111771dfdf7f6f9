"""The workloads and the harness that measures them; reached as `strata bench` from a checkout.

command.py        strata bench, and workloads by name for the other commands
workload.py       what a workload states
contractions.py   workloads bound by arithmetic
rowwise.py        workloads bound by memory
workloads.py      the table of names, and NAME:AxBxC
additional_outputs.py  programs that also return what they compute on the way
bounded.py        float64 references that carry the error a float32 result may have
contenders.py     who runs: strata, numpy, torch, onnxruntime, gcc
onnx_model.py     workloads as ONNX models
same_loops.py     the loops of mm_exp_mm in C
harness.py        the protocol: interleaved rounds, poisoned outputs, wrong results without a time
report.py         the rows of a result: rates, percentages, ratios, JSON
table.py          the rows as a table for people
groups.py         what the groups of a tuned whole program take together
tuning.py         what tuning finds, beside the others
calls.py          what a call costs before native code begins
busy.py           what tuning finds on a busy machine, beside what it finds in quiet
"""
