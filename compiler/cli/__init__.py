"""The commands of `strata`, one a file, each with its arguments and a function that runs it; heavy imports are lazy.

bench.py        measure workloads beside other libraries
build.py        print or write a program at a level
check.py        kernels without a GPU: races, barriers, bounds, results, memory traffic
cache.py        strata cache info|clear|path: the cache of machine code
db.py           tuning records: list, best, export, import, replay, report, prune
examples.py     write the example files of the documentation
hash.py         the canonical hash of each te function
fuzz.py              random programs against the parts of plugins
lsp.py          strata lsp: the language server
explain_rewrites.py  the laws that apply to a program, and the reasons why others do not
explain.py      the generated code of a program, and its cost
explain_kernels.py   the estimated time of a program's kernels on a GPU
explain_sources.py   the time of a program by modules, nodes and lines of its model
model.py        models of ONNX: input shapes, expected results
race.py         a model of ONNX timed beside onnxruntime
plugins.py      strata plugins: the parts of plugins
program.py      the argument FILE|NAME: an MLIR file, an ONNX model, or a workload of bench
replay.py       repeat a search from its log, without hardware
run.py          build a program and compare it with the reference on random inputs
printing.py     print error messages and untrusted text
space.py        the search space of a program: sketches, candidates, scripts
tune.py         search for the fastest schedule of a program
verify.py       check a library against its certificate
view.py         write a page about a program: passes, loops, script, memory, machine code, proof
values.py       parse counts, seeds, scales and seconds
worker.py       strata worker: build and time for the tuners of a scheduler
"""
