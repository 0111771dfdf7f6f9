"""Programs of groups: each different group compiled once, one main, one arena, constants prepared once."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import compiler
from compiler import driver, recipes, te
from compiler.dialects.dense import constants_in
from compiler.dialects.numbers import Array
from compiler.driver.main.assemble import build_program
from compiler.driver.units.unit import BuildSettings, Scheduled
from compiler.interpret.te import evaluate as te_evaluate
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.support.errors import InputError, ScheduleError, TargetError
from compiler.targets.cpu import Kernel
from compiler.targets.cpu.compile import compile_llvm, load_objects, object_code
from compiler.types.machines import host
from tests.groups import program

N = 32


def square(name: str) -> te.Tensor:
    return te.placeholder((N, N), name=name)


def product() -> te.Function:
    x, w = square("X"), square("W")
    return te.function("product", [x, w], te.nn.matmul(x, w, name="P"))


def add() -> te.Function:
    a, b = square("A"), square("B")
    return te.function("add", [a, b], te.nn.add(a, b, name="S"))


def shares() -> te.Function:
    a = square("A")
    return te.function("shares", [a], te.nn.softmax(a))


def packed(threads: bool = False) -> str:
    """A script of a product that packs W whole, before all else."""
    s = Schedule(compiler.lower(product()))
    block = s.get_block("P")
    s.pack(block, "W", [1, 16], [1, 0, 2])
    if threads:
        s.parallel(s.get_loops(block)[0])
    return str(s.script)


GROUPS = {"product": product(), "add": add(), "shares": shares()}
LAYER = program(
    GROUPS,
    {"x": (N, N), "w": (N, N), "v": (N, N)},
    ["a = product(x, w)", "b = add(a, x)", "c = shares(b)", "d = product(c, v)", "e = add(d, b)"],
    ["e"],
)


def layer(x: Array, w: Array, v: Array) -> Array:
    b = x @ w + x
    scores = np.exp(b - b.max(1, keepdims=True))
    return (scores / scores.sum(1, keepdims=True)) @ v + b


def build(
    module: object = LAYER, scripts: dict[str, str] | None = None, threads: int = 1, **constants: Array
) -> Kernel:
    sources = {name: Scheduled(script, "record", "proved") for name, script in (scripts or {}).items()}
    return build_program(module, sources, BuildSettings("contract", threads, 0.0), constants)  # type: ignore[arg-type]


@pytest.fixture
def arrays() -> list[Array]:
    return [np.random.default_rng(n).random((N, N), np.float32) for n in range(3)]


def close(actual: Array, expected: Array) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_each_group_is_compiled_once(arrays: list[Array]) -> None:
    kernel = compiler.build(LAYER)
    close(kernel(*arrays), layer(*arrays))
    assert [(g.name, g.occurrences, g.source, g.verdict) for g in kernel.groups] == [
        ("product", 2, "written", ""),
        ("add", 2, "written", ""),
        ("shares", 1, "written", ""),
    ]
    assert all(group.seconds > 0 for group in kernel.groups) and len({group.hash for group in kernel.groups}) == 3
    text = kernel.text("llvm")
    assert [text.count(f'define void @"{name}"') for name in ("program", *GROUPS)] == [1, 1, 1, 1]
    assert text.index('call void @"shares"') < text.index('define void @"product"')
    assert kernel.build_seconds > 0


def test_temporaries_share_one_arena(arrays: list[Array]) -> None:
    kernel = build()
    assert kernel.temporaries_bytes == 4 * 4 * N * N
    assert f"memref<{3 * 4 * N * N}xi8>" in kernel.text("low").split("return")[0]
    assert kernel.arena_bytes > 3 * 4 * N * N, "shares has temporaries of its own"
    outputs = [kernel(*arrays) for _ in range(3)]
    assert all(np.array_equal(outputs[0], output) for output in outputs)


def test_equal_functions_of_other_names_are_one_unit() -> None:
    module = program(GROUPS | {"plus": add()}, {"x": (N, N)}, ["a = add(x, x)", "b = plus(a, x)"], ["b"])
    assert [(g.name, g.occurrences) for g in build(module).groups] == [("add", 2)]


def test_texts_of_all_levels_build_the_same_program(arrays: list[Array]) -> None:
    kernel = build(scripts={"product": packed()}, w=arrays[1])
    expected = kernel(arrays[0], arrays[2])
    net = build(scripts={"product": packed()})
    assert [net.text(level).count("@add") for level in ("te", "loop", "low")] == [3, 3, 3]
    for level in ("te", "loop", "low"):
        np.testing.assert_allclose(compiler.build(net.text(level))(*arrays), expected, rtol=1e-5)
    for level in ("loop", "low"):
        assert "%constants" in kernel.text(level)
        assert str(parse(kernel.text(level)))
    assert "product.prepare:" in kernel.text("asm") and "program.body" in kernel.text("asm")
    assert compile_llvm(kernel.text("llvm"), host()).address("program")


def test_kernels_with_the_same_symbols_live_side_by_side(arrays: list[Array]) -> None:
    calls, shapes = ["b = step(a)"], {"a": (N, N)}
    x = square("A")
    kernels = [
        build(program({"step": te.function("f", [x], te.nn.mul(x, float(n)))}, shapes, calls, ["b"])) for n in (2, 3)
    ]
    for _ in range(2):
        for factor, kernel in zip((2, 3), kernels, strict=True):
            np.testing.assert_array_equal(kernel(arrays[0]), factor * arrays[0])
    del kernels[0]
    gc.collect()
    np.testing.assert_array_equal(kernels[0](arrays[0]), 3 * arrays[0])


@pytest.mark.parametrize("name", ["exp", "main", "memcpy", "malloc", "GOMP_parallel"])
def test_groups_may_be_called_as_functions_of_the_process(name: str, arrays: list[Array]) -> None:
    module = program({name: add()}, {"x": (N, N)}, [f"a = {name}(x, x)"], ["a"])
    np.testing.assert_array_equal(build(module)(arrays[0]), 2 * arrays[0])


def test_a_preparation_that_is_called_as_a_group_is(arrays: list[Array]) -> None:
    groups = GROUPS | {"product.prepare": add()}
    module = program(groups, {"x": (N, N), "w": (N, N)}, ["a = product(x, w)", "b = product.prepare(a, x)"], ["b"])
    kernel = build(module, {"product": packed()}, w=arrays[1])
    close(kernel(arrays[0]), arrays[0] @ arrays[1] + arrays[0])


def test_what_depends_on_constants_alone_is_prepared(arrays: list[Array]) -> None:
    x, w, v = arrays
    w_copy = w.copy()
    kernel = build(scripts={"product": packed()}, w=w_copy, v=v)
    assert [a.name for a in kernel.arguments] == ["x", "e"]
    assert kernel.constant_bytes == 2 * 4 * N * N, "the originals are not kept"
    close(kernel(x), layer(x, w, v))
    w_copy[:] = 0
    close(kernel(x), layer(x, w, v))
    gone = weakref.ref(w_copy)
    del w_copy
    gc.collect()
    assert gone() is None


def test_equal_constants_are_prepared_once(arrays: list[Array]) -> None:
    module = program(GROUPS, {"x": (N, N), "w": (N, N)}, ["a = product(x, w)", "b = product(a, w)"], ["b"])
    kernel = build(module, {"product": packed()}, w=arrays[1])
    assert kernel.constant_bytes == 4 * N * N
    close(kernel(arrays[0]), arrays[0] @ arrays[1] @ arrays[1])


def test_a_constant_that_calls_still_read_is_copied(arrays: list[Array]) -> None:
    module = program(GROUPS, {"x": (N, N), "w": (N, N)}, ["a = product(x, w)", "b = add(a, w)"], ["b", "w"])
    kernel = build(module, {"product": packed()}, w=arrays[1])
    assert kernel.constant_bytes == 2 * 4 * N * N
    output, same = kernel(arrays[0])
    close(output, arrays[0] @ arrays[1] + arrays[1])
    np.testing.assert_array_equal(same, arrays[1])


def test_groups_of_constants_run_once(arrays: list[Array]) -> None:
    calls = ["u = add(w, w)", "s = shares(u)", "a = product(x, s)", "b = add(w, w)"]
    module = program(GROUPS, {"x": (N, N), "w": (N, N)}, calls, ["a", "b"])
    kernel = build(module, {"product": packed()}, w=arrays[1])
    text = kernel.text("llvm")
    main = text[: text.index("define void", 20)]
    assert main.count('call void @"shares"') == 0 and main.count('call void @"add') == 1
    assert kernel.constant_bytes == 2 * 4 * N * N, "the packed shares, and w for the result"
    scores = np.exp(2 * arrays[1] - 2 * arrays[1].max(1, keepdims=True))
    a, b = kernel(arrays[0])
    close(a, arrays[0] @ (scores / scores.sum(1, keepdims=True)))
    np.testing.assert_array_equal(b, 2 * arrays[1])


def test_a_function_is_compiled_for_constant_and_for_other_inputs(arrays: list[Array]) -> None:
    module = program(GROUPS, {"x": (N, N), "w": (N, N)}, ["a = product(x, w)", "b = product(a, x)"], ["b"])
    kernel = build(module, {"product": packed()}, w=arrays[1])
    assert [(g.name, g.occurrences) for g in kernel.groups] == [("product", 1), ("product.1", 1)]
    close(kernel(arrays[0]), arrays[0] @ arrays[1] @ arrays[0])


def test_threads_change_no_bit(arrays: list[Array]) -> None:
    kernel = build(scripts={"product": packed(threads=True)}, threads=2, v=arrays[2])
    assert kernel.threads == 2
    first, second = kernel(*arrays[:2], threads=1), kernel(*arrays[:2], threads=2)
    np.testing.assert_array_equal(first, second)
    close(first, layer(*arrays))
    assert (kernel.groups[0].source, kernel.groups[0].verdict) == ("record", "proved")


def test_private_scratch_of_groups_is_behind_the_arena(arrays: list[Array]) -> None:
    s = Schedule(compiler.lower(product()))
    tiles = recipes.gebp(s, s.get_block("P"), mc=16, kc=32, nc=32, mr=8, nr=16)
    s.parallel(tiles.ic)
    kernel = build(scripts={"product": str(s.script)}, threads=2)
    assert kernel.arena_bytes > 3 * 4 * N * N
    np.testing.assert_array_equal(kernel(*arrays, threads=2), kernel(*arrays, threads=1))
    close(kernel(*arrays), layer(*arrays))


def test_constants_by_the_names_of_inputs(arrays: list[Array]) -> None:
    kernel = compiler.build(LAYER, constants={"w": arrays[1]})
    close(kernel(arrays[0], arrays[2]), layer(*arrays))
    with pytest.raises(InputError, match="@program has no input 'q' \\(it has x, w, v\\)"):
        compiler.build(LAYER, constants={"q": arrays[1]})
    with pytest.raises(TargetError, match="has shape"):
        compiler.build(LAYER, constants={"w": arrays[1][:2]})


def test_refusals() -> None:
    nested = str(LAYER).replace("@program", "@inner").replace("func.func @inner", "func.func private @inner")
    text = str(program({"f": product()}, {"x": (N, N), "w": (N, N)}, ["a = f(x, w)"], ["a"])).replace("@f", "@inner")
    outer = text[text.index("func.func @program") : text.index("func.func private")]
    body = nested[nested.index("func.func private @inner") : nested.rindex("}")].replace(", %v: tensor<32x32xf32>", "")
    module = outer + body.replace("%v)", "%w)")
    with pytest.raises(InputError, match="@inner is called and calls others"):
        build(parse(module))
    with pytest.raises(ScheduleError):
        build(scripts={"add": packed()})
    code = object_code('define void @"f"() {\n  ret void\n}\n', host())
    with pytest.raises(TargetError, match="two parts of a program have a function 'f'"):
        load_objects([code, code], host())
    alone = object_code(
        'declare void @"g"()\ndefine void @"f"() {\n  call void @"g"()\n  ret void\n}\n', host(), 3, ["g"]
    )
    with pytest.raises(TargetError, match="calls 'g', which is in no library"):
        load_objects([alone], host())


def test_programs_with_constants(arrays: list[Array]) -> None:
    x, w, v = arrays
    a = square("x")
    kept = te.constant(w, name="w")
    hidden = te.nn.softmax(te.nn.add(te.nn.matmul(a, kept), a))
    f = te.function("program", [a], te.nn.add(te.nn.matmul(hidden, te.constant(v, name="v")), kept))
    kernel = compiler.build(f)
    assert len(kernel.groups) > 1 and [a.name for a in kernel.arguments][:1] == ["x"]
    b = x @ w + x
    scores = np.exp(b - b.max(1, keepdims=True))
    close(kernel(x), (scores / scores.sum(1, keepdims=True)) @ v + w)
    assert kernel.constant_bytes == 2 * 4 * N * N
    assert "te.constant dense_resource<" in kernel.text("te") and "memref.view %constants" in kernel.text("loop")
    close(te_evaluate(parse(kernel.text("te")), [x], name="program")[0], kernel(x))


def test_constants_of_the_program_are_not_kept(arrays: list[Array], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.driver.main.texts.MOST_BYTES", 100)
    a = square("x")
    f = te.function("program", [a], te.nn.softmax(te.nn.softmax(te.nn.matmul(a, te.constant(arrays[0], name="w")))))
    held = [weakref.ref(constant) for constant in constants_in(f.module)]
    kernel = compiler.build(f)
    del f
    gc.collect()
    assert len(held) == 1 and held[0]() is None
    assert kernel.constant_bytes == 4 * N * N and kernel.text("low")


def test_the_text_of_large_constants_has_no_elements(monkeypatch: pytest.MonkeyPatch, arrays: list[Array]) -> None:
    a = square("x")
    f = te.function("program", [a], te.nn.softmax(te.nn.softmax(te.nn.matmul(a, te.constant(arrays[0], name="w")))))
    assert "dialect_resources" in compiler.build(f).text("te")
    monkeypatch.setattr("compiler.driver.main.texts.MOST_BYTES", 100)
    text = compiler.build(f).text("te")
    assert "te.constant dense_resource<" in text and "dialect_resources" not in text


def test_schedules_of_groups_by_their_names(arrays: list[Array]) -> None:
    kernel = driver.build_groups(
        LAYER, {"product": Scheduled(packed(), "record", "proved")}, constants={"w": arrays[1]}
    )
    assert [(g.name, g.source) for g in kernel.groups][:2] == [("product", "record"), ("add", "written")]
    close(kernel(arrays[0], arrays[2]), layer(*arrays))
    with pytest.raises(InputError, match="no group @quotient \\(it has product, add, shares\\)"):
        driver.build_groups(LAYER, {"quotient": Scheduled()})
