"""Studies: each a module that `python -m benchmarks.NAME` runs. The workloads and the harness are compiler.bench.

additional_outputs.py  programs that also return what they compute on the way
equal_programs/   spellings of programs: whether they have one text, and their times in turns
by_hand.py        the kernels of a tutorial, beside numpy
tuning.py         what tuning finds, beside the others
calls.py          what a call costs before native code begins
cold_builds.py    what a first build takes, by stage
tuned_default.py  networks by their database, beside the same without one, in fresh processes
busy.py           what tuning finds on a busy machine, beside what it finds in quiet
"""
