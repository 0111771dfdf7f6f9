"""Sizes at run time at the te level: `bound` is the function written with integers, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from xdsl.utils.exceptions import DiagnosticException

import strata
from compiler import te, universe
from compiler.pipeline.source import parse
from compiler.support.errors import InputError, LoweringError, TeError
from strata.passes import parse_passes, run

nn = te.nn
Array = np.ndarray[Any, Any]
Rows = Any
"""A size or, for the same program without sizes, an integer."""


def affine_layer(s: Rows, t: Rows) -> te.Function:
    x, w, b = te.placeholder((s, 16), name="X"), te.placeholder((16, 8), name="W"), te.placeholder((8,), name="b")
    return te.function("f", [x, w, b], nn.gelu(nn.add(nn.matmul(x, w), b)))


def columns_of_softmax(s: Rows, t: Rows) -> te.Function:
    x = te.placeholder((s, 5), name="X")
    return te.function("f", [x], nn.softmax(nn.transpose(x)))


def layer_norm(s: Rows, t: Rows) -> te.Function:
    x, g = te.placeholder((s, 8), name="X"), te.placeholder((8,), name="G")
    return te.function("f", [x, g], nn.layer_norm(x, g, g))


def attention(s: Rows, t: Rows) -> te.Function:
    q, k, v = (te.placeholder((2, n, 4), name=name) for n, name in ((t, "Q"), (s, "K"), (s, "V")))
    weights = nn.softmax(nn.batch_matmul(q, k, transpose_b=True))
    return te.function("f", [q, k, v], nn.batch_matmul(weights, v))


def sums(s: Rows, t: Rows) -> te.Function:
    x, y = te.placeholder((s, 3), name="X"), te.placeholder((s, 3), name="Y")
    return te.function("f", [x, y], [nn.sum((x - y) * 2.0, axis=0, keepdims=True), nn.max(x, axis=1)])


def triangle(s: Rows, t: Rows) -> te.Function:
    c, r = te.placeholder((s,), name="C"), te.reduce_axis(s, "r")
    return te.function("f", [c], te.compute((s,), lambda i: te.sum(te.select(r <= i, c[r], 0.0), axis=r)))


def reversed_and_doubled(s: Rows, t: Rows) -> te.Function:
    c = te.placeholder((s,), name="C")
    back = te.compute((s,), lambda i: c[s - 1 - i], name="back")
    return te.function("f", [c], te.compute((2 * s + 3,), lambda i: back.padded(-1.0)[i // 2]))


def gathered(s: Rows, t: Rows) -> te.Function:
    x, i = te.placeholder((s, 3), name="X"), te.placeholder((t,), "i64", name="I")
    return te.function("f", [x, i], te.gather((t, 3), lambda r, d: x.at(i[r], d)))


PROGRAMS = [affine_layer, columns_of_softmax, layer_norm, attention, sums, triangle, reversed_and_doubled, gathered]
S, T = te.size("S", 1, 40), te.size("T", 1, 6)


def draw(function: te.Function, rows: int) -> list[Array]:
    random = np.random.default_rng(rows)
    floats = (random.standard_normal(x.shape).astype("f4") for x in function.inputs)
    return [random.integers(-2, rows + 2, x.shape) if x.dtype == "i64" else next(floats) for x in function.inputs]


def named(function: te.Function, s: int, t: int) -> dict[Any, int]:
    declared = str(function).split("#te.sizes<")[1].split(">")[0]
    return {name: value for name, value in (("S", s), ("T", t)) if f"{name} = " in declared}


@pytest.mark.parametrize("program", PROGRAMS)
def test_bound_is_the_function_written_with_integers(program: Callable[[Rows, Rows], te.Function]) -> None:
    sized = program(S, T)
    for s, t in ((1, 1), (7, 5), (40, 6)):
        static = program(s, t)
        assert te.canonical_hash(te.bound(sized, named(sized, s, t))) == te.canonical_hash(static)
        arrays = draw(static, s)
        results = [strata.interpret.evaluate(f.module, arrays) for f in (sized, static)]
        for ours, expected in zip(*results, strict=True):
            np.testing.assert_array_equal(ours, expected, strict=True)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_text_is_read_back(program: Callable[[Rows, Rows], te.Function]) -> None:
    text = str(program(S, T))
    assert str(parse(text)) == text


@pytest.mark.parametrize("axis", [0, None])
def test_a_mean_divides_by_the_size(axis: int | None) -> None:
    x = te.placeholder((S, 4), name="X")
    f = te.function("f", [x], nn.mean(x, axis=axis))
    data = np.random.default_rng(0).standard_normal((7, 4)).astype("f4")
    np.testing.assert_allclose(strata.interpret.evaluate(f.module, [data])[0], data.mean(axis=axis), rtol=1e-6)


def cached_rows(related: bool) -> te.Function:
    pos, new_rows = te.size("pos", 0, 60), te.size("T", 1, 8)
    k, new = te.placeholder((64, 4), name="K"), te.placeholder((new_rows, 4), name="new")
    y = te.compute((new_rows, 4), lambda t, d: k[pos + t, d] + new[t, d], name="Y")
    return te.function("step", [k, new], y, where=[pos + new_rows <= 64] if related else [])


def test_relations_between_sizes_prove_reads_in_bounds() -> None:
    with pytest.raises(TeError, match=r"index pos \+ t is \d+ at t=\d, d=\d, T=\d, pos=\d+, the size is 64"):
        cached_rows(related=False)
    step = cached_rows(related=True)
    k, new = np.random.default_rng(0).standard_normal((64, 4)), np.ones((3, 4), "f4")
    k = k.astype("f4")
    assert np.array_equal(strata.interpret.evaluate(step.module, [k, new], sizes={"pos": 60})[0], k[60:63] + 1)
    for sizes, message in (
        ({}, "the size 'pos' of @step has no value"),
        ({"pos": 61}, "the size 'pos' of @step is 61 as stated; it is from 0 to 60"),
        ({"pos": 0, "T": 4}, "dimension 0 of 'new' is 3, expected 4, which is T with T = 4 as stated"),
        ({"pos": 0, "q": 1}, "there is no size 'q'"),
    ):
        with pytest.raises(InputError, match=message):
            strata.interpret.evaluate(step.module, [k, new], sizes=sizes)
    with pytest.raises(InputError, match=r"-pos - T \+ 64 >= 0 holds, not T = 5, pos = 60"):
        te.bound(step, {"pos": 60, "T": 5})


def test_arrays_that_no_call_has() -> None:
    x, y = te.placeholder((S, 4), name="X"), te.placeholder((2 * S + 1, 4), name="Y")
    f = te.function("f", [x, y], nn.add(nn.sum(x), nn.sum(y)))
    shapes = {
        "the size 'S' of @f is 0 by dimension 0 of 'X'; it is from 1 to 40": ((0, 4), (1, 4)),
        "the size 'S' of @f is 41 by dimension 0 of 'X'; it is from 1 to 40": ((41, 4), (83, 4)),
        r"dimension 0 of 'Y' is 9, expected 7, which is S \* 2 \+ 1 with S = 3 by dimension 0 of 'X'": ((3, 4), (9, 4)),
        r"dimension 0 of 'Y' is 8, and S \* 2 \+ 1 is not for any S": ((3, 4), (8, 4)),
        "dimension 1 of 'X' is 5, expected 4": ((3, 5), (7, 4)),
        "'X' has 2 dimensions, not 1": ((3,), (7, 4)),
        "@f takes 2 inputs, not 1": ((3, 4),),
    }
    for message, given in shapes.items():
        with pytest.raises(InputError, match=message):
            strata.interpret.evaluate(f.module, [np.zeros(shape, "f4") for shape in given])


def refused() -> Iterator[tuple[str, Callable[[], object]]]:
    a, s, t = te.placeholder((S,), name="A"), S, T
    yield r"the shape \(S,\) of 'A' has sizes; a static one is needed here", lambda: nn.pad(a, ((1, 1),))
    yield r"the shape \(S,\) of 'A' has sizes", lambda: a.shape
    yield r"add: 'A' \(S,\) and 'B' \(T,\) do not broadcast", lambda: a + te.placeholder((t,), name="B")
    yield r"add: 'A' \(S,\) and 'B' \(40,\) do not broadcast", lambda: a + te.placeholder((40,), name="B")
    yield (
        "the extents of k in 'L' and 'R' differ: S and 40",
        lambda: nn.matmul(te.placeholder((4, s), name="L"), te.placeholder((40, 4), name="R")),
    )
    yield r"i is \d at i=\d, S=\d, the size is S", lambda: te.compute((4,), lambda i: a[i])
    yield r"'S \* T' is a product of sizes", lambda: te.placeholder((s * t,))
    yield "one side must be an integer", lambda: te.placeholder((s // t,))
    yield r"has extent \(S - 1\), which may be 0; extents are at least 1", lambda: te.placeholder((s - 1,))
    yield "axis 'k' has extent .* which may be 0", lambda: te.reduce_axis(s - 1)
    yield (
        "which has the axis 'i'; extents are of sizes",
        lambda: te.compute((4,), lambda i: te.sum(a[0], axis=te.reduce_axis(i + 1))),
    )
    yield "the axis 'S' has the name of a size", lambda: te.compute((s,), lambda S: a[S])
    yield (
        "the axis 'T' of 'B' has the name of a size",
        lambda: te.function("f", [a, te.placeholder((t,), name="C")], te.compute((s,), lambda T: a[T], name="B")),
    )
    yield (
        "two sizes of function 'f' are named 'S'",
        lambda: te.function("f", [a, te.placeholder((te.size("S", 1, 3),), name="B")], nn.exp(a)),
    )
    yield "no S in their ranges satisfy S - 41 >= 0", lambda: te.function("f", [a], nn.exp(a), where=[s >= 41])
    yield "3 is no condition over sizes", lambda: te.function("f", [a], nn.exp(a), where=[3])  # type: ignore[list-item]
    yield "the relations of function 'f' are", lambda: te.function("f", [a], nn.exp(a), where=s >= 4)  # type: ignore[arg-type]
    yield (
        "sizes in the index of a table",
        lambda: te.gather((4,), lambda i: te.placeholder((s, s), name="W").at(te.placeholder((4,), "i64")[i], s - 1)),
    )
    yield "'mod' cannot name a size", lambda: te.size("mod", 1, 2)
    yield "'a b' cannot name a size", lambda: te.size("a b", 1, 2)
    yield "a name is text", lambda: te.size(3, 1, 2)  # type: ignore[arg-type]
    yield "is from 3 to 2", lambda: te.size("S", 3, 2)
    yield "is from -1 to 2", lambda: te.size("S", -1, 2)
    yield "expected integers", lambda: te.size("S", 1.5, 2)  # type: ignore[arg-type]
    yield r"ends below 2\^31", lambda: te.size("S", 1, 1 << 31)
    yield "bound takes a te function or a module", lambda: te.bound("f", {})  # type: ignore[arg-type]


@pytest.mark.parametrize(("message", "build"), list(refused()), ids=lambda x: x if isinstance(x, str) else "")
def test_what_is_refused(message: str, build: Callable[[], object]) -> None:
    with pytest.raises(TeError, match=message):
        build()


@pytest.mark.parametrize(
    "use", [te.canonical_hash, strata.lower, strata.build, strata.Schedule], ids=["hash", "lower", "build", "schedule"]
)
def test_what_takes_no_sizes_yet(use: Callable[[te.Function], object]) -> None:
    f = affine_layer(S, T)
    with pytest.raises((InputError, LoweringError), match="these are not hashed, scheduled or built yet"):
        use(f)
    bound: Any = te.bound(f, {"S": 3})
    assert use(strata.lower(bound) if use is strata.Schedule else bound) is not None


def test_values_that_bound_refuses() -> None:
    f = affine_layer(S, T)
    for values, message in (
        ({}, "the size 'S' of @f has no value"),
        ({"S": 41}, "the size 'S' of @f is 41; it is from 1 to 40"),
        ({"S": True}, "the size 'S' of @f is True, expected an integer"),
        ({"S": 2, "Q": 2}, "there is no size 'Q'"),
    ):
        with pytest.raises(InputError, match=message):
            te.bound(f, values)
    with pytest.raises(InputError, match="the module has no sizes"):
        te.bound(te.bound(f, {"S": 2}), {"S": 2})


DECLARED = "func.func private @g(tensor<4xf32>) -> tensor<4xf32> attributes {te.sizes = #te.sizes<S = 1 to 4>}"
INDICES = """func.func @g(%n: index, %x: tensor<4xf32> {te.dims = #te.dims<[S]>}) -> tensor<4xf32>
    attributes {te.sizes = #te.sizes<S = 1 to 4>} { func.return %x : tensor<4xf32> }"""


@pytest.mark.parametrize("text", [DECLARED, INDICES])
def test_functions_of_other_kinds_take_no_sizes(text: str) -> None:
    with pytest.raises(DiagnosticException, match="functions of tensors with one block"):
        parse(text).verify()


def test_lifted_constants_are_arguments_without_dims() -> None:
    size = te.size("S", 1, 2000)
    x, table = te.placeholder((size,), name="x"), te.constant(np.arange(2000, dtype=np.float32), name="table")
    module = te.function("f", [x], te.compute((size,), lambda i: x[i] + table[i], name="y")).module
    run(universe.context(), module, parse_passes("lift-constants"))
    module.verify()
    assert str(parse(str(module))) == str(module)
    assert str(module).count("tensor<2000xf32>") >= 3
