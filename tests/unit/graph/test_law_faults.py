"""Faults planted into the laws of graphs: random programs must show each of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.dominance import verify_module
from compiler.graph import hashing
from compiler.graph.canonical import canonicalize
from compiler.graph.laws import concatenations, dead_nodes, equal_nodes, extents, identities, views
from compiler.graph.tree import Compute
from compiler.program.body import Read
from compiler.support.errors import StrataError
from tests.bitwise import results, same_bits
from tests.random_programs import arrays_for, program

Plant = Callable[[pytest.MonkeyPatch], None]
SEEDS = 200


def results_mixed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """dead: a compute that loses a result keeps the wrong body"""
    right = dead_nodes._needed_part

    def wrong(node, needed):  # type: ignore[no-untyped-def]
        part = right(node, needed)
        return (
            part
            if part is node
            else Compute(replace(part.block, body=node.block.body[-len(part.results) :]), part.results)
        )

    monkeypatch.setattr(dead_nodes, "_needed_part", wrong)


def negative_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """extents: the sum of -0.0 alone is -0.0"""
    monkeypatch.setattr(extents, "_single", lambda block: replace(block, combiners=()))


def dimension_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """extents: readers drop the first dimension instead of that of extent 1"""
    right = extents._without

    def wrong(node, free, shapes):  # type: ignore[no-untyped-def]
        new = right(node, free, shapes)
        for value in new.results:
            if value.name in shapes:
                shapes[value.name] = list(range(1, 1 + len(shapes[value.name])))
        return new

    monkeypatch.setattr(extents, "_without", wrong)


def permutation_as_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """identities: where to read does not count"""

    def wrong(node, position, graph):  # type: ignore[no-untyped-def]
        value = node.block.body[position]
        if node.block.combiners or node.block.table is not None or not isinstance(value, Read):
            return None
        access = node.block.reads[value.position]
        same = graph.values[access.buffer].shape == node.results[position].shape
        return access.buffer if same and not access.where else None

    monkeypatch.setattr(identities, "copied", wrong)


def condition_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """views: the condition of the view is not composed"""
    right = views.composed
    monkeypatch.setattr(
        views,
        "composed",
        lambda access, view, block: right(
            access, replace(view, access=replace(view.access, where=()) if access.where else view.access), block
        ),
    )


def value_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """views: which value is read outside does not count"""
    right = views.composed

    def wrong(access, view, block):  # type: ignore[no-untyped-def]
        same = replace(view.access, otherwise=access.otherwise) if access.where and view.where else view.access
        return right(access, replace(view, access=same), block)

    monkeypatch.setattr(views, "composed", wrong)


def table_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """views: a table that is cut is taken for whole, where indices beyond it are inside the original"""
    right = views._table_through

    def wrong(table, block, view, node):  # type: ignore[no-untyped-def]
        def whole(access, node):  # type: ignore[no-untyped-def]
            seen = view(access, node)
            return None if seen is None else replace(seen, shape=seen.source.shape)

        return right(table, block, whole, node)

    monkeypatch.setattr(views, "_table_through", wrong)


def other_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """concatenations: an undecided comparison counts as decided"""
    right = concatenations.truth_at
    monkeypatch.setattr(concatenations, "truth_at", lambda *given: right(*given) is not False)


def combiner_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """equal: reductions that differ by their combiner are one"""
    right = equal_nodes._key

    def wrong(node, colours):  # type: ignore[no-untyped-def]
        key = right(node, colours)
        return (*key[:3], *key[4:]) if isinstance(node, Compute) else key

    monkeypatch.setattr(equal_nodes, "_key", wrong)


def value_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """equal: reads that differ by their value outside are one"""
    right = equal_nodes._key

    def wrong(node, colours):  # type: ignore[no-untyped-def]
        if isinstance(node, Compute):
            reads = tuple(replace(access, otherwise=None) for access in node.block.reads)
            node = replace(node, block=replace(node.block, reads=reads))
        return right(node, colours)

    monkeypatch.setattr(equal_nodes, "_key", wrong)


def difference_swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """normal form: a - b is b - a"""
    also = {"arith.subf", "arith.subi"}
    monkeypatch.setattr(hashing, "_COMMUTATIVE", hashing._COMMUTATIVE | also)


def predicate_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """normal form: a > b is b > a"""
    same = {name: tuple(range(len(row))) for name, row in hashing._SWAPPED.items()}
    monkeypatch.setattr(hashing, "_SWAPPED", same)


FAULTS: tuple[Plant, ...] = (
    results_mixed_up,
    negative_zero,
    dimension_of_another,
    permutation_as_copy,
    condition_lost,
    value_lost,
    table_cut,
    other_part,
    combiner_ignored,
    value_ignored,
    difference_swapped,
    predicate_kept,
)


def shows_fault(seed: int) -> bool:
    """Whether a random program is not what it was."""
    rng = random.Random(seed)
    function = program(rng, rng.randint(2, 12), dtype="f32" if seed % 2 else None, views=True)
    arrays = arrays_for(function, seed)
    for array in arrays:
        if array.dtype.kind not in "iu":
            array.reshape(-1)[:: rng.randint(1, 3)] = -0.0
    try:
        module = canonicalize(function.module)
        verify_module(module)
        pairs = zip(results(function.module, arrays), results(module, arrays), strict=True)
        return not all(same_bits(a, b) for a, b in pairs)
    except (StrataError, VerifyException, AssertionError, IndexError):
        return True


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_seen(fault: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as planted:
        fault(planted)
        seed = next((seed for seed in range(SEEDS) if shows_fault(seed)), None)
    assert seed is not None, fault.__doc__
    assert not shows_fault(seed), "the program is right without the fault"


def test_the_comparison_sees_a_bit() -> None:
    a = np.array([0.0, np.nan, 1.0], np.float32)
    assert same_bits(a, a.copy()) and same_bits(a, np.array([0.0, -np.nan, 1.0], np.float32))
    assert not same_bits(a, np.array([-0.0, np.nan, 1.0], np.float32))
    assert not same_bits(a, a.astype(np.float64))
