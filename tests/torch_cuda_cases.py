# ruff: noqa: E402
"""`torch.compile(model, backend="strata")` on GPUs, pretended ones: values by the text on the host, launches, streams,
allocations, captured calls. No GPU has run any of it.

    python -m pytest tests/torch_cuda_cases.py

tests/e2e/test_torch_cuda.py runs them in a process of their own, since torch has the pretended device from then on.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

from compiler.targets import torch_gpus
from tests import pretended_device
from tests.pretended_device import NAME, Memory
from tests.unit.targets.conftest import gpu

__all__ = ["gpu"]
nn = torch.nn


class Seen:
    """What has been launched on the pretended GPUs."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.launches: list[tuple[int, int, str, tuple[int, ...]]] = []
        """For each launch its device, its stream, its kernel and the addresses of its arguments."""

    def forget(self) -> None:
        self.launches.clear()
        self.memory.allocations.clear()
        self.memory.operators.clear()

    @property
    def streams(self) -> set[tuple[int, int]]:
        return {launch[:2] for launch in self.launches}


@pytest.fixture
def seen(gpu: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    """A pretended device of torch whose memory CuPy's pretended GPUs see."""
    import cupy

    monkeypatch.setitem(torch_gpus.TARGETS, NAME, "cuda")
    watched = Seen(pretended_device.memory())
    call = cupy.Function.__call__

    def launched(function: Any, grid: Any, block: Any, arguments: Any, shared_mem: int) -> None:
        stream = cupy.cuda.get_current_stream().ptr
        watched.launches.append((cupy.cuda.runtime.getDevice(), stream, function.name, tuple(map(int, arguments))))
        call(function, grid, block, arguments, shared_mem)

    monkeypatch.setattr(cupy.Function, "__call__", launched)
    torch._dynamo.reset()
    torch_gpus.gpu_of.cache_clear()
    torch_gpus._stream.cache_clear()
    torch.manual_seed(0)
    yield watched
    torch_gpus.gpu_of.cache_clear()
    torch_gpus._stream.cache_clear()


def on(device: int, *values: Any) -> Any:
    """Tensors or a module on a pretended device."""
    moved = [value.to(f"{NAME}:{device}") for value in values]
    return moved[0] if len(moved) == 1 else moved


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function, backend="strata", options={"compare": False})  # type: ignore[no-any-return]


def model() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3), nn.Softmax(-1)).eval()


def agree(actual: Any, wanted: Any, tolerance: float = 1e-4) -> None:
    """A tensor on a pretended device has the elements, the dtype and the strides of one on the CPU."""
    assert actual.device.type == NAME and actual.stride() == wanted.stride()
    torch.testing.assert_close(actual.detach().cpu(), wanted.detach(), rtol=tolerance, atol=tolerance)


def said(of: Callable[[], Any]) -> list[str]:
    """The warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        of()
    return [
        str(warning.message)
        for warning in caught
        if "strata" in str(warning.message) or "CUDA graph" in str(warning.message)
    ]


def test_a_call_launches_on_the_current_stream_and_allocates_its_results(seen: Seen) -> None:
    plain, x = model(), torch.rand(5, 4)
    ours = compiled(on(0, model()))
    with torch.no_grad():
        on_gpu = on(0, x)
        with seen.memory.stream(70):
            agree(ours(on_gpu), plain(x))
            seen.forget()
            first, second = ours(on_gpu), ours(on_gpu)
        agree(second, first.cpu())
    assert seen.streams == {(0, 70)} and not [op for op in seen.memory.operators if "empty" not in op]
    assert seen.memory.allocations == [5 * 3 * 4] * 2
    half = len(seen.launches) // 2
    assert [launch[2] for launch in seen.launches[:half]] == [launch[2] for launch in seen.launches[half:]]
    assert second.data_ptr() in seen.launches[-1][3] and first.data_ptr() not in seen.launches[-1][3]


def test_weights_are_read_where_they_are(seen: Seen) -> None:
    plain, x = model(), torch.rand(5, 4)
    learned = on(0, model())
    ours, on_gpu = compiled(learned), on(0, x)
    with torch.no_grad():
        ours(on_gpu)
        seen.forget()
        for module in (plain, learned):
            module[0].weight.mul_(-2)
            module[2].bias.data.add_(1)  # counts no version
        agree(ours(on_gpu), plain(x))
    read = {address for launch in seen.launches for address in launch[3]}
    assert {parameter.data_ptr() for parameter in learned.parameters()} <= read


def test_each_device_has_kernels_and_memory_of_its_own(seen: Seen) -> None:
    x = torch.rand(5, 4)
    modules = [on(device, model()) for device in (0, 1)]
    with torch.no_grad():
        for device, module in enumerate(modules):
            with seen.memory.stream(70 + device, device):
                agree(compiled(module)(on(device, x)), model()(x))
    assert seen.streams == {(0, 70), (1, 71)}

    def both(a: Any, b: Any) -> Any:
        return a * 2 + 1, b * 3 + 1

    a, b = on(0, x), on(1, x)
    ours = compiled(both)
    with torch.no_grad():
        sentences = said(lambda: ours(a, b))
        for output, right in zip(ours(a, b), both(x, x), strict=True):
            agree(output, right)
    assert f"a tensor on the device {NAME}:1, beside others on {NAME}:0 (2)" in sentences[0]


def test_bf16_channels_last_gaps_and_unaligned_tensors(seen: Seen) -> None:
    x = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    ours = compiled(lambda x: nn.functional.relu(x - 0.5) * 2)
    with torch.no_grad():
        for tensor in (x, x.to(torch.bfloat16)):
            on_gpu = on(0, tensor)
            ours(on_gpu)
            seen.forget()
            agree(ours(on_gpu), nn.functional.relu(tensor - 0.5) * 2, 1e-2)
            assert len(seen.memory.allocations) == 1  # the result: what is channels last is not copied
        long = torch.rand(4, 9)
        for cut in (lambda t: t[:, 1:], lambda t: t.reshape(-1)[1:13]):
            on_gpu = cut(on(0, long))
            agree(ours(on_gpu), nn.functional.relu(cut(long) - 0.5) * 2)


def test_gradients(seen: Seen) -> None:
    gradients, x = [], torch.rand(5, 4)
    for module, given, run in ((model(), x.clone(), lambda m: m), (on(0, model()), on(0, x.clone()), compiled)):
        given.requires_grad_()
        run(module)(given).square().sum().backward()
        gradients.append([given.grad.cpu(), *(p.grad.cpu() for p in module.parameters())])
    assert seen.launches
    for actual, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-4, atol=1e-4)


def test_a_captured_call_can_be_replayed(seen: Seen) -> None:
    """Memory that the call has freed is poisoned, and a larger graph has taken the stream's workspace since."""
    import cupy

    plain, ours = model(), compiled(on(0, model()))
    x = torch.rand(5, 4)
    with torch.no_grad():
        on_gpu = on(0, x.clone())
        with seen.memory.stream(90):
            ours(on_gpu)
        seen.forget()
        stream = torch_gpus._stream(0, 90)
        with seen.memory.captured(90) as pool:
            stream.begin_capture()
            output = ours(on_gpu)
            graph = stream.end_capture()
        captured = {address for launch in seen.launches for address in launch[3]}
        assert seen.streams == {(0, 90)} and len(graph.launches) == len(seen.launches)
        assert not [op for op in seen.memory.operators if "empty" not in op]
        for scale in (1, -3):
            on_gpu.copy_(scale * x)
            with seen.memory.stream(90):
                compiled(on(0, nn.Sequential(nn.Linear(4, 512), nn.Softmax(-1), nn.Linear(512, 3))).eval())(on_gpu)
            gc.collect()
            assert all(seen.memory.is_held(address, pool) for address in captured)
            graph.launch(stream)
            agree(output, plain(scale * x))
        assert pool and cupy.cuda.get_current_stream().ptr == 0


def test_a_first_call_that_is_captured_is_torchs(seen: Seen) -> None:
    ours, x = compiled(on(0, model())), torch.rand(5, 4)
    with torch.no_grad():
        on_gpu = on(0, x)
        with seen.memory.captured(90):
            outputs = []
            sentences = said(lambda: outputs.append(ours(on_gpu)))
        agree(outputs[0], model()(x))
        assert not seen.launches and "torch runs a part in this call; call the model once before" in sentences[0]
        agree(ours(on_gpu), model()(x))
        assert seen.launches


def test_what_stays_with_torch_is_told(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.rand(3, 3) + 3 * torch.eye(3)

    def moved(x: Any) -> Any:
        return torch.special.gammaln(x * 2 + 1).relu()

    on_gpu = on(0, x)
    with torch.no_grad():
        ours = compiled(moved)
        sentences = said(lambda: ours(on_gpu))
        assert "strata compiles 3 of 4 operators of a graph on pretended:0" in sentences[0]
        assert "aten.lgamma.default has no te form (1)" in sentences[0]
        agree(ours(on_gpu), moved(x))
        tuned = torch.compile(moved, backend="strata", options={"threads": 2, "error": 0.1, "compare": False})
        assert "the options threads, error are of the CPU" in said(lambda: tuned(on_gpu))[0]
        monkeypatch.setattr(torch_gpus.TorchGpu, "refusal", lambda self: "CuPy is not installed")
        torch._dynamo.reset()
        sentences = said(lambda: agree(compiled(moved)(on_gpu), moved(x)))
        assert sentences == [
            "strata compiles nothing on the device pretended:0, whose graph stays with torch: CuPy is not installed"
        ]


def test_a_slow_graph_is_told_after_its_kernels_have_ended(seen: Seen) -> None:
    ours = torch.compile(on(0, model()), backend="strata")
    with torch.no_grad():
        sentences = said(lambda: ours(on(0, torch.rand(5, 4))))
    assert not sentences or "times as long as eager" in sentences[0]  # the host is slow
