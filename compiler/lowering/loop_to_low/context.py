"""The state of the lowering of a function: buffers, loop variables, settled guards, the lane variable."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.dialects.arith import AndIOp
from xdsl.ir import Region, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.dense import DenseAttr
from compiler.lowering.loop_to_low.private import PrivatePart
from compiler.lowering.loop_to_low.scopes import Scopes
from compiler.program.tree import Block, Loop, Node, Program, blocks_in
from compiler.support.errors import LoweringError
from compiler.types.policies import Policy

MOST_COPIES = 4096
"""How many statements the unrolled code of one nest may have, those done lane by lane included: LLVM takes seconds."""

MOST_LANES = 128
"""How many lanes a vectorized loop may have: two registers of bytes, the smallest elements."""


@dataclass
class BlockThreads:
    """The hardware indices of a kernel: by the kind of a loop the value and the extent, and the variable that stands
    for it in conditions; the parts of local buffers that each thread keeps; the thread loops; the nodes before which
    threads wait; whether a stage is being emitted; whether the kernel has copies that barriers wait for."""

    ids: dict[str, SSAValue]
    extents: dict[str, int]
    variables: dict[str, int]
    parts: Mapping[str, PrivatePart] = field(default_factory=dict)
    numbers: Collection[int] = ()
    barriers: Collection[object] = ()
    in_stage: bool = False
    copies_wait: bool = False


@dataclass
class Context:
    """The state of lowering one function.

    `buffers` are by their names in the program, `constants` the elements that the program states; `values` are the
    values of unrolled loops. `facts` hold in the whole iterations of a cut loop, `ending` is true while its end is
    emitted. `threads` are the threads of a kernel, None on a CPU. `copies` counts the statements of a nest's unrolled
    code.
    """

    program: Program
    scopes: Scopes
    policy: Policy
    buffers: dict[str, SSAValue] = field(default_factory=dict)
    values: dict[int, Linear] = field(default_factory=dict)
    settled: list[set[Condition]] = field(default_factory=list)
    facts: list[Sequence[Condition]] = field(default_factory=list)
    ending: bool = False
    streamed: set[str] = field(default_factory=set)
    private: set[str] = field(default_factory=set)
    lane: int | None = None
    lanes: int = 0
    threads: BlockThreads | None = None
    unrolled: bool = False
    copies: int = 0
    constants: dict[SSAValue, DenseAttr] = field(default_factory=dict)

    def add_constants(self, buffers: Mapping[str, SSAValue]) -> None:
        """Add the buffers of constants, by their names in the program."""
        self.buffers |= buffers
        self.constants |= {buffer: self.program.stated[name] for name, buffer in buffers.items()}

    def add_copies(self, count: int, where: str) -> None:
        """Count statements of unrolled code. Raises LoweringError for more than MOST_COPIES in one nest."""
        self.copies += count
        if self.copies > MOST_COPIES:
            said = f"the unrolled code of its nest has {self.copies} statements, of {MOST_COPIES} at most"
            raise LoweringError(f"{where}: {said}")

    def form_of(self, loop: Loop) -> Linear:
        """A loop variable as a form: itself, or its value while its loop is unrolled."""
        return self.values.get(loop.number, lin.variable(loop.number))

    def axes(self, block: Block, values: Mapping[int, Linear] | None = None) -> dict[int, Linear]:
        """The axes of a block as forms over loops, with variables replaced: by default those of unrolled loops."""
        loop_values = self.values if values is None else values
        return {n: self._replaced(form, loop_values) for n, form in enumerate(block.bindings)}

    def over(self, axes: Mapping[int, Linear], index: Iterable[Linear]) -> list[Linear]:
        """An index over axes as one over loops."""
        return [self._replaced(form, axes) for form in index]

    def _replaced(self, form: Linear, values: Mapping[int, Linear]) -> Linear:
        """A form with variables replaced; most have none of these or are one of them, and need no new sum."""
        for atom, _ in form.terms:
            if not isinstance(atom, int) or atom in values:
                break
        else:
            return form
        match form.terms:
            case ((int() as variable, 1),) if form.constant == 0:
                return values[variable]
        return lin.substitute(form, values, self.scopes.ranges)

    def is_known(self, form: Linear) -> bool:
        """Whether all variables of a form are bound here, the lane included."""
        return all(v == self.lane or v in self.scopes.bound for v in form.variables())

    def has_lanes(self, form: Linear) -> bool:
        """Whether a form differs from lane to lane."""
        return self.lane is not None and form.depends_on(self.lane)

    def conditions(self, given: Iterable[Condition], values: Mapping[int, Linear]) -> list[Condition]:
        """Conditions with variables replaced. On a GPU, which has no masks, conditions lose the lanes that cannot
        decide them; on a CPU loops are cut where a guard fails, lanes and all."""
        substituted = [c.substitute(values, self.scopes.ranges) for c in given]
        return substituted if self.threads is None else [c.tightened(self.scopes.ranges) for c in substituted]

    def open(self, block: Block) -> list[Condition]:
        """The conditions of a block's guard that no surrounding test has settled and no fact implies."""
        if not block.guard:
            return []
        settled = set[Condition]().union(*self.settled)
        guard = self.conditions(block.guard, self.values)
        return [c for c in guard if c not in settled and not self.is_implied(c)]

    def shared(self, node: Node) -> list[Condition]:
        """The open conditions that every block at or inside a node has in its guard, in the first block's order."""
        each = [self.open(block) for block in blocks_in(node)]
        return [c for c in each[0] if all(c in open for open in each[1:])] if each else []

    def is_implied(self, condition: Condition) -> bool:
        """Whether a fact about the surrounding iterations implies a condition: f >= 0 where f - fact is never less."""
        return not condition.equal and any(
            Condition(condition.form - fact.form).always(self.scopes.ranges) for facts in self.facts for fact in facts
        )

    def at_lane(self, form: Linear, value: int) -> Linear:
        """The form in one lane."""
        assert self.lane is not None
        return self._replaced(form, {self.lane: lin.constant(value)})

    def truth(self, condition: Condition) -> SSAValue:
        """The truth of a condition without lanes."""
        scopes = self.scopes
        return scopes.is_zero(condition.form) if condition.equal else scopes.at_least_zero(condition.form)

    def all_of(self, conditions: Sequence[Condition]) -> SSAValue:
        """The conjunction of conditions without lanes; there is at least one."""
        truths = [self.truth(condition) for condition in conditions]
        conjunction = truths[0]
        for truth in truths[1:]:
            conjunction = self.scopes.add(AndIOp(conjunction, truth))
        return conjunction


def under(context: Context, tests: Sequence[Condition], emit: Callable[[], None]) -> None:
    """Emit under the conjunction of tests without lanes."""
    if not tests:
        emit()
        return
    truth = context.all_of(tests)
    with context.scopes.region() as body:
        emit()
    body.add_op(scf.YieldOp())
    context.scopes.run(scf.IfOp(truth, [], Region(body)))
