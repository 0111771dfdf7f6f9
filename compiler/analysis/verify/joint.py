"""Joint combiners: the proof for each target alone is valid only while all targets are in step.

The dataflow follows each target of a joint reduction by itself. That is sound if, whenever one target is updated, all
targets hold the same contributions and gain the same one: then the finished targets are parts of one combination. If
the content of one target is unknown, the dataflow drops all targets.
"""

from __future__ import annotations

from functools import partial, reduce

import islpy as isl

from compiler.analysis.sets import union_map, union_set
from compiler.analysis.statements import Key, Statement
from compiler.analysis.verify.content import Content, Found, Refuted, Unknown
from compiler.analysis.verify.flow import Flow
from compiler.program.combiner import Joint


def is_joint(statement: Statement) -> bool:
    """Whether a statement updates several targets by one combiner."""
    combiners = statement.block.combiners
    return not statement.is_init and bool(combiners) and isinstance(combiners[0], Joint)


def check_joint(flow: Flow, key: Key) -> None:
    """Raise Refuted or Unknown unless the targets of a joint update have equal contributions at each instance."""
    uses = flow.targets(key)
    before = partial(flow.before, key)
    _in_step(flow, key, [flow.of_cells(use.buffer, flow.cell(key, use), before) for use in uses], "holds")
    if flow.claimed(key, 0) is None:
        _in_step(flow, key, [flow.added(key, use) for use in uses], "gains")


def _in_step(flow: Flow, key: Key, contents: list[Content], verb: str) -> None:
    """Raise Refuted or Unknown unless the contents of all targets, in order, are the same contributions. `verb`: for
    the message."""
    # At S[k=3], target 0 holds S[k=0..2] and target 1 S[k=0..1]: the difference { S[3] -> K[2] } refutes it.
    block = flow.statements[key].block
    contributions = [_part(flow, key, content, number) for number, content in enumerate(contents)]
    empty = [_empty(flow, key, content, number) for number, content in enumerate(contents)]
    unknown = reduce(isl.UnionSet.union, (content.unknown for content in contents))
    for number in range(len(contents)):
        names = f"'{block.writes[0].buffer}' and '{block.writes[number].buffer}'"
        differing = (
            _difference(contributions[0], contributions[number]).domain().union(_difference(empty[0], empty[number]))
        )
        if not differing.is_empty() and differing.subtract(unknown).is_empty():
            raise Unknown(f"whether {names} hold the same contributions could not be followed")
        if not differing.is_empty():
            where = flow.sample(differing, key)
            raise Refuted(f"at {where}, one of {names} {verb} contributions that the other does not")


def _part(flow: Flow, key: Key, content: Content, number: int) -> isl.UnionMap:
    """The map from instances to the contributions of target `number`, in the space of the origin's first target. Raises
    Unknown if `content` has contributions to a buffer that is no result of the combiner."""
    # Target 1 of an argmax holds { S[k] -> K1[k'] : k' < k }: { S[k] -> K0[k'] : k' < k }.
    contributions = union_map()
    for table, finished in ((content.partial, False), (content.final, True)):
        for name, points in table.items():
            equation = flow.equations.get(name)
            if equation is None or equation.combiner != flow.statements[key].block.combiners[number]:
                raise Unknown(f"block '{key[0]}' combines '{name}', which is not a result of its combiner")
            mine = points.apply_range(flow.to_points(name)) if finished else points
            axes = ", ".join(f"i{n}" for n in range(len(equation.block.axes)))
            first = flow.points_space(equation.block.writes[0].buffer)
            rename = union_map(f"{flow.points_space(name)}[{axes}] -> {first}[{axes}]")
            contributions = contributions.union(mine.apply_range(rename))
    return contributions


def _empty(flow: Flow, key: Key, content: Content, number: int) -> isl.UnionSet:
    """The instances at which `content`, the content of target `number` before the update or the value added to it, is
    the identity of its combiner."""
    combiner = flow.statements[key].block.combiners[number]
    assert isinstance(combiner, Joint)
    return content.constant.get(combiner.identities[number], union_set())


def _difference(left: Found, right: Found) -> Found:
    return left.subtract(right).union(right.subtract(left))
