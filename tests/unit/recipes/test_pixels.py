"""The rules for convolutions: when they apply, that their scripts are proved and right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.autotune.task import SearchTask
from compiler.recipes import convolution as rule
from compiler.recipes.draft import Alternative, Draft
from compiler.recipes.rules import RULES
from compiler.recipes.sizes import evens
from compiler.schedule import Schedule
from compiler.space.derivation import preferred
from compiler.types.machines import MACHINES, host
from tests.sample import some

CASES = [
    # channels of the image, its extents, groups, filters, taps, stride, padding, dilation
    (3, (9, 14), 3, 3, (3, 3), (1, 1), 1, 1),
    (2, (11, 13), 2, 4, (3, 5), (2, 2), (1, 2), 1),
    (4, (5, 7), 2, 6, (3, 3), (1, 1), 1, 1),
    (3, (7, 7), 3, 3, (5, 5), (2, 2), 2, 1),
    (2, (6, 33), 2, 2, (3, 3), (1, 3), 1, 1),
    (4, (40,), 4, 4, (4,), (1,), 3, 1),
    (2, (3, 5, 20), 2, 2, (3, 3, 3), (1, 1, 2), 1, 1),
    (3, (12, 21), 3, 3, (3, 3), (1, 1), 2, 2),
    (5, (10, 19), 5, 5, (3, 3), (2, 1), 0, 1),
    (3, (9, 28), 3, 3, (3, 3), (2, 2), 1, 1),
    (2, (6, 47), 2, 2, (5, 5), (3, 3), 2, 1),
    (3, (7, 7), 3, 3, (3, 3), (1, 1), 1, 1),
]
MANY = [
    (5, (19,), 1, 20, (3,), (1,), 1, 1),
    (4, (3, 6, 9), 1, 9, (3, 3, 3), (1, 2, 1), 1, 1),
    (32, (6, 7), 2, 32, (3, 3), (1, 1), 1, 1),
    (6, (40,), 1, 17, (5,), (2,), 2, 2),
    (3, (11, 10), 1, 16, (3, 3), (2, 2), 1, 1),
]
POINTWISE = [
    # channels of the image, its extents, filters, stride
    (5, (7, 9), 14, (1, 1)),
    (12, (8, 8), 6, (1, 1)),
    (3, (15, 18), 7, (2, 2)),
    (4, (5, 26), 9, (1, 2)),
    (7, (61,), 8, (1,)),
    (3, (4, 5, 6), 5, (1, 2, 1)),
]
TAPPED = [
    # channels of the image, its extents, filters, taps, stride
    (6, (5, 4, 8), 12, (3, 1, 1), (1, 1, 1)),
    (4, (7, 19), 9, (3, 1), (2, 1)),
    (3, (4, 5, 12), 5, (1, 3, 1), (1, 1, 2)),
]


def convolution(
    channels: int,
    image: Sequence[int],
    groups: int,
    filters: int,
    taps: Sequence[int],
    stride: Sequence[int],
    padding: int | tuple[int, ...],
    dilation: int,
    after: bool,
) -> te.Function:
    x = te.placeholder((2, channels, *image), name="X")
    w = te.placeholder((filters, channels // groups, *taps), name="W")
    made = {1: te.nn.conv1d, 2: te.nn.conv2d, 3: te.nn.conv3d}[len(image)]
    step = stride[0] if len(stride) == 1 else tuple(stride)
    y = made(x, w, None, stride=step, padding=padding, dilation=dilation, groups=groups)
    return te.function("f", [x, w], te.nn.relu(y) if after else y)


@pytest.mark.sampled
@pytest.mark.parametrize("case", some(CASES, 2), ids=str)
def test_vectors_of_pixels_are_proved_and_right(case: tuple[object, ...]) -> None:
    function = convolution(*case, after=len(str(case)) % 2 == 0)  # type: ignore[arg-type]
    assert "by vectors of pixels" in _checked(function)


@pytest.mark.parametrize("case", some(MANY, 2), ids=str)
def test_implicit_gemm_is_proved_and_right(case: tuple[object, ...]) -> None:
    function = convolution(*case, after=len(str(case)) % 2 == 0)  # type: ignore[arg-type]
    assert "implicit gemm" in _checked(function)


@pytest.mark.sampled
@pytest.mark.parametrize("way", ["by vectors over rows of pixels", "by vectors of filters, pixels packed"])
@pytest.mark.parametrize("case", some(POINTWISE, 2), ids=str)
def test_both_ways_of_one_tap_are_proved_and_right(
    case: tuple[int, tuple[int, ...], int, tuple[int, ...]], way: str
) -> None:
    channels, image, filters, stride = case
    taps = (1,) * len(image)
    function = convolution(channels, image, 1, filters, taps, stride, 0, 1, after=channels % 2 == 0)
    assert way in _checked(function, way)


@pytest.mark.parametrize(
    ("l2_bytes", "first"),
    [(1 << 20, "implicit gemm, weights packed first"), (4 << 20, "by vectors over rows of pixels")],
)
def test_filters_larger_than_l2_are_read_once(l2_bytes: int, first: str) -> None:
    X, W = te.placeholder((1, 1024, 14, 14), name="X"), te.placeholder((512, 1024, 1, 1), name="W")
    program = Schedule(compiler.lower(te.function("f", [X, W], te.nn.conv2d(X, W, name="Y")))).program
    schedule = Schedule(replace(program, constants=("W",)))
    draft = Draft(schedule, replace(MACHINES["avx512-amx"], l2_bytes=l2_bytes), 1, ("Y",))
    assert next(iter(rule.convolution(draft, "Y"))).name == first


@pytest.mark.parametrize("case", some(TAPPED, 2), ids=str)
def test_taps_along_the_first_dimensions_are_proved_and_right(
    case: tuple[int, tuple[int, ...], int, tuple[int, ...], tuple[int, ...]],
) -> None:
    channels, image, filters, taps, stride = case
    padding = tuple(tap // 2 for tap in taps)
    function = convolution(channels, image, 1, filters, taps, stride, padding, 1, after=channels % 2 == 0)
    assert "over rows of pixels" in _checked(function, "by vectors over rows of pixels")


@pytest.mark.parametrize(
    ("size", "filters", "name"), [(16, 128, "over rows"), (3, 128, "of filters"), (16, 8, "gemm"), (3, 8, "gemm")]
)
def test_the_way_of_one_tap_is_by_what_is_idle(size: int, filters: int, name: str) -> None:
    function = convolution(16, (size, size), 1, filters, (1, 1), (1, 1), 0, 1, after=True)
    task = SearchTask(function, threads=1)
    assert name in preferred(task.schedule, RULES, task.machine).name


@pytest.mark.parametrize(("constants", "name"), [(["W"], "over rows"), ([], "of filters")])
def test_constant_filters_allow_more_idle_lanes(constants: list[str], name: str) -> None:
    """196 pixels in 224 lanes of AVX-512, in 200 of AVX2."""
    function = convolution(16, (14, 14), 1, 128, (1, 1), (1, 1), 0, 1, after=True)
    task = SearchTask(function, threads=1, constants=constants)
    expected = name if host().vector_bits == 512 else "over rows"
    assert expected in preferred(task.schedule, RULES, task.machine).name


@pytest.mark.parametrize(("frame", "name"), [((8, 8), "over rows"), ((17, 1), "gemm")])
def test_filters_over_time_are_products_where_frames_fill_vectors(frame: tuple[int, ...], name: str) -> None:
    function = convolution(16, (4, *frame), 1, 64, (3, 1, 1), (1, 1, 1), (1, 0, 0), 1, after=True)
    task = SearchTask(function, threads=1, constants=["W"])
    assert name in preferred(task.schedule, RULES, task.machine).name


def test_an_image_is_scaled_where_its_panels_are_packed() -> None:
    """196 pixels do not fill the last panel: the lanes beyond read no pixel, and each scale is read without a mask."""
    x, scale = te.placeholder((1, 16, 14, 14), name="X"), te.placeholder((1, 16, 1, 1), name="S")
    w = te.placeholder((128, 16, 1, 1), name="W")
    function = te.function("f", [x, scale, w], te.nn.conv2d(te.nn.mul(x, scale), w))
    task = SearchTask(function, threads=1, constants=["W"])
    program = preferred(task.schedule, RULES, task.machine).draft.schedule.program
    (copy,) = (block for block in program.blocks.values() if len(block.reads) == 2 and not block.combiners)
    masked = {program.buffers[access.buffer].shape[2]: bool(access.where) for access in copy.reads}
    assert copy.origin is not None and masked == {14: True, 1: False}
    _checked(function)


def test_one_image_without_a_consumer_has_both_ways() -> None:
    x, w = te.placeholder((1, 12, 13, 13), name="X"), te.placeholder((40, 12, 1, 1), name="W")
    space = SearchTask(te.function("f", [x, w], te.nn.conv2d(x, w, stride=2)), threads=1).space
    names = [sketch.name for sketch in space.sketches]
    assert any("over rows of pixels" in name for name in names) and any("pixels packed" in name for name in names)


def test_gradients_of_images_are_implicit_gemm() -> None:
    g, w = te.placeholder((2, 5, 8, 9), name="G"), te.placeholder((5, 12, 3, 3), name="W")
    function = te.function("f", [g, w], te.nn.conv2d_grad_data(g, w, (2, 12, 8, 9), padding=1))
    assert "implicit gemm" in _checked(function)


PHASES = [
    # image, kernel, stride, padding, output padding: of 5 channels and 12 filters
    ((6, 7), 2, 2, 0, 0),
    ((5, 9), 3, 2, 1, 1),
    ((7, 5), 4, 2, 1, 0),
    ((4, 6), 5, 3, 2, 0),
    ((6, 4), 2, 3, 0, 0),
    ((11,), 3, 2, 1, 0),
]


@pytest.mark.sampled
@pytest.mark.parametrize("case", some(PHASES, 2), ids=str)
@pytest.mark.parametrize("after", [False, True])
def test_transposed_ones_run_by_phases(case: tuple[tuple[int, ...], int, int, int, int], after: bool) -> None:
    image, kernel, stride, padding, beyond = case
    x, w = te.placeholder((2, 5, *image), name="X"), te.placeholder((5, 12, *(kernel,) * len(image)), name="W")
    make = te.nn.conv1d_transpose if len(image) == 1 else te.nn.conv2d_transpose
    y = make(x, w, stride=stride, padding=padding, output_padding=beyond)
    function = te.function("f", [x, w], te.nn.relu(y) if after else y)
    assert "by phases" in _checked(function)


def _checked(function: te.Function, way: str = "") -> str:
    """What the rules decided, after its script was proved and its results compared with those of the program: with the
    convolution's `way`, where there is one."""

    def one_way(draft: Draft, label: str) -> Iterator[Alternative]:
        return (alternative for alternative in rule.convolution(draft, label) if alternative.name == way)

    task = SearchTask(function, threads=1)
    derivation = preferred(task.schedule, (one_way, *RULES), task.machine)
    schedule = derivation.draft.schedule
    assert str(schedule.verify()) == "proved"
    written, kernel = compiler.build(task.schedule, threads=1), compiler.build(schedule, threads=1)
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(a.shape, dtype=np.float32) for a in kernel.arguments[:-1]]
    np.testing.assert_allclose(kernel(*inputs), written(*inputs), rtol=1e-4, atol=1e-4)
    return derivation.name


@pytest.mark.parametrize("size", [14, 28, 56])
def test_columns_apart_are_copied_without_masks(size: int) -> None:
    """Lanes with a mask whose elements do not lie side by side are loaded one by one."""
    function = convolution(3, (6, size), 3, 3, (3, 3), (2, 2), 1, 1, True)
    task = SearchTask(function, threads=1)
    kernel = compiler.build(preferred(task.schedule, RULES, task.machine).draft.schedule, threads=1)
    assert "masked.gather" not in kernel.text("llvm")


@pytest.mark.parametrize(("size", "taps", "copied"), [(7, 5, False), (14, 7, True), (40, 3, True)])
def test_an_image_in_one_register_tile_is_read_as_it_lies(size: int, taps: int, copied: bool) -> None:
    function = convolution(3, (size, size), 3, 3, (taps, taps), (1, 1), taps // 2, 1, True)
    task = SearchTask(function, threads=1)
    schedule = preferred(task.schedule, RULES, task.machine).draft.schedule
    assert any(name.endswith(".pad") for name in schedule.program.allocs) == copied


@pytest.mark.parametrize(("size", "taps", "rows"), [(17, 3, 3), (28, 3, 4), (28, 5, 2), (56, 7, 2)])
def test_a_tile_has_rows_whose_taps_are_all_unrolled(size: int, taps: int, rows: int) -> None:
    """Of two vectors as many as waste least; where no tile has them, most of the accumulators."""
    function = convolution(2, (size, size), 2, 2, (taps, taps), (1, 1), taps // 2, 1, after=True)
    machine = replace(host(), vector_bits=512, registers=32)
    drafted = preferred(SearchTask(function, threads=1).schedule, RULES, machine).draft.schedule
    assert f"sample_categorical [1, 2, 3, 4, 6, 7, 8, 14] decision {rows - 1}" in str(drafted.script)


def test_it_is_for_filters_that_share_few_channels() -> None:
    for groups in (1, 2):
        function = convolution(32, (8, 8), groups, 64, (3, 3), (1, 1), 1, 1, True)
        task = SearchTask(function, threads=1)
        assert "pixels" not in preferred(task.schedule, RULES, task.machine).name


def test_the_image_of_a_grouped_convolution_is_no_weight() -> None:
    function = convolution(32, (6, 7), 2, 32, (3, 3), (1, 1), 1, 1, True)
    task = SearchTask(function, threads=1)
    schedule = preferred(task.schedule, RULES, task.machine).draft.schedule
    assert [step.split()[0] for step in str(schedule.script).split("sched.")[1:]].count("pad") == 1


@pytest.mark.parametrize(("channels", "chunk"), [(512, 16), (200, 8), (67, 24)])
def test_chunks_divide_the_channels_where_they_can(channels: int, chunk: int) -> None:
    chunks = evens(channels, 8, 4, 512)
    assert rule._whole(channels, chunks, 24) == chunk


def test_a_plain_image_of_a_transposed_one_is_copied_by_rows() -> None:
    for padding, copies in ((0, ["a1.local"]), (1, ["a1.pad"])):
        x, w = te.placeholder((1, 8, 6, 6), name="X"), te.placeholder((8, 16, 2 + padding, 2 + padding), name="W")
        function = te.function("f", [x, w], te.nn.conv2d_transpose(x, w, stride=2, padding=padding))
        task = SearchTask(function, threads=1)
        buffers = preferred(task.schedule, task.rules, task.machine).draft.schedule.program.buffers
        assert [name for name in buffers if name.startswith("a1.")] == copies
