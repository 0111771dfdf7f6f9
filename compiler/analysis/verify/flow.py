"""The value that each read of a scheduled program finds, by exact dataflow through isl.

A cell is reset by a plain write or an init and then updated by combining. So a read finds the value of the last reset,
with the contributions of all updates since. Contributions are points of an original reduction's iteration space: each
may occur once, and when none is missing the value is finished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import islpy as isl
from xdsl.dialects import arith
from xdsl.ir import Attribute

from compiler.analysis.sets import union_map, union_set
from compiler.analysis.statements import Key, Use
from compiler.analysis.verify.content import Content, Refuted, Unknown, join
from compiler.analysis.verify.equations import Equation
from compiler.analysis.verify.forms import resembles
from compiler.analysis.verify.spaces import Claim, Spaces
from compiler.dialects.upstream.arith import SelectOp
from compiler.program import body
from compiler.program.combiner import Combiner, neutral
from compiler.program.index_values import affine_test
from compiler.program.tree import Program
from compiler.types.elements import is_unsigned

Before: TypeAlias = Callable[[Key], isl.UnionMap]
"""Function from a statement to the map from reading instances to its instances that run before them."""


class Flow(Spaces):
    """The exact dataflow of one scheduled program: the content of each read, computed on demand and cached."""

    def __init__(self, program: Program, original: Program, equations: Mapping[str, Equation]) -> None:
        super().__init__(program, original, equations)
        self._contents: dict[tuple[Key, int], Content | None] = {}
        self._assumptions: dict[tuple[Key, int], Claim] = {}

    def left(self, key: Key, use: Use) -> Content:
        """The content of the cells immediately after the write or init `use`, over the instances of its statement."""
        # S[i] with origin C[i]: final { C: { S[i] -> V[i] } }. The init I[i] of a sum: constant { 0: { I[i] } }.
        statement = self.statements[key]
        number = self.targets(key).index(use)
        if statement.is_init:
            identity = neutral(statement.block.combiners[number], self.program.buffers[use.buffer].element)
            return Content(constant={identity: self.domain(key)})
        claim = self.claimed(key, number)
        if claim is not None:
            return Content(final={claim.buffer: claim.points.apply_range(self.to_values(claim.buffer))})
        return self._carried(key, statement.block.body[number], use)

    def _carried(self, key: Key, node: body.Scalar, use: Use) -> Content:
        """The value that an expression of a block without origin yields: a read, a constant, or a select between two of
        these by an affine condition. Any other expression is unknown."""
        # select(i >= 4, A[i], 0) at S[i]: final { A: { S[i] -> V[i] : i >= 4 } }, constant { 0: { S[i] : i < 4 } }.
        block, domain = self.statements[key].block, self.domain(key)
        if isinstance(node, body.Read) and block.table is None:
            if (key, node.position) in self._contents and self._contents[key, node.position] is None:
                return self._assumed(key, node.position, use)
            return self.content(key, node.position)
        if isinstance(node, body.Apply) and node.kind is arith.ConstantOp:
            return Content(constant={node.properties[0][1]: domain})
        if isinstance(node, body.Apply) and node.kind is SelectOp:
            condition = affine_test(node.operands[0], block.bindings, self.program.ranges)
            if condition is not None:
                inside = self.holds(key, condition)
                content = self._carried(key, node.operands[1], use).where(domain.intersect(inside))
                content.join(self._carried(key, node.operands[2], use).where(domain.subtract(inside)))
                return content
        return Content(unknown=self._unfollowed(key, node, use))

    def _unfollowed(self, key: Key, node: body.Scalar, use: Use) -> isl.UnionSet:
        """All instances of a block without origin if `node` may compute an element or a contribution; else none."""
        how = None if use.how == "write" else use.how
        expressions = [e.block.body[e.result] for e in self.equations.values() if e.combiner == how]
        return self.domain(key) if any(resembles(expression, node) for expression in expressions) else union_set()

    def _assumed(self, key: Key, position: int, use: Use) -> Content:
        """Assume the content of a copy that depends on its own earlier values, as when partial sums move in and out of
        a window: all contributions to the element so far or, without reduction, the element. `_prove_assumed` proves
        the assumption, by induction over time. Raises Unknown for a buffer without equation or a conditional access."""
        # S[k, j] copies C[j] into a window before U[k, j] adds K[j, k]: assumed { S[k, j] -> K[j, k'] : k' < k }.
        source = self.statements[key].uses[position]
        element_use = use if use.buffer in self.equations else source  # into a window, or out of it
        buffer = element_use.buffer
        if buffer not in self.equations or element_use.where:
            raise Unknown(f"'{use.buffer}' is built from its own earlier values")
        points = union_map()
        for writer, _, claim in self.claims():
            if claim.buffer == buffer:
                earlier = self.before(key, writer)
                points = points.union(earlier.apply_range(claim.points.intersect_domain(self.domain(writer))))
        points = points.intersect(self._element_of(key, element_use).apply_range(self.to_points(buffer)))
        self._assumptions[key, position] = Claim(buffer, points)
        if self.equations[buffer].combiner is None:
            return Content(final={buffer: points.apply_range(self.to_values(buffer))})
        return Content(partial={buffer: points})

    def _element_of(self, key: Key, use: Use) -> isl.UnionMap:
        """The element of an original buffer in a statement's cell: the one that computing blocks write there or, if
        there are none, the one of the same index. Raises Unknown if they write several."""
        # U[j] with origin C[j] writes T[j]: the cells hold { M[j] -> V[j] }. S[l] reads T[l + 1]: { S[l] -> V[l + 1] }.
        elements = union_map()
        for writer, written, claim in self.claims():
            if written.buffer == use.buffer:
                values = claim.points.apply_range(self.to_values(claim.buffer))
                elements = elements.union(self.cell(writer, written).reverse().apply_range(values))
        if elements.is_empty():
            return self.map(key, self.value_space(use.buffer), use.forms)
        if not elements.is_single_valued():
            raise Unknown(f"the cells of '{use.buffer}' hold several elements one after another")
        return self.cell(key, use).apply_range(elements)

    def _prove_assumed(self, key: Key, position: int, content: Content) -> None:
        """Raise Unknown unless the content of a read is the one that `_assumed` assumed for it, if any."""
        # Assumed { S[k, j] -> K[j, k'] : k' < k }, but the actual map has k' < k - 1 only: Unknown.
        if (key, position) not in self._assumptions:
            return
        buffer, points = self._assumptions[key, position]
        actual = content.partial.get(buffer, union_map())
        if buffer in content.final:
            actual = actual.union(content.final[buffer].apply_range(self.to_points(buffer)))
        if not actual.is_equal(points):
            raise Unknown(f"the partial results of '{buffer}' that block '{key[0]}' copies could not be followed")

    def added(self, key: Key, use: Use) -> Content:
        """The content that the update `use` adds to its cells: contributions to elements of one buffer. Raises Refuted
        if its combiner is not that of the buffer, and Refuted or Unknown for the content of a read that it adds."""
        # S[i, k] adds into C[i], with origin C at [i, k]: partial { C: { S[i, k] -> K[i, k] } }.
        block, number = self.statements[key].block, self.targets(key).index(use)
        claim = self.claimed(key, number)
        if claim is not None:
            if not self._combines_as(use, claim.buffer):
                raise Refuted(f"block '{block.label}' combines by {use.how}, its origin does not")
            return Content(partial={claim.buffer: claim.points})
        value = block.body[number]
        if not isinstance(value, body.Read):
            return Content(unknown=self._unfollowed(key, value, use))
        value_read = self.content(key, value.position)
        added = Content(partial=dict(value_read.partial), constant=value_read.constant, unknown=value_read.unknown)
        for buffer, elements in value_read.final.items():
            if self._combines_as(use, buffer):
                join(added.partial, buffer, elements.apply_range(self.to_points(buffer)))
        for buffer in added.partial:
            if not self._combines_as(use, buffer):
                raise Refuted(f"block '{block.label}' combines by {use.how} what '{buffer}' combines otherwise")
        return added

    def _combines_as(self, use: Use, buffer: str) -> bool:
        """Whether an update and a buffer's equation have one combiner and, for max and min, the same signedness."""
        if buffer not in self.equations or self.equations[buffer].combiner != use.how:
            return False
        here, original_element = self.program.buffers[use.buffer].element, self.original.buffers[buffer].element
        return use.how not in ("max", "min") or is_unsigned(here) == is_unsigned(original_element)

    # --- what a read finds ----------------------------------------------------------------------------------------

    def content(self, key: Key, position: int) -> Content:
        """The content that read number `position` of a statement finds. Raises Unknown if it depends on itself or could
        not be followed, and Refuted for contributions that occur twice or are of different elements."""
        read_key, use = (key, position), self.statements[key].uses[position]
        if read_key in self._contents:
            earlier = self._contents[read_key]
            if earlier is None:
                raise Unknown(f"'{use.buffer}' is built from its own earlier values")
            return earlier
        self._contents[read_key] = None
        access = self.statements[key].block.reads[position]
        if use.buffer in self.program.allocs or self.writers(use.buffer):
            content = self.of_cells(use.buffer, self.cell(key, use), partial(self.before, key))
        else:  # an argument has its own elements
            content = Content(final={use.buffer: self.map(key, self.value_space(use.buffer), use.forms, use)})
        if use.where and access.otherwise is not None:
            elsewhere = self.domain(key).subtract(self.domain(key, use))
            if not elsewhere.is_empty():
                join(content.constant, access.otherwise, elsewhere)
        self._prove_assumed(key, position, content)
        self._contents[read_key] = content
        return content

    def writers(self, buffer: str) -> list[tuple[Key, Use]]:
        """The keys of the statements that write or update a buffer, each with the use that writes or updates it."""
        return [(k, u) for k, s in self.statements.items() for u in s.uses if u.buffer == buffer and u.how != "read"]

    def of_cells(self, buffer: str, sink: isl.UnionMap, before: Before) -> Content:
        """The content of the cells to which `sink` maps instances; `before` maps a statement's key to the map from
        these instances to the statement's earlier ones."""
        # Y[i] after the init I[i] and all updates S[i, k], k < 8, of C: final { C: { Y[i] -> V[i] } }; else partial.
        written = self.writers(buffer)
        if not written:
            return Content()
        resets = [(k, u) for k, u in written if u.how == "write"]
        updates = [(k, u) for k, u in written if u.how != "write"]
        dependences = self._dependences(sink, before, resets, updates)
        content = Content()
        begun: dict[str, isl.UnionMap] = {}
        base = union_set()
        identity = self._neutral(buffer, updates)
        for k, u in resets:
            back = dependences.intersect_domain(self.domain(k)).reverse()
            if back.is_empty():
                continue
            left = self.left(k, u)
            for name, elements in left.final.items():
                join(content.final, name, back.apply_range(elements))
            for name, points in left.partial.items():
                join(begun, name, back.apply_range(points))
                base = base.union(back.apply_range(points).domain())
            for value, instances in left.constant.items():
                readers = back.intersect_range(instances).domain()
                join(content.constant, value, readers)
                base = base.union(readers) if value == identity else base
            content.unknown = content.unknown.union(back.intersect_range(left.unknown).domain())
        self._add_updates(content, begun, dependences, updates, base)
        return content

    def _neutral(self, buffer: str, updates: Sequence[tuple[Key, Use]]) -> Attribute | None:
        """Return the identity of the combiner of a buffer's updates; None without updates. Raises Unknown if they have
        several combiners."""
        hows: set[Combiner] = {u.how for _, u in updates}
        if len(hows) > 1:
            raise Unknown(f"'{buffer}' is updated by several combiners")
        return neutral(hows.pop(), self.program.buffers[buffer].element) if hows else None

    def _dependences(
        self, sink: isl.UnionMap, before: Before, resets: Sequence[tuple[Key, Use]], updates: Sequence[tuple[Key, Use]]
    ) -> isl.UnionMap:
        """The map from the last reset of a cell, and all updates since, to the instances that find them."""
        # S[i, k] sums A[i, k] after its init I[i]; a read Y[i] in a later nest finds I[i] and all S[i, k]:
        #   { S[i, k] -> Y[i] : 0 <= i <= 3 and 0 <= k <= 7; I[i] -> Y[i] : 0 <= i <= 3 }
        # By definition, with neither isl's compute_flow nor its lexmax: both were seen to lose quasi-affine pairs.
        last = self._last(self._earlier(sink, before, resets), resets)
        if not updates:
            return last.reverse()
        since = self._earlier(sink, before, updates).subtract(last.apply_range(self._before(resets, updates)))
        return last.union(since).reverse()

    def _last(self, earlier: isl.UnionMap, resets: Sequence[tuple[Key, Use]]) -> isl.UnionMap:
        """The map from instances to the last reset of their cells before them. Raises Unknown if a cell has several."""
        # Z[i] and W[i] set the cell of Y[i] in this order: { Y[i] -> Z[i]; Y[i] -> W[i] }  ->  { Y[i] -> W[i] }.
        if earlier.is_single_valued():
            return earlier
        last = earlier.subtract(earlier.apply_range(self._before(resets, resets)))
        if not last.is_single_valued() or not last.domain().is_equal(earlier.domain()):
            raise Unknown("the last writers of a buffer could not be told")
        return last

    def _earlier(self, sink: isl.UnionMap, before: Before, writers: Sequence[tuple[Key, Use]]) -> isl.UnionMap:
        """The map from instances to those of `writers` that touched the same cells before them."""
        # Y[i] reads cell M[i], S[k] writes M[k] in an earlier nest: { Y[i] -> S[i] }.
        pairs = union_map()
        for k, u in writers:
            pairs = pairs.union(sink.apply_range(self.cell(k, u).reverse()).intersect(before(k)))
        return pairs.compute_divs()

    def _before(self, late: Sequence[tuple[Key, Use]], early: Sequence[tuple[Key, Use]]) -> isl.UnionMap:
        """The map from the instances of the writers `late` to those of `early` that run before them."""
        pairs = union_map()
        for key, earlier in dict.fromkeys((k, e) for k, _ in late for e, _ in early):
            pairs = pairs.union(self.before(key, earlier))
        return pairs

    def _add_updates(
        self,
        content: Content,
        begun: dict[str, isl.UnionMap],
        dependences: isl.UnionMap,
        updates: Sequence[tuple[Key, Use]],
        base: isl.UnionSet,
    ) -> None:
        """Join the contributions of updates, each once, to the content that resets left, and find the finished values.

        `begun` are the contributions from resets, and `base` the instances whose cell held the identity, or partial
        results, after its reset. Raises Refuted if a contribution occurs twice.
        """
        # back { Y[i] -> S[i, k] }, added { S[i, k] -> K[i, k] }: ways { [Y[i] -> K[i, k]] -> S[i, k] }.
        gained = dict(begun)
        touched = union_set()
        ways: dict[str, isl.UnionMap] = {}
        for k, u in updates:
            back = dependences.intersect_domain(self.domain(k)).reverse()
            if back.is_empty():
                continue
            back = back.coalesce()
            added = self.added(k, u)
            identity = self._neutral(u.buffer, [(k, u)])
            neutral_updates = added.constant.get(identity) if identity is not None else None
            back = back if neutral_updates is None else back.subtract_range(neutral_updates)
            touched = touched.union(back.domain())
            followed = union_set()
            for name, points in added.partial.items():
                followed = followed.union(points.domain())
                join(ways, name, back.reverse().range_product(points).reverse())
            unfollowed = back.subtract_range(followed)
            if not unfollowed.is_empty():
                self._drop(content, gained, ways, unfollowed.domain())
                content.unknown = content.unknown.union(unfollowed.intersect_range(added.unknown).domain())
        self._drop(content, gained, ways, touched.subtract(base))
        for name, pairs in ways.items():
            self._require_once(pairs, name)
            points = pairs.domain().unwrap()
            if name in gained and not gained[name].intersect(points).is_empty():
                raise Refuted(f"a contribution to '{name}' occurs twice: before and after a copy")
            join(gained, name, points)
        if not touched.is_empty():
            content.final = {n: m.subtract_domain(touched) for n, m in content.final.items()}
            content.constant = {v: s.subtract(touched) for v, s in content.constant.items()}
        for name, points in gained.items():
            self._finish(content, name, points)

    def _drop(
        self, content: Content, gained: dict[str, isl.UnionMap], ways: dict[str, isl.UnionMap], instances: isl.UnionSet
    ) -> None:
        """Remove instances whose cells have no known value from the finished values and the contributions, in place."""
        for table in (content.final, gained):
            for name in table:
                table[name] = table[name].subtract_domain(instances)
        for name in ways:
            reached = ways[name].domain().unwrap().intersect_domain(instances).wrap()
            ways[name] = ways[name].subtract_domain(reached)

    def _require_once(self, pairs: isl.UnionMap, name: str) -> None:
        """Raise Refuted, with the buffer `name`, unless each contribution comes by one update only."""
        # { [Y[i] -> K[i, k]] -> S[i, k, j] : 0 <= j < 2 }: S[i, k, 0] and S[i, k, 1] both add K[i, k], so refuted.
        if pairs.is_single_valued():
            return
        twice = pairs.reverse().apply_range(pairs)
        keys = [k for k in self.statements if not twice.range().intersect(self.domain(k)).is_empty()]
        spaces = " and ".join(f"block '{k[0]}'" for k in keys[:2])
        raise Refuted(f"a contribution to '{name}' occurs twice, by {spaces or 'its block'}")

    def _finish(self, content: Content, name: str, points: isl.UnionMap) -> None:
        """Add contributions to the content, as finished values if complete, else as partial ones. Raises Refuted if
        those of different elements are combined."""
        # { Y[i] -> K[i, k] : 0 <= k <= 7 } of a sum over k < 8 is { Y[i] -> V[i] }; with 0 <= k <= 6 it is partial.
        points = points.coalesce()
        elements = points.apply_range(self.to_values(name))
        missing = elements.apply_range(self.to_points(name)).subtract(points)
        if not elements.is_single_valued():
            raise Refuted(f"contributions to different elements of '{name}' are combined")
        incomplete = missing.domain()
        complete, remaining_points = elements.subtract_domain(incomplete), points.intersect_domain(incomplete)
        if not complete.is_empty():
            join(content.final, name, complete)
        if not remaining_points.is_empty():
            join(content.partial, name, remaining_points)
