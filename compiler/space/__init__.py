"""The search space: from a program to its candidates and their features.

derivation.py    from rules to sketches
template.py      from hand-written scripts with open choices to sketches
recording.py     from functions of a Schedule to such scripts
includes.py      scripts that include recipes by name
choice_names.py  names of the choices of such a script
sketch.py        a script with open choices, and the programs that its candidates make
trace.py         traced numbers: each represents its value in all candidates at once
structures.py    the traced runs of a sketch, found by the answers of their guards
cpu_features.py  features on a CPU, and reasons not to build a candidate
gpu_features.py  the same on a GPU, and an estimate of the time
extractor.py     the feature extractor of a machine
candidates.py    the interface of a space to the search and the cost model
space.py         SketchSpace: the candidates of all sketches
"""
