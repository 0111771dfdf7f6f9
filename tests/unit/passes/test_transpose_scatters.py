"""transpose-scatters: the same elements as the scatters write, and no others; which runs it takes, which it leaves."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from xdsl.dialects import vector
from xdsl.dialects.builtin import ModuleOp

from compiler import universe
from compiler.dialects.dominance import verify_module
from compiler.dialects.upstream.vector import ScatterOp
from compiler.driver import build_as_written
from compiler.passes.transpose_scatters import TransposeScattersPass
from compiler.pipeline.source import parse
from tests.low import with_constants
from tests.sample import some

BORDER = 5
"""How many elements stand before the first that is written, and are looked at as well."""


def scatters(rows: int, lanes: int, stride: int, order: list[int] | None = None, active: int | None = None) -> str:
    """A function that writes row r of A (rows x lanes) from T[r] on, a stride apart; `active` lanes of each."""
    size = BORDER + stride * lanes + 3
    mask = "arith.constant dense<true>" if active is None else f"vector.create_mask %c{active}"
    steps = ", ".join(str(stride * lane) for lane in range(lanes))
    lines = []
    for r in order or range(rows):
        lines.append(f"""
    %v{r} = vector.load %A[%c{r}, %c0] : memref<{rows}x{lanes}xf32>, vector<{lanes}xf32>
    vector.scatter %T[%c{BORDER + r}] [%steps], %mask, %v{r} : memref<{size}xf32>, vector<{lanes}xindex>, \
vector<{lanes}xi1>, vector<{lanes}xf32>""")
    return f"""func.func @f(%A: memref<{rows}x{lanes}xf32>, %T: memref<{size}xf32>) {{
    %steps = arith.constant dense<[{steps}]> : vector<{lanes}xindex>
    %mask = {mask} : vector<{lanes}xi1>{"".join(lines)}
    func.return
}}"""


def transposed(text: str) -> ModuleOp:
    """The module after the pass, verified."""
    module = parse(with_constants(text))
    TransposeScattersPass().apply(universe.context(), module)
    verify_module(module)
    return module


def left(module: ModuleOp) -> int:
    return sum(isinstance(op, ScatterOp) for op in module.walk())


def check(text: str, rows: int, lanes: int, stride: int, active: int | None = None) -> ModuleOp:
    """The pass writes what the scatters write, and leaves alone what stands between."""
    module = transposed(text)
    a = np.arange(rows * lanes, dtype=np.float32).reshape(rows, lanes) + 100
    want = -np.arange(1, BORDER + stride * lanes + 4, dtype=np.float32)
    actual = want.copy()
    for lane in range(lanes if active is None else active):
        want[BORDER + lane * stride : BORDER + lane * stride + rows] = a[:, lane]
    build_as_written(module)(a, actual)
    np.testing.assert_array_equal(actual, want)
    return module


TILES = list(product([2, 3, 6, 8, 14, 16], [0, 1, 3], [None, 0, 1, 5]))


@pytest.mark.sampled
@pytest.mark.parametrize(("rows", "gap", "active"), some(TILES, 5))
def test_tiles_of_16_lanes(rows: int, gap: int, active: int | None) -> None:
    module = check(scatters(rows, 16, rows + gap, active=active), rows, 16, rows + gap, active)
    assert left(module) == 0


@pytest.mark.parametrize("lanes", some(range(2, 17)))
def test_any_number_of_lanes(lanes: int) -> None:
    for rows in (2, 3, 8):
        for stride in (rows, rows + 1):
            module = check(scatters(rows, lanes, stride), rows, lanes, stride)
            width = 1 << (rows - 1).bit_length()
            fits = lanes % width == 0 or (rows == width == stride and width % lanes == 0)
            assert left(module) == (0 if fits and lanes % 2 == 0 else rows), (rows, stride)


def test_in_any_order() -> None:
    for seed in range(5):
        order = random.Random(seed).sample(range(8), 8)
        assert left(check(scatters(8, 8, 8, order), 8, 8, 8)) == 0


def test_a_dense_tile_has_no_masks() -> None:
    module = transposed(scatters(4, 8, 4))
    assert [type(op) for op in module.walk() if "store" in op.name] == [vector.StoreOp] * 4
    assert sum(isinstance(op, vector.ShuffleOp) for op in module.walk()) == 8  # two rounds of four


def scattered(body: str, mask: str = "%all") -> str:
    """Two scatters that could be a tile, with something between them or another place of the second."""
    return f"""func.func @f(%A: memref<8x4xf32>, %T: memref<64xf32>, %U: memref<64xf32>, %n: index) {{
    %steps = arith.constant dense<[0, 2, 4, 6]> : vector<4xindex>
    %wide = arith.constant dense<[0, 3, 6, 9]> : vector<4xindex>
    %all = arith.constant dense<true> : vector<4xi1>
    %some = vector.create_mask %n : vector<4xi1>
    %a = vector.load %A[%c0, %c0] : memref<8x4xf32>, vector<4xf32>
    %b = vector.load %A[%c1, %c0] : memref<8x4xf32>, vector<4xf32>
    vector.scatter %T[%c0] [%steps], %all, %a : memref<64xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>
    {body}
    func.return
}}"""


def second(buffer: str = "T", at: str = "c1", steps: str = "steps", mask: str = "all") -> str:
    types = "memref<64xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>"
    return f"vector.scatter %{buffer}[%{at}] [%{steps}], %{mask}, %b : {types}"


def test_two_scatters_are_a_tile() -> None:
    assert left(transposed(scattered(second()))) == 0
    store = "memref.store %x, %U[%c0] : memref<64xf32>"
    load = "%x = memref.load %A[%c0, %c0] : memref<8x4xf32>"
    prefetch = "memref.prefetch %T[%n], write, locality<3>, data : memref<64xf32>"
    assert left(transposed(scattered("\n".join([load, store, prefetch, second()])))) == 0


@pytest.mark.parametrize(
    "body",
    [
        "%x = memref.load %T[%n] : memref<64xf32>\n" + second(),
        "%x = vector.load %T[%c0] : memref<64xf32>, vector<4xf32>\n" + second(),
        "%x = memref.load %A[%c0, %c0] : memref<8x4xf32>\nmemref.store %x, %T[%n] : memref<64xf32>\n" + second(),
        "scf.for %i = %c0 to %n step %c1 {\n%x = memref.load %T[%i] : memref<64xf32>\n}\n" + second(),
        "func.call @g(%T) : (memref<64xf32>) -> ()\n" + second(),
        second(steps="wide"),
        second(mask="some"),
        second(at="c2"),
        second(at="c0"),
        second(at="n"),
        second(buffer="U"),
    ],
)
def test_what_is_no_tile_stays(body: str) -> None:
    text = scattered(body)
    if "@g" in body:
        text = "func.func private @g(memref<64xf32>) -> ()\n" + text
    assert left(transposed(text)) == 2


def test_scatters_into_two_buffers_in_turn_are_two_tiles() -> None:
    body = "\n".join([second("U", "c0"), second("U", "c1"), second("T", "c1")])
    module = transposed(scattered(body))
    assert left(module) == 0
    t, u = np.zeros(64, np.float32), np.zeros(64, np.float32)
    a = np.arange(32, dtype=np.float32).reshape(8, 4) + 1
    text = (
        scattered(body)
        .replace(", %n: index", "")
        .replace("%some = vector.create_mask %n", "%some = vector.create_mask %c0")
    )
    build_as_written(transposed(text))(a, t, u)
    np.testing.assert_array_equal(t[:8].reshape(4, 2), np.stack([a[0], a[1]], 1))
    np.testing.assert_array_equal(u[:8].reshape(4, 2), np.stack([a[1], a[1]], 1))


def test_a_step_that_is_no_constant_stays() -> None:
    text = scattered(second()).replace(
        "%steps = arith.constant dense<[0, 2, 4, 6]> : vector<4xindex>",
        "%steps = vector.broadcast %n : index to vector<4xindex>",
    )
    assert left(transposed(text)) == 2
    module = transposed(scattered(second()).replace("[0, 2, 4, 6]", "[0, 2, 4, 7]"))
    assert left(module) == 2


@pytest.mark.parametrize("type", ["memref<?xf32>", "memref<64xf32, strided<[2]>>"])
def test_other_layouts_stay(type: str) -> None:
    assert left(transposed(scattered(second()).replace("memref<64xf32>", type))) == 2
