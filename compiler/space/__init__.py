"""The search space: from a program to candidates, and to what the cost model sees of them.

derivation.py    from rules to sketches
template.py      from hand-written scripts with open choices to sketches
recording.py     from functions of a Schedule to such scripts
includes.py      scripts that include recipes by name
sketch.py        a script with open choices, and the programs that its candidates make
trace.py         numbers that stand for those of all candidates at once
structures.py    the traced runs of a sketch, by the answers of their guards
cpu_features.py  columns for the cost model, and why a candidate is not built
gpu_features.py  the same of GPUs, and an estimate of the time
extractor.py     the feature extractor of a machine
candidates.py    what the search and the cost model know of a candidate
space.py         SketchSpace: the candidates of all sketches
"""
