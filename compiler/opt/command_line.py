"""The options of strata-opt, and the list of passes and pipelines."""

from __future__ import annotations

import argparse

import compiler
from compiler import universe
from compiler.opt.source import SPLIT
from compiler.support import command, plugins

TARGETS = ("mlir", "llvm", "asm")


def arguments() -> argparse.ArgumentParser:
    """Make the parser of the command line. It raises InputError for invalid arguments."""
    parser = command.Parser(prog="strata-opt", description="Run passes over MLIR files.", allow_abbrev=False)
    add = parser.add_argument
    add("file", nargs="?", default="-", help="the MLIR file; - is standard input")
    add("-p", "--passes", action="append", default=[], help="passes and named pipelines: 'a{x=1 y=2},b'")
    add("--pass-pipeline", metavar="PIPELINE", help="the same as mlir-opt writes it: 'builtin.module(a,b)'")
    add("--list-passes", action="store_true", help="list passes and pipelines, one line each")
    add(
        "--load", action="append", default=[], metavar="FILE", help="a plugin: a file of Python with register(registry)"
    )
    add("-o", "--output-file", metavar="FILE", help="where to write instead of standard output")
    add("-t", "--target", choices=TARGETS, default="mlir", help="what to print")
    add("--split-input-file", action="store_true", help=f"treat the pieces between '{SPLIT}' lines apart")
    add("--verify-diagnostics", action="store_true", help="expect the errors that comments announce")
    add("--allow-unregistered-dialect", action="store_true", help="accept ops of unknown dialects")
    add("--print-op-generic", action="store_true", help="print ops in generic form")
    add("--print-debuginfo", action="store_true", help="print the place of each op that has one: loc(...)")
    add("--print-ir-before-all", action="store_true", help="print the module before each pass, to stderr")
    add("--print-ir-after-all", action="store_true", help="print the module after each pass, to stderr")
    add("--debug", action="store_true", help="print the traceback of a pass or parser that crashes, to stderr")
    add("--timing", action="store_true", help="print the time of each step, to stderr")
    add("--version", action="version", version=f"strata-opt {compiler.__version__}")
    return parser


def _described(part: plugins.Part) -> str:
    """Describe a plugin's part in one line: a pass by the first sentence of its docstring, others by their kind."""
    return (part.kind == "pass" and universe.first_sentence(part.value.__doc__ or "")) or part.kind


def list_passes() -> None:
    """Print a line for each pass and pipeline of ours, each pass of xDSL, and each part of the plugins."""
    from xdsl.transforms import get_all_passes

    from compiler.pipeline.passes import PIPELINES

    lines = [("passes:", "")]
    lines += [(f"  {name}", line) for name, line in universe.our_passes().items()]
    lines += [("pipelines:", "")]
    lines += [(f"  {name}", f"= {passes}") for name, passes in PIPELINES.items()]
    lines += [("xDSL's passes:", "")]
    lines += [(f"  {name}", "") for name in sorted(get_all_passes())]
    for registry in plugins.registries():
        lines += [(f"plugin {registry.plugin}:", "")]
        lines += [(f"  {part.name}", _described(part)) for part in registry.parts]
    for name, line in lines:
        print(f"{name:26} {line}".rstrip())
