"""A run of strata-opt: parse, verify, transform and print each piece of the file."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler import universe
from compiler.dialects.dominance import verify_module
from compiler.dialects.parser import Parser
from compiler.opt.actions import recorded
from compiler.opt.bytecode import MAGIC, from_text, to_text, write_bytes
from compiler.opt.diagnostics import PROGRAM_ERRORS, Diagnostic, diagnose
from compiler.opt.expectations import mismatches
from compiler.opt.instruments import Dumps, Instrument, Statistics, Times
from compiler.opt.printing import module_text
from compiler.opt.reproducers import pipeline_text, stated_pipeline, write_reproducer
from compiler.opt.source import Piece, split
from compiler.pipeline.parser import PipelineStep, nested_steps, steps
from compiler.pipeline.passes import run
from compiler.support import plugins, spans
from compiler.support.actions import perform
from compiler.support.errors import InputError
from compiler.support.files import read_bytes, text_of, write
from compiler.support.text import printable


class Session:
    """A run of strata-opt: its options, its passes with their texts, and its instruments. Raises InputError for a file
    that cannot be read and a pipeline that is not valid."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        if options.emit_bytecode:
            options.print_op_generic = options.print_debuginfo = True
        self.file = "<stdin>" if options.file == "-" else options.file
        self.text = _read(options.file)
        self.steps = self._stated_steps()
        self.times = Times(options)
        self.instruments: list[Instrument] = [Dumps(options, self._mlir), self.times]
        if options.pass_statistics:
            self.instruments.append(Statistics(options))

    def run(self) -> int:
        """Process the file, write the results, print the errors; return 1 after an error, else 0. An output file is not
        written after an error. With --verify-diagnostics the errors are the mismatches with the expected ones."""
        spans.remember(self.file, self.text)
        marker = self.options.split_input_file
        pieces = split(self.file, self.text, marker) if marker else [Piece(self.file, self.text, 0)]
        printed: list[str] = []
        failed = False
        with recorded(self.options):
            for piece in pieces:
                diagnostics = self._process(piece, printed)
                kind = self.options.verify_diagnostics
                for diagnostic in mismatches(piece, diagnostics, kind == "all") if kind else diagnostics:
                    print(
                        printable(diagnostic.render(notes=not self.options.disable_diagnostic_notes)), file=sys.stderr
                    )
                    failed = True
        self._write(printed, failed)
        for instrument in self.instruments:
            instrument.finish()
        return int(failed)

    def _stated_steps(self) -> list[PipelineStep]:
        """The passes of the options, or of the file with --run-reproducer. Raises InputError for -p together with
        --pass-pipeline, and for an invalid pipeline."""
        options = self.options
        if options.passes and options.pass_pipeline is not None:
            raise InputError("give -p or --pass-pipeline, not both")
        if options.run_reproducer:
            return nested_steps(stated_pipeline(self.text, self.file))
        if options.pass_pipeline is not None:
            return nested_steps(options.pass_pipeline)
        return [step for text in options.passes for step in steps(text)]

    def _process(self, piece: Piece, printed: list[str]) -> list[Diagnostic]:
        """Parse a piece, run the passes, and append the result to `printed`; return one of PROGRAM_ERRORS as a
        diagnostic in a list, or []; other exceptions pass through. After a failed pass a reproducer is written if one
        is requested."""
        ctx = universe.context()
        ctx.allow_unregistered = self.options.allow_unregistered_dialect
        running: PipelineStep | None = None
        try:
            module = self._module(ctx, piece)
            passes = [step.module_pass for step in self.steps]
            if self.options.dump_pass_pipeline:
                print(pipeline_text(passes), file=sys.stderr)
            if self.options.generate_reproducer:
                self._reproduce(self.options.generate_reproducer, self._mlir(module), passes)
            crash = self.options.pass_pipeline_crash_reproducer
            before = self._mlir(module) if crash else ""
            for step in self.steps:
                running = step
                if crash and self.options.pass_pipeline_local_reproducer:
                    before, passes = self._mlir(module), [step.module_pass]
                try:
                    self._apply(step.module_pass, ctx, module)
                except Exception:
                    if crash:
                        self._reproduce(crash, before, passes)
                        print(f"strata-opt: note: a reproducer was written to {crash}", file=sys.stderr)
                    raise
            running = None
            with self._timed("print"):
                printed.append(self._text(module))
        except PROGRAM_ERRORS as error:
            self._trace(error)
            return [diagnose(error, piece.start, running, self.options.print_op_on_diagnostic)]
        return []

    def _module(self, ctx: Context, piece: Piece) -> ModuleOp:
        """Parse and verify a piece; with --verify-roundtrip raise InputError if its text, parsed again, prints
        otherwise."""
        with self._timed("parse"):
            module = Parser(ctx, piece.placed, self.file).parse_module(not self.options.no_implicit_module)
        if not self.options.very_unsafe_disable_verifier_on_parsing:
            with self._timed("verify"):
                verify_module(module)
        if self.options.verify_roundtrip:
            text = self._mlir(module)
            again = self._mlir(Parser(ctx, text, "<printed>").parse_module())
            if again != text:
                lines = zip(text.splitlines(), again.splitlines(), strict=False)
                fault = next((pair for pair in lines if pair[0] != pair[1]), ("", ""))
                raise InputError(
                    f"the program changes when it is printed and parsed: '{fault[0]}' is then '{fault[1]}'"
                )
        return module

    def _reproduce(self, file: str, module: str, passes: list[ModulePass]) -> None:
        write_reproducer(file, module, passes, self.options.verify_each)

    def _apply(self, applied: ModulePass, ctx: Context, module: ModuleOp) -> None:
        if not perform("pass", applied.name, applied.pipeline_pass_spec(), optional=True):
            return
        for instrument in self.instruments:
            instrument.before(applied, module)
        try:
            if universe.is_ours(applied):
                run(ctx, module, [applied], verify=self.options.verify_each)
            else:
                self._run_foreign(applied, ctx, module)
        except PROGRAM_ERRORS:
            for instrument in self.instruments:
                instrument.failed(applied, module)
            raise
        for instrument in self.instruments:
            instrument.after(applied, module)

    def _run_foreign(self, foreign: ModulePass, ctx: Context, module: ModuleOp) -> None:
        """Run a pass of a plugin or of xDSL. Raises PluginError or InputError, respectively, for an exception other
        than PROGRAM_ERRORS."""
        try:
            run(ctx, module, [foreign], verify=self.options.verify_each)
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
        return module_text(module, self.options)

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

    def _write(self, printed: list[str], failed: bool) -> None:
        """Write the results, the pieces between markers, as text or bytecode; no file if `failed`."""
        name, text = self.options.output_file, f"{self.options.output_split_marker}\n".join(printed)
        if self.options.emit_bytecode and not failed:
            write_bytes(name, from_text(text))
        elif name is None or name == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
        elif not failed:
            write(name, [text])

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.times.steps.append((name, time.perf_counter() - start))


def _read(file: str) -> str:
    """The text of a file, converted from bytecode if it is such. Raises InputError for an unreadable file."""
    content = read_bytes(file)
    return to_text(content, file) if content.startswith(MAGIC) else text_of(content, file)
