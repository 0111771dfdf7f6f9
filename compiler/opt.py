"""strata-opt: read MLIR, run passes, print MLIR (or LLVM IR, or assembly); every error is a sentence and a place.

Over xDSL's parser, pass options and printer; its driver ends in tracebacks and scans entry points at each start.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from compiler import pipeline, universe
from compiler.dialects.dominance import Refusal, last_sentence, verify_module
from compiler.errors import InputError, StrataError

_SPLIT = "// -----"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool on command-line arguments; 0, or 1 after an error that was said on stderr."""
    options = _arguments().parse_args(sys.argv[1:] if argv is None else list(argv))
    try:
        if options.list_passes:
            _list_passes()
            return 0
        return _Session(options).run()
    except StrataError as error:
        return _fail(str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _fail(sentence: str) -> int:
    print(f"strata-opt: error: {sentence}", file=sys.stderr)
    return 1


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="strata-opt", description="Run passes over MLIR files.")
    add = parser.add_argument
    add("file", nargs="?", default="-", help="the MLIR file; - is standard input")
    add("-p", "--passes", default="", help="passes and pipelines: 'a{x=1},b'")
    add("--pass-pipeline", default=None, help="the same as mlir-opt writes it: 'builtin.module(a,b)'")
    add("--list-passes", action="store_true", help="list passes and pipelines, one line each")
    add("-o", "--output-file", default=None, help="where to write instead of standard output")
    add("-t", "--target", choices=("mlir", "llvm", "asm"), default="mlir", help="what to print")
    add("--split-input-file", action="store_true", help=f"treat pieces between '{_SPLIT}' apart")
    add("--verify-diagnostics", action="store_true", help="expect the errors that comments announce")
    add("--allow-unregistered-dialect", action="store_true", help="accept ops of unknown dialects")
    add("--print-op-generic", action="store_true", help="print ops in generic form")
    add("--print-ir-before-all", action="store_true", help="print the module before each pass, to stderr")
    add("--print-ir-after-all", action="store_true", help="print the module after each pass, to stderr")
    add("--timing", action="store_true", help="print the time of each pass, to stderr")
    return parser


def _list_passes() -> None:
    print("passes:")
    for name, (_, line) in universe.PASSES.items():
        print(f"  {name:24} {line}")
    print("pipelines:")
    for name, passes in pipeline.PIPELINES.items():
        print(f"  {name:24} {passes}")
    print("xDSL's passes (such as canonicalize and cse) are known by their names as well.")


class _Session:
    """One run over one file."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.name = "<stdin>" if options.file == "-" else options.file
        text = options.pass_pipeline
        self.passes = pipeline.parse_passes(options.passes) if options.passes else []
        self.passes += pipeline.parse_nested(text) if text is not None else []
        self.times: list[tuple[str, float]] = []

    def run(self) -> int:
        text = read(self.options.file)
        pieces = _split(text) if self.options.split_input_file else [(0, text)]
        printed: list[str] = []
        failed = False
        for offset, piece in pieces:
            found = self._piece(piece, offset, printed)
            if self.options.verify_diagnostics:
                failed |= _unexpected(self.name, piece, offset, found)
            else:
                for line, sentence in found:
                    print(f"{self.name}:{line}: error: {sentence}", file=sys.stderr)
                failed |= bool(found)
        self._write(f"{_SPLIT}\n".join(printed))
        if self.options.timing:
            _print_times(self.times)
        return int(failed)

    def _piece(self, piece: str, offset: int, printed: list[str]) -> list[tuple[str, str]]:
        """Process one piece; the errors it met, each with its place (line, or line:column)."""
        ctx = universe.context()
        ctx.allow_unregistered = self.options.allow_unregistered_dialect
        parser: _Located | None = None
        try:
            parser = _Located(ctx, piece, self.name)
            module = parser.parse_module()
            verify_module(module)
            self._passes(ctx, module)
            printed.append(self._print(module))
        except ParseError as error:
            return [(_place(error, offset), last_sentence(error.msg))]
        except VerifyException as error:
            line = parser.line(error.op) if parser is not None and isinstance(error, Refusal) else 1
            return [(str(offset + line), last_sentence(str(error)))]
        except StrataError as error:
            return [(str(offset + 1), str(error))]
        except RecursionError:
            return [(str(offset + 1), "the input is nested too deeply")]
        return []

    def _passes(self, ctx: Context, module: ModuleOp) -> None:
        for item in self.passes:
            if self.options.print_ir_before_all:
                _dump("Before", item.name, module)
            start = time.perf_counter()
            pipeline.run(ctx, module, [item])
            self.times.append((item.name, time.perf_counter() - start))
            if self.options.print_ir_after_all:
                _dump("After", item.name, module)

    def _print(self, module: ModuleOp) -> str:
        if self.options.target == "mlir":
            from io import StringIO

            from xdsl.printer import Printer

            stream = StringIO()
            Printer(stream, print_generic_format=self.options.print_op_generic).print_op(module)
            return stream.getvalue() + "\n"
        from compiler.lowering.low_to_llvm import emit
        from compiler.targets.machine import host

        text = emit(module, host())
        if self.options.target == "asm":
            from compiler.targets.cpu import compile_llvm

            return compile_llvm(text, host()).asm()
        return text

    def _write(self, text: str) -> None:
        if self.options.output_file is None:
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        try:
            with open(self.options.output_file, "w") as file:
                file.write(text)
        except OSError as error:
            raise InputError(f"{self.options.output_file} cannot be written: {error.strerror}") from error


def read(name: str) -> str:
    """The text of a file, or of standard input for `-`. Raises InputError where it cannot be read."""
    try:
        if name == "-":
            return sys.stdin.read()
        with open(name, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not text (byte {error.start} is not UTF-8)") from error


def _split(text: str) -> list[tuple[int, str]]:
    pieces, offset = [], 0
    for piece in text.split(_SPLIT):
        pieces.append((offset, piece))
        offset += piece.count("\n")
    return pieces


def _place(error: ParseError, offset: int) -> str:
    text = str(error.span.input.content)
    before = text[: error.span.start]
    return f"{offset + before.count(chr(10)) + 1}:{error.span.start - before.rfind(chr(10))}"


class _Located(Parser):
    """A parser that remembers where each op stands."""

    def __init__(self, ctx: Context, text: str, name: str) -> None:
        super().__init__(ctx, text, name)
        self.text = text
        self.starts: dict[Operation, int] = {}

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        op = super().parse_operation()
        self.starts[op] = start
        return op

    def line(self, op: Operation | None) -> int:
        """The line of an op, or of the closest op around it that was parsed."""
        while op is not None and op not in self.starts:
            op = op.parent_op()
        return 1 if op is None else self.text[: self.starts[op]].count("\n") + 1


def _unexpected(name: str, piece: str, offset: int, found: list[tuple[str, str]]) -> bool:
    """Compare errors with `expected-error {{...}}` comments; say what differs."""
    import re

    expected = []
    for number, line in enumerate(piece.splitlines(), 1):
        for shift, text in re.findall(r"expected-error\s*(?:@([+-]\d+|below|above))?\s*\{\{(.*?)\}\}", line):
            step = {"": 0, "below": 1, "above": -1}.get(shift)
            expected.append((offset + number + (int(shift) if step is None else step), text))
    wrong = False
    for place, sentence in found:
        match = next((e for e in expected if e[1] in sentence and str(e[0]) == place.split(":")[0]), None)
        if match is None:
            print(f"{name}:{place}: error: unexpected error: {sentence}", file=sys.stderr)
            wrong = True
        else:
            expected.remove(match)
    for number, text in expected:
        print(f"{name}:{number}: error: expected error was not produced: {text}", file=sys.stderr)
        wrong = True
    return wrong


def _dump(when: str, name: str, module: ModuleOp) -> None:
    print(f"// -----// IR Dump {when} {name} //----- //\n{module}", file=sys.stderr)


def _print_times(times: list[tuple[str, float]]) -> None:
    total = sum(seconds for _, seconds in times)
    for name, seconds in [*times, ("total", total)]:
        print(f"{seconds * 1e3:9.2f} ms  {name}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
