"""The options of strata-opt."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TypeAlias

import compiler
from compiler.opt.source import SPLIT
from compiler.support import command

Add: TypeAlias = Callable[..., Any]  # argparse's add_argument

TARGETS = ("mlir", "llvm", "asm")
OPTIONAL = {"split-input-file": SPLIT, "verify-diagnostics": "all", "help": ""}
"""The options whose value may be omitted, and the value that they then have; others stand behind an equals sign."""
ALIASES = {"load-pass-plugin": "load", "load-dialect-plugin": "load", "print-stacktrace-on-diagnostic": "debug"}
"""Other names of options, which mlir-opt has."""
REMARKS_OF = {
    "passed": "what they have done",
    "missed": "what they have not done, and why",
    "failed": "what they could not do",
    "analyse": "what they have found out",
}
WITHOUT_EFFECT = {
    "disable-threading": "a program is rewritten by one thread",
    "print-ir-module-scope": "the whole module is printed",
    "print-local-scope": "locations, types and attributes are printed without aliases",
    "print-unique-ssa-ids": "names of values are unique in each function",
}
"""Options of mlir-opt that state what holds here anyway, and what that is."""


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line. The parser raises InputError for invalid arguments. Its long options are
    mlir-opt's without `mlir-`; `compiler.opt.spelling.normalized` first spells the words of a command line so.
    """
    parser = command.Parser(
        prog="strata-opt",
        description="Run passes over MLIR files. Options are spelled as mlir-opt's: with one dash or two, and with or "
        "without mlir-; a pass is an option, too: --te-to-loop, --tile='block=C axes=m sizes=8'.",
        allow_abbrev=False,
        add_help=False,
    )
    _files(parser.add_argument_group("files").add_argument)
    _passes(parser.add_argument_group("passes").add_argument)
    _checks(parser.add_argument_group("checks and errors").add_argument)
    _printing(parser.add_argument_group("printing").add_argument)
    _instruments(parser.add_argument_group("instruments").add_argument)
    without = parser.add_argument_group("options of mlir-opt without an effect").add_argument
    for name, reason in WITHOUT_EFFECT.items():
        without(f"--{name}", action="store_true", help=reason)
    return parser


def _files(add: Add) -> None:
    add("file", nargs="?", default="-", help="the MLIR file, as text or bytecode; - is standard input")
    add("-o", "--output-file", metavar="FILE", help="where to write instead of standard output")
    add("-t", "--target", choices=TARGETS, default="mlir", help="what to print")
    add("--emit-bytecode", action="store_true", help="write MLIR's bytecode (needs mlir-opt)")
    add("--split-input-file", metavar="MARKER", help=f"treat the pieces between lines MARKER ({SPLIT}) apart")
    add("--output-split-marker", metavar="TEXT", default=SPLIT, help="the line between the pieces of the output")
    add("--no-implicit-module", action="store_true", help="refuse a text that is not one module")
    add("--allow-unregistered-dialect", action="store_true", help="accept ops of unknown dialects")
    add("--load", action="append", default=[], metavar="FILE", help="a plugin: a Python file with register(registry)")
    add("--show-dialects", action="store_true", help="list the dialects")
    add("--completion", choices=("bash", "zsh", "fish"), help="print a script that completes options and passes")
    add("--version", action="version", version=f"strata-opt {compiler.__version__}")
    add("-h", "--help", metavar="PASS", help="print this page, or the options of a pass")


def _passes(add: Add) -> None:
    add("-p", "--passes", action="append", default=[], help="passes and named pipelines: 'a{x=1 y=2},b'")
    add("--pass-pipeline", metavar="PIPELINE", help="the same as mlir-opt writes it: 'builtin.module(a,func.func(b))'")
    add("--list-passes", action="store_true", help="list passes with their options, and pipelines")
    add("--list-foreign-passes", action="store_true", help="list xDSL's passes")
    add("--dump-pass-pipeline", action="store_true", help="print the pipeline with all options, to stderr")
    add("--run-reproducer", action="store_true", help="run the pipeline that the file states")
    add("--generate-reproducer", metavar="FILE", help="write the input and its pipeline as one file")
    add("--pass-pipeline-crash-reproducer", metavar="FILE", help="write it if a pass fails")
    add("--pass-pipeline-local-reproducer", action="store_true", help="of the failing pass and its input alone")


def _checks(add: Add) -> None:
    add("--verify-each", action=argparse.BooleanOptionalAction, default=True, help="verify after each pass")
    add("--verify-roundtrip", action="store_true", help="print and parse the input, and compare")
    add("--very-unsafe-disable-verifier-on-parsing", action="store_true", help="do not verify the input")
    add("--verify-diagnostics", metavar="KIND", choices=("all", "only-expected"), help="expect the errors of comments")
    add("--print-op-on-diagnostic", action="store_true", help="print the op of an error")
    add("--disable-diagnostic-notes", action="store_true", help="print errors without their notes")
    add("--debug", action="store_true", help="print the traceback of a pass or parser that crashes, to stderr")


def _printing(add: Add) -> None:
    add("--print-op-generic", action="store_true", help="print ops in generic form")
    add("--print-debuginfo", action="store_true", help="print the place of each op that has one: loc(...)")
    add("--print-skip-regions", action="store_true", help="print ops without their regions")
    add("--print-value-users", action="store_true", help="print behind each op which ops use its results")
    add("--use-nameloc-as-prefix", action="store_true", help='name values by their locations loc("name")')
    add("--elide-elementsattrs-if-larger", type=int, metavar="N", help="print __elided__ for larger constants")


def _instruments(add: Add) -> None:
    add("--print-ir-before-all", action="store_true", help="print the module before each pass, to stderr")
    add("--print-ir-after-all", action="store_true", help="print the module after each pass, to stderr")
    add("--print-ir-before", action="append", default=[], metavar="PASS,...", help="before these passes")
    add("--print-ir-after", action="append", default=[], metavar="PASS,...", help="after these passes")
    add(
        "--print-ir-after-change", action="store_true", help="after passes that change it; alone: the lines that change"
    )
    add("--print-ir-after-failure", action="store_true", help="the module in which a pass has failed")
    add("--print-ir-tree-dir", metavar="DIR", help="write each module to a file of a folder instead")
    add("--timing", action="store_true", help="print the time of each step, to stderr")
    add("--timing-display", choices=("list", "tree"), default="tree", help="sorted by time, or in order")
    add("--output-format", choices=("text", "json"), default="text", help="the form of times and statistics")
    add("--pass-statistics", action="store_true", help="print how many ops of which kind each pass adds and removes")
    add("--pass-statistics-display", choices=("list", "pipeline"), default="pipeline", help="by name, or in order")
    add("--debug-only", metavar="NAME,...", help="print these actions, such as pass, law, step, legality, to stderr")
    add("--log-actions-to", metavar="FILE", help="write a line for each pass and each rewriting; - is stderr")
    add("--profile-actions-to", metavar="FILE", help="write their times as a trace of Chrome (JSON)")
    add("--debug-counter", metavar="NAME-skip=N,...", help="omit the first N executions, perform NAME-count of them")
    add("--print-debug-counter", action="store_true", help="print how often each counter was met")
    add("--remarks-filter", metavar="REGEX", help="print the remarks of these passes, such as te-group, to stderr")
    for kind, subject in REMARKS_OF.items():
        add(f"--remarks-filter-{kind}", metavar="REGEX", help=f"their remarks on {subject}")
    add("--remark-format", choices=("emitRemark", "yaml"), default="emitRemark", help="lines on stderr, or a file")
    add("--remarks-output-file", metavar="FILE", default="mlir-remarks.yaml", help="that file")
