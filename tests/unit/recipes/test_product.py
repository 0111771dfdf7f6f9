"""The rule for packed products: extents of one element, what comes after a product, and how much code that is."""

from __future__ import annotations

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.analysis.verify.prove import verify_schedule
from compiler.autotune.task import SearchTask
from compiler.recipes.product import is_product, panels_in_round
from compiler.recipes.rules import RULES
from compiler.schedule import Schedule
from compiler.space.derivation import Derivation, derive, preferred
from compiler.types.machines import MACHINES, Machine, host

nn = te.nn


def squeezed(m: int, n: int, k: int, after: bool = True) -> te.Function:
    """A batch of one product, a bias added to it, with or without the batch's axis."""
    a, b, c = te.placeholder((1, m, k), name="A"), te.placeholder((1, k, n), name="B"), te.placeholder((n,), name="C")
    product = nn.batch_matmul(a, b)
    return te.function("f", [a, b, c], nn.relu(nn.add(nn.squeeze(product, 0) if after else product, c)))


def matmul(m: int, n: int, k: int, turned: bool = False) -> Schedule:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((n, k) if turned else (k, n), name="B")
    return Schedule(compiler.lower(te.function("f", [a, b], nn.dense(a, b) if turned else nn.matmul(a, b))))


def first(schedule: Schedule) -> Derivation:
    return preferred(schedule, RULES, host(), 1)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 8, 8), (8, 1, 8), (8, 8, 8)])
def test_one_row_or_one_column_makes_a_product_too(m: int, n: int, k: int) -> None:
    (block,) = matmul(m, n, k).program.blocks.values()
    assert is_product(block)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 8), (8, 8, 1)])
def test_dot_and_outer_products_are_none(m: int, n: int, k: int) -> None:
    (block,) = matmul(m, n, k).program.blocks.values()
    assert not is_product(block)


def test_only_rows_of_vectors_are_packed() -> None:
    packed = [any("gebp" in s.name for s in derive(matmul(*case), RULES, host()).sketches) for case in CASES]
    assert packed == [True, False, False, True]


HALF = host().vector_bits // 64
"""Half a vector of f32."""
CASES = [(1, HALF, 24), (1, 32, 12, True), (40, 1, 9), (16, 32, 12, True)]


@pytest.mark.parametrize(("m", "n", "k"), [(256, 2, 5), (13, 13, 3)])
def test_what_fills_no_register_tile_stays_as_written(m: int, n: int, k: int) -> None:
    assert first(matmul(m, n, k)).name.endswith("as written")


@pytest.mark.parametrize("after", [True, False])
def test_a_consumer_may_have_axes_of_one_element(after: bool) -> None:
    task = SearchTask(squeezed(13, 40, 17, after), threads=1)
    derivation = first(task.schedule)
    schedule = derivation.draft.schedule
    assert "applied to tiles" in derivation.name
    assert str(verify_schedule(schedule.program, task.schedule.program)) == "proved"
    kernel = compiler.build(schedule, threads=1)
    random = np.random.default_rng(0)
    given = {x.shape: random.standard_normal(x.shape).astype(x.dtype) for x in kernel.arguments[:3]}
    a, b, c = given[1, 13, 17], given[1, 17, 40], given[40,]
    np.testing.assert_allclose(
        kernel(*given.values()).reshape(13, 40), np.maximum(a[0] @ b[0] + c, 0), rtol=1e-4, atol=1e-4
    )


def test_what_comes_after_products_in_groups_is_unrolled_for_one_tile() -> None:
    a, b = te.placeholder((200, 700), name="A"), te.placeholder((700, 500), name="B")
    task = SearchTask(te.function("f", [a, b], nn.relu(nn.matmul(a, b))), threads=1)
    sketches = derive(task.schedule, RULES, host()).sketches
    sketch = next(s for s in sketches if "in groups, applied to tiles" in s.name)
    program = task.schedule.fork()[0].apply(sketch.decided(sketch.recorded_positions)).program
    product, after = (program.enclosing(label) for label in program.blocks if label in ("product0", "map0"))
    unrolled = [np.prod([loop.extent for loop in loops if loop.kind == "unrolled"]) for loops in (product, after)]
    assert unrolled[0] == unrolled[1]


@pytest.mark.parametrize("axis", [0, 1])
def test_a_concatenation_is_made_before_a_product_reads_it(axis: int) -> None:
    """In the product it would choose among the arrays at each step."""
    pieces = [te.placeholder((24, 16), name=f"X{i}") for i in range(3)]
    joined = te.nn.concat([te.nn.relu(piece) for piece in pieces], axis)
    weight = te.placeholder((20, joined.shape[1]), name="W")
    task = SearchTask(te.function("f", [*pieces, weight], te.nn.dense(joined, weight)), threads=1)
    program = preferred(task.schedule, task.rules, task.machine).draft.schedule.program
    (product,) = (block for block in program.blocks.values() if block.combiners == ("add",) and block.reads)
    assert len(product.reads) == 2 and not any(access.where for access in product.reads)


@pytest.mark.parametrize(
    ("count", "fitting", "wanted"),
    [(6, 4, 6), (6, 5, 6), (14, 2, 2), (14, 4, 7), (7, 4, 7), (10, 3, 5), (21, 5, 7), (13, 5, 7), (1, 9, 1), (5, 1, 1)],
)
def test_rounds_of_panels_have_few_empty_ones(count: int, fitting: int, wanted: int) -> None:
    assert panels_in_round(count, fitting) == wanted


def test_few_panels_are_computed_in_vain() -> None:
    """At most a sixth where two panels fit into L2, whatever the columns; all fit into L2."""
    for count in range(1, 200):
        for fitting in range(2, 30):
            panels = panels_in_round(count, fitting)
            assert panels <= 2 * fitting and -(-count // panels) * panels <= count * 7 / 6 + 1e-9


def of_images(rows: int, width: int, k: int, n: int, scaled: bool = False) -> Schedule:
    """A product of the pixels of an image with channels last, each channel scaled before where so asked."""
    x, w = te.placeholder((rows, width, k), name="X"), te.placeholder((k, n), name="W")
    s = te.placeholder((k,), name="s")
    a = te.compute((rows, width, k), lambda h, v, c: x[h, v, c] * s[c], name="A") if scaled else x
    c = te.reduce_axis(k, "c")
    y = te.compute((rows, width, n), lambda h, v, j: te.sum(a[h, v, c] * w[c, j], axis=c), name="Y")
    return Schedule(compiler.lower(te.function("f", [x, w, *([s] if scaled else [])], y)))


@pytest.mark.parametrize(("k", "copied"), [(1024, True), (1040, False)])
def test_rows_that_meet_in_a_set_of_l1_are_copied(k: int, copied: bool) -> None:
    schedule = matmul(14, 32, k)
    draft = first(schedule).draft.schedule
    assert any("A" in block.sources and not block.combiners for block in draft.program.blocks.values()) == copied
    assert str(verify_schedule(draft.program, schedule.program)) == "proved"


def test_an_elementwise_block_before_a_product_runs_for_a_round_of_tiles() -> None:
    schedule = of_images(3, 14, 64, 48, scaled=True)
    draft = first(schedule).draft.schedule
    around = [{loop.number for loop in draft.program.enclosing(label)} for label in ("A", "Y")]
    assert around[0] & around[1]
    assert len(draft.program.blocks["Y"].reads) == 2
    assert str(verify_schedule(draft.program, schedule.program)) == "proved"


@pytest.mark.parametrize(("times", "first_axis"), [(4, 2), (0, 0)])
def test_a_matrix_beyond_l2_is_read_once_for_all_rows_of_an_image(times: int, first_axis: int) -> None:
    n = max(16, times * host().l2_bytes // (4 * 1024))
    schedule = of_images(3, 14, 1024 + 16, n)
    draft = first(schedule).draft.schedule
    block, outermost = draft.program.blocks["Y"], draft.program.enclosing("Y")[0]
    assert [axis for axis, form in enumerate(block.bindings) if outermost.number in form.variables()] == [first_axis]
    assert str(verify_schedule(draft.program, schedule.program)) == "proved"


@pytest.mark.parametrize("machine", [row for row in MACHINES.values() if row.vector_bits >= 256])
def test_an_operand_that_is_not_contiguous_along_n_is_packed_without_gathers(machine: Machine) -> None:
    """Also where both operands fit L2: by the first alternative, and in all others of the rule."""
    schedule = matmul(128, 64, 64, turned=True)
    sketches = derive(schedule, RULES, machine).sketches
    assert "gebp unpacked" not in " ".join(sketch.name for sketch in sketches)
    scheduled = preferred(schedule, RULES, machine).draft.schedule
    assert "vector.gather" not in compiler.build(scheduled, threads=1).text("low")
    assert any("gebp unpacked" in sketch.name for sketch in derive(matmul(128, 64, 64), RULES, machine).sketches)


@pytest.mark.parametrize("operands", ["bmk,bkn", "mbk,bnk", "mbk,nbk"])
def test_rows_may_lie_outside_the_batch(operands: str) -> None:
    """The result [m, b, n] of attention's second product, and its operands, in several layouts."""
    extents = {"b": 3, "m": 20, "n": 40, "k": 24}
    k = te.reduce_axis(extents["k"], "k")
    first, second = (te.placeholder(tuple(extents[x] for x in read), name=read) for read in operands.split(","))

    def product(m: te.Expr, b: te.Expr, n: te.Expr) -> te.Expr:
        index = {"b": b, "m": m, "n": n, "k": k}
        x, y = (tensor[tuple(index[axis] for axis in tensor.name)] for tensor in (first, second))
        return te.sum(x * y, axis=k)

    f = te.function("f", [first, second], te.compute((20, 3, 40), product, name="C"))
    derived = derive(Schedule(compiler.lower(f)), RULES, host())
    assert derived.sketches[0].name.startswith("C: gebp")
    scheduled = preferred(Schedule(compiler.lower(f)), RULES, host()).draft.schedule
    assert scheduled.verify()
    x, y = (np.random.default_rng(0).uniform(-1, 1, t.shape).astype(np.float32) for t in (first, second))
    expected = np.einsum(f"{operands}->mbn", x, y)
    np.testing.assert_allclose(compiler.build(scheduled)(x, y), expected, rtol=1e-4, atol=1e-5)


def test_a_gather_from_a_product_is_no_consumer() -> None:
    a, b = te.placeholder((20, 24), name="A"), te.placeholder((24, 32), name="B")
    indices = te.placeholder((20,), "i64", name="I")
    f = te.function("f", [indices, a, b], nn.embedding(indices, nn.matmul(a, b, name="C")))
    names = [sketch.name for sketch in derive(Schedule(compiler.lower(f)), RULES, host()).sketches]
    assert names and not any("applied to tiles" in name for name in names)
    dropped = derive(Schedule(compiler.lower(f)), RULES, host()).dropped
    assert not any("applied to tiles" in reason for reason in dropped)


@pytest.mark.parametrize(("first", "second"), [(False, True), (True, False), (False, False)])
def test_a_product_of_a_matrix_with_itself_is_packed(first: bool, second: bool) -> None:
    extents = (40, 24) if first != second else (24, 24)
    a = te.placeholder(extents, name="A")
    f = te.function("f", [a], nn.relu(nn.matmul(a, a, transpose_a=first, transpose_b=second, name="C")))
    derived = derive(Schedule(compiler.lower(f)), RULES, host())
    assert derived.sketches[0].name.startswith("C: gebp")
    x = np.random.default_rng(0).uniform(-1, 1, extents).astype(np.float32)
    product = (x.T if first else x) @ (x.T if second else x)
    scheduled = preferred(Schedule(compiler.lower(f)), RULES, host()).draft.schedule
    assert scheduled.verify()
    np.testing.assert_allclose(compiler.build(scheduled)(x), np.maximum(product, 0), rtol=1e-4, atol=1e-5)
