"""The state of lowering a function: buffers, loop variables, tested guards, the lane variable."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.dialects.arith import AndIOp
from xdsl.dialects.builtin import LocationAttr, UnknownLoc
from xdsl.ir import Region, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.copy_groups import CopyGroups
from compiler.analysis.stages import Arrival
from compiler.dialects.dense import DenseAttr
from compiler.lowering.loop_to_low.private import PrivatePart
from compiler.lowering.loop_to_low.scopes import Scopes
from compiler.program.tree import Alloc, Block, Loop, Node, Program, blocks_in
from compiler.support.errors import LoweringError
from compiler.support.origins import fused
from compiler.types.policies import Policy

MAX_STATEMENTS = 4096
"""The most statements of a nest's unrolled code, lane by lane ones included: more cost LLVM seconds."""

MAX_LANES = 128
"""The most lanes of a vectorized loop: two registers of bytes, the smallest elements."""


@dataclass
class BlockThreads:
    """The threads of a kernel.

    ids, extents, variables: by loop kind (`thread_x`), the hardware index, its extent and its variable in conditions.
    parts: by local buffer, the part that a thread owns. numbers: the numbers of the thread loops. barriers: the keys of
    the nodes with a barrier before them. alike: by the label of a block in a replicated stage, the dimensions along
    which all threads run it. in_stage: true while a stage is emitted. copies_wait: whether each barrier waits for all
    asynchronous copies; the barrier that `groups` names leaves the latest groups of copies in flight. arrival: the
    point behind which only the last block to arrive goes on, None without one. counters: the memref of its counters,
    one for each iteration of the loops around it; None without an arrival. unordered: the keys of barriers that order
    nothing in the iterations that are being emitted: only groups of copies end there.
    """

    ids: dict[str, SSAValue]
    extents: dict[str, int]
    variables: dict[str, int]
    parts: Mapping[str, PrivatePart] = field(default_factory=dict)
    numbers: Collection[int] = ()
    barriers: Collection[object] = ()
    alike: Mapping[str, frozenset[str]] = field(default_factory=dict)
    in_stage: bool = False
    copies_wait: bool = False
    groups: CopyGroups | None = None
    arrival: Arrival | None = None
    counters: SSAValue | None = None
    unordered: Collection[object] = ()

    def numbers_of(self, program: Program, buffer: str) -> Collection[int]:
        """Return the numbers of the thread loops that divide a private buffer among its owners; for a fragment without
        those along x, since its owners are warps."""
        if program.buffers[buffer].scope != "fragment":
            return self.numbers
        return [number for number in self.numbers if program.loops[number].kind != "thread_x"]


@dataclass
class Context:
    """The state of lowering one function, `program`; scopes: the emitted code; policy: of floating point.

    buffers: the memrefs, by name in the program. constants: the elements of constant buffers. values: the current
    values of unrolled loops' variables. tested: conditions that enclosing tests and loop bounds check. facts:
    conditions that are true in this part of a cut loop. in_masked_end: whether the end of a cut loop is emitted.
    streamed: buffers with non-temporal stores. private: buffers with a copy for each lane. lane, lanes: the variable of
    the enclosing vectorized loop, None outside, and its extent. threads: of a kernel, None on a CPU. unrolled: whether
    inside an unrolled loop. statement_count: the statements of the current nest's unrolled code.
    """

    program: Program
    scopes: Scopes
    policy: Policy
    buffers: dict[str, SSAValue] = field(default_factory=dict)
    values: dict[int, Linear] = field(default_factory=dict)
    tested: list[set[Condition]] = field(default_factory=list)
    facts: list[Sequence[Condition]] = field(default_factory=list)
    in_masked_end: bool = False
    streamed: set[str] = field(default_factory=set)
    private: set[str] = field(default_factory=set)
    lane: int | None = None
    lanes: int = 0
    threads: BlockThreads | None = None
    unrolled: bool = False
    statement_count: int = 0
    constants: dict[SSAValue, DenseAttr] = field(default_factory=dict)
    _locations: dict[int, tuple[Node, LocationAttr]] = field(default_factory=dict)

    def location(self, node: Node) -> LocationAttr:
        """The location of a node's ops: that of a block; for a loop those of its blocks, for an allocation those of the
        blocks that write the buffer. Without a location, that of the node around it."""
        if id(node) not in self._locations:
            blocks = self.program.writers.get(node.buffer.name, []) if isinstance(node, Alloc) else blocks_in(node)
            self._locations[id(node)] = node, fused(block.location for block in blocks)
        location = self._locations[id(node)][1]
        return self.scopes.location if isinstance(location, UnknownLoc) else location

    def add_constants(self, buffers: Mapping[str, SSAValue]) -> None:
        """Add the memrefs of constants, by their names in the program, and their elements."""
        self.buffers |= buffers
        self.constants |= {buffer: self.program.stated[name] for name, buffer in buffers.items()}

    def count_statements(self, count: int, subject: str) -> None:
        """Add to the nest's statement count. Raises LoweringError, which names `subject`, above MAX_STATEMENTS."""
        self.statement_count += count
        if self.statement_count > MAX_STATEMENTS:
            reason = f"the unrolled code of its nest has {self.statement_count} statements, of {MAX_STATEMENTS} at most"
            raise LoweringError(f"{subject}: {reason}")

    def form_of(self, loop: Loop) -> Linear:
        """Return a loop's variable, or its value in an unrolled loop, as a form."""
        return self.values.get(loop.number, lin.variable(loop.number))

    def axes(self, block: Block, values: Mapping[int, Linear] | None = None) -> dict[int, Linear]:
        """Map a block's axes to forms over loops; `values`, by default of unrolled loops, replace loop variables."""
        loop_values = self.values if values is None else values
        return {n: self._substitute(form, loop_values) for n, form in enumerate(block.bindings)}

    def substitute_axes(self, axes: Mapping[int, Linear], index: Iterable[Linear]) -> list[Linear]:
        """Return an index over axes as an index over loops; `axes` maps each axis to a form over loops."""
        return [self._substitute(form, axes) for form in index]

    def _substitute(self, form: Linear, values: Mapping[int, Linear]) -> Linear:
        """Return a form with `values` in place of its variables; the form itself if it has none of these variables."""
        for atom, _ in form.terms:
            if not isinstance(atom, int) or atom in values:
                break
        else:
            return form
        match form.terms:
            case ((int() as variable, 1),) if form.constant == 0:
                return values[variable]
        return lin.substitute(form, values, self.scopes.ranges)

    def is_bound(self, form: Linear) -> bool:
        """Return whether each variable of a form is bound in a scope or is the lane variable; True for a constant."""
        return all(v == self.lane or v in self.scopes.bound for v in form.variables())

    def has_lanes(self, form: Linear) -> bool:
        """Return whether a form differs between lanes."""
        return self.lane is not None and form.depends_on(self.lane)

    def conditions(self, conditions: Iterable[Condition], values: Mapping[int, Linear]) -> list[Condition]:
        """Return conditions with `values`, forms by number, in place of variables; those that `values` lacks stay. On a
        GPU, which has no masks, terms of lanes that cannot change a condition's truth are dropped: 8*v + lane < 16 is
        8*v < 16 over 8 lanes."""
        substituted = [c.substitute(values, self.scopes.ranges) for c in conditions]
        return substituted if self.threads is None else [c.tightened(self.scopes.ranges) for c in substituted]

    def untested(self, block: Block) -> list[Condition]:
        """Return the conditions of a block's guard, at the current values of unrolled loops, that no test around has
        checked and no fact implies."""
        if not block.guard:
            return []
        tested = set[Condition]().union(*self.tested)
        guard = self.conditions(block.guard, self.values)
        return [c for c in guard if c not in tested and not self.is_implied(c)]

    def shared_untested(self, node: Node) -> list[Condition]:
        """Return the untested conditions that all blocks at and in a node share, in the order of the first block's
        guard; empty for a node without blocks."""
        untested_by_block = [self.untested(block) for block in blocks_in(node)]
        return (
            [c for c in untested_by_block[0] if all(c in untested for untested in untested_by_block[1:])]
            if untested_by_block
            else []
        )

    def is_implied(self, condition: Condition) -> bool:
        """Return whether a fact g >= 0 implies an inequality f >= 0: f - g is never negative. False for f = 0."""
        return not condition.equal and any(
            Condition(condition.form - fact.form).always(self.scopes.ranges) for facts in self.facts for fact in facts
        )

    def at_lane(self, form: Linear, value: int) -> Linear:
        """Return a form with the lane number `value` in place of the lane variable."""
        assert self.lane is not None
        return self._substitute(form, {self.lane: lin.constant(value)})

    def truth(self, condition: Condition) -> SSAValue:
        """Emit a condition that is the same in all lanes, as an i1."""
        scopes = self.scopes
        return scopes.is_zero(condition.form) if condition.equal else scopes.at_least_zero(condition.form)

    def all_of(self, conditions: Sequence[Condition]) -> SSAValue:
        """Emit the conjunction of one or more conditions that are the same in all lanes, as an i1."""
        truths = [self.truth(condition) for condition in conditions]
        conjunction = truths[0]
        for truth in truths[1:]:
            conjunction = self.scopes.add(AndIOp(conjunction, truth))
        return conjunction


def emit_under(context: Context, tests: Sequence[Condition], emit: Callable[[], None]) -> None:
    """Emit code in an scf.if on the conjunction of `tests`, the same in all lanes; without tests, in no scf.if."""
    if not tests:
        emit()
        return
    truth = context.all_of(tests)
    with context.scopes.region() as body:
        emit()
    body.add_op(scf.YieldOp())
    context.scopes.run(scf.IfOp(truth, [], Region(body)))
