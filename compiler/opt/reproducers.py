"""Reproducers: a module, and behind it the pipeline that was run on it, in mlir-opt's form."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from xdsl.passes import ModulePass

from compiler.support.errors import InputError
from compiler.support.files import write

_PIPELINE = re.compile(r'\{-#.*?\bmlir_reproducer\s*:\s*\{.*?\bpipeline\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)


def pipeline_text(passes: Sequence[ModulePass]) -> str:
    """Return passes as a pipeline, `builtin.module(a{x=1},b)`, with the options that are not defaults."""
    return f"builtin.module({','.join(str(each.pipeline_pass_spec()) for each in passes)})"


def write_reproducer(file: str, module: str, passes: Sequence[ModulePass], verify_each: bool) -> None:
    """Write the text of a module to a file, with the passes and `verify_each` as settings for a later run. Raises
    InputError if that fails."""
    settings = f"      pipeline: {json.dumps(pipeline_text(passes))},\n      verify_each: {str(verify_each).lower()}"
    resources = f"  external_resources: {{\n    mlir_reproducer: {{\n{settings}\n    }}\n  }}"
    body, begin, trailer = module.rstrip("\n").partition("\n{-#\n")
    trailer = trailer.removesuffix("\n#-}")
    write(file, [body, "\n\n{-#\n", f"{trailer},\n" if begin else "", resources, "\n#-}\n"])


def stated_pipeline(text: str, file: str) -> str:
    """Return the pipeline that a reproducer states. Raises InputError if the text states none."""
    match = _PIPELINE.search(text)
    if match is None:
        raise InputError(f"{file} states no pipeline: a reproducer has it behind the module, under mlir_reproducer")
    return str(json.loads(f'"{match[1]}"'))
