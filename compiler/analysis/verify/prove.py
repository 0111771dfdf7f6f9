"""`verify_schedule`: proved, refuted, or undecided."""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.analysis.legal import legal
from compiler.analysis.sets import Undecided, context, limited
from compiler.analysis.statements import Key, Statement
from compiler.analysis.verify.content import Refuted, Unknown
from compiler.analysis.verify.equations import NotFunctional, equations
from compiler.analysis.verify.flow import END, Flow
from compiler.analysis.verify.joint import check_joint
from compiler.analysis.verify.unflatten import unflattened, unfused
from compiler.analysis.verify.values import Comparison, Wanted
from compiler.program.tree import Buffer, Program


@dataclass(frozen=True)
class Verdict:
    """The answer: `proved`, `refuted` or `undecided`, and why."""

    answer: str
    reason: str = ""

    def __bool__(self) -> bool:
        return self.answer == "proved"

    def __str__(self) -> str:
        return f"{self.answer}: {self.reason}" if self.reason else self.answer


def verify_schedule(scheduled: Program, original: Program) -> Verdict:
    """Whether a scheduled program computes what its original does.

    Every computing block is compared with the equation of the original that its `origin` names, at the index it
    names; every read must find the right value by exact dataflow; between an init and its reader each contribution
    to a reduction occurs once and none is missing; copies carry what they copy; the results hold every element;
    no access leaves its buffer; and no concurrent loop has iterations that depend on each other. The origin is a
    hint: a wrong one is refuted.
    """
    try:
        _verify(scheduled, original)
    except Undecided:
        return Verdict("undecided", "the budget of operations is exhausted")
    except (NotFunctional, Unknown) as error:
        return Verdict("undecided", str(error))
    except Refuted as error:
        return Verdict("refuted", str(error))
    return Verdict("proved")


def _verify(scheduled: Program, original: Program) -> None:
    """Raise Refuted, Unknown, NotFunctional or Undecided, or return; the budget is one for each block and result."""
    known = equations(original)
    if [(b.shape, b.element) for b in scheduled.arguments] != [(b.shape, b.element) for b in original.arguments]:
        raise Refuted("the arguments differ")
    if scheduled.outputs != original.outputs:
        raise Refuted(f"it has {scheduled.outputs} outputs, the original {original.outputs}")
    _require_same_names(scheduled, original)
    race = legal(scheduled)
    flow = Flow(unflattened(unfused(scheduled)), original, known)
    limited(lambda: _check_bounds(flow))
    if race is not None:
        raise Refuted(str(race))
    for key, statement in flow.statements.items():
        origin = flow.origin(key)
        if not statement.is_init and origin is not None:
            limited(lambda key=key, origin=origin: _check_block(flow, key, origin))
    for key in flow.statements:
        limited(lambda key=key: check_joint(flow, key))
    for buffer in original.arguments[len(original.arguments) - original.outputs :]:
        limited(lambda buffer=buffer: _check_result(flow, buffer))


def _check_block(flow: Flow, key: Key, origin: tuple[str, tuple[Linear, ...]]) -> None:
    """A block computes what its origin says, at the index that it says."""
    block, source = flow.statements[key].block, flow.blocks[origin[0]]
    if (block.table is None) != (source.table is None):
        raise Refuted(f"one of block '{block.label}' and its origin '{source.label}' is a gather")
    if block.combiners != source.combiners or len(block.body) != len(source.body):
        raise Refuted(f"block '{block.label}' does not combine as its origin '{source.label}' does")
    comparison = Comparison(flow, key, flow.equations)
    inside = [f"0 <= {lin.to_isl(f, flow.names)} < {a.size}" for f, a in zip(origin[1], source.axes, strict=True)]
    text = " and ".join([flow.domain_text(key), *inside])
    domain = isl.UnionSet(f"{{ {flow.space(key)} : {text} }}", context())
    for wanted, actual in zip(source.body, block.body, strict=True):
        comparison.check(Wanted(source, wanted, origin[1]), actual, domain)


def _require_same_names(scheduled: Program, original: Program) -> None:
    """Arguments correspond by position; here both must have the same names."""
    for one, two in zip(scheduled.arguments, original.arguments, strict=True):
        if one.name != two.name:
            raise Unknown(f"argument '{one.name}' has another name in the original")


def _check_bounds(flow: Flow) -> None:
    program = flow.program
    for key, statement in flow.statements.items():
        for use in statement.uses:
            if not _lives(program, use.buffer, statement):
                raise Refuted(f"block '{key[0]}' uses '{use.buffer}' where it does not live")
            for d, (form, size) in enumerate(zip(use.index, program.buffers[use.buffer].shape, strict=True)):
                if form is None:
                    continue  # a gather's index value, which lowering clamps to the table
                low, high = lin.bounds(form, program.ranges)
                if low >= 0 and high < size:
                    continue
                index = lin.to_isl(form, flow.names)
                text = f"{flow.domain_text(key, use)} and ({index} < 0 or {index} >= {size})"
                outside = isl.UnionSet(f"{{ {flow.space(key)} : {text} }}", context())
                if not outside.is_empty():
                    where = flow.sample(outside, key)
                    raise Refuted(f"{where} accesses '{use.buffer}' outside its shape in dimension {d}")


def _lives(program: Program, buffer: str, statement: Statement) -> bool:
    """Whether a statement stands behind the allocation of a buffer, in the same body or inside it."""
    if buffer not in program.allocs:
        return True
    place = program.places[(buffer,)]
    depth = len(place.loops)
    positions = [at for at, _ in statement.positions]
    inside = tuple(positions[:depth]) == place.positions[:depth] and len(positions) > depth
    return (
        inside
        and statement.loops[:depth] == tuple(n.number for n in place.loops)
        and (positions[depth] > place.positions[depth])
    )


def _check_result(flow: Flow, buffer: Buffer) -> None:
    """Every element of a result, an instance of its own after the program, finds its value."""
    name, names = buffer.name, [f"e{d}" for d in range(len(buffer.shape))]
    inside = " and ".join(f"0 <= {n} < {size}" for n, size in zip(names, buffer.shape, strict=True)) or "true"
    element = f"R[{', '.join(names)}]"
    asked = isl.UnionMap(f"{{ {element} -> M{flow.cells[name]}[{', '.join(names)}] : {inside} }}", context())
    flow.times[END] = isl.UnionMap(f"{{ {element} -> [{flow.end}] }}", context())
    content = flow.of_cells(END, name, asked, None)
    text = f"{{ {element} -> {flow.value_space(name)}[{', '.join(names)}] : {inside} }}"
    wrong = isl.UnionMap(text, context())
    if name in content.final:
        wrong = wrong.subtract(content.final[name])
    if not wrong.is_empty():
        point = wrong.domain().sample_point()
        values = [str(point.get_multi_val().get_val(d).to_python()) for d in range(len(names))]
        where = f"{name}[{', '.join(values)}]"
        partial = content.partial.get(name)
        if partial is not None and not partial.domain().intersect(wrong.domain()).is_empty():
            raise Refuted(f"contributions to '{name}' are missing at the end, as at {where}")
        if wrong.domain().subtract(content.unknown).is_empty():
            raise Unknown(f"what {where} holds at the end could not be followed")
        raise Refuted(f"{where} does not have its value at the end")


__all__ = ["Verdict", "verify_schedule"]
