"""The generated code of a program, and its cost, for people: no rule, feature or search reads it.

builds.py      the program at several levels, and builds with marks
nests.py       the loops of the low level as a tree, with the blocks and the work of the loop program
code.py        the innermost loops of the machine code, with counts and estimates
profile.py     seconds by loop, from a build with clock reads around the outer loops
temporaries.py the arena and its buffers
sources.py     the time of a whole program by modules, nodes and lines of the model
advice.py      which primitive would change the time of a group, from its busiest machine loop and its bound
trial.py       another schedule of a group, found by a few trials and timed inside the program
source_report.py `SourceReport`: what `Kernel.explain` returns
source_text.py the time by source as text and as JSON
kernels.py     the estimated time of kernels of a GPU, and what bounds each
explanation.py `Explanation`: the results of all of these
text.py        as tables; data.py as JSON
"""
