"""Canonical te functions: one text and hash for a program in other words, another one for another program."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from compiler import te
from compiler.dialects.dominance import verify_module
from compiler.fuzz.programs import arrays_for, program
from compiler.graph.canonical import Canonical, canonical, canonical_functions, canonicalize
from compiler.graph.read import read
from compiler.graph.tree import Compute
from compiler.graph.user_names import script_with_user_names
from compiler.graph.write import write
from compiler.pipeline.loops import lower
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.support.errors import TeError
from tests.bitwise import results, same_bits
from tests.graph_variants import changed, variant, with_inputs
from tests.programs import graph_of
from tests.said import Strata
from tests.sample import some

P = te.placeholder


def text_of(form: Canonical) -> str:
    return str(write(form.graph))


@pytest.mark.parametrize("seed", some(range(60)))
def test_other_words_have_one_text(seed: int) -> None:
    rng = random.Random(seed)
    graph = graph_of(program(rng, rng.randint(1, 20), views=seed % 2 == 0))
    form = canonical(graph)
    verify_module(ModuleOp([write(form.graph)]))
    again = canonical(read(write(form.graph)))
    assert (text_of(again), again.hash) == (text_of(form), form.hash)
    for _ in range(2):
        second = canonical(variant(graph, rng))
        assert (text_of(second), second.hash) == (text_of(form), form.hash)


@pytest.mark.parametrize("seed", some(range(60)))
def test_a_private_function_has_no_order_of_arguments(seed: int) -> None:
    rng = random.Random(seed)
    graph = graph_of(program(rng, rng.randint(1, 20), views=seed % 2 == 0))
    form = canonical(graph, keep_signature=False)
    again = canonical(read(write(form.graph)), keep_signature=False)
    assert (text_of(again), again.hash) == (text_of(form), form.hash)
    order = rng.sample(range(len(graph.inputs)), len(graph.inputs))
    second = canonical(variant(with_inputs(graph, order), rng), keep_signature=False)
    assert (text_of(second), second.hash) == (text_of(form), form.hash)
    same = [graph.inputs[order[n]].shape for n in second.arguments]
    assert same == [value.shape for value in form.graph.inputs]


def test_another_program_has_another_hash() -> None:
    different, seeds = 0, some(range(200))
    for seed in seeds:
        rng = random.Random(seed)
        graph = canonical(graph_of(program(rng, rng.randint(1, 8)))).graph
        second = changed(graph, rng)
        if second is not None:
            different += 1
            assert canonical(second).hash != canonical(graph).hash
            assert canonical(second, keep_signature=False).hash != canonical(graph, keep_signature=False).hash
    assert different > len(seeds) // 4


@pytest.mark.parametrize("seed", some(range(60)))
def test_results_stay_bit_for_bit(seed: int) -> None:
    rng = random.Random(seed)
    function = program(rng, rng.randint(1, 60), views=seed % 4 > 0)
    arrays = arrays_for(function, seed)
    for array in arrays:
        if array.dtype.kind not in "iu" and array.size:
            array.reshape(-1)[rng.randrange(array.size)] = rng.choice((-0.0, np.nan, np.inf))
    module = canonicalize(function.module)
    pairs = zip(results(function.module, arrays), results(module, arrays), strict=True)
    assert all(same_bits(a, b) for a, b in pairs)


def attention(use: tuple[int, int, int]) -> te.Function:
    """Attention, each of three inputs of one shape in one of its places."""
    inputs = [P((2, 8, 4), name=name) for name in "QKV"]
    return te.function("top", inputs, te.nn.attention(*(inputs[n] for n in use)))


def test_arguments_of_one_shape_are_told_apart_by_their_use() -> None:
    uses = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    forms = [canonical(graph_of(attention(use)), keep_signature=False) for use in uses]
    assert len({form.hash for form in forms}) == len({text_of(form) for form in forms}) == 1
    assert len({canonical(graph_of(attention(use))).hash for use in uses}) == 6, "public arguments have an order"
    twice = canonical(graph_of(attention((0, 0, 2))), keep_signature=False)
    assert twice.hash != forms[0].hash
    assert len(twice.graph.inputs) == 2


def test_inputs_that_can_be_swapped_do_not_matter() -> None:
    """A sum of four products: each pair, and each pair's inputs, may be swapped, others not."""

    def pairs(order: tuple[int, ...]) -> te.Function:
        t = [P((4,), name=f"T{n}") for n in range(8)]
        a, b, c, d, e, f, g, h = (t[n] for n in order)
        return te.function(
            "top", t, te.compute((4,), lambda i: (a[i] * b[i] + c[i] * d[i]) + (e[i] * f[i] + g[i] * h[i]))
        )

    rng = random.Random(1)
    orders = [tuple(rng.sample(range(8), 8)) for _ in range(6)]
    assert len({text_of(canonical(graph_of(pairs(order)), keep_signature=False)) for order in orders}) == 1


CALLS = """
func.func @main(%X: tensor<4xf32>, %Y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @g(%X, %Y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @g(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {te.group} {
  %S = te.compute "S" [i = 4] (%x = %a[i] : tensor<4xf32>, %y = %b[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.subf BODY : f32
    te.yield %0 : f32
  }
  func.return %S : tensor<4xf32>
}
"""


def test_calls_follow_the_signature_of_what_they_call() -> None:
    """Whichever argument the callee subtracts, the callee's text is one, and what is subtracted stays."""
    modules = [parse(CALLS.replace("BODY", operands)) for operands in ("%x, %y", "%y, %x")]
    forms = [canonical_functions(module) for module in modules]
    assert forms[0]["g"].hash == forms[1]["g"].hash and text_of(forms[0]["g"]) == text_of(forms[1]["g"])
    assert forms[0]["main"].hash != forms[1]["main"].hash
    calls = [form["main"].graph.nodes[0].operands for form in forms]
    assert sorted(calls) == [("a0", "a1"), ("a1", "a0")]
    verify_module(canonicalize(modules[0]))


def test_rows_of_a_product_stand_before_its_columns() -> None:
    """Whatever the digests are: the rules of the tuner know products so."""
    for seed in range(8):
        m, n, k = (random.Random(seed).randint(2, 9) for _ in range(3))
        A, B = P((k, m), name="A"), P((k, n), name="B")
        function = te.function("f", [B, A], te.nn.matmul(B, A, transpose_a=True))
        (node,) = canonical(graph_of(function)).graph.nodes
        assert isinstance(node, Compute)
        assert [access.buffer for access in node.block.reads] == ["a0", "a1"]


def test_windows_with_a_border_keep_an_index_each() -> None:
    tokens = te.placeholder((36, 16), name="tokens")
    image = te.nn.transpose(te.nn.reshape(tokens, (1, 6, 6, 16)), (0, 3, 1, 2))
    w = te.placeholder((16, 1, 3, 3), name="w")
    for padding, copied in ((1, True), (0, False)):
        y = te.nn.depthwise_conv2d(image, w, padding=padding)
        text = str(canonicalize(te.function("f", [tokens, w], y).module))
        assert ('"view0"' in text) == copied


def test_channels_of_a_convolution_stand_before_its_windows() -> None:
    """Also where windows are larger than channels are many."""
    X, W = P((1, 3, 12, 12), name="X"), P((8, 3, 5, 5), name="W")
    function = te.function("f", [X, W], te.nn.relu(te.nn.conv2d(X, W, padding=2, name="conv")))
    first = canonical(graph_of(function)).graph.nodes[0]
    assert isinstance(first, Compute)
    assert [axis.size for axis in first.block.axes] == [1, 8, 12, 12, 3, 5, 5]
    weights = next(access for access in first.block.reads if access.buffer == "a1")
    assert [form.variables() for form in weights.index] == [{1}, {4}, {5}, {6}]


def test_names_lead_back_to_the_users() -> None:
    X, W = P((8, 12), name="X"), P((12, 16), name="W")
    function = te.function("net", [X, W], te.nn.softmax(te.nn.matmul(X, W, name="mm"), name="soft"))
    form = canonical(graph_of(function))
    assert form.names.blocks["product0"] == "mm"
    assert form.names.axes["product0"] == {"i0": "m", "i1": "n", "r0": "k"}
    assert form.names.values["a1"] == "W"
    assert set(form.names.blocks.values()) == {"mm", "soft.max", "soft.exp", "soft.sum", "soft"}
    second = canonical(form.graph)
    assert second.names.after(form.names) == form.names


def test_a_script_is_printed_under_the_names_of_the_user() -> None:
    X, W = P((16, 32), name="X"), P((32, 64), name="W")
    form = canonical(graph_of(te.function("f", [X, W], te.nn.matmul(X, W, name="mm"))))
    s = Schedule(lower(ModuleOp([write(form.graph)])))
    product = s.get_block("product0")
    _, columns, depth = s.get_loops(product)
    s.vectorize(s.split(columns, [None, 16])[1])
    s.pack(product, "a1", tiles=[1, 16], order=[1, 0, 2])
    s.decompose_reduction(product, depth)
    text = str(script_with_user_names(parse(str(s.script)), form.names))
    assert '%mm = sched.get_block %f "mm"' in text
    assert "%m, %n, %k = sched.get_loops %mm" in text and "%n.0, %n.1 = sched.split %n" in text
    assert '%W.pack = sched.pack %mm "W"' in text and "%mm.init = " in text
    assert not any(name in text for name in ("product0", "a1", "i0", "r0"))


def constants(first: str, second: str, changed_at: int, swap: bool) -> te.Function:
    """Sums of an input and two constants that differ in one element."""
    elements = np.arange(256 * 1024, dtype=np.float32).reshape(256, 1024)
    changed = elements.copy()
    changed.reshape(-1)[changed_at] = -1
    A, B = te.constant(elements, name=first), te.constant(changed, name=second)
    X = P((256, 1024), name="X")
    y = te.nn.add(te.nn.exp(te.nn.add(X, A)), B)
    z = te.nn.add(X, te.constant(elements.copy(), name="again"))
    return te.function("f", [X], [z, y] if swap else [y, z])


def test_constants_are_told_apart_by_their_elements() -> None:
    """Also by one that no sample has; equal ones are one constant."""
    forms = [canonicalize(constants(*names, 100_001, swap=False).module) for names in (("A", "B"), ("W", "V"))]
    assert str(forms[0]) == str(forms[1])
    assert str(forms[0]).count("te.constant") == 2
    assert str(canonicalize(parse(str(forms[0])))) == str(forms[0])
    collected = [
        te.canonical_hash(constants("A", "B", at, swap)) for at in (100_001, 100_002) for swap in (False, True)
    ]
    assert len({te.canonical_hash(forms[0]), *collected}) == 4
    module, x = constants("A", "B", 5, False).module, np.ones((256, 1024), np.float32)
    assert all(same_bits(a, b) for a, b in zip(results(module, [x]), results(canonicalize(module), [x]), strict=True))


def test_time_grows_linearly() -> None:
    """Steps, not seconds: digests taken of chains of 100 and 800 computes."""
    from compiler.graph import hashing

    def steps(count: int) -> int:
        x = P((64,), name="X")
        y = x
        for n in range(count):
            y = te.compute((64,), lambda i, y=y, n=n: y[i] * (n + 1.5) + x[i], f"C{n}")
        taken = 0
        digest = hashing.digest

        def counting(*parts: object) -> bytes:
            nonlocal taken
            taken += 1
            return digest(*parts)

        hashing.digest = counting
        try:
            canonicalize(te.function("chain", [x], y).module)
        finally:
            hashing.digest = digest
        return taken

    assert steps(800) <= 8.5 * steps(100)


def test_hash_of_a_function_of_a_module_and_on_the_command_line(
    tmp_path_factory: pytest.TempPathFactory, strata: Strata
) -> None:
    function = attention((0, 1, 2))
    actual = te.canonical_hash(function)
    assert re.fullmatch(r"[0-9a-f]{32}", actual) and actual == te.canonical_hash(function.module)
    file = tmp_path_factory.mktemp("hash") / "f.mlir"
    file.write_text(str(function))
    assert actual == te.canonical_hash(str(function)) == te.canonical_hash(file) == te.canonical_hash(str(file))
    assert strata("hash", str(file)) == f"{actual} top\n"
    file.write_text("func.func @f(%A: memref<4xf32>) {\n func.return\n}")
    assert "@f: 'A' is of type memref<4xf32>, expected a tensor" in strata("hash", str(file), status=1)
    with pytest.raises(
        TeError, match=r"takes a te function, a module, its text or the path of an .mlir file, not 'top'"
    ):
        te.canonical_hash("top")
    with pytest.raises(TeError, match="not a list"):
        te.canonical_hash([function])  # type: ignore[arg-type]
