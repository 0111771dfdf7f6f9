"""The actions of a run: their log, their trace, and the counters that omit them."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter

from compiler.support.actions import REMARKS, Action, watched
from compiler.support.errors import InputError
from compiler.support.files import write

_COUNTER = re.compile(r"([\w-]+)-(skip|count)=(\d+)")


class Counters:
    """Counters of the executions of each action, by which executions are performed or omitted.

    text: `NAME-skip=N,NAME-count=M`: of the actions NAME the first N (default 0) are omitted, the next M performed, and
    later ones omitted; without M all later ones are performed. Only optional actions can be omitted: passes and laws.
    Raises InputError for another text.
    """

    def __init__(self, text: str) -> None:
        self._skipped: dict[str, int] = {}
        self._counted: dict[str, int] = {}
        self.met: Counter[str] = Counter()
        for part in filter(None, text.split(",")):
            match = _COUNTER.fullmatch(part.strip())
            if match is None:
                raise InputError(f"argument --debug-counter: '{part}' is not NAME-skip=N or NAME-count=N")
            (self._skipped if match[2] == "skip" else self._counted)[match[1]] = int(match[3])

    def __call__(self, action: Action) -> bool:
        """Count an action; return whether it is performed."""
        position = self.met[action.name]
        self.met[action.name] += 1
        skipped = self._skipped.get(action.name, 0)
        last = skipped + self._counted[action.name] if action.name in self._counted else position + 1
        return skipped <= position < last

    def unmet(self) -> list[str]:
        """The names with a limit whose action was never met."""
        return sorted((self._skipped.keys() | self._counted.keys()) - self.met.keys())

    def show(self) -> None:
        """Print each counter, as mlir-opt does."""
        for name, count in sorted(self.met.items()):
            limit = self._counted.get(name, -1)
            print(f"{name:32}: {{{count},{self._skipped.get(name, 0)},{limit}}}", file=sys.stderr)


class Remarks:
    """The remarks whose pass matches the regular expression of their category, to stderr or as YAML to a file. Raises
    InputError for an invalid expression."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._documents: list[str] = []
        self.filters: dict[str, re.Pattern[str]] = {}
        for category in REMARKS:
            option = f"remarks_filter_{'analyse' if category == 'analysis' else category}"
            expression = getattr(options, option) or options.remarks_filter
            if expression is not None:
                try:
                    self.filters[category] = re.compile(expression)
                except re.error as error:
                    raise InputError(f"argument --{option.replace('_', '-')}: '{expression}': {error}") from error

    def __call__(self, action: Action) -> bool:
        """Print a remark at once, or record it for the YAML file; other actions are ignored, and the result is True."""
        expression = self.filters.get(action.category)
        if expression is None or not expression.search(action.name):
            return True
        sentence = f"[{action.category.capitalize()}] {action.name} | {action.subject}"
        if self._options.remark_format == "yaml":
            lines = [f"--- !{action.category.capitalize()}", f"Pass: {action.name}"]
            if action.span is not None:
                file, line, column = json.dumps(action.span.source), action.span.line, action.span.column
                lines.append(f"DebugLoc: {{ File: {file}, Line: {line}, Column: {column} }}")
            self._documents.append("\n".join([*lines, f"Message: {json.dumps(action.subject)}", "...", ""]))
        elif action.span is not None:
            print(action.span.head("remark", sentence), file=sys.stderr)
        else:
            print(f"remark: {sentence}", file=sys.stderr)
        return True

    def finish(self) -> None:
        """Write the file of --remark-format yaml."""
        if self._options.remark_format == "yaml":
            write(self._options.remarks_output_file, self._documents)


@contextmanager
def recorded(options: argparse.Namespace) -> Iterator[None]:
    """Log, trace and count the actions in the context by a run's options; write the files at its end, unless it raises.
    Raises InputError for invalid counters or expressions of remarks."""
    counters, lines, events = Counters(options.debug_counter or ""), list[str](), list[dict[str, object]]()
    start = perf_counter()

    def log(action: Action) -> bool:
        lines.append(f"{action}\n")
        return True

    def trace(action: Action) -> bool:
        microseconds = round(1e6 * (perf_counter() - start), 1)
        event = {"name": action.name, "cat": action.category, "ph": "i", "ts": microseconds, "pid": 0, "tid": 0}
        events.append({**event, "args": {"subject": action.subject}})
        return True

    def debug(action: Action) -> bool:
        if {action.category, action.name} & wanted:
            print(action, file=sys.stderr)
        return True

    wanted, remarks = set((options.debug_only or "").split(",")), Remarks(options)
    with ExitStack() as watchers:
        if options.debug_counter or options.print_debug_counter:
            watchers.enter_context(watched(counters))
        for stated, watcher in (
            (options.log_actions_to, log),
            (options.profile_actions_to, trace),
            (options.debug_only, debug),
            (remarks.filters, remarks),
        ):
            if stated:
                watchers.enter_context(watched(watcher))
        yield
    if options.log_actions_to:
        _write(options.log_actions_to, "".join(lines))
    remarks.finish()
    if options.profile_actions_to:
        _write(options.profile_actions_to, json.dumps(events))
    if options.print_debug_counter:
        counters.show()
    for name in counters.unmet():
        print(f"strata-opt: warning: the counter '{name}' met no action", file=sys.stderr)


def _write(name: str, text: str) -> None:
    if name == "-":
        print(text, end="", file=sys.stderr)
    else:
        write(name, [text])
