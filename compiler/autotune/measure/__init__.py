"""Measuring candidates in worker processes: scripts in, outcomes out.

limits.py          the time and memory limits of a candidate, and how it is sampled
measurer.py        Measurer: batches and comparisons of scripts; Executor: its interface to workers
local.py           the executors of this machine: builders, then one runner or estimates
timer.py           the runner process and its reference: check and time candidates, one at a time
builder.py         from a script to an artefact
runner.py          from an artefact to times
gpu_builder.py     from a script to simulated kernels and an estimate of their time
gpu_runner.py      from kernels to times
shrink.py          the program with shorter reductions, for the simulation
network.py         operands placed as in a network: constants in memory, inputs in the caches
turns.py           two whole programs in turns, timed call by call
timing.py          samples of a call until their median is precise enough
"""
