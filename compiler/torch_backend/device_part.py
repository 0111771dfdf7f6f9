"""`DevicePart`: a part of a graph compiled for a GPU; its kernels are launched on torch's current stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

import torch
from torch import fx

from compiler.driver.building import build
from compiler.support.errors import StrataError
from compiler.targets.launches import ALIGNMENT
from compiler.targets.torch_gpus import LoadedKernels, TorchGpu
from compiler.torch_backend.costs import Cost
from compiler.torch_backend.options import Options
from compiler.torch_backend.programs import TORCH_DTYPES, program_of


class Capturing(StrataError):
    """Raised for the first call of a part while a CUDA graph is captured: the first call compiles and loads kernels."""


class DevicePart:
    """A part of a graph on a GPU, callable on torch tensors there.

    All arguments are inputs, parameters too, and are read in place: a write to a parameter is seen by the next call,
    and by the next replay of a CUDA graph. An argument that has gaps, or does not begin at a multiple of 16 bytes, is
    copied. Results are new tensors, allocated by torch.
    """

    def __init__(self, module: fx.GraphModule, name: str, gpu: TorchGpu, options: Options) -> None:
        self.program = program_of(module, name, any_order=True)
        self._gpu, self._options = gpu, options
        outputs = self.program.function.outputs
        self._results = [(t.shape, TORCH_DTYPES[t.dtype]) for t in outputs]
        self._arguments = tuple(zip(self.program.positions, self.program.orders, strict=True))
        self._loaded: LoadedKernels | None = None
        self._lock = Lock()

    def __call__(self, *arguments: Any) -> Any:
        """Launch the kernels, built and loaded in the first call; return a new tensor, or a tuple of new tensors, as
        the part does. Raises a StrataError if no kernel can be built or launched, and Capturing for a first call in
        which a CUDA graph is captured."""
        loaded = self._loaded or self._load()
        inputs = [_readable(arguments[position], order) for position, order in self._arguments]
        results = [torch.empty(shape, dtype=dtype, device=self._gpu.device) for shape, dtype in self._results]
        addresses = {n: tensor.data_ptr() for n, tensor in enumerate((*inputs, *results))}
        with self._gpu.launching(loaded.source.workspace_bytes) as workspace:
            loaded.launch_at(addresses, workspace)
        return self.program.returned(results)

    def costs(self) -> Iterator[Cost]:
        """Return an empty iterator: groups are timed on the CPU only."""
        return iter(())

    def _load(self) -> LoadedKernels:
        if self._gpu.is_capturing():
            raise Capturing("a CUDA graph captures the first call of a graph, in which kernels would be compiled")
        with self._lock, self._gpu.selected():
            if self._loaded is None:
                gpu, policy = self._gpu, self._options.policy
                kernel = build(self.program.function, gpu.target, policy=policy, arch=gpu.arch, schedule="auto")
                self._loaded = kernel.loaded()
            return self._loaded


def _readable(tensor: torch.Tensor, order: Sequence[int] | None) -> torch.Tensor:
    """Return an argument, its dimensions in an order, as kernels read it: row-major, from an aligned address."""
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    tensor = (tensor if order is None else tensor.permute(order)).contiguous()
    return tensor.clone() if tensor.data_ptr() % ALIGNMENT else tensor
