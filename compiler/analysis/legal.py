"""`legal`: the one predicate that judges a schedule step, exactly, through isl.

Order: every dependence of the program before the step (two instances that touch one element, at least one of them
writing, unless both update it by the same combiner) has its source before its target afterwards. Concurrency: no
two iterations of a concurrent loop depend on each other, reductions included.

Index equations fix most loops of two dependent instances to equal values by the ranges alone; isl decides the remaining
cases, one level of the two orders at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.analysis.sets import points, surely_within
from compiler.analysis.shared_element import Points, SharedElement, orders
from compiler.analysis.statements import Key, Statement, Use, meetings, statements
from compiler.program.changed import Changed, changed_nodes
from compiler.program.tree import CONCURRENT, Program


@dataclass(frozen=True)
class Step:
    """The planned effect of a primitive: the program afterwards, and how its instances correspond to those before.

    A loop that is in both programs corresponds to itself, unless `links` maps it to its former value, a form over the
    new loops (`shifts`: for one block only). Instances of a block in `moved` correspond if their axis values are equal.
    `sources` maps a new statement to its former one. With `keeps_order` the order of instances is not checked.
    """

    program: Program
    links: Mapping[int, Linear] = field(default_factory=dict)
    shifts: Mapping[str, Mapping[int, Linear]] = field(default_factory=dict)
    moved: frozenset[str] = frozenset()
    sources: Mapping[Key, Key] = field(default_factory=dict)
    keeps_order: bool = False

    def links_of(self, label: str) -> Mapping[int, Linear]:
        """The links of one block: `links`, overridden by the `shifts` of the block."""
        return {**self.links, **self.shifts.get(label, {})}


@dataclass(frozen=True)
class Violation:
    """Two dependent instances, of the statements `first` and `second`, whose order a step reverses, or that run at once
    in the concurrent loop `loop` (None: reversed). `uses`: their accesses to one element; `points`: their loop values;
    None if undecided."""

    first: Statement
    second: Statement
    uses: tuple[Use, Use]
    points: Points | None
    loop: str | None = None

    def __str__(self) -> str:
        use, later = self.uses
        if self.points is None:
            return (
                f"whether {self.first.block.label} and {self.second.block.label} keep their order on "
                f"'{use.buffer}' could not be decided within the budget"
            )
        first, second = self.first.instance(self.points[0]), self.second.instance(self.points[1])
        element = self.element
        if self.loop is not None:
            return (
                f"iterations of loop '{self.loop}' depend on each other: "
                f"{first} {self.verb(self.first, use)} {element} and {second} {self.verb(self.second, later)} it"
            )
        if later.how == "read":
            return f"{second} reads {element} before {first} has been {self._done(self.first, use)}"
        if use.how == "read":
            return f"{second} overwrites {element} before {first} has read it"
        if self.second.is_init:
            return f"{element} is set to its identity after {first} has been {self._done(self.first, use)}"
        if self.first.is_init:
            return f"{second} is added to {element} before it is set to its identity"
        return f"{second} overwrites {element} before {first} has been {self._done(self.first, use)} there"

    @property
    def element(self) -> str:
        """The element that both instances use, such as `C[0,2]`; empty if undecided."""
        if self.points is None:
            return ""
        return f"{self.uses[0].buffer}[{','.join(_element(*self.uses, self.points))}]"

    @staticmethod
    def _done(statement: Statement, use: Use) -> str:
        if statement.is_init:
            return "set to its identity"
        return {"write": "written", "add": "added", "mul": "multiplied in"}.get(str(use.how), "combined")

    @staticmethod
    def verb(statement: Statement, use: Use) -> str:
        """How a statement uses a buffer: `reads`, `writes`, `updates` or, for an init, `initialises`."""
        return "initialises" if statement.is_init else {"read": "reads", "write": "writes"}.get(str(use.how), "updates")


def _element(use: Use, later: Use, points: Points) -> Iterator[str]:
    """The index of an element that both uses touch; `*` in a dimension in which both may touch any index."""
    for f, g in zip(use.index, later.index, strict=True):
        if f is not None:
            yield str(lin.evaluate(f, points[0]))
        else:
            yield str(lin.evaluate(g, points[1])) if g is not None else "*"


Fault = Violation | str
"""A fault of a step: a violation, or a sentence about an init."""


def legal(after: Program, before: Program | None = None, step: Step | None = None) -> Fault | None:
    """The first fault of the program `after`, or None if it is legal; a query that isl does not decide is a fault.

    With `before`, the order of dependent instances and the inits are compared with that program; `step` relates the
    instances of both, by default as the same. Concurrent loops are checked in any case.
    """
    if before is None:
        return _concurrency(after, statements(after), set())
    step = step or Step(after)
    changed = changed_nodes(before, after, (*step.links, *step.shifts, *step.moved))
    old, new = statements(before), _within(after, changed.after)
    fault = _lost_init(_within(before, changed.before), new, step) or _gained_init(before, old, new, step)
    if fault is not None:
        return fault
    if not step.keeps_order:
        violation = _order(before, after, changed, step)
        if violation is not None:
            return violation
    return _concurrency(after, new, _unchanged(before, old, after, new))


def _within(program: Program, tops: Iterable[int]) -> dict[Key, Statement]:
    """Return the statements by key of the nests at positions `tops` of the body, in the order of the program."""
    all_statements = statements(program)
    return {key: statement for top in sorted(tops) for key, statement in all_statements.of(top).items()}


def _unchanged(
    before: Program, old: Mapping[Key, Statement], after: Program, new: Mapping[Key, Statement]
) -> set[tuple[Key, int]]:
    """Return pairs of a statement's key and the number of a concurrent loop around it for which nothing has changed:
    the block, its loops, and the loops to which its buffers are private."""
    unchanged = set()
    for key, statement in new.items():
        concurrent = [n for n in statement.loops if after.loops[n].kind in CONCURRENT]
        former = old.get(key) if concurrent else None
        if former is None or former.block is not statement.block or former.loops != statement.loops:
            continue
        names = {use.buffer for use in statement.uses}
        if any(before.private_loops(name) != after.private_loops(name) for name in names):
            continue
        for number in concurrent:
            was, now = before.loops.get(number), after.loops[number]
            if was is not None and (was.kind, was.extent) == (now.kind, now.extent):
                unchanged.add((key, number))
    return unchanged


# --- inits ---------------------------------------------------------------------------------------------------------


def _lost_init(old: Mapping[Key, Statement], new: Mapping[Key, Statement], step: Step) -> str | None:
    """Return a sentence about an init that sets fewer elements, by its new guard or loops; None without one."""
    # S[i] with the new guard i <= 2: [e0] : 0 <= e0 <= 3  is no subset of  [e0] : 0 <= e0 <= 2.
    for key, former in old.items():
        if not key[1]:
            continue
        successors = [s for k, s in new.items() if step.sources.get(k, k) == key]
        if not successors or all(s.block is former.block for s in successors) or not any(s.guard for s in successors):
            continue
        if any(s.block.writes != former.block.writes for s in successors if s.is_init):
            continue  # another buffer, or another layout
        if not surely_within(_set_of([former]), _set_of(successors)):
            buffer = former.uses[0].buffer
            return f"some elements of '{buffer}' would not be set to the identity before block '{key[0]}' runs"
    return None


def _set_of(inits: Sequence[Statement]) -> str:
    """The set of elements that inits write, in isl's syntax."""
    sets = []
    for s in inits:
        names = {n: f"l{n}" for n in s.loops}
        heads = [f"e{d}" for d in range(len(s.uses[0].forms))]
        element = [f"{e} = {lin.to_isl(f, names)}" for e, f in zip(heads, s.uses[0].forms, strict=True)]
        sets.append(points(heads, [*s.domain(names), *element], names.values()))
    return "; ".join(sets)


def _gained_init(before: Program, old: Mapping[Key, Statement], new: Mapping[Key, Statement], step: Step) -> str | None:
    """Return a sentence about an init that runs at more instances than before, as a condition no longer guards it; None
    without one.

    Moved blocks, and blocks with longer spatial axes by padding, are skipped: they may run further inits.
    """
    # S[i] that loses the guard i <= 2: [x0] : 0 <= x0 <= 3  is no subset of  [x0] : 0 <= x0 <= 3 and 2 + -1*x0 >= 0.
    for key, now in new.items():
        former = old.get(step.sources.get(key, key))
        if not key[1] or former is None or not former.is_init or not former.block.guard:
            continue
        if now.block is former.block or key[0] in step.moved:
            continue
        if now.block.axes[: now.block.spatial] != former.block.axes[: former.block.spatial]:
            continue
        names = {n: f"x{n}" for n in now.loops}
        image = _former(names, former, now, step, before, "a")
        points_now = points(names.values(), now.domain(names))
        points_before = points(names.values(), [*former.domain(image.values), *image.constraints], image.variables)
        if not surely_within(points_now, points_before):
            buffer = now.uses[0].buffer
            return f"the init of block '{key[0]}' would run for elements of '{buffer}' that its guard excludes now"
    return None


# --- order ------------------------------------------------------------------------------------------------------


def _order(before: Program, after: Program, changed: Changed, step: Step) -> Violation | None:
    """Return the first reversed pair of dependent instances, at least one in a changed nest; None without any."""
    changed_keys = _within(after, changed.after)
    near = _within(after, {*changed.after, *_neighbours(after, changed)})
    if _first_violation(before, after, step, near, changed_keys) is None:
        return None
    return _first_violation(
        before, after, step, statements(after), changed_keys
    )  # the first in the order of the whole program


def _neighbours(program: Program, changed: Changed) -> Iterator[int]:
    """The positions of the nests that share a buffer with a changed nest, at least one of the two writing it."""
    nests = [program.nests[top] for top in changed.after]
    writes = set[str]().union(*(nest.writers for nest in nests))
    touches = writes.union(*(nest.readers for nest in nests))
    for top, nest in enumerate(program.nests):
        if not (touches.isdisjoint(nest.writers) and writes.isdisjoint(nest.readers)):
            yield top


def _first_violation(
    before: Program, after: Program, step: Step, new: Mapping[Key, Statement], changed_keys: Collection[Key]
) -> Violation | None:
    """The first violation between two statements, at least one of them in `changed_keys`; None without one."""
    old = statements(before)
    matched = {key: old[source] for key in new if (source := step.sources.get(key, key)) in old}
    touching: dict[str, list[Key]] = {}
    for key in matched:
        for name in dict.fromkeys(use.buffer for use in new[key].uses):
            touching.setdefault(name, []).append(key)
    checked_pairs: set[tuple[Key, Key]] = set()
    for keys in touching.values():
        mine = [key for key in keys if key in changed_keys]
        for s in keys:
            for t in keys if s in changed_keys else mine:
                if (s, t) in checked_pairs:
                    continue
                checked_pairs.add((s, t))
                pair = _Pair(before, after, (matched[s], matched[t]), (new[s], new[t]), step)
                if pair.keeps_order():
                    continue
                violation = pair.violation()
                if violation is not None:
                    return violation
    return None


@dataclass(frozen=True)
class _Pair:
    """Statements after a step, `new`, and before it, `old`, to find instances whose order is reversed."""

    before: Program
    after: Program
    old: tuple[Statement, Statement]
    new: tuple[Statement, Statement]
    step: Step

    def keeps_order(self) -> bool:
        """Whether, without isl, the order is surely the same: the same common loops, then the same textual order."""
        (s, t), (u, v) = self.old, self.new
        depth = s.common(t)
        common = s.loops[:depth]
        if u.common(v) != depth or u.loops[:depth] != common:
            return False
        if any(n in self.step.links_of(label) for n in common for label in (u.block.label, v.block.label)):
            return False
        if any(self.before.ranges[n] != self.after.ranges[n] for n in common):
            return False
        if s is t or u is v:
            return s is t and u is v
        return _sign(s.positions[depth], t.positions[depth]) == _sign(u.positions[depth], v.positions[depth])

    def violation(self) -> Violation | None:
        """Return the first violation of order between the two statements, on any buffer; None without one."""
        pairs = (pair for pair in meetings(*self.new) if not pair[0].commutes(pair[1]))
        return next(filter(None, (self._on(use, later) for use, later in pairs)), None)

    def _on(self, use: Use, later_use: Use) -> Violation | None:
        """Return instances that touch one element by these uses and whose order the step reverses; None without any."""
        # T[x2] = ..., ... = T[7 - y2] in two nests that become one loop:
        #   x2 = 7 + -1*y2 and y2 < x2  ->  (x2, y2) = (4, 3): Y[3] reads T[4] before T[4] has been written
        s, t = self.new
        space = SharedElement(self.after, s, t, use, later_use)
        first = _former(space.left, self.old[0], s, self.step, self.before, "a")
        second = _former(space.right, self.old[1], t, self.step, self.before, "b")
        in_order, reversed_order = orders(*self.old, first.values, second.values), orders(t, s, space.right, space.left)
        for was, now in product(in_order, reversed_order):
            more = [*was, *now, *first.constraints, *second.constraints]
            point = space.solve(more, [*first.variables, *second.variables])
            if point is not None:
                return Violation(s, t, (use, later_use), space.points(point))
        return None


@dataclass(frozen=True)
class _Former:
    """An instance before the step, in isl's syntax: the value of each loop, further variables, constraints."""

    values: Mapping[int, str]
    variables: tuple[str, ...]
    constraints: tuple[str, ...]


def _former(
    names: Mapping[int, str], old: Statement, new: Statement, step: Step, before: Program, prefix: str
) -> _Former:
    """The instance of `old` for one of `new`, whose loops are named by `names`; new names begin with `prefix`."""
    # Loop 0 split into loops 1 and 2: links {0: 4*l1 + l2}, names {1: x1, 2: x2}: values {0: (4*x1 + x2)}.
    links = step.links_of(new.block.label)
    values: dict[int, str] = {}
    variables: list[str] = []
    by_axes = new.block.label in step.moved
    for number in old.loops:
        form = links.get(number)
        if form is not None and form.variables() <= names.keys():
            values[number] = f"({lin.to_isl(form, names)})"
        elif number in names and number in new.loops and form is None:
            values[number] = names[number]
        elif before.loops[number].extent == 1:
            values[number] = "0"
        else:
            values[number] = f"{prefix}{number}"
            variables.append(values[number])
    constraints: list[str] = []
    if variables:
        constraints += [
            f"0 <= {prefix}{n} < {before.loops[n].extent}" for n in old.loops if f"{prefix}{n}" in variables
        ]
        constraints += [c.isl(values) for c in old.guard if c.form.variables() <= values.keys()]
    if by_axes or variables:
        count = old.block.spatial if old.is_init else len(old.block.axes)
        for was, now in zip(old.block.bindings[:count], new.block.bindings[:count], strict=False):
            if was.variables() <= values.keys() and now.variables() <= names.keys():
                constraints.append(f"{lin.to_isl(was, values)} = {lin.to_isl(now, names)}")
    return _Former(values, tuple(variables), tuple(constraints))


def _sign(a: tuple[int, int], b: tuple[int, int]) -> int:
    return (a > b) - (a < b)


# --- concurrency ------------------------------------------------------------------------------------------------


def _concurrency(program: Program, new: Mapping[Key, Statement], unchanged: set[tuple[Key, int]]) -> Violation | None:
    tops = sorted({program.places.top(label) for label, _ in new})
    loops = [loop for top in tops for loop in program.nests[top].loops.values()]
    for loop in loops:
        if loop.kind not in CONCURRENT:
            continue
        inside = [s for s in new.values() if loop.number in s.loops]
        depth = len(program.enclosing(loop.number))
        for number, s in enumerate(inside):
            for t in inside[number:]:
                if (s.key, loop.number) in unchanged and (t.key, loop.number) in unchanged:
                    continue
                if s.common(t) <= depth:
                    continue
                race = _race(program, s, t, loop.number, depth)
                if race is not None:
                    return race
    return None


def _race(program: Program, s: Statement, t: Statement, number: int, depth: int) -> Violation | None:
    """Find two iterations of the concurrent loop `number`, inside `depth` loops, that conflict; None without any."""
    # S[i] += ... in a parallel loop k = 1, with i = z0 for both:  x1 < y1  ->  (z0, x1, y1) = (0, 0, 1)
    for use, later in meetings(s, t):
        if use.how == later.how == "read" or number in program.private_loops(use.buffer):
            continue
        space = SharedElement(program, s, t, use, later, s.loops[:depth])
        x, y = space.left[number], space.right[number]
        if x == y:
            continue
        for way in (f"{x} < {y}", f"{y} < {x}") if s is not t else (f"{x} < {y}",):
            point = space.solve([way])
            if point is not None:
                return Violation(s, t, (use, later), space.points(point), program.loops[number].label)
    return None
