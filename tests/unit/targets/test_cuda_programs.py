"""Programs of groups on CUDA: kernels of groups joined, constants prepared once, one workspace for each stream."""

from __future__ import annotations

import copy
import ctypes
import sys
import threading
import time
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import compiler
from benchmarks.cuda_networks import most_live_bytes
from compiler import te
from compiler.support.errors import InputError, TargetError
from compiler.targets.cuda import CudaKernel
from compiler.targets.cuda.emit import SLOT, WORKSPACE, CudaSource
from tests import pretended_torch
from tests.host_cuda import compiled_file, needs_gxx, run_on_host
from tests.unit.targets.test_cuda_launcher import aligned

Array = np.ndarray[Any, Any]
P = te.placeholder
RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    """Random elements of f32."""
    return RANDOM.standard_normal(shape).astype(np.float32)


def chain(layers: int, rows: int = 6, width: int = 16) -> te.Function:
    """Products with weights, one after another, with biases that are sums of other weights."""
    x = value = P((rows, width), name="X")
    inputs = [x]
    for n in range(layers):
        w, b = P((width, width), name=f"W{n}"), P((5, width), name=f"b{n}")
        inputs += [w, b]
        bias = te.nn.sum(b, axis=0, name=f"bias{n}")
        value = te.nn.relu(te.nn.add(te.nn.matmul(value, w), bias), name=f"Y{n}")
    return te.function("chain", inputs, value)


def joined(width: int) -> te.Function:
    """A concatenation of products, which a further product reads, and which is a result, too."""
    x, w, v = P((8, 16), name="X"), P((16, width), name="W"), P((2 * width, 8), name="V")
    parts = [te.nn.matmul(x, w, name="first"), te.nn.matmul(te.nn.relu(x, name="r"), w, name="second")]
    both = te.nn.concat(parts, 1, name="both")
    return te.function("joined", [x, w, v], [both, te.nn.matmul(both, v, name="last")])


def rows_joined(rows: int, width: int) -> te.Function:
    """Rows of two products, one behind the other: slices of the result, if they begin at multiples of 16 bytes."""
    x, y, w = P((rows, 16), name="X"), P((8, 16), name="Y"), P((16, width), name="W")
    v = P((width, 4), name="V")
    parts = [te.nn.matmul(x, w, name="first"), te.nn.matmul(y, w, name="second")]
    both = te.nn.concat(parts, 0, name="both")
    return te.function("rows", [x, y, w, v], [both, te.nn.matmul(both, v, name="Z"), te.nn.sum(both, name="S")])


def returned_as_given() -> te.Function:
    """Results that are an input, a constant, and one value twice."""
    x, w = P((4, 8), name="X"), P((8, 8), name="W")
    y = te.nn.matmul(te.nn.relu(te.nn.matmul(x, w, name="A"), name="B"), w, name="Y")
    return te.function("given", [x, w], [y, x, w, y])


def folder(parent: Path, name: str) -> Path:
    """A new folder."""
    (parent / name).mkdir()
    return parent / name


def built(function: te.Function, arrays: Mapping[str, Array], **arguments: Any) -> CudaKernel:
    """The kernel of a function whose inputs of `arrays` are constants."""
    kernel = compiler.build(function, "cuda", schedule="auto", constants=arrays or None, **arguments)
    assert isinstance(kernel, CudaKernel)
    return kernel


def check(function: te.Function, constants: tuple[str, ...], folder: Path) -> CudaKernel:
    """Run the text of a function on the host, and compare with the CPU's results."""
    arrays = {tensor.name: normal(*tensor.shape) for tensor in function.inputs}
    fixed = {name: array for name, array in arrays.items() if name.startswith(constants)}
    kernel = built(function, fixed)
    results = run_on_host(kernel, [array for name, array in arrays.items() if name not in fixed], folder)
    expected = compiler.build(function, threads=1, schedule="written")(*arrays.values())
    expected = expected if isinstance(expected, tuple) else (expected,)
    for result, right in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-4)
    return kernel


@needs_gxx
def test_weights_and_what_depends_on_them_are_prepared_once(tmp_path: Path) -> None:
    kernel = check(chain(4), ("W", "b"), tmp_path)
    assert len(kernel.constants) == 8 and [a.name for a in kernel.arguments] == ["X", "Y3"]
    assert len(kernel.source.prepared) == 4
    assert len({launch.name for launch in kernel.launches}) < len(kernel.launches)  # equal groups are compiled once
    names = [argument.name for argument in kernel.native_arguments]
    read = {names[n] for launch in kernel.launches for n in launch.arguments if n < len(names)}
    assert {"W0", "W3"} <= read and read.isdisjoint({"b0", "b1", "b2", "b3"})


@needs_gxx
def test_weights_of_a_program_as_written(tmp_path: Path) -> None:
    function, arrays, x = chain(1), {t.name: normal(*t.shape) for t in chain(1).inputs[1:]}, normal(6, 16)
    kernel = compiler.build(function, "cuda", schedule="written", constants=arrays)
    (result,) = run_on_host(kernel, [x], tmp_path)
    expected = np.maximum(x @ arrays["W0"] + arrays["b0"].sum(axis=0), 0)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    low = compiler.build(function, threads=1).text("low")
    with pytest.raises(InputError, match="at the low level"):
        compiler.build(low, "cuda", constants=arrays)


@needs_gxx
@pytest.mark.parametrize("constants", [(), ("W",), ("W", "V")])
@pytest.mark.parametrize("width", [8, 5])
def test_parts_of_a_concatenation(width: int, constants: tuple[str, ...], tmp_path: Path) -> None:
    check(joined(width), constants, tmp_path)


@needs_gxx
def test_slices_begin_at_multiples_of_the_widest_access(tmp_path: Path) -> None:
    even, odd = (check(rows_joined(n, n), (), folder(tmp_path, str(n))) for n in (8, 3))
    slices = [t for t in even.source.temporaries if t.base != WORKSPACE]
    assert len(slices) == 2 and {t.offset % 16 for t in slices} == {0}
    assert all(t.base == WORKSPACE for t in odd.source.temporaries)


@needs_gxx
def test_results_that_no_group_computes_are_copied(tmp_path: Path) -> None:
    kernel = check(returned_as_given(), ("W",), tmp_path)
    assert sum("copy" in launch.name for launch in kernel.launches) == 3


@needs_gxx
def test_an_extent_of_one_before_the_rows(tmp_path: Path) -> None:
    """The epilogue of a product has one axis more than the product: reshapes of a batch of one are inlined."""
    x, w, b = P((1, 50, 64), name="X"), P((64, 32), name="W"), P((32,), name="b")
    rows = te.nn.reshape(x, (50, 64), name="rows")
    y = te.nn.add(te.nn.reshape(te.nn.matmul(rows, w, name="Y"), (1, 50, 32), name="shaped"), b, name="Z")
    kernel = check(te.function("linear", [x, w, b], y), ("W", "b"), tmp_path)
    assert len(kernel.launches) == 1


def test_temporaries_share_the_workspace() -> None:
    function = chain(12, rows=64, width=64)
    source = built(function, {t.name: normal(*t.shape) for t in function.inputs[1:]}).source
    first = len(function.inputs) + 1 + len(source.prepared)
    assert source.workspace_bytes <= 1.2 * most_live_bytes(source, first)
    lives = lifetimes(source, first)
    for one, other in combinations(lives, 2):
        together = lives[one][0] <= lives[other][1] and lives[other][0] <= lives[one][1]
        a, b = source.temporaries[one - first], source.temporaries[other - first]
        assert not together or a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
    assert all(t.offset % SLOT == 0 for t in source.temporaries)


def lifetimes(source: CudaSource, first: int) -> dict[int, tuple[int, int]]:
    """The first and last launch of each temporary, by position."""
    uses: dict[int, list[int]] = {}
    for step, launch in enumerate((*source.preparation, *source.launches)):
        for number in launch.arguments:
            if number >= first:
                uses.setdefault(number, []).append(step)
    return {number: (steps[0], steps[-1]) for number, steps in uses.items()}


def test_a_program_comes_from_the_cache() -> None:
    function, arrays = chain(2), {t.name: normal(*t.shape) for t in chain(2).inputs[1:]}
    kernel, again = built(function, arrays), built(function, arrays)
    assert any(group.seconds > 0 for group in kernel.groups)
    assert again.source == kernel.source and again.groups == kernel.groups and again.text == kernel.text
    other = {name: array + 1 for name, array in arrays.items()}
    assert built(function, other).source == kernel.source
    (position,) = (n for n, a in enumerate(kernel.native_arguments) if a.name == "W0")
    assert built(function, other).constants[position][0, 0] == other["W0"][0, 0]
    assert built(function, arrays, arch="sm_75").arch == "sm_75"


@needs_gxx
def test_the_launcher_prepares_the_constants_once(tmp_path: Path) -> None:
    function = chain(3)
    arrays, x = {t.name: normal(*t.shape) for t in function.inputs[1:]}, normal(6, 16)
    kernel = built(function, arrays)
    facts, library = kernel.interface, compiled_file(kernel, tmp_path)
    assert [b.name for b in facts.arguments] == ["X", "W0", "b0", "W1", "b1", "W2", "b2", "Y2"]
    memory = {b.name: aligned(b.size) for b in facts.arguments}
    for name, array in (arrays | {"X": x}).items():
        memory[name][:] = array.reshape(-1).view(np.uint8)
    prepared, workspace = aligned(facts.prepared_bytes), aligned(facts.workspace_bytes)
    sizes = [ctypes.c_size_t(facts.prepared_bytes), ctypes.c_size_t(facts.workspace_bytes)]

    def call(name: str, names: list[str], sizes: list[ctypes.c_size_t]) -> int:
        addresses = [ctypes.c_void_p(memory[n].ctypes.data) for n in names]
        own = [ctypes.c_void_p(prepared.ctypes.data), sizes[0], ctypes.c_void_p(workspace.ctypes.data), sizes[1]]
        return int(getattr(library, f"chain_{name}")(*addresses, *own, ctypes.c_void_p(0)))

    short = [ctypes.c_size_t(facts.prepared_bytes - 1), sizes[1]]
    assert call("prepare", list(arrays), short) == call("run", ["X", "W0", "W1", "W2", "Y2"], short) == -3
    assert call("prepare", list(arrays), sizes) == 0
    for name in ("b0", "b1", "b2"):
        memory[name][:] = 0xFF
    for _ in range(2):
        assert call("run", ["X", "W0", "W1", "W2", "Y2"], sizes) == 0
        expected = compiler.build(function, threads=1, schedule="written", constants=arrays)(x)
        np.testing.assert_allclose(memory["Y2"].view(np.float32).reshape(6, 16), expected, rtol=1e-4, atol=1e-4)
        memory["Y2"][:] = 0xFF


def test_constants_that_do_not_fit() -> None:
    function = chain(1)
    with pytest.raises(InputError, match="@chain has no input 'Q'"):
        built(function, {"Q": normal(16, 16)})
    with pytest.raises((InputError, TargetError), match=r"'W0' has shape \(4, 4\), expected \(16, 16\)"):
        built(function, {"W0": normal(4, 4)})


class Watched:
    """The launches of the pretended GPU: the streams, the addresses, and the allocations."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import cupy

        self.launches: list[tuple[int, str]] = []
        self.allocations = 0
        call, empty = cupy.Function.__call__, cupy.empty

        def launched(function: Any, grid: Any, block: Any, arguments: Any, shared_mem: int) -> None:
            self.launches.append((threading.get_ident(), function.name))
            time.sleep(0.002)  # another thread comes between
            call(function, grid, block, arguments, shared_mem)

        def allocated(*arguments: Any) -> Any:
            self.allocations += 1
            return empty(*arguments)

        monkeypatch.setattr(cupy.Function, "__call__", launched)
        monkeypatch.setattr(cupy, "empty", allocated)


@needs_gxx
@pytest.mark.parametrize("streams", ["two streams", "one stream", "a stream of each thread"])
def test_two_threads_do_not_disturb_each_other(streams: str, gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    function = chain(3)
    arrays = {t.name: normal(*t.shape) for t in function.inputs[1:]}
    kernel, inputs = built(function, arrays), [normal(6, 16) for _ in range(2)]
    right = compiler.build(function, threads=1, schedule="written", constants=arrays)
    expected = [right(x) for x in inputs]
    kernel(inputs[0])
    watched = Watched(monkeypatch)
    shared = cupy.cuda.Stream()
    made = {"two streams": cupy.cuda.Stream, "one stream": lambda: shared}.get(streams, lambda: cupy.cuda.Stream(2))
    results: list[list[Array]] = [[], []]

    def run(number: int) -> None:
        stream = made()
        for _ in range(4):
            results[number].append(kernel(inputs[number], stream=stream).array)

    threads = [threading.Thread(target=run, args=[n]) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(2):
        for result in results[number]:
            np.testing.assert_allclose(result, expected[number], rtol=1e-4, atol=1e-4)
    calls = [
        watched.launches[n : n + len(kernel.launches)] for n in range(0, len(watched.launches), len(kernel.launches))
    ]
    alone = all(len({thread for thread, _ in call}) == 1 for call in calls)
    assert alone == (streams == "one stream")


@needs_gxx
def test_a_call_allocates_its_results_alone(gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    function = chain(3)
    kernel, x = built(function, {t.name: normal(*t.shape) for t in function.inputs[1:]}), normal(6, 16)
    first = kernel(x)
    watched = Watched(monkeypatch)
    np.testing.assert_array_equal(kernel(x).array, first.array)
    assert watched.allocations == 1
    workspace, out = cupy.empty((kernel.workspace_bytes,), np.uint8), cupy.empty((6, 16), np.float32)
    allocations = watched.allocations
    kernel(x, out=out, workspace=workspace)
    np.testing.assert_array_equal(out.array, first.array)
    assert watched.allocations == allocations
    with pytest.raises(TargetError, match=f"the workspace has to have {kernel.workspace_bytes} bytes"):
        kernel(x, workspace=cupy.empty((kernel.workspace_bytes - 1,), np.uint8))


@needs_gxx
def test_a_call_is_captured_in_a_graph(gpu: None) -> None:
    """Nothing is allocated while it is captured; a launch reads what the inputs have then."""
    import cupy

    function = chain(2)
    arrays, x = {t.name: normal(*t.shape) for t in function.inputs[1:]}, normal(6, 16)
    kernel = built(function, arrays)
    right = compiler.build(function, threads=1, schedule="written", constants=arrays)
    given = cupy.asarray(x.copy())
    call = kernel.graph(given)
    assert len(call._graph.launches) == len(kernel.launches) and call.inputs[0] is given
    np.testing.assert_allclose(call().array, right(x), rtol=1e-4, atol=1e-4)
    given.set(2 * x)
    np.testing.assert_allclose(call().array, right(2 * x), rtol=1e-4, atol=1e-4)
    kernel(x)
    np.testing.assert_allclose(call.outputs[0].array, right(2 * x), rtol=1e-4, atol=1e-4)
    with pytest.raises(TypeError, match="`graph` of its CudaKernel makes another one"):
        copy.copy(call)
    with pytest.raises(TargetError, match="takes 1 arrays, got 2"):
        kernel.graph(x, x)


@needs_gxx
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tensors_of_torch_come_back_on_their_stream(dtype: str, gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    monkeypatch.setitem(sys.modules, "torch", pretended_torch.MODULE)  # type: ignore[arg-type]
    x, w = P((4, 8), dtype, name="X"), P((8,), dtype, name="W")
    function = te.function("scaled", [x, w], te.nn.relu(te.nn.mul(x, w, name="Y"), name="Z"))
    numbers = np.arange(32).reshape(4, 8) - 16
    array, weight = (values.astype(x_dtype(dtype)) for values in (numbers, np.arange(8)))
    kernel, streams = built(function, {"W": weight}), list[int]()
    call = cupy.Function.__call__

    def launched(*arguments: Any, **named: Any) -> None:
        streams.append(cupy.cuda.get_current_stream().ptr)
        call(*arguments, **named)

    monkeypatch.setattr(cupy.Function, "__call__", launched)
    result = kernel(pretended_torch.CudaTensor(array))
    assert isinstance(result, pretended_torch.CudaTensor) and result.dtype == f"torch.{dtype}"
    right = np.maximum(array * weight, array.dtype.type(0)).astype(np.float32)
    np.testing.assert_array_equal(result.array.astype(np.float32), right)
    assert streams == [pretended_torch.STREAM] * len(kernel.launches)
    assert cupy.cuda.get_current_stream().ptr == 0
    out = pretended_torch.CudaTensor(cupy.empty((4, 8), array.dtype).array)
    assert kernel(pretended_torch.CudaTensor(array), out=out, stream=cupy.cuda.Stream(5)) is out
    np.testing.assert_array_equal(out.array.astype(np.float32), right)
    assert streams[-1] == 5
    learned = pretended_torch.CudaTensor(array)
    learned.requires_grad = True
    with pytest.raises(TargetError, match=r"argument 'X' requires a gradient, .* give it with \.detach\(\)"):
        kernel(learned)
    with pytest.raises(TargetError, match=r"'X' is \w+\[8, 4\], expected \w+\[4, 8\]"):
        kernel(pretended_torch.CudaTensor(np.ascontiguousarray(array.T)))


def x_dtype(name: str) -> Any:
    """numpy's dtype by its name."""
    return ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)
