"""Words that people bring from other libraries: accepted where they are clear, else answered with the word to use."""

from __future__ import annotations

import numpy as np
import pytest

import strata
from compiler.support.errors import ScheduleError, TeError
from strata import Schedule, TuningOptions, te
from strata.intrinsics import find
from strata.recipes import operands

M, K, N = 32, 64, 48


def product(dtype: object = "f32") -> te.Function:
    a, b = te.placeholder((M, K), dtype, name="A"), te.placeholder((K, N), dtype, name="B")
    k = te.reduce_axis((0, K), name="k")
    return te.function("mm", [a, b], te.compute((M, N), lambda i, j: te.sum(a[i, k] * b[k, j], k), name="C"))


def two_blocks() -> Schedule:
    a = te.placeholder((M, N), name="A")
    b = te.compute((M, N), lambda i, j: a[i, j] * 2.0, name="B")
    return Schedule(te.function("f", [a], te.compute((M, N), lambda i, j: b[i, j] + 1.0, name="C")))


@pytest.mark.parametrize("dtype", ["f32", "float32", np.float32, np.dtype("float32"), np.dtype("<f4")])
def test_dtypes_have_the_names_of_numpy(dtype: object) -> None:
    assert [t.dtype for t in product(dtype).inputs] == ["f32", "f32"]
    assert str(te.const(1.0, dtype)) == str(te.const(1.0, "f32"))  # type: ignore[arg-type]
    assert te.nn.cast(te.placeholder((3,), "f64"), dtype).dtype == "f32"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dtype", "ours"), [("bfloat16", "bf16"), ("int8", "i8"), ("uint64", "u64"), ("bool", "i1"), (bool, "i1")]
)
def test_other_dtypes(dtype: object, ours: str) -> None:
    assert te.placeholder((2,), dtype).dtype == ours


@pytest.mark.doors
def test_torch_dtypes() -> None:
    import torch

    assert te.placeholder((2,), torch.float16).dtype == "f16" and te.placeholder((2,), torch.bool).dtype == "i1"


@pytest.mark.parametrize("dtype", ["float", float, int, "float8", np.complex64, 3, None])
def test_unclear_dtypes_are_refused(dtype: object) -> None:
    with pytest.raises(TeError, match=r"unknown dtype .* \((write|there are) "):
        te.placeholder((2,), dtype)


def test_reduce_axes_begin_at_0() -> None:
    assert str(product()) == str(product("float32"))
    with pytest.raises(TeError, match=r"runs over the range \(3, 64\).*read at k \+ 3"):
        te.reduce_axis((3, 64), "k")


def test_axes_without_names_do_not_collide() -> None:
    a, r, s = te.placeholder((4, 5, 6), name="A"), te.reduce_axis(5), te.reduce_axis(6)
    made = te.function("f", [a], te.compute((4,), lambda k: te.sum(a[k, r, s], [r, s]), name="C"))
    assert "[k = 4, reduce k1 = 5, reduce k2 = 6]" in str(made)
    x = np.random.default_rng(0).random((4, 5, 6), np.float32)
    np.testing.assert_allclose(strata.build(made)(x), x.sum((1, 2)), rtol=1e-5)
    with pytest.raises(TeError, match="'k' occurs twice"):
        te.compute((4,), lambda k: te.sum(a[k, r, 0], te.reduce_axis(5, "k")), name="C")


def test_a_schedule_of_a_te_function_begins_with_its_loops() -> None:
    made, lowered = Schedule(product()), Schedule(strata.lower(product()))
    assert str(made.module) == str(lowered.module)
    kernel = strata.build(made, target="llvm")
    a, b = (np.random.default_rng(0).random(s, np.float32) for s in ((M, K), (K, N)))
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4)
    large = te.constant(np.arange(4096, dtype=np.float32), name="c")
    with pytest.raises(ScheduleError, match=r"large constants, which strata\.lower makes arguments"):
        Schedule(te.function("f", [x := te.placeholder((4096,), name="X")], te.nn.add(x, large)))


def test_loops_and_blocks_have_names() -> None:
    by_name, by_handle = Schedule(product()), Schedule(product())
    by_name.split("k", 16)
    by_name.reorder("C.k.0", "i", "j", "k.1")
    by_name.parallel("i")
    block = by_handle.get_block("C")
    i, j, k = by_handle.get_loops(block)
    outer, inner = by_handle.split(k, [None, 16])
    by_handle.reorder(outer, i, j, inner)
    by_handle.parallel(i)
    assert str(by_name.module) == str(by_handle.module)
    again = Schedule(strata.lower(product())).apply(by_name.script)
    assert str(again.module) == str(by_name.module), "the script has handles"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s: s.split("i", 8), "there are 2 loops 'i': say which, 'B.i' or 'C.i'"),
        (lambda s: s.split("C.x", 8), "it has no loop 'x' (it has i, j)"),
        (lambda s: s.split("x", 8), "there is no loop 'x' (there are i, j)"),
        (lambda s: s.inline("X"), "block 'X': there is none (there are B, C)"),
        (lambda s: s.split("C.i", factor=8), "it takes (loop, factors, tail='guard'): missing a required argument"),
        (lambda s: s.bind("C.i", "blockIdx.w"), "unknown thread index 'blockIdx.w'"),
    ],
)
def test_what_is_unclear_changes_nothing(call: object, sentence: str) -> None:
    schedule = two_blocks()
    before = str(schedule.script), str(schedule.module)
    with pytest.raises(ScheduleError) as refused:
        call(schedule)  # type: ignore[operator]
    assert sentence in str(refused.value)
    assert (str(schedule.script), str(schedule.module)) == before
    schedule.split("C.i", 8)


def test_primitives_have_the_names_of_others() -> None:
    schedule = two_blocks()
    schedule.compute_inline("B")
    schedule.bind("i", "blockIdx.x")
    assert 'bind %i to "block_x"' in str(schedule.script) and "inline" in str(schedule.script)
    for name, hint in (
        ("tile", "split each loop"),
        ("vectorise", "; did you mean 'vectorize'?"),
        ("interchange", "reorder puts loops"),
        ("lower", "strata.build"),
    ):
        with pytest.raises(AttributeError, match=hint):
            getattr(schedule, name)
    for name, hint in (("create_schedule", r"strata\.Schedule"), ("var", r"te\.size"), ("nothing", "has no 'nothing'")):
        with pytest.raises(AttributeError, match=hint):
            getattr(te, name)


def test_the_order_of_tvm_is_explained_where_it_is_refused() -> None:
    schedule = Schedule(product())
    (i, j), k = (schedule.split(loop, [None, 8]) for loop in ("C.i", "C.j")), schedule.get_loops("C")[-1]
    schedule.reorder(i[0], j[0], i[1], j[1], k)
    schedule.bind(i[1], "threadIdx.y")
    schedule.bind(j[1], "threadIdx.x")
    with pytest.raises(ScheduleError, match="thread_x already, not serial; loops are cut and fused before they are"):
        schedule.split(j[1], [None, 4])
    with pytest.raises(ScheduleError, match='0 is not a name, such as "A"'):
        schedule.cache_read("C", 0, "shared")
    copy = schedule.cache_read("C", "A", "shared")
    schedule.compute_at(copy, j[1])
    with pytest.raises(ScheduleError, match="is bound to thread_x already; what threads do together stands outside"):
        schedule.bind(schedule.get_loops(copy)[-1], "threadIdx.x")
    with pytest.raises(strata.errors.LoweringError, match="one thread's; compute it at a loop outside those over"):
        strata.build(schedule, target="cuda")


def test_functions_of_numpy_and_reductions_without_axes() -> None:
    a, k = te.placeholder((4, 5), name="A"), te.reduce_axis(5, "k")
    with pytest.raises(TeError, match=r"in compute 'C': numpy's functions take no expressions; .* te\.exp"):
        te.compute((4, 5), lambda i, j: np.exp(a[i, j]), name="C")
    with pytest.raises(TeError, match="in compute 'C': the reduction needs axis=, one reduce axis or several, got"):
        te.compute((4,), lambda i: te.sum(a[i, k]), name="C")
    with pytest.raises(strata.errors.InputError, match="what to tune by is 7, expected TuningOptions"):
        strata.SearchTask(product()).tune(7)  # type: ignore[arg-type]


def test_trials_have_the_name_of_tvm() -> None:
    assert TuningOptions(num_measure_trials=3) == TuningOptions(trials=3)
    with pytest.raises(strata.errors.InputError, match="trials is 0"):
        TuningOptions(num_measure_trials=0)


@pytest.mark.parametrize("given", [1, (1, 1), "same"])
def test_a_convolution_says_what_stands_in_the_place_of_the_bias(given: object) -> None:
    x, w = te.placeholder((1, 3, 8, 8), name="X"), te.placeholder((4, 3, 3, 3), name="W")
    with pytest.raises(TeError, match=r"in the place of the bias, the third argument.*stride=, padding= by name"):
        te.nn.conv2d(x, w, given)  # type: ignore[arg-type]


def test_a_name_where_a_handle_is_needed_is_answered_with_the_call_that_gives_one() -> None:
    A = te.placeholder((4, 6), name="A")
    s = Schedule(te.function("f", [A], te.nn.exp(A, name="B")))
    for value, sentence in (
        ("B", r"^'B' is a label: pass s\.get_block\('B'\)"),
        ("i0", r"'i0' is a label: pass a handle that"),
        ("x", "'x' is not the handle of a block or loop"),
        (3, "3 is not the handle of a block or loop"),
    ):
        with pytest.raises(ScheduleError, match=sentence):
            operands(s, value)  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match=r"^there is no intrinsic 'x'"):
        find("x")


@pytest.mark.parametrize(("name", "meant"), [("multiply", "te.nn.mul"), ("subtract", "te.nn.sub")])
def test_an_operator_by_the_name_of_another_tool(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"there is no operator '{name}'; it is {meant}"):
        getattr(te.nn, name)
