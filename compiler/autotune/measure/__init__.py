"""Measuring candidates in worker processes: scripts in, outcomes out.

limits.py          what a candidate may cost, and how long it is timed
measurer.py        Measurer: batches and comparisons; the executor that does the work
local.py           the executors of this machine: builders, then one runner or estimates
timer.py           the runner and its reference: candidates are checked and timed, one at a time
builder.py         a script to an artefact
runner.py          an artefact to times
gpu_builder.py     a script to kernels that were simulated, and an estimate of their time
gpu_runner.py      kernels to times
shrink.py          the program with shorter reductions, for the simulation
network.py         operands where a network has them
turns.py           whole programs that take turns, timed call by call
timing.py          samples until their median is known
"""
