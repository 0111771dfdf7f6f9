"""The commands of `strata`, one a file: each states its arguments and runs; heavy imports wait until then.

bench.py        measure workloads beside other libraries
build.py        print or write a program at a level
check.py        kernels without a GPU: races, barriers, bounds, results, memory traffic
cache.py        strata cache info|clear|path: the machine code that builds have kept
db.py           tuning records: list, best, export, import, replay, report, prune
examples.py     the files that the pages show
hash.py         the canonical hash of each te function
explain_rewrites.py  where laws that are choices apply, or why not
explain.py      what was generated for a program, and what it costs
model.py        models of ONNX: shapes of inputs, what they should give
race.py         a model of ONNX beside onnxruntime
plugins.py      strata plugins: what other packages and files add
program.py      FILE|NAME: a file, or a workload of bench
replay.py       a search again from its log, without hardware
run.py          build a program and try it on random inputs
printing.py     what is printed: errors as sentences, text as terminals may have it
space.py        the search space of a program: sketches, candidates, scripts
tune.py         search for the fastest schedule of a program
values.py       counts, seeds and scales
worker.py       strata worker: build and time for the tuners of a scheduler
"""
