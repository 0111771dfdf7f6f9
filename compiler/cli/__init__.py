"""The commands of `strata`, one a file: each states its arguments and runs; heavy imports wait until then.

bench.py    measure workloads beside contenders
build.py    print or write a program at a level
explain.py  what was generated for a program, and what it costs
run.py      build a program and try it on random inputs
said.py     errors as sentences
values.py   counts, seeds and scales
"""
