# ruff: noqa: E402
"""The table of torch's operators: each case of tests/torch_cases.py as a te function, evaluated, beside torch."""

from __future__ import annotations

import math
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.doors
F = torch.nn.functional

from compiler import te
from compiler.frontends.model import Imported
from compiler.frontends.torch import from_torch
from compiler.frontends.torch.conversion import refusal_of
from compiler.frontends.torch.dtypes import DTYPES
from compiler.frontends.torch.operators import resize
from compiler.interpret.te import evaluate
from compiler.support import plugins
from compiler.support.errors import InputError
from compiler.support.plugins import PluginError
from tests.sample import some
from tests.torch_cases import CASES, Case, image

NARROW = {torch.float16: 2e-2, torch.bfloat16: 1e-1, torch.float64: 1e-7}
OF_ANY_DTYPE = ("activations", "arithmetic", "products", "attention", "convolutions", "softmax", "norms", "pooling")


class Calls(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A module that calls a function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def array(tensor: Any) -> Any:
    """A tensor's elements; numpy has no bf16, te's evaluator has ml_dtypes'."""
    if tensor.dtype is not torch.bfloat16:
        return tensor.numpy()
    import ml_dtypes

    return tensor.float().numpy().astype(ml_dtypes.bfloat16)


def imported(case: Case) -> Imported:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return from_torch(Calls(case[0]), case[1])


def evaluated(program: Imported, given: Any) -> list[Any]:
    """The results of a te function on torch's tensors."""
    arguments, inputs = iter(given), program.function.inputs
    tensors = [program.constants[t.name] if t.name in program.constants else next(arguments) for t in inputs]
    return evaluate(program.function.module, [array(tensor) for tensor in tensors])


def check(case: Case, tolerance: float) -> None:
    """The te function of a case gives what torch does."""
    program = imported(case)
    actual = evaluated(program, case[1])
    wanted = case[0](*(argument.clone() for argument in case[1]))
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    assert len(actual) == len(wanted)
    for n, (ours, theirs, tensor) in enumerate(zip(actual, wanted, program.function.outputs, strict=True)):
        assert DTYPES[theirs.dtype] == tensor.dtype and tuple(theirs.shape) == ours.shape, f"result {n}"
        left, right = ours.astype(np.float64), array(theirs).astype(np.float64)
        np.testing.assert_allclose(left, right, tolerance, tolerance, err_msg=f"result {n}")


@pytest.mark.parametrize("name", some(CASES, 2))
def test_operators_give_what_torch_gives(name: str) -> None:
    check(CASES[name], 2e-4)


@pytest.mark.parametrize(
    ("name", "dtype"), some([(name, dtype) for name in OF_ANY_DTYPE for dtype in NARROW], 5), ids=str
)
def test_operators_of_other_dtypes(name: str, dtype: Any) -> None:
    function, arguments = CASES[name]
    given = tuple(a.to(dtype) if a.is_floating_point() else a for a in arguments)
    check((function, given), NARROW[dtype])


def exact(function: Any, *given: Any) -> None:
    """The te function of a function gives the bits that torch does."""
    results = evaluated(imported((function, given)), given)
    for n, (ours, theirs) in enumerate(zip(results, function(*given), strict=True)):
        if theirs.dtype.is_floating_point:
            ours, wanted = ours.astype(np.float64), theirs.double().numpy()
            np.testing.assert_array_equal(ours, wanted, err_msg=f"result {n}")
            ours, wanted = (np.signbit(values) & ~np.isnan(values) for values in (ours, wanted))
            np.testing.assert_array_equal(ours, wanted, err_msg=f"signs of result {n}")
        else:
            np.testing.assert_array_equal(ours, theirs.numpy(), err_msg=f"result {n}")


MET = (0.1, 0.3, 0.7, 1 / 3, 1.1, 100.3, -0.6)
"""Numbers that f16 and bf16 round."""


def met(dtype: Any) -> Any:
    """These numbers as a dtype rounds them, their neighbours, and others; in whole vectors, as torch computes those."""
    numbers = torch.tensor(MET, dtype=dtype)
    bits = numbers.view(torch.int16)
    near = [numbers, (bits + 1).view(dtype), (bits - 1).view(dtype), torch.linspace(-4, 4, 107).to(dtype)]
    return torch.cat(near)


def beside(n: float, x: Any) -> None:
    """A number beside a tensor: some operators round it to the dtype, others take it as it is."""
    exact(lambda a: (a == n, a != n, a < n, a <= n, a > n, a >= n, a == 2049, a < torch.tensor(n)), x)
    exact(lambda a: (a + n, n + a, a - n, n - a, a + torch.tensor(n), torch.full_like(a, n) + a), x)
    exact(lambda a: (a * n, a / n, a * torch.tensor(n), n / a, torch.addcdiv(a, a, a.abs() + 1, value=n)), x)
    exact(lambda a: (torch.add(a, a, alpha=n), torch.sub(a, 2 * a, alpha=n), torch.rsub(a, 0.3, alpha=n)), x)
    exact(lambda a: (a.abs() ** n, abs(n) ** a, torch.where(a > 0, a, n), a.masked_fill(a > 0, n)), x)
    exact(lambda a: (a.clamp(max=n), F.hardshrink(a, abs(n)), F.leaky_relu(a, n)), x)
    exact(lambda a: (a % n, torch.fmod(a, n), torch.isclose(a, torch.full_like(a, n))), x)
    exact(lambda a: (torch.div(a, n, rounding_mode="trunc"), torch.div(a, n, rounding_mode="floor")), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_numbers_beside_narrow_floats(dtype: Any) -> None:
    x = met(dtype)
    for n in MET:
        beside(n, x)
    exact(lambda a: (torch.div(a, a.flip(0), rounding_mode="trunc"), a % a.flip(0), torch.fmod(a, a.flip(0))), x)
    exact(lambda a, i: (a + i, a * i, a / i, a < i), x, torch.arange(2000, 2128))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("ends", [(4.3, 0), (0, 10), (1, 7.9), (3, 3), (2.5, 9)])
def test_ends_of_ranges_are_numbers_of_the_dtype(dtype: Any, ends: tuple[float, float]) -> None:
    """torch's own decomposition keeps 4.3 as it is between integers."""
    zeros = torch.zeros(13, dtype=dtype)
    exact(lambda x: (x + torch.linspace(*ends, 13, dtype=dtype),), zeros)
    start = torch.tensor(float(ends[0]))
    exact(lambda x, start: (x + torch.linspace(start, ends[1], 13, dtype=dtype),), zeros, start)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_division_of_floats(dtype: Any) -> None:
    numbers = [0.0, 0.1, 1.0, 5.3, 6.0, 3.0, 1e4, 1e10, 1e20, math.inf, math.nan]
    special = torch.tensor([*numbers, *(-n for n in numbers)]).to(dtype)
    left, right = (grid.reshape(-1)[:448] for grid in torch.meshgrid(special, special, indexing="ij"))
    exact(lambda a, b: (a % b, torch.fmod(a, b), torch.div(a, b, rounding_mode="trunc")), left, right)
    exact(lambda a: (a % 0.1, a % -3.0, torch.fmod(a, 3.0), a // 0.1, a // -math.inf, a % -math.inf, a // 0.0), left)
    if dtype is not torch.float16:  # whose large quotients torch rounds before it rounds them down
        exact(lambda a, b: (a // b, torch.div(a, b, rounding_mode="floor")), left, right)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64], ids=str)
def test_division_of_integers(dtype: Any) -> None:
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    numbers = torch.tensor([low, low + 1, -7 % (high + 1), -1 % (high + 1), 0, 1, 2, 3, 7, high - 1, high]).to(dtype)
    left, right = (grid.reshape(-1) for grid in torch.meshgrid(numbers, numbers[numbers != 0], indexing="ij"))
    floor, trunc = (lambda a, b, mode=mode: torch.div(a, b, rounding_mode=mode) for mode in ("floor", "trunc"))
    exact(lambda a, b: (a // b, a % b, floor(a, b), trunc(a, b), torch.fmod(a, b), torch.remainder(7, b)), left, right)
    exact(lambda a: (a // 3, a % 3, trunc(a, 2), trunc(a, 3), torch.fmod(a, 3)), left)
    exact(lambda a, b: (a**b, 2**b, a << b, a >> b, a.abs(), -a), left, right)
    by_zero = imported((lambda a: (a // (a - a), a % (a - a), trunc(a, a - a), torch.fmod(a, a - a)), (left,)))
    assert not any(result.any() for result in evaluate(by_zero.function.module, [left.numpy()]))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_the_nearest_pixels_of_sizes(mode: str) -> None:
    """A sample of all pairs below 300, by the table's rule."""
    for n, m in product(range(1, 300, 7), range(1, 300, 11)):
        for dtype, name in ((torch.float32, "f32"), (torch.float64, "f64")):
            x = te.placeholder((1, 1, n), name, "X")
            pixels, _ = resize.nearest_pixels(x, m, 2, resize.step(x, m, 2, None), mode == "nearest-exact")
            wanted = F.interpolate(torch.arange(n, dtype=dtype).view(1, 1, n), size=m, mode=mode)
            assert pixels == wanted.int().flatten().tolist(), (n, m, dtype)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8], ids=str)
def test_the_nearest_pixels(mode: str, dtype: Any) -> None:
    for rank, n, m in ((1, 2, 82), (2, 100, 198), (3, 3, 123), (2, 8, 16), (1, 9, 9), (2, 7, 3)):
        pixels = torch.arange(n).to(dtype).expand((1, 2, *(2,) * (rank - 1), n)).contiguous()
        sizes = (*(3,) * (rank - 1), m)
        exact(lambda x, sizes=sizes: (F.interpolate(x, size=sizes, mode=mode),), pixels)
    for factor in (0.5, 0.7, 1.3, 2.0, 2.5):
        pixels = torch.arange(20).to(dtype).expand(1, 2, 4, 20).contiguous()
        exact(lambda x, factor=factor: (F.interpolate(x, scale_factor=factor, mode=mode),), pixels)
        again = {"scale_factor": factor, "recompute_scale_factor": True}
        exact(lambda x, again=again: (F.interpolate(x, mode=mode, **again),), pixels)


def test_pixels_between_others_are_placed_by_the_scale() -> None:
    for factor, corners in product((0.7, 1.3, 2.0), (True, False)):
        size = {"scale_factor": factor, "mode": "bilinear", "align_corners": corners}
        check((lambda a, size=size: F.interpolate(a, **size), (image,)), 1e-5)


def test_even_ratios_are_read_by_one_affine_map() -> None:
    for n, m, index in ((8, 16, "i2 floordiv 2"), (10, 5, "i2 * 2"), (3, 7, "(i2 * 3) floordiv 7")):
        text = str(imported((lambda a, m=m: F.interpolate(a, size=(m, m)), (torch.ones(1, 1, n, n),))).function)
        assert f"[i0, i1, {index}, " in text and text.count("te.compute") == 1


def refused(function: Any, *arguments: Any) -> str:
    """What from_torch says."""
    with pytest.raises(InputError) as error:
        imported((function, arguments))
    return str(error.value)


def test_all_operators_without_a_form_are_named_at_once() -> None:
    said = refused(lambda a: (torch.lgamma(a), torch.fft.fft(a).real, a.relu()), torch.ones(3))
    assert "aten.lgamma.default has no te form; aten._fft_r2c.default has no te form" in said and "relu" not in said


def test_what_cannot_be_a_te_function_is_refused() -> None:
    assert "torch.export refuses" in refused(lambda a: a + 1 if a.sum() > 0 else a, torch.ones(3))
    with pytest.raises(InputError, match=r"takes a torch\.nn\.Module"):
        from_torch(3, ())
    assert "writes to" in refused(lambda a: a.add_(1), torch.ones(3))
    for function in (lambda a: a // 0, lambda a: a % 0, lambda a: torch.fmod(a, 0)):
        assert "integers are divided by 0" in refused(function, torch.ones(3, dtype=torch.int64))
    assert "extent 0" in refused(lambda a: a[:0] + 1, torch.ones(3))


def test_parameters_are_constants_under_their_names() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).eval()
    program = from_torch(module, (torch.ones(2, 3),))
    assert {"0.weight", "0.bias", "1.running_mean"} <= {name.removeprefix("x_") for name in program.constants}
    assert isinstance(program.function, te.Function)


def test_arguments_that_a_form_does_not_take_keep_an_operator_with_torch() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.ops.aten.relu.default, (x,), {"of_tomorrow": 1})
    x.meta["val"] = node.meta["val"] = torch.ones(2)
    assert refusal_of(node) == "aten.relu.default: got an unexpected keyword argument 'of_tomorrow'"


PLUGIN = """
from strata import te
from strata.frontends import Unsupported

def register(registry):
    @registry.torch_operator("strata_test.scale")
    def scale(call, x, factor):
        if factor == 0:
            raise Unsupported("a factor of zero")
        return BODY
"""


def test_an_operator_of_a_plugin(tmp_path: Path) -> None:
    @torch.library.custom_op("strata_test::scale", mutates_args=())  # type: ignore[untyped-decorator]
    def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor

    @scale.register_fake  # type: ignore[untyped-decorator]
    def _(x: torch.Tensor, factor: float) -> torch.Tensor:
        return torch.empty_like(x)

    path, x = tmp_path / "mine.py", torch.arange(6.0).reshape(2, 3)
    path.write_text(PLUGIN.replace("BODY", "te.nn.mul(x, factor, name=call.name)"))
    with pytest.raises(InputError, match=r"strata_test.scale.default has no te form"):
        imported((lambda x: scale(x, 2.0) + 1, (x,)))
    with plugins.loaded([str(path)]):
        model = imported((lambda x: scale(x, 2.0) + 1, (x,)))
        (found,) = evaluate(model.function.module, [x.numpy()])
        np.testing.assert_allclose(found, 2 * x.numpy() + 1)
        with pytest.raises(InputError, match=r"strata_test.scale.default: a factor of zero"):
            imported((lambda x: scale(x, 0.0), (x,)))
    path.write_text(PLUGIN.replace("BODY", "1 / 0"))
    failed = r"plugin mine: torch operator strata_test.scale.default failed: ZeroDivisionError"
    with plugins.loaded([str(path)]), pytest.raises(PluginError, match=failed):
        imported((lambda x: scale(x, 2.0), (x,)))
    path.write_text(PLUGIN.replace("BODY", "x").replace("strata_test.scale", "aten.relu"))
    with pytest.raises(PluginError, match=r"cannot add the torch operator 'aten\.relu\.default': the compiler has one"):
        plugins.load_file(str(path))
