"""`verify_schedule`: proved, refuted, or undecided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from compiler.analysis.legal import Fault, legal
from compiler.analysis.sets import Undecided, asked, limited, union_map
from compiler.analysis.statements import Key, Statement
from compiler.analysis.verify.content import Refuted, Unknown
from compiler.analysis.verify.equations import NotFunctional, equations
from compiler.analysis.verify.flow import Flow
from compiler.analysis.verify.joint import check_joint, is_joint
from compiler.analysis.verify.spaces import Origin
from compiler.analysis.verify.unflatten import unflattened, unfused
from compiler.analysis.verify.values import Comparison, Wanted
from compiler.program.tree import Buffer, Program


@dataclass(frozen=True)
class Verdict:
    """The answer: `proved`, `refuted` or `undecided`, and why.

    >>> verdict = strata.analysis.Verdict("refuted", "B[0] has no value")
    >>> bool(verdict), str(verdict)
    (False, 'refuted: B[0] has no value')
    """

    answer: str
    reason: str = ""

    def __bool__(self) -> bool:
        return self.answer == "proved"

    def __str__(self) -> str:
        return f"{self.answer}: {self.reason}" if self.reason else self.answer


def verify_schedule(scheduled: Program, original: Program) -> Verdict:
    """Prove that a scheduled program computes the same as its original, or refute it.

    Every computing block is compared with the equation of the original that its `origin` names, at the index it
    names; every read must find the right value by exact dataflow; between an init and its reader each contribution
    to a reduction occurs once and none is missing; copies keep values; the results have every element;
    no access leaves its buffer; and no concurrent loop has iterations that depend on each other. The origin is a
    hint: a wrong one is refuted.

    >>> A = te.placeholder((64,), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> s.parallel(s.get_loops("B")[0])
    >>> print(strata.analysis.verify_schedule(s.program, s.unscheduled))
    proved
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
    """Raise Refuted, Unknown, NotFunctional or Undecided unless the proof succeeds. Each check of a block or a result
    has the whole operation limit, and its time does not grow with the program."""
    expected = equations(original)
    if [(b.shape, b.element) for b in scheduled.arguments] != [(b.shape, b.element) for b in original.arguments]:
        raise Refuted("the arguments differ")
    if scheduled.outputs != original.outputs:
        raise Refuted(f"it has {scheduled.outputs} outputs, the original {original.outputs}")
    _require_same_names(scheduled, original)
    race = legal(scheduled)
    flow = Flow(unflattened(unfused(scheduled)), original, expected)
    for key in flow.statements:
        _claim(partial(_check_bounds, flow, key), "{} accesses buffers where they live, inside their shapes", key)
    _claim(partial(_check_race, race), "no concurrent loop has iterations that depend on each other")
    for key in flow.statements:
        origin = flow.origin(key)
        if origin is not None:
            _claim(partial(_check_block, flow, key, origin), "{} computes the equation of its origin", key)
    for key in filter(lambda key: is_joint(flow.statements[key]), flow.statements):
        _claim(partial(check_joint, flow, key), "the targets of {} stay in step", key)
    for buffer in original.arguments[len(original.arguments) - original.outputs :]:
        _claim(
            partial(_check_result, flow, buffer), "every element of {} has its value at the end", (buffer.name, False)
        )


def _claim(check: Callable[[], None], sentence: str, key: Key = ("", False)) -> None:
    """Make a check within the operation limit, and record it as a sentence, perhaps about a statement or a result."""
    asked("claim", lambda: sentence.format(f"'{key[0]}{' (init)' if key[1] else ''}'"), lambda: limited(check))


def _check_race(race: Fault | None) -> None:
    """Raise Refuted for iterations of a concurrent loop that depend on each other, `race`; None means that there are
    none."""
    if race is not None:
        raise Refuted(str(race))


def _check_block(flow: Flow, key: Key, origin: Origin) -> None:
    """Raise Refuted or Unknown unless a block computes the element that its origin names, at the index it names."""
    block, source = flow.statements[key].block, origin.block
    if (block.table is None) != (source.table is None):
        raise Refuted(f"one of block '{block.label}' and its origin '{source.label}' is a gather")
    if block.combiners != source.combiners or len(block.body) != len(source.body):
        raise Refuted(f"block '{block.label}' does not combine as its origin '{source.label}' does")
    comparison = Comparison(flow, key)
    domain = flow.instances(key, flow.domain_text(key), flow.within(origin))
    for expression, actual in zip(source.body, block.body, strict=True):
        comparison.check(Wanted(source, expression, origin.at), actual, domain)


def _require_same_names(scheduled: Program, original: Program) -> None:
    """Raise Unknown if an argument has another name in the original, Refuted if a constant has other elements."""
    for argument, original_argument in zip(scheduled.arguments, original.arguments, strict=True):
        if argument.name != original_argument.name:
            raise Unknown(f"argument '{argument.name}' has another name in the original")
    for name, value in scheduled.stated.items():
        if original.stated.get(name) != value:
            raise Refuted(f"the constant '{name}' is not one of the original")


def _check_bounds(flow: Flow, key: Key) -> None:
    statement = flow.statements[key]
    for use in statement.uses:
        if not _lives(flow.program, use.buffer, statement):
            raise Refuted(f"block '{key[0]}' uses '{use.buffer}' where it does not live")
    for buffer, dim, instances in flow.outside(key):
        flow.refute(key, instances, f"accesses '{buffer}' outside its shape in dimension {dim}")


def _lives(program: Program, buffer: str, statement: Statement) -> bool:
    """Whether a statement follows a buffer's allocation, in the same body or inside it; true without an allocation."""
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
    """Raise Refuted or Unknown unless each element of a result has its value at the end, read by an instance R[e]."""
    # C of shape [4]: R[e0], which reads { R[e0] -> M[e0] : 0 <= e0 < 4 }, must find { R[e0] -> V[e0] : 0 <= e0 < 4 }.
    name, names = buffer.name, ", ".join(f"e{d}" for d in range(len(buffer.shape)))
    inside = " and ".join(f"0 <= e{d} < {size}" for d, size in enumerate(buffer.shape)) or "true"
    cells, expected = (
        union_map(f"R[{names}] -> {space}[{names}] : {inside}")
        for space in (flow.cell_space(name), flow.value_space(name))
    )
    lack = flow.of_cells(name, cells, lambda key: union_map(f"R[{names}] -> {flow.space(key)}")).lack(name, expected)
    if lack is None:
        return
    point = lack.instances.sample_point().get_multi_val()
    where = f"{name}[{', '.join(str(point.get_val(d).to_python()) for d in range(len(buffer.shape)))}]"
    if lack.kind == "partial":
        raise Refuted(f"contributions to '{name}' are missing at the end, as at {where}")
    if lack.kind == "unknown":
        raise Unknown(f"what {where} holds at the end could not be followed")
    raise Refuted(f"{where} does not have its value at the end")
