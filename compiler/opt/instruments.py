"""Instruments: output before, after and about the passes of a run."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.support.files import write

ModuleText = Callable[[ModuleOp], str]


class Instrument:
    """An observer of the passes of a run, with methods that do nothing and that subclasses replace."""

    def before(self, applied: ModulePass, module: ModuleOp) -> None:
        """Called before a pass."""

    def after(self, applied: ModulePass, module: ModuleOp) -> None:
        """Called after a pass that has not failed."""

    def failed(self, applied: ModulePass, module: ModuleOp) -> None:
        """Called after a pass that has failed, with the module that it leaves."""

    def finish(self) -> None:
        """Called at the end of the run."""


class Dumps(Instrument):
    """The module before and after passes, to stderr or to the files of a folder."""

    def __init__(self, options: argparse.Namespace, text: ModuleText) -> None:
        self._options, self._text = options, text
        self._names_before, self._names_after = _names(options.print_ir_before), _names(options.print_ir_after)
        self._after_any = options.print_ir_after_all or bool(self._names_after)
        self._previous = ""
        self._count = 0

    def before(self, applied: ModulePass, module: ModuleOp) -> None:
        """Print the module if the options select it, and store its text if changes are printed."""
        if self._options.print_ir_before_all or applied.name in self._names_before:
            self._dump("Before", applied, self._text(module))
        if self._options.print_ir_after_change:
            self._previous = self._text(module)

    def after(self, applied: ModulePass, module: ModuleOp) -> None:
        """Print the module after a pass that the options select. With `--print-ir-after-change`, only if the pass
        changed it: the whole module if passes are selected too, else the changed lines after any pass."""
        self._count += 1
        selected = self._options.print_ir_after_all or applied.name in self._names_after
        if self._options.print_ir_after_change:
            text = self._text(module)
            if text != self._previous and (selected or not self._after_any):
                self._dump("After", applied, text if self._after_any else _difference(self._previous, text))
        elif selected:
            self._dump("After", applied, self._text(module))

    def failed(self, applied: ModulePass, module: ModuleOp) -> None:
        """Print the module that a failed pass leaves."""
        if self._options.print_ir_after_failure or self._options.print_ir_after_all:
            self._dump("After", applied, self._text(module), " Failed")

    def _dump(self, when: str, applied: ModulePass, text: str, failed: str = "") -> None:
        dump = f"// -----// IR Dump {when} {applied.name}{failed} //----- //\n{text}"
        folder = self._options.print_ir_tree_dir
        if folder is None:
            print(dump, end="", file=sys.stderr)
            return
        path = Path(folder, "builtin_module_no-symbol-name", f"{self._count - (when == 'After')}_{applied.name}.mlir")
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, [dump])


def _names(values: Iterable[str]) -> set[str]:
    return {name.strip() for value in values for name in value.split(",")}


def _difference(before: str, after: str) -> str:
    """Return the lines that differ, each marked by - or +, with two lines around them."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=2, lineterm=""))
    return "".join(f"{line}\n" for line in lines[2:])


@dataclass
class Times(Instrument):
    """The seconds of each step, also of those that are no passes."""

    options: argparse.Namespace
    steps: list[tuple[str, float]] = field(default_factory=list)
    _start: float = 0.0

    def before(self, applied: ModulePass, module: ModuleOp) -> None:
        """Start the clock."""
        self._start = perf_counter()

    def after(self, applied: ModulePass, module: ModuleOp) -> None:
        """Record the time of a pass."""
        self.steps.append((applied.name, perf_counter() - self._start))

    def finish(self) -> None:
        """Print the times and their total to standard error, in order or longest first, as a table or JSON; nothing
        without `--timing`."""
        if not self.options.timing:
            return
        steps = list(self.steps)
        if self.options.timing_display == "list":
            steps.sort(key=lambda step: -step[1])
        total = sum(seconds for _, seconds in steps)
        rows = [(name, seconds, seconds / (total or 1)) for name, seconds in [*steps, ("total", total)]]
        if self.options.output_format == "json":
            listed = [{"wall": {"duration": s, "percentage": 100 * share}, "name": name} for name, s, share in rows]
            print(json.dumps(listed, indent=1), file=sys.stderr)
            return
        print("   seconds   share  step", file=sys.stderr)
        for name, seconds, share in rows:
            print(f"  {seconds:8.4f}  {share:6.1%}  {name}", file=sys.stderr)


@dataclass
class Statistics(Instrument):
    """The ops that each pass adds and removes. changes: a pass, and the counts of added and of removed ops by name."""

    options: argparse.Namespace
    changes: list[tuple[str, Counter[str], Counter[str]]] = field(default_factory=list)
    _ops: Counter[str] = field(default_factory=Counter)

    def before(self, applied: ModulePass, module: ModuleOp) -> None:
        """Count the ops before a pass."""
        self._ops = _ops(module)

    def after(self, applied: ModulePass, module: ModuleOp) -> None:
        """Count the ops after a pass."""
        ops = _ops(module)
        self.changes.append((applied.name, ops - self._ops, self._ops - ops))

    def finish(self) -> None:
        """Print the counts of each pass to standard error, as lines or JSON, in order or by name."""
        rows = sorted(self.changes, key=lambda row: row[0]) if self._by_name else self.changes
        if self.options.output_format == "json":
            listed = [{"name": name, "added": dict(added), "removed": dict(gone)} for name, added, gone in rows]
            print(json.dumps(listed, indent=1), file=sys.stderr)
            return
        for name, added, removed in rows:
            print(name, file=sys.stderr)
            for verb, ops in (("added", added), ("removed", removed)):
                for op, count in sorted(ops.items()):
                    print(f"  (S) {count:6} {op} {verb}", file=sys.stderr)

    @property
    def _by_name(self) -> bool:
        return bool(self.options.pass_statistics_display == "list")


def _ops(module: ModuleOp) -> Counter[str]:
    return Counter(op.name for op in module.walk())
