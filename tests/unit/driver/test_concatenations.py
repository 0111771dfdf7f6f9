"""Concatenations that their producers write: which functions are such, where parts stand, faults that would show."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.dialects.functions import find_function
from compiler.dialects.numbers import Array
from compiler.driver import module_in_groups
from compiler.driver.main import slices
from compiler.driver.main.assemble import build_program
from compiler.driver.main.occurrences import replaceable
from compiler.driver.main.slices import sliced
from compiler.driver.parts.groups import grouped_program
from compiler.driver.units.unit import BuildSettings
from compiler.fuzz.programs import arrays_for, branches
from compiler.graph.concatenation import Slot, contiguous_parts
from compiler.graph.main import BufferCall, Main
from compiler.graph.read import read
from compiler.interpret.te import evaluate
from compiler.passes import plan_buffers
from compiler.pipeline.source import parse
from compiler.support.errors import InputError
from compiler.targets.cpu import Kernel
from tests import random_mains
from tests.groups import program
from tests.random_mains import as_compiled, buffer, computed, random_main, run_low
from tests.sample import some

nn = te.nn


def parts_of(make: Callable[..., te.Tensor], *shapes: tuple[int, ...]) -> list[tuple[int, int]] | None:
    """The parts of a function of tensors of some shapes, canonical or not."""
    inputs = [te.placeholder(shape, name=f"A{n}") for n, shape in enumerate(shapes)]
    actual = contiguous_parts(read(find_function(te.function("f", inputs, make(*inputs)).module)))
    return None if actual is None else [(part.input, part.start) for part in actual]


def rows(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    return te.compute((2, 3), lambda i, j: te.select(i < 1, a[j], b[j]), "S")


def test_parts_that_stand_one_behind_the_other() -> None:
    assert parts_of(lambda a, b: nn.concat([a, b]), (2, 3), (4, 3)) == [(0, 0), (1, 6)]
    assert parts_of(lambda a, b, c: nn.concat([b, c, a], 1), *((1, n, 5, 5) for n in (2, 1, 3))) == [
        (1, 0),
        (2, 25),
        (0, 100),
    ]
    assert parts_of(lambda a, b: nn.concat([a, b, a]), (2,), (1,)) == [(0, 0), (1, 2), (0, 3)]
    assert parts_of(lambda a, b: nn.concat([a, b], 3), (1, 1, 1, 4), (1, 1, 1, 2)) == [(0, 0), (1, 4)]
    assert parts_of(lambda a: te.compute((12,), lambda i: a[i // 4, i % 4], "R"), (3, 4)) == [(0, 0)]
    assert parts_of(lambda a: te.compute((1, 1), lambda i, j: a[i, j], "C"), (1, 1)) == [(0, 0)]
    assert parts_of(rows, (3,), (3,)) == [(0, 0), (1, 3)]


def chosen(choose: Callable[..., te.Expr]) -> Callable[..., te.Tensor]:
    """A vector of four chosen among elements of vectors, which are 0 outside."""
    return lambda *vectors: te.compute((4,), lambda i: choose(i, *(vector.padded(0) for vector in vectors)), "C")


OTHERS: dict[str, tuple[Callable[..., te.Tensor], Sequence[tuple[int, ...]]]] = {
    "inner axis": (lambda a, b: nn.concat([a, b], 1), [(2, 3), (2, 4)]),
    "half of a part": (chosen(lambda i, a: te.select(i < 2, a[i], a[i - 2])), [(4,)]),
    "turned": (lambda a: nn.transpose(a, (1, 0)), [(3, 4)]),
    "reversed": (lambda a: nn.flip(a, 0), [(4,)]),
    "shifted": (chosen(lambda i, a: a[i + 1]), [(4,)]),
    "rotated": (chosen(lambda i, a: a[(i + 1) % 4]), [(4,)]),
    "scaled": (chosen(lambda i, a, b: te.select(i < 2, a[i], b[i - 2] * 2)), [(2,), (2,)]),
    "padded": (lambda a: nn.pad(a, [(0, 2)]), [(4,)]),
    "sum": (lambda a: nn.sum(a, 1), [(4, 1)]),
    "interleaved": (chosen(lambda i, a, b: te.select(i % 2 < 1, a[i // 2], b[i // 2])), [(2,), (2,)]),
    "cut short": (chosen(lambda i, a, b: te.select(i < 1, a[i], te.select(i < 3, b[i - 1], 0))), [(1,), (2,)]),
    "under a condition": (chosen(lambda i, a, b: te.select(i < 2, te.select(i >= 1, a[i], 0), b[i - 2])), [(2,), (2,)]),
    "another part within": (
        chosen(lambda i, a, b: te.select(i < 2, te.select(i < 1, a[i], b[i]), b[i - 2])),
        [(2,), (2,)],
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_sequence_of_whole_parts(name: str) -> None:
    make, shapes = OTHERS[name]
    assert parts_of(make, *shapes) is None


def main_of(calls: Sequence[str], results: Sequence[str]) -> tuple[Main, slices.Joins]:
    """A main function of vectors of four; "c = join(a, b)" is a concatenation, other calls give four elements."""
    lengths, steps, joins = {"x": 4}, list[BufferCall](), {}
    for line in calls:
        name, _, right = line.partition(" = ")
        callee, _, arguments = right.rstrip(")").partition("(")
        given = [word.strip() for word in arguments.split(",")]
        sizes = [lengths[word] for word in given]
        lengths[name] = sum(sizes) if callee == "join" else 4
        callee = f"{callee}_{'_'.join(map(str, sizes))}"
        if callee.startswith("join"):
            joins[callee] = tuple(Slot(n, sum(sizes[:n])) for n in range(len(sizes)))
        steps.append(BufferCall(callee, tuple(given), (name,)))
    arguments = [buffer(name, lengths[name]) for name in ("x", *results)]
    temporaries = [buffer(name, n) for name, n in lengths.items() if name not in ("x", *results)]
    return Main("main", tuple(arguments), len(results), tuple(temporaries), tuple(steps)), joins


def placed(calls: Sequence[str], results: Sequence[str]) -> tuple[dict[str, tuple[str, int]], list[str]]:
    """Where the views of a main function stand, in elements, and its steps."""
    main, joins = main_of(calls, results)
    cut = sliced(main, joins, main.buffers)
    steps = [step.callee if isinstance(step, BufferCall) else f"{step.source} to {step.target}" for step in cut.steps]
    return {view.buffer.name: (view.base, view.offset // 4) for view in cut.views}, steps


PAIR = ["a = f(x)", "b = g(x)"]


def test_parts_are_written_into_their_slices() -> None:
    views, steps = placed([*PAIR, "c = join(a, b)", "y = h(c)", "z = k(c)"], ["y", "z"])
    assert views == {"a": ("c", 0), "b": ("c", 4)}
    assert steps == ["f_4", "g_4", "h_8", "k_8"]


def test_a_result_is_a_whole_and_never_a_part() -> None:
    assert placed([*PAIR, "c = join(a, b)"], ["c"]) == ({"a": ("c", 0), "b": ("c", 4)}, ["f_4", "g_4"])
    views, steps = placed([*PAIR, "c = join(a, b)"], ["a", "c"])
    assert views == {"b": ("c", 4), "a.copy": ("c", 0)} and steps == ["f_4", "g_4", "a to a.copy"]


def test_offsets_of_concatenations_in_others_add() -> None:
    calls = [*PAIR, "c = join(a, b)", "d = h(c)", "e = join(d, c)", "y = k(e)"]
    views, steps = placed(calls, ["y"])
    assert views == {"d": ("e", 0), "c": ("e", 4), "a": ("e", 4), "b": ("e", 8)}
    assert steps == ["f_4", "g_4", "h_8", "k_12"]


def test_inputs_and_second_occurrences_are_copied() -> None:
    views, steps = placed(["a = f(x)", "c = join(x, a, a)", "y = g(c)"], ["y"])
    assert views == {"a": ("c", 4), "x.copy": ("c", 0), "a.copy": ("c", 8)}
    assert steps == ["f_4", "x to x.copy", "a to a.copy", "g_12"]


def test_a_concatenation_of_which_nothing_can_stay_is_called() -> None:
    assert placed(["c = join(x, x)", "y = f(c)"], ["y"]) == ({}, ["join_4_4", "f_8"])


def test_only_the_last_of_growing_concatenations_has_memory() -> None:
    calls = [
        "a = f(x)",
        "c = join(x, a)",
        "b = g(c)",
        "d = join(x, a, b)",
        "e = g(d)",
        "z = join(x, a, b, e)",
        "y = k(z)",
    ]
    views, steps = placed(calls, ["y"])
    assert views == {"a": ("z", 4), "b": ("z", 8), "e": ("z", 12), "x.copy": ("z", 0), "d": ("z", 0), "c": ("z", 0)}
    assert steps == ["f_4", "x to x.copy", "g_8", "g_12", "k_16"]


def test_a_part_of_two_concatenations_is_copied_to_the_first() -> None:
    views, steps = placed([*PAIR, "c = join(a, b)", "d = join(b, a)", "y = h(c, d)"], ["y"])
    assert views == {"b": ("d", 0), "a": ("d", 4)} and steps == ["f_4", "g_4", "join_4_4", "h_8_8"]
    views, steps = placed([*PAIR, "e = f(x)", "c = join(a, e)", "d = join(b, a)", "y = h(c, d)"], ["y"])
    assert views == {"b": ("d", 0), "a": ("d", 4), "e": ("c", 4), "a.copy": ("c", 0)}
    assert steps == ["f_4", "g_4", "f_4", "a to a.copy", "h_8_8"]


def test_outputs_in_the_place_of_inputs_leave_slices_alone() -> None:
    """a is read after c is made, as c after it is: neither may be overwritten. b stands in c from the start."""
    calls = ["a = f(x)", "s = g(x)", "b = h(s)", "c = join(a, b)", "y = k(c)", "z = h(a)", "w = k(c)", "r = m(z, w, y)"]
    main, joins = main_of(calls, ["r"])
    cut = sliced(main, joins, main.buffers)
    assert cut.bases == {"a": "c", "b": "c"}
    assert replaceable(cut)["h_4"] == ()
    second = replace(cut, steps=tuple(step for step in cut.steps if "z" not in (*step.reads, *step.writes)))
    assert replaceable(second)["h_4"] == ((0, 0),)


def check(seed: int, calls: int = 14) -> tuple[Main, Main]:
    """A random main function, and what is compiled of it, whose low form gives what it computes."""
    rng = random.Random(seed)
    main, joins = random_main(rng, calls)
    inputs = [
        np.random.default_rng(n).integers(0, 256, random_mains.bytes_of(b), np.uint8) for n, b in enumerate(main.inputs)
    ]
    compiled, pairs = as_compiled(main, joins, rng)
    actual = run_low(compiled, joins, pairs, inputs)
    for array, exact in zip(actual, computed(main, joins, inputs), strict=True):
        np.testing.assert_array_equal(array, exact)
    return main, compiled


def test_random_mains_give_what_they_compute() -> None:
    views = copies = both = 0
    for seed in range(60):
        _, compiled = check(seed)
        views += len(compiled.views)
        copies += len(compiled.steps) - len(compiled.calls)
        both += len(set(compiled.bases.values())) > 1
    assert views > 100 and copies > 30 and both > 10


def shifted(parts: Sequence[Slot]) -> tuple[Slot, ...]:
    return tuple(replace(part, start=max(part.start - 1, 0)) for part in parts)


def faults(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], None]]:
    place, was_replaceable = slices._Slices.join, random_mains.replaceable

    def without_views(main: Main) -> object:
        temporaries = (*main.temporaries, *(view.buffer for view in main.views))
        return was_replaceable(replace(main, temporaries=temporaries, views=()))

    def direct_users(buffer: object) -> list[object]:
        users = [use.operation for use in buffer.uses]  # type: ignore[attr-defined]
        return [*users, *(use.operation for user in users for r in user.results for use in list(r.uses)[:1])]

    def shifts(self: slices._Slices, number: int, call: BufferCall, parts: Sequence[Slot]) -> None:
        place(self, number, call, shifted(parts))

    def everywhere(self: slices._Slices, name: str) -> bool:
        return name not in self._places

    return {
        "offsets": lambda: monkeypatch.setattr(slices._Slices, "join", shifts),
        "lifetimes": lambda: monkeypatch.setattr(plan_buffers, "_users", direct_users),
        "in place": lambda: monkeypatch.setattr(random_mains, "replaceable", without_views),
        "results and inputs": lambda: monkeypatch.setattr(slices._Slices, "_is_free", everywhere),
    }


@pytest.mark.parametrize("name", ["offsets", "lifetimes", "in place", "results and inputs"])
def test_faults_are_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    faults(monkeypatch)[name]()
    with pytest.raises(AssertionError):
        for seed in range(60):
            check(seed)


def kernels(f: te.Function) -> tuple[Kernel, Kernel]:
    """The kernel of a program, and the one that copies."""
    module = module_in_groups(f)
    apart = build_program(module, {}, BuildSettings("contract", 1, 0.0, slices=False), name=f.name)
    return compiler.build(f), apart


def listed(kernel: Kernel, inputs: list[Array], **options: object) -> list[Array]:
    outputs = kernel(*inputs, **options)
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def block() -> te.Function:
    """Four branches of products with one image, their channels one behind the other for two readers and the caller."""
    x = te.placeholder((1, 6, 5, 5), name="X")
    weights = [te.placeholder((n, 6, 1, 1), name=f"W{n}") for n in (2, 3, 4, 5)]
    heads = [te.placeholder((3, 14, 1, 1), name=f"V{n}") for n in range(2)]
    parts = [nn.conv2d(x, w) for w in weights]
    joined = nn.concat(parts, 1, "joined")
    both = nn.concat([nn.conv2d(joined, v) for v in heads], 1, "both")
    return te.function("block", [x, *weights, *heads], [joined, both])


def test_a_block_of_branches() -> None:
    f = block()
    kernel, apart = kernels(f)
    inputs = arrays_for(f, 0)
    for array, right in zip(listed(kernel, inputs), listed(apart, inputs), strict=True):
        np.testing.assert_array_equal(array, right)
    assert len(kernel.groups) == len(apart.groups) - 2
    program = grouped_program(f, ())
    assert program is not None and [group.name for group in program.groups] == [group.name for group in kernel.groups]
    assert kernel.temporaries_bytes == 0 < apart.temporaries_bytes == 4 * 25 * (14 + 6)
    given = tuple(np.full(output.shape, np.nan, np.float32) for output in f.outputs)
    assert listed(kernel, inputs, out=given)[0] is given[0]
    np.testing.assert_array_equal(given[1], listed(apart, inputs)[1])
    for level in ("loop", "low"):
        again = compiler.build(parse(kernel.text(level)), name="block")
        np.testing.assert_array_equal(listed(again, inputs)[0], given[0])
        assert again.arena_bytes == kernel.arena_bytes


@pytest.mark.parametrize("seed", some(range(9), 4))
def test_random_branches(seed: int) -> None:
    f = branches(random.Random(seed), 16)
    inputs = arrays_for(f, seed)
    expected = evaluate(f.module, inputs, name=f.name)
    constants = {"X": inputs[0]} if seed % 8 else {}
    actual = listed(compiler.build(f, constants=constants), inputs[len(constants) :])
    assert all(np.array_equal(array, exact) for array, exact in zip(actual, expected, strict=True))


def test_a_part_in_the_place_of_what_it_is_made_of() -> None:
    """The part is in its slice from the first call on, where the group that follows writes over it."""
    a, b = te.placeholder((4, 4), name="A"), te.placeholder((4, 4), name="B")
    c = te.placeholder((8, 4), name="C")
    groups = {
        "turned": te.function("f", [a], te.compute((4, 4), lambda i, j: -a[j, i], name="T")),
        "exp": te.function("f", [a], nn.exp(a)),
        "join": te.function("f", [a, b], nn.concat([a, b])),
        "sums": te.function("f", [c], nn.sum(c, 1)),
        "most": te.function("f", [c], nn.max(c, 1)),
    }
    calls = [
        "s = turned(x)",
        "p = exp(s)",
        "q = turned(p)",
        "t = exp(q)",
        "c = join(t, p)",
        "y = sums(c)",
        "z = most(c)",
    ]
    module = program(groups, {"x": (4, 4)}, calls, ["y", "z"])
    x = np.random.default_rng(0).random((4, 4), np.float32)
    kernel = build_program(module, {}, BuildSettings("contract", 1, 0.0))
    for array, exact in zip(listed(kernel, [x]), evaluate(module, [x]), strict=True):
        np.testing.assert_allclose(array, exact, rtol=1e-5)
    assert kernel.text("loop").count("loop.alloc") == 1 and kernel.arena_bytes == 2 * 64


LOOPS = """
func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) attributes {outputs = 1 : i64} {
  %c = loop.alloc "c" : memref<8xf32>
  %0 = builtin.unrealized_conversion_cast %c : memref<8xf32> to memref<32xi8>
  %1 = arith.constant OFFSET : index
  %a = memref.view %0[%1][] : memref<32xi8> to memref<4xf32>
  func.call @f(%x, %a) : (memref<4xf32>, memref<4xf32>) -> ()
  func.call @f(%a, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  func.return
}
"""


def test_views_written_by_hand() -> None:
    a = te.placeholder((4,), name="A")
    loops = compiler.lower(te.function("f", [a], nn.exp(a)))
    text = LOOPS + str(find_function(loops)).replace("func.func @f", "func.func private @f")
    x = np.arange(4, dtype=np.float32) / 4
    kernel = compiler.build(parse(text.replace("OFFSET", "16")), name="main")
    np.testing.assert_allclose(kernel(x), np.exp(np.exp(x)), rtol=1e-6)
    for offset in ("20", "-4"):
        with pytest.raises(InputError, match="not within one of its buffers"):
            compiler.build(parse(text.replace("OFFSET", offset)), name="main")
    several = text.replace("%c : memref<8xf32> to", "%c, %c : memref<8xf32>, memref<8xf32> to").replace("OFFSET", "0")
    with pytest.raises(InputError, match="not within one of its buffers"):
        compiler.build(parse(several), name="main")
