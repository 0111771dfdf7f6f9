"""Pipelines: find the module and the level of a caller's program, and run the passes that lower it. The order of passes
is defined here and by targets.

source.py   the verified module of a caller's program, and its level
models.py   models of other tools: `from_onnx`, `from_jax`
stablehlo.py `import_traced`: functions of JAX, traced, parsed and converted
loops.py    `lower`: to loops; `lower_for`: to the input of a target; `lower_to_kernels`: to a GPU's kernels
to_llvm.py  `to_code`: from each level to the input of LLVM emission
verify.py   `verify`: prove that one loop program computes the same as another
certified/   `check_certificate`: prove a library anew from its certificate
text.py     the parts of a pipeline's text, with their source locations
options.py  parse the options of a pass to its fields
parser.py   parse a pipeline to passes, with named pipelines expanded
passes.py   the order of passes: the named pipelines, and `run`
"""
