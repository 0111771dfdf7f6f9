"""Placement of barriers in GPU kernels, each with a dependence that requires it.

The nodes under the block loops of a kernel are *stages*: nests of thread loops that run one after another, under loops
that all threads run alike. Two stages need a barrier between them if one writes an element that another thread touches
in the other. Barriers are placed as late as possible. Those between the iterations of a loop are placed first, since
they may also serve the stages before the loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from compiler.affine import linear as lin
from compiler.analysis.sets import Undecided, points, sample
from compiler.analysis.stages import BLOCKS, THREADS, UNIFORM, arrival_in, is_stage, replicated, stages_in
from compiler.analysis.statements import Key, Statement, Use, meetings, statements
from compiler.intrinsics.warp import LANES
from compiler.program.tree import Alloc, Block, Loop, Node, Program, blocks_in, key_of, loops_in, walk

ASYNC = "async"
"""The attribute of a loop with asynchronous copies to shared memory, which are complete after the next barrier."""
AHEAD = "ahead"
"""The attribute of a loop over rounds whose operands are fetched ahead, into this number of buffers."""
RESIDENT = "resident"
"""The attribute of a kernel's outermost loop with the fewest blocks that a multiprocessor has at once: of few blocks
each has many registers."""
FEWEST_BLOCKS = "nvvm.minctasm"
"""The attribute of a kernel with the value of RESIDENT."""
Point = Mapping[int, int]


@dataclass(frozen=True)
class Barrier:
    """A barrier before the statement `second`, with the dependence on `first` that requires it. `uses`: the accesses of
    both to one element; `points`: for each of both, the values of its loops by number; None if isl did not decide."""

    first: Statement
    second: Statement
    uses: tuple[Use, Use]
    points: tuple[Point, Point] | None

    def __str__(self) -> str:
        use, later = self.uses
        if self.points is None:
            return f"{self.first.block.label} and {self.second.block.label} may meet on '{use.buffer}'"
        first, second = (s.instance(dict(p)) for s, p in zip((self.first, self.second), self.points, strict=True))
        index = ",".join(str(lin.evaluate(f, self.points[0])) if f is not None else "*" for f in use.index)
        verb = "reads" if later.how == "read" else "overwrites" if use.how == "read" else "updates"
        done = "reads" if use.how == "read" else "writes"
        return f"{second} {verb} {use.buffer}[{index}], which another thread {done} in {first}"


@dataclass(frozen=True)
class _Pending:
    """A statement that has run since the last barrier: in an earlier iteration of the loops in `earlier`, in any
    iteration of the loops in `free`, in the current iteration of all other uniform loops."""

    statement: Statement
    earlier: frozenset[int] = frozenset()
    free: frozenset[int] = frozenset()


def barriers(program: Program, kernel: Loop) -> dict[int | str | tuple[str], Barrier]:
    """Return the barriers of a kernel, by the key of the node (a loop's number or a block's label) that each precedes.
    A dependence that isl does not decide requires a barrier as well.

    >>> A = te.placeholder((64,), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> s.bind(s.get_loops("B")[0], "threadIdx.x")
    >>> strata.analysis.barriers(s.program, s.program.body[0])  # one nest needs none
    {}
    """
    walker = _Walker(program, kernel)
    walker.visit((kernel,), [])
    return walker.needed


def unordered(program: Program, kernel: Loop) -> Barrier | None:
    """Return a race in a stage (two threads touch an element, one writes) or an undecided query as a barrier; else
    None."""
    walker = _Walker(program, kernel)
    return next((barrier for stage in stages_in([kernel]) for barrier in walker.inside(stage)), None)


def orders_first(program: Program, kernel: Loop, loop: Loop, count: int, keys: Collection[object]) -> bool:
    """Return whether a barrier of a kernel inside a loop, of those before the nodes with `keys`, orders accesses in the
    first `count` iterations of the loop. It does not where these only fetch, into a buffer each: then the barrier of
    the next iteration is the first that is needed.

    Only a barrier before the first node of the loop's body is looked at, of a loop that runs once in a block; for
    others the answer is True.
    """
    inside = {key_of(node) for node in walk(loop.body)} & set(keys)
    first = next((key_of(node) for node in loop.body if not isinstance(node, Alloc)), None)
    around = [outer for outer in program.enclosing(loop.number) if outer.kind not in BLOCKS]
    if around or inside != {first}:
        return True
    begun = program.replaced(loop.number, lambda _: [replace(loop, extent=count)])
    (begun_kernel,) = (node for node in begun.body if key_of(node) == key_of(kernel))
    assert isinstance(begun_kernel, Loop)
    needed = barriers(begun, begun_kernel).keys()
    return bool(needed - (set(keys) - inside))


class _Walker:
    def __init__(self, program: Program, kernel: Loop) -> None:
        self.program = program
        self.statements = statements(program)
        self.alike = replicated(program, kernel)
        arrival = arrival_in(kernel)
        self.parts = None if arrival is None else arrival.parts[0].number
        self.extents = {loop.kind: 0 for loop in loops_in(kernel)}
        for loop in loops_in(kernel):
            self.extents[loop.kind] = max(self.extents[loop.kind], loop.extent)
        self.needed: dict[int | str | tuple[str], Barrier] = {}

    def visit(self, nodes: Sequence[Node], pending: list[_Pending]) -> list[_Pending]:
        """Record the barriers that the nodes need, in order, if the statements `pending` have run since the last
        barrier. Return the statements pending after the nodes."""
        for node in nodes:
            if is_stage(node):
                pending = self._stage(node, pending)
            elif isinstance(node, Loop):
                pending = self._loop(node, pending)
                if node.number == self.parts:  # the last block to arrive sees what all have written
                    pending = []
        return pending

    def _stage(self, node: Node, pending: list[_Pending]) -> list[_Pending]:
        stage_statements = [self.statements[key] for block in blocks_in(node) for key in _keys(block)]
        key = key_of(node)
        if key not in self.needed:
            barrier = next(self._conflicts(pending, stage_statements), None)
            if barrier is not None:
                self.needed[key] = barrier
        return [*([] if key in self.needed else pending), *(_Pending(statement) for statement in stage_statements)]

    def _loop(self, node: Loop, pending: list[_Pending]) -> list[_Pending]:
        """Record the barriers that a uniform loop needs: between its iterations, and after `pending`. Return the
        statements pending after the loop."""
        if node.extent > 1 and node.kind not in BLOCKS:
            inside = {block.label for block in blocks_in(node)}
            before = [
                replace(ran, earlier=ran.earlier | {node.number}) if ran.statement.block.label in inside else ran
                for ran in self.visit(node.body, [])
            ]
            self.visit(node.body, before)
        barrier = next(self._conflicts(pending, self._leading(node)), None)
        if barrier is not None:  # once before the loop, rather than in each iteration
            self.needed[key_of(node)] = barrier
            pending = []
        return self.visit(node.body, pending)

    def inside(self, stage: Node) -> Iterator[Barrier]:
        """Yield the conflicts between threads inside a stage, except of blocks over the same thread loops: `legal`
        checks these."""
        stage_statements = [self.statements[key] for block in blocks_in(stage) for key in _keys(block)]
        around = self.program.outer(key_of(stage))
        for first, second in combinations(stage_statements, 2):
            alike = self._threads(first) == self._threads(second)
            warps = self._is_warps(first) or self._is_warps(second)
            if first.block.label != second.block.label and (warps or not alike):
                free = frozenset((*first.loops, *second.loops)) - around
                yield from self._conflicts([_Pending(first, free=free)], [second])

    def _threads(self, statement: Statement) -> list[int]:
        return [number for number in statement.loops if self.program.loops[number].kind in THREADS]

    def _leading(self, node: Loop) -> list[Statement]:
        """The statements of an iteration that run before its first barrier."""
        leading: list[Statement] = []
        for inner in walk((node,)):
            if inner is not node and key_of(inner) in self.needed:
                break
            if isinstance(inner, Block):
                leading += [self.statements[key] for key in _keys(inner)]
        return leading

    def _conflicts(self, pending: Sequence[_Pending], stage_statements: Sequence[Statement]) -> Iterator[Barrier]:
        for first, second in product(pending, stage_statements):
            for use, later in meetings(first.statement, second):
                if use.how == later.how == "read" or self._is_private(use.buffer):
                    continue
                try:
                    points = self._meet(first, second, use, later)
                except Undecided:
                    yield Barrier(first.statement, second, (use, later), None)
                    continue
                if points is not None:
                    yield Barrier(first.statement, second, (use, later), points)

    def _is_private(self, buffer: str) -> bool:
        return self.program.buffers[buffer].scope not in ("global", "shared")

    def _meet(self, pending: _Pending, second: Statement, use: Use, later: Use) -> tuple[Point, Point] | None:
        """Return the loop values of two instances in different threads that access one element, each by loop number;
        None without any. Raises Undecided if isl does not decide."""
        # T[j] in thread p4, T[31 - j] in thread q3 of the same block p2 = q2:
        #   p4 = 31 + -1*q3 and p2 = q2 and (p4 != q3)  ->  (p2, p4, q2, q3) = (0, 0, 0, 31)
        first = pending.statement
        names = [{n: f"{v}{n}" for n in s.loops} for v, s in (("p", first), ("q", second))]
        text = [*first.domain(names[0], use), *second.domain(names[1], later)]
        for f, g in zip(use.index, later.index, strict=True):
            if f is not None and g is not None:
                text.append(f"{lin.to_isl(f, names[0])} = {lin.to_isl(g, names[1])}")
        for number in first.loops[: first.common(second)]:
            if number in pending.earlier:
                text.append(f"p{number} < q{number}")
                break
            if self.program.loops[number].kind in UNIFORM and number not in pending.free:
                text.append(f"p{number} = q{number}")
        if not self._is_awaited(first, use):
            text.append(f"({' or '.join(self._apart(first, second))})")
        variables = [*names[0].values(), *names[1].values()]
        for name, statement in zip("pq", (first, second), strict=True):
            for kind, extent in self._free(statement).items():
                variables.append(f"{name}{kind[-1]}")
                text.append(f"0 <= {name}{kind[-1]} < {extent}")
        point = sample(points(variables, text))
        if point is None:
            return None
        values = dict(zip(variables, point, strict=True))
        first_point, second_point = ({n: values[name] for n, name in instance.items()} for instance in names)
        return first_point, second_point

    def _is_warps(self, statement: Statement) -> bool:
        """Whether a warp runs each instance of a statement as a whole, as for an MMA: in a tensorized loop."""
        return any(self.program.loops[number].kind == "tensorized" for number in statement.loops)

    def _is_awaited(self, statement: Statement, use: Use) -> bool:
        """Whether a use is an asynchronous write to shared memory, which no thread surely sees before a barrier."""
        is_async = any(ASYNC in dict(self.program.loops[number].attributes) for number in statement.loops)
        return is_async and use.how != "read" and self.program.buffers[use.buffer].scope == "shared"

    def _free(self, statement: Statement) -> dict[str, int]:
        """The extents of the thread dimensions to which no loop of a statement is bound and along which all threads run
        it: the lanes of a warp, and those of a replicated stage."""
        lanes = {THREADS[0]: LANES} if self._is_warps(statement) else {}
        return {kind: self.extents[kind] for kind in self.alike.get(statement.block.label, ())} | lanes

    def _idle(self, name: str, statement: Statement, kind: str) -> str:
        """The coordinate of a statement in the thread dimension `kind`, such as thread_x, to which none of its loops is
        bound: a variable, `name` and the last letter of `kind`, if all threads along it run the statement, else 0."""
        return f"{name}{kind[-1]}" if kind in self._free(statement) else "0"

    def _apart(self, first: Statement, second: Statement) -> list[str]:
        """Constraints of which at least one holds if two instances run in different threads: a coordinate differs."""
        differences = []
        for kind in THREADS:
            p, q = (
                next((f"{v}{n}" for n in s.loops if self.program.loops[n].kind == kind), self._idle(v, s, kind))
                for v, s in (("p", first), ("q", second))
            )
            if p != q:
                differences.append(f"{p} != {q}")
        return differences or ["1 = 0"]


def _keys(block: Block) -> list[Key]:
    return [*([(block.label, True)] if block.has_init else []), (block.label, False)]
