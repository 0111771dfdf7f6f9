"""The steps of a script, one by one: the loops after each, its queries to isl, and the refusal that ends it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from xdsl.ir import Operation

from compiler.affine import linear as lin
from compiler.analysis.legal import Violation
from compiler.analysis.statements import Statement
from compiler.schedule import Schedule
from compiler.schedule.script import Script
from compiler.support import spans
from compiler.support.errors import ScheduleError
from compiler.view.nests import tree
from compiler.view.queries import Query, recorded
from compiler.view.records import Json, ScriptStep, StepRefusal, WitnessInstance

MAX_QUERIES = 30
"""The number of queries of a step that are listed."""
MAX_CHARACTERS = 1500
"""The number of characters of a query that are shown."""


def stepped(schedule: Schedule, script: Script) -> tuple[list[list[Json]], list[ScriptStep]]:
    """Apply a script to a schedule up to the first refusal; return the different loops, and the steps. Raises
    ScheduleError for what is no script."""
    nests, steps = [tree(schedule.program.body)], list[ScriptStep]()
    applied = schedule.steps(script)
    while True:
        program, start = schedule.program, perf_counter()
        try:
            with recorded() as queries:
                op = next(applied, None)
        except ScheduleError as error:
            if not isinstance(error.op, Operation):
                raise
            steps.append(replace(_step(error.op, len(nests) - 1, start, queries), refusal=refusal(error)))
            break
        if op is None:
            break
        if schedule.program is not program:
            nests.append(tree(schedule.program.body))
        steps.append(_step(op, len(nests) - 1, start, queries))
    return nests, steps


def _step(op: Operation, nest: int, start: float, queries: Sequence[Query]) -> ScriptStep:
    return ScriptStep(str(op), nest, perf_counter() - start, *listed(queries))


def listed(queries: Sequence[Query]) -> tuple[list[Query], int]:
    """The queries that a page lists, their texts cut to MAX_CHARACTERS, and the number of the others."""
    shown = [
        replace(query, text=f"{query.text[:MAX_CHARACTERS]} ..." if len(query.text) > MAX_CHARACTERS else query.text)
        for query in queries[:MAX_QUERIES]
    ]
    return shown, len(queries) - len(shown)


def refusal(error: ScheduleError) -> StepRefusal:
    """The refusal of a step, with the instances that witness it if there are some."""
    violation, span = error.reason, spans.of_error(error)
    while isinstance(violation, ScheduleError):
        violation = violation.reason
    if not isinstance(violation, Violation) or violation.points is None:
        return StepRefusal(str(error), span=span)
    triples = zip((violation.first, violation.second), violation.uses, violation.points, strict=True)
    instances = [
        WitnessInstance(statement.instance(point), _axes(statement, point), violation.verb(statement, use))
        for statement, use, point in triples
    ]
    return StepRefusal(str(error), instances, violation.element, violation.loop or "", span)


def _axes(statement: Statement, point: dict[int, int]) -> dict[str, int]:
    """The values of a block's axes at the values of its loops; of an init those of its spatial axes."""
    block = statement.block
    axes = block.axes[: block.spatial] if statement.is_init else block.axes
    return {axis.label: lin.evaluate(form, point) for axis, form in zip(axes, block.bindings, strict=False)}
