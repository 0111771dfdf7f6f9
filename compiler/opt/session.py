"""A run of strata-opt: parse, verify, transform and print each piece of the file."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler import universe
from compiler.dialects.dominance import verify_module
from compiler.dialects.parser import Parser
from compiler.opt.diagnostics import PROGRAM_ERRORS, Diagnostic, diagnose
from compiler.opt.expectations import mismatches
from compiler.opt.source import SPLIT, Piece, split
from compiler.pipeline.parser import PipelineStep, nested_steps, steps
from compiler.pipeline.passes import run
from compiler.support import plugins, spans
from compiler.support.errors import InputError
from compiler.support.files import read, write
from compiler.support.text import printable


class Session:
    """A run of strata-opt: its options, its passes with their texts, and the seconds of each step."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.file = "<stdin>" if options.file == "-" else options.file
        self.steps = _steps(options)
        self.seconds: list[tuple[str, float]] = []

    def run(self) -> int:
        """Process the file, write the results, print the errors; return 1 after an error, else 0. An output file is not
        written after an error. With --verify-diagnostics the errors are the mismatches with the expected ones."""
        text = read(self.options.file)
        spans.remember(self.file, text)
        pieces = split(self.file, text) if self.options.split_input_file else [Piece(self.file, text, 0)]
        printed: list[str] = []
        failed = False
        for piece in pieces:
            diagnostics = self._process(piece, printed)
            wrong = mismatches(piece, diagnostics) if self.options.verify_diagnostics else diagnostics
            for diagnostic in wrong:
                print(printable(diagnostic.render()), file=sys.stderr)
            failed |= bool(wrong)
        self._write(f"{SPLIT}\n".join(printed), failed)
        if self.options.timing:
            _print_times(self.seconds)
        return int(failed)

    def _process(self, piece: Piece, printed: list[str]) -> list[Diagnostic]:
        """Parse a piece, run the passes, and append the result to `printed`; return the error in a list, or []."""
        ctx = universe.context()
        ctx.allow_unregistered = self.options.allow_unregistered_dialect
        running: PipelineStep | None = None
        try:
            with self._timed("parse"):
                module = Parser(ctx, piece.placed, self.file).parse_module()
            with self._timed("verify"):
                verify_module(module)
            for step in self.steps:
                running = step
                self._apply(step.module_pass, ctx, module)
            running = None
            with self._timed("print"):
                printed.append(self._text(module))
        except PROGRAM_ERRORS as error:
            self._trace(error)
            return [diagnose(error, piece.start, running)]
        return []

    def _apply(self, applied: ModulePass, ctx: Context, module: ModuleOp) -> None:
        if self.options.print_ir_before_all:
            _dump("Before", applied, self._mlir(module))
        with self._timed(applied.name):
            if universe.is_ours(applied):
                run(ctx, module, [applied], verify=True)
            else:
                self._run_foreign(applied, ctx, module)
        if self.options.print_ir_after_all:
            _dump("After", applied, self._mlir(module))

    def _run_foreign(self, foreign: ModulePass, ctx: Context, module: ModuleOp) -> None:
        """Run a pass of a plugin or of xDSL. Raises PluginError or InputError, respectively, for an exception other
        than PROGRAM_ERRORS."""
        try:
            run(ctx, module, [foreign], verify=True)
        except PROGRAM_ERRORS:
            raise
        except Exception as error:
            part = plugins.parts("pass").get(foreign.name)
            if part is not None and type(foreign) is part.value:
                raise part.failed(error) from error
            said = f"{type(error).__name__}: {error}".rstrip(": ")
            whose = universe.whose_pass(foreign.name)
            raise InputError(f"{whose} does not take this program ({said}; --debug prints the traceback)") from error

    def _trace(self, error: BaseException) -> None:
        """With --debug print the traceback of an error's cause, if it has one."""
        if self.options.debug and error.__cause__ is not None:
            traceback.print_exception(error.__cause__)

    def _mlir(self, module: ModuleOp) -> str:
        from xdsl.printer import Printer

        stream = StringIO()
        options = self.options
        printer = Printer(
            stream, print_generic_format=options.print_op_generic, print_debuginfo=options.print_debuginfo
        )
        printer.print_op(module)
        if self.options.print_op_generic:
            from compiler.dialects.dense import constants_in, trailer  # loads numpy

            stream.write(trailer(constants_in(module)))
        return stream.getvalue() + "\n"

    def _text(self, module: ModuleOp) -> str:
        """Return the module as text of the option --target. Raises InputError for LLVM IR and assembly of a module
        above the low level."""
        if self.options.target == "mlir":
            return self._mlir(module)
        from compiler.lowering.low_to_llvm import emit
        from compiler.pipeline.source import level_of
        from compiler.types.machines import host

        level, target = level_of(module), self.options.target
        if level != "low":
            op = next((op for op in module.walk() if op.name.startswith(f"{level}.")), module)
            said = f"the program is at the {level} level: with -p cpu it is lowered to what -t {target} prints"
            raise InputError(said).at(op)
        text = emit(module, host())
        if self.options.target == "llvm":
            return text
        from compiler.targets.cpu import compile_llvm

        return compile_llvm(text, host()).asm()

    def _write(self, text: str, failed: bool) -> None:
        name = self.options.output_file
        if name is None or name == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
        elif not failed:
            write(name, [text])

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds.append((name, time.perf_counter() - start))


def _steps(options: argparse.Namespace) -> list[PipelineStep]:
    if options.passes and options.pass_pipeline is not None:
        raise InputError("give -p or --pass-pipeline, not both")
    if options.pass_pipeline is not None:
        return nested_steps(options.pass_pipeline)
    return [step for text in options.passes for step in steps(text)]


def _dump(when: str, applied: ModulePass, text: str) -> None:
    print(f"// -----// IR Dump {when} {applied.name} //----- //\n{text}", end="", file=sys.stderr)


def _print_times(steps: list[tuple[str, float]]) -> None:
    total = sum(seconds for _, seconds in steps)
    print("   seconds   share  step", file=sys.stderr)
    for name, seconds in [*steps, ("total", total)]:
        print(f"  {seconds:8.4f}  {seconds / (total or 1):6.1%}  {name}", file=sys.stderr)
