"""What each read of a scheduled program finds, by exact dataflow through isl.

A cell is reset by a plain write or an init and then updated by combining. So a read finds what its last reset left,
with the contributions of all updates since. Contributions are points of an original reduction's iteration space: each
may occur once, and when none is missing the value is finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import islpy as isl
from xdsl.dialects import arith
from xdsl.ir import Attribute

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.analysis.sets import context
from compiler.analysis.statements import Key, Use, statements
from compiler.analysis.verify.content import Content, Refuted, Unknown
from compiler.analysis.verify.equations import Equation
from compiler.analysis.verify.forms import affine_test, resembles
from compiler.dialects.upstream.arith import SelectOp
from compiler.elements import is_unsigned
from compiler.program import body
from compiler.program.combiner import Combiner, neutral
from compiler.program.tree import Program

END: Key = ("", False)
"""The reader of all results after the program."""


class Flow:
    """The dataflow of one scheduled program, computed as it is asked for."""

    def __init__(self, program: Program, original: Program, equations: Mapping[str, Equation]) -> None:
        self.program = program
        self.original = original
        self.equations = equations
        self.blocks = {e.block.label: e.block for e in equations.values()}
        self.statements = statements(program)
        self.numbers = {key: n for n, key in enumerate(self.statements)}
        self.cells = {name: n for n, name in enumerate(program.buffers)}
        self.known: dict[tuple[Key, int], Content | None] = {}
        self.assumed: dict[tuple[Key, int], tuple[str, Any]] = {}

    # --- spaces ---------------------------------------------------------------------------------------------------

    def space(self, key: Key) -> str:
        """The tuple of a statement's instances."""
        return f"S{self.numbers[key]}[{', '.join(f'l{n}' for n in self.statements[key].loops)}]"

    def domain_text(self, key: Key, use: Use | None = None) -> str:
        """The constraints of a statement's domain, and of a use's condition."""
        statement = self.statements[key]
        names = self.names
        parts = [f"0 <= l{n} < {self.program.loops[n].extent}" for n in statement.loops]
        parts += [c.isl(names) for c in (*statement.guard, *(use.where if use is not None else ()))]
        return " and ".join(parts) or "true"

    @cached_property
    def names(self) -> dict[int, str]:
        """The names of loops in isl's texts."""
        return {n: f"l{n}" for n in self.program.loops}

    def domain(self, key: Key, use: Use | None = None) -> Any:
        """A statement's instances, where a use happens."""
        return isl.UnionSet(f"{{ {self.space(key)} : {self.domain_text(key, use)} }}", context())

    def map(self, key: Key, target: str, index: Iterable[Linear], use: Use | None = None, more: str = "") -> Any:
        """A map from instances to a tuple of forms over loops."""
        forms = ", ".join(lin.to_isl(f, self.names) for f in index)
        condition = self.domain_text(key, use) + (f" and {more}" if more else "")
        return isl.UnionMap(f"{{ {self.space(key)} -> {target}[{forms}] : {condition} }}", context())

    def cell(self, key: Key, use: Use) -> Any:
        """The cell that a use touches; one inside a loop is another in each iteration."""
        around: tuple[Linear, ...] = ()
        if use.buffer in self.program.allocs:
            around = tuple(lin.variable(n.number) for n in self.program.enclosing((use.buffer,)))
        return self.map(key, f"M{self.cells[use.buffer]}", (*around, *use.forms), use)

    def value_space(self, buffer: str) -> str:
        """The tuple of a buffer's elements."""
        return f"V{sorted({*self.original.buffers}).index(buffer)}"

    def points_space(self, buffer: str) -> str:
        """The tuple of the contributions to a buffer's elements."""
        return f"K{sorted({*self.original.buffers}).index(buffer)}"

    @cached_property
    def times(self) -> dict[Key, Any]:
        """When the instances of each statement run."""
        depth = max((len(s.loops) for s in self.statements.values()), default=0)
        width = len(self.program.blocks) + 2
        found = {}
        for key, s in self.statements.items():
            dims = []
            for d in range(depth + 1):
                at, rank = s.positions[d] if d < len(s.positions) else (0, 0)
                dims.append(str(at * width + min(rank, width - 1)))
                if d < depth:
                    dims.append(f"l{s.loops[d]}" if d < len(s.loops) else "0")
            found[key] = isl.UnionMap(f"{{ {self.space(key)} -> [{', '.join(dims)}] }}", context())
        return found

    @property
    def end(self) -> str:
        """A time after all others."""
        return ", ".join(
            ["1000000000", *["0"] * (2 * max((len(s.loops) for s in self.statements.values()), default=0))]
        )

    def sample(self, found: Any, key: Key) -> str:
        """An instance of a statement out of a set, in words."""
        least = found.lexmin() if hasattr(found, "lexmin") else found
        point = least.sample_point()
        if point.is_void():
            return "an instance"
        statement = self.statements[key]
        values = {}
        for d, n in enumerate(statement.loops):
            values[n] = int(point.get_multi_val().get_val(d).to_python())
        return statement.instance(values)

    # --- what a write leaves, what an update adds -----------------------------------------------------------------

    def origin(self, key: Key) -> tuple[str, Any] | None:
        """The original block that a statement's block claims to compute, and its index over loops."""
        statement = self.statements[key]
        block = statement.block
        if statement.is_init or block.origin is None or block.origin[0] not in self.blocks:
            return None
        name, forms = block.origin
        if len(forms) != len(self.blocks[name].axes):
            return None
        return name, tuple(block.at(f, self.program.ranges) for f in forms)

    def claimed(self, key: Key, result: int) -> tuple[str, Any] | None:
        """The original buffer of a computing block's result, and the map from instances to its iteration space."""
        found = self.origin(key)
        if found is None:
            return None
        name, forms = found
        source = self.blocks[name]
        if result >= len(source.writes):
            return None
        buffer = source.writes[result].buffer
        inside = [f"0 <= {lin.to_isl(f, self.names)} < {axis.size}" for f, axis in zip(forms, source.axes, strict=True)]
        return buffer, self.map(key, self.points_space(buffer), forms, more=" and ".join(inside))

    @cached_property
    def _to_values(self) -> dict[str, Any]:
        found = {}
        for name, equation in self.equations.items():
            axes = [f"i{n}" for n in range(len(equation.block.axes))]
            index = ["0" if d is None else axes[d] for d in equation.dims]
            inside = [f"0 <= i{n} < {axis.size}" for n, axis in enumerate(equation.block.axes)]
            found[name] = isl.UnionMap(
                f"{{ {self.points_space(name)}[{', '.join(axes)}] -> {self.value_space(name)}[{', '.join(index)}] : "
                f"{' and '.join(inside) or 'true'} }}",
                context(),
            )
        return found

    def to_values(self, buffer: str) -> Any:
        """From the iteration space of a buffer's equation to its elements."""
        return self._to_values[buffer]

    def left(self, key: Key, use: Use) -> Content:
        """What a resetting write leaves in its cells, by the instances of the statement."""
        statement = self.statements[key]
        block = statement.block
        number = next(n for n, u in enumerate(statement.uses[len(statement.uses) - len(block.writes) :]) if u == use)
        content = Content()
        if statement.is_init:
            held = neutral(block.combiners[number], self.program.buffers[use.buffer].element)
            content.add("constant", held, self.domain(key))
            return content
        claimed = self.claimed(key, number)
        if claimed is not None:
            buffer, points = claimed
            content.add("final", buffer, points.apply_range(self.to_values(buffer)))
            return content
        return self._carried(key, block.body[number], use)

    def _carried(self, key: Key, node: body.Scalar, use: Use) -> Content:
        """What an expression of a block without origin yields: what a read finds, a constant, or one of two such by an
        affine condition. What it computes otherwise is not known."""
        block = self.statements[key].block
        if isinstance(node, body.Read) and block.table is None:
            if (key, node.position) in self.known and self.known[key, node.position] is None:
                return self._assumed(key, node.position, use)
            return self.content(key, node.position)
        content, domain = Content(), self.domain(key)
        condition = None
        if isinstance(node, body.Apply) and node.kind is SelectOp:
            condition = affine_test(node.operands[0], block.bindings, self.program.ranges)
        if isinstance(node, body.Apply) and node.kind is arith.ConstantOp:
            content.add("constant", node.properties[0][1], domain)
        elif isinstance(node, body.Apply) and condition is not None:
            inside = isl.UnionSet(f"{{ {self.space(key)} : {condition.isl(self.names)} }}", context())
            content.join(self._carried(key, node.operands[1], use).where(domain.intersect(inside)))
            content.join(self._carried(key, node.operands[2], use).where(domain.subtract(inside)))
        else:
            content.unknown = self._unfollowed(key, node, use)
        return content

    def _unfollowed(self, key: Key, node: body.Scalar, use: Use) -> Any:
        """The instances of a block without origin that compute what may be an element, or a contribution to one."""
        how = None if use.how == "write" else use.how
        wanted = [e.block.body[e.result] for e in self.equations.values() if e.combiner == how]
        if any(resembles(expression, node) for expression in wanted):
            return self.domain(key)
        return isl.UnionSet("{ }", context())

    def _assumed(self, key: Key, position: int, use: Use) -> Content:
        """What a copy leaves whose value depends on what it left before, as when partial sums travel in and out of a
        window: all contributions to the element so far, or the element itself once it has been computed. `content`
        proves it, by induction over time."""
        source = self.statements[key].uses[position]
        named = use if use.buffer in self.equations else source  # into a window, or out of it
        buffer = named.buffer
        if buffer not in self.equations or named.where:
            raise Unknown(f"'{use.buffer}' is built from its own earlier values")
        points = isl.UnionMap("{ }", context())
        for k, s in self.statements.items():
            for number in range(0 if s.is_init else len(s.block.writes)):
                claimed = self.claimed(k, number)
                if claimed is not None and claimed[0] == buffer:
                    earlier = self.times[key].lex_gt_union_map(self.times[k])
                    points = points.union(earlier.apply_range(claimed[1].intersect_domain(self.domain(k))))
        points = points.intersect(self._elements(key, named).apply_range(self.to_values(buffer).reverse()))
        self.assumed[key, position] = buffer, points
        if self.equations[buffer].combiner is None:
            return Content(final={buffer: points.apply_range(self.to_values(buffer))})
        return Content(partial={buffer: points})

    def _elements(self, key: Key, use: Use) -> Any:
        """The element of an original buffer that lies in a statement's cell: the one that computing blocks put there,
        or the one of the same index."""
        found = isl.UnionMap("{ }", context())
        for k, s in self.statements.items():
            for number in range(0 if s.is_init else len(s.block.writes)):
                written = s.uses[len(s.uses) - len(s.block.writes) + number]
                claimed = self.claimed(k, number)
                if written.buffer == use.buffer and claimed is not None:
                    values = claimed[1].apply_range(self.to_values(claimed[0]))
                    found = found.union(self.cell(k, written).reverse().apply_range(values))
        if found.is_empty():
            return self.map(key, self.value_space(use.buffer), use.forms)
        if not found.is_single_valued():
            raise Unknown(f"the cells of '{use.buffer}' hold several elements one after another")
        return self.cell(key, use).apply_range(found)

    def _prove_assumed(self, key: Key, position: int, found: Content) -> None:
        """The content that was assumed for earlier instances is the one found for all."""
        if (key, position) not in self.assumed:
            return
        buffer, points = self.assumed[key, position]
        actual = found.partial.get(buffer, isl.UnionMap("{ }", context()))
        if buffer in found.final:
            actual = actual.union(found.final[buffer].apply_range(self.to_values(buffer).reverse()))
        if not actual.is_equal(points):
            raise Unknown(f"the partial results of '{buffer}' that block '{key[0]}' copies could not be followed")

    def added(self, key: Key, use: Use) -> Content:
        """What an update adds to its cells: contributions to elements of one buffer."""
        statement = self.statements[key]
        block = statement.block
        number = next(n for n, u in enumerate(statement.uses[len(statement.uses) - len(block.writes) :]) if u == use)
        claimed = self.claimed(key, number)
        if claimed is not None:
            buffer, points = claimed
            if not self.combines_as(use, buffer):
                raise Refuted(f"block '{block.label}' combines by {use.how}, its origin does not")
            return Content(partial={buffer: points})
        value = block.body[number]
        if not isinstance(value, body.Read):
            return Content(unknown=self._unfollowed(key, value, use))
        found = self.content(key, value.position)
        points = Content(partial=dict(found.partial), constant=found.constant, unknown=found.unknown)
        for buffer, elements in found.final.items():
            if self.combines_as(use, buffer):
                points.add("partial", buffer, elements.apply_range(self.to_values(buffer).reverse()))
        for buffer in points.partial:
            if not self.combines_as(use, buffer):
                raise Refuted(f"block '{block.label}' combines by {use.how} what '{buffer}' combines otherwise")
        return points

    def combines_as(self, use: Use, buffer: str) -> bool:
        """Whether an update combines as the equation of a buffer does: by the same combiner, which takes maxima and
        minima of numbers with or without sign as the element type of its target says."""
        if buffer not in self.equations or self.equations[buffer].combiner != use.how:
            return False
        here, there = self.program.buffers[use.buffer].element, self.original.buffers[buffer].element
        return use.how not in ("max", "min") or is_unsigned(here) == is_unsigned(there)

    # --- what a read finds ----------------------------------------------------------------------------------------

    def content(self, key: Key, position: int) -> Content:
        """What read number `position` of a statement finds."""
        asked = (key, position)
        if asked in self.known:
            found = self.known[asked]
            if found is None:
                raise Unknown(f"'{self.statements[key].uses[position].buffer}' is built from its own earlier values")
            return found
        self.known[asked] = None
        use = self.statements[key].uses[position]
        access = self.statements[key].block.reads[position]
        found = self.of_cells(key, use.buffer, self.cell(key, use), use)
        if use.where and access.otherwise is not None:
            elsewhere = self.domain(key).subtract(self.domain(key, use))
            if not elsewhere.is_empty():
                found.add("constant", access.otherwise, elsewhere)
        self._prove_assumed(key, position, found)
        self.known[asked] = found
        return found

    def of_cells(self, key: Key, buffer: str, sink: Any, use: Use | None) -> Content:
        """What instances find in the cells that they are mapped to."""
        written = [(k, u) for k, s in self.statements.items() for u in s.uses if u.buffer == buffer and u.how != "read"]
        if not written:
            if use is None or buffer in self.program.allocs:
                return Content()
            return Content(final={buffer: self.map(key, self.value_space(buffer), use.forms, use)})
        resets = [(k, u) for k, u in written if u.how == "write"]
        updates = [(k, u) for k, u in written if u.how != "write"]
        dependences = self._dependences(key, sink, resets, updates)
        content = Content()
        begun: dict[str, Any] = {}
        base = isl.UnionSet("{ }", context())
        neutral = self._neutral(buffer, updates)
        for k, u in resets:
            back = dependences.intersect_domain(self.domain(k)).reverse()
            if back.is_empty():
                continue
            left = self.left(k, u)
            for name, elements in left.final.items():
                content.add("final", name, back.apply_range(elements))
            for name, points in left.partial.items():
                found = back.apply_range(points)
                begun[name] = begun[name].union(found) if name in begun else found
                base = base.union(found.domain())
            for value, instances in left.constant.items():
                found = back.intersect_range(instances).domain()
                content.add("constant", value, found)
                base = base.union(found) if value == neutral else base
            content.unknown = content.unknown.union(back.intersect_range(left.unknown).domain())
        self._add_updates(content, begun, dependences, updates, base)
        return content

    def _neutral(self, buffer: str, updates: list[tuple[Key, Use]]) -> Attribute | None:
        """The identity of the combiner by which a buffer is updated."""
        hows: set[Combiner] = {u.how for _, u in updates}
        if len(hows) > 1:
            raise Unknown(f"'{buffer}' is updated by several combiners")
        return neutral(hows.pop(), self.program.buffers[buffer].element) if hows else None

    def _dependences(self, key: Key, sink: Any, resets: list[tuple[Key, Use]], updates: list[tuple[Key, Use]]) -> Any:
        """From the last reset, and all updates since, to the instances that find them."""
        # By definition, with neither isl's compute_flow nor its lexmax: both were seen to lose quasi-affine pairs.
        reset_cells, reset_times = self._cells_of(resets)
        update_cells, update_times = self._cells_of(updates)
        now = self.times[key]
        earlier = sink.apply_range(reset_cells.reverse()).intersect(now.lex_gt_union_map(reset_times)).compute_divs()
        found = earlier.subtract(earlier.apply_range(reset_times.lex_gt_union_map(reset_times)))
        if not found.is_single_valued() or not found.domain().is_equal(earlier.domain()):
            raise Unknown("the last writers of a buffer could not be told")
        since = sink.apply_range(update_cells.reverse()).intersect(now.lex_gt_union_map(update_times)).compute_divs()
        since = since.subtract(found.apply_range(reset_times.lex_gt_union_map(update_times)))
        return found.union(since).reverse()

    def _cells_of(self, uses: list[tuple[Key, Use]]) -> tuple[Any, Any]:
        """The cells that some uses touch, and when."""
        cells = times = isl.UnionMap("{ }", context())
        for k, u in uses:
            cells = cells.union(self.cell(k, u))
            times = times.union(self.times[k])
        return cells, times

    def _add_updates(
        self,
        content: Content,
        begun: dict[str, Any],
        dependences: Any,
        updates: list[tuple[Key, Use]],
        base: Any,
    ) -> None:
        """Join the contributions of updates to what the resets left, each once, and see which values are finished.

        `base` are the instances whose cell held the identity, or partial results, after its reset.
        """
        gained: dict[str, Any] = dict(begun)
        touched = isl.UnionSet("{ }", context())
        ways: dict[str, Any] = {}
        for k, u in updates:
            back = dependences.intersect_domain(self.domain(k)).reverse()
            if back.is_empty():
                continue
            added = self.added(k, u)
            neutral = self._neutral(u.buffer, [(k, u)])
            nothing = added.constant.get(neutral) if neutral is not None else None
            back = back if nothing is None else back.subtract_range(nothing)
            touched = touched.union(back.domain())
            known = isl.UnionSet("{ }", context())
            for name, points in added.partial.items():
                known = known.union(points.domain())
                pairs = back.reverse().range_product(points).reverse()
                ways[name] = ways[name].union(pairs) if name in ways else pairs
            strange = back.subtract_range(known)
            if not strange.is_empty():
                self._drop(content, gained, ways, strange.domain())
                content.unknown = content.unknown.union(strange.intersect_range(added.unknown).domain())
        self._drop(content, gained, ways, touched.subtract(base))
        for name, pairs in ways.items():
            self._require_once(pairs, name)
            found = pairs.domain().unwrap()
            if name in gained and not gained[name].intersect(found).is_empty():
                raise Refuted(f"a contribution to '{name}' occurs twice: before and after a copy")
            gained[name] = gained[name].union(found) if name in gained else found
        if not touched.is_empty():
            content.final = {n: m.subtract_domain(touched) for n, m in content.final.items()}
            content.constant = {v: s.subtract(touched) for v, s in content.constant.items()}
        for name, points in gained.items():
            self._finish(content, name, points)

    def _drop(self, content: Content, gained: dict[str, Any], ways: dict[str, Any], instances: Any) -> None:
        """Forget instances whose cells were updated by something unknown."""
        for table in (content.final, gained):
            for name in table:
                table[name] = table[name].subtract_domain(instances)
        for name in ways:
            reached = ways[name].domain().unwrap().intersect_domain(instances).wrap()
            ways[name] = ways[name].subtract_domain(reached)

    def _require_once(self, pairs: Any, name: str) -> None:
        """Each contribution comes by one update only."""
        if pairs.is_single_valued():
            return
        twice = pairs.reverse().apply_range(pairs)
        keys = [k for k in self.statements if not twice.range().intersect(self.domain(k)).is_empty()]
        spaces = " and ".join(f"block '{k[0]}'" for k in keys[:2])
        raise Refuted(f"a contribution to '{name}' occurs twice, by {spaces or 'its block'}")

    def _finish(self, content: Content, name: str, points: Any) -> None:
        """Contributions that are complete are a finished value; the others stay partial."""
        elements = points.apply_range(self.to_values(name))
        wanted = elements.apply_range(self.to_values(name).reverse())
        missing = wanted.subtract(points)
        if not elements.is_single_valued():
            raise Refuted(f"contributions to different elements of '{name}' are combined")
        open_instances = missing.domain()
        done = elements.subtract_domain(open_instances)
        if not done.is_empty():
            content.add("final", name, done)
        rest = points.intersect_domain(open_instances)
        if not rest.is_empty():
            content.add("partial", name, rest)
