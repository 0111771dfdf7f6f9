"""The gradient of a convolution's weights: right in the interpreter, compiled, replayed, proved, refused in words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import compiler
from compiler import recipes, te
from compiler.bench import contractions
from compiler.bench.harness import fault
from compiler.bench.workload import Workload
from compiler.recipes import GradientTiles
from compiler.schedule import Schedule
from compiler.support.errors import ScheduleError
from tests.scheduled import check

SMALL = GradientTiles(taps=2, nr=8, lanes=4, held=400)
FORMS = [contractions.conv_grad_weight, contractions.conv_grad_weight_steps]


def schedule(s: Schedule, tiles: GradientTiles = SMALL) -> recipes.Gradient:
    """The composite on the last block."""
    return recipes.conv_grad_weight(s, s.get_block("E"), tiles)


@pytest.mark.sampled
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(2, 5, 4, 6), (3, 9, 3, 2), (1, 2, 1, 3), (5, 3, 2, 1)])
def test_conv_grad_weight(form: Callable[..., Workload], shape: tuple[int, int, int, int]) -> None:
    done = check(form(*shape).function(), schedule)
    assert str(done.verify()) == "proved"


def test_one_channel_and_one_pixel() -> None:
    assert str(check(contractions.conv_grad_weight(1, 1, 1, 1).function(), schedule).verify()) == "proved"


@pytest.mark.parametrize("form", FORMS)
def test_accumulators_are_a_tile_of_taps_and_output_channels(form: Callable[..., Workload]) -> None:
    s = Schedule(compiler.lower(form(3, 9, 4, 5).function()))
    schedule(s, GradientTiles(taps=3, nr=8, lanes=4, held=1 << 19))
    product = next(b for b in ("P", "E") if b in s.program.blocks)
    loops = s.program.enclosing(product)
    assert [loop.kind for loop in loops][-4:] == ["unrolled"] * 3 + ["vectorized"]
    assert [loop.extent for loop in loops if loop.kind != "serial" and loop.extent > 1] == [3, 3, 2, 4]
    assert s.program.buffers["B.pack"].shape[-2:] == (5, 8)


def test_groups_are_as_large_as_what_is_held() -> None:
    s = Schedule(compiler.lower(contractions.conv_grad_weight(6, 4, 8, 8).function()))
    image = 4 * 4 * (10 * 8 + 8 * 8)
    done = schedule(s, GradientTiles(nr=4, lanes=4, held=3 * image))
    assert (s.extent(done.images), s.extent(done.rows)) == (2, 1)
    s = Schedule(compiler.lower(contractions.conv_grad_weight(6, 4, 8, 8).function()))
    done = schedule(s, GradientTiles(nr=4, lanes=4, held=image // 2))
    assert (s.extent(done.images), s.extent(done.rows)) == (6, 2)


def test_the_workload_in_steps_computes_the_same() -> None:
    in_one_step, steps = (form(2, 3, 4, 5) for form in FORMS)
    inputs = in_one_step.draw(0)
    out = np.empty(steps.shape, np.float32)
    assert fault(steps.numpy(inputs, out)(), in_one_step.expected(inputs)) is None
    assert fault(compiler.build(compiler.lower(steps.function()))(*inputs), in_one_step.expected(inputs)) is None


def test_refusals() -> None:
    a, b = te.placeholder((4, 6), name="A"), te.placeholder((6, 5), name="B")
    s = Schedule(compiler.lower(te.function("product", [a, b], [te.nn.matmul(a, b, name="E")])))
    before = str(s.module)
    said = "conv_grad_weight: block 'E': it is no gradient of a convolution's weights: "
    with pytest.raises(ScheduleError) as error:
        schedule(s)
    assert str(error.value) == said + "a sum over n, h, w of two operands, or that in steps"
    s2 = Schedule(compiler.lower(te.function("twice", [a], [te.compute((4, 6), lambda i, j: a[i, j] * 2.0, name="E")])))
    with pytest.raises(ScheduleError, match=said):
        schedule(s2)
    assert str(s.module) == before
    s3 = Schedule(compiler.lower(contractions.conv_grad_weight_steps(2, 1, 3, 3).function()))
    with pytest.raises(ScheduleError, match="block 'P': there is one element along 'o': nothing to tile"):
        schedule(s3)
    s4 = Schedule(compiler.lower(contractions.conv_grad_weight_steps(2, 3, 1, 1).function()))
    with pytest.raises(ScheduleError, match="block 'P': there is one element along 'h' and 'w': nothing to tile"):
        schedule(s4)
