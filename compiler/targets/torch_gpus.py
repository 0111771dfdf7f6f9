"""Devices of torch for which targets compile. `TorchGpu`: a GPU as torch has it: its architecture, current stream and
memory, and whether a CUDA graph is captured. This module imports torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from threading import Lock, get_ident
from typing import Any

import torch

from compiler.support.errors import TargetError
from compiler.targets.cuda.runtime import PER_THREAD, Cupy, LoadedKernels, cupy

__all__ = ["TARGETS", "LoadedKernels", "TorchGpu", "gpu_of"]
TARGETS: dict[str, str] = {"cpu": "cpu", "cuda": "cuda"}
"""The target of each device type of torch."""


@dataclass(frozen=True)
class TorchGpu:
    """A GPU, by its torch device, which must have an index."""

    device: torch.device
    _workspaces: dict[tuple[int, int], _Workspace] = field(default_factory=dict, compare=False)
    """Those of each stream, with the thread for streams that are a thread's own."""
    _lock: Lock = field(default_factory=Lock, compare=False)

    @property
    def _torch(self) -> Any:
        """torch's functions for devices of this type: `torch.cuda`."""
        return torch.get_device_module(self.device)

    @property
    def target(self) -> str:
        """The name of the target."""
        return TARGETS[self.device.type]

    @property
    def arch(self) -> str:
        """The architecture, such as sm_90."""
        major, minor = self._torch.get_device_capability(self.device)
        return f"sm_{major}{minor}"

    def refusal(self) -> str | None:
        """Return the reason why no kernel can be launched on the device, such as a torch for GPUs of AMD or a missing
        CuPy; None if kernels can be launched."""
        if torch.version.hip is not None:
            return "this torch is for GPUs of AMD"
        try:
            cupy()
        except TargetError as error:
            return str(error)
        return None

    def synchronize(self) -> None:
        """Wait for the work of all streams of the device."""
        self._torch.synchronize(self.device)

    def is_capturing(self) -> bool:
        """Return whether a CUDA graph captures the current stream."""
        return bool(self._torch.is_current_stream_capturing())

    @contextmanager
    def selected(self) -> Iterator[None]:
        """Select the device as CuPy's current one in the context, for loading kernels and for queries."""
        with cupy().cuda.Device(self.device.index):
            yield

    @contextmanager
    def launching(self, workspace_bytes: int) -> Iterator[int]:
        """Select the device and torch's current stream on it in CuPy, within the context; yield the device address of
        at least `workspace_bytes` bytes, 0 or more, valid within the context. The kernels of all graphs share one
        workspace for each stream, allocated by torch and enlarged when needed; a lock serialises the threads that
        launch on one stream. During the capture of a CUDA graph the memory comes from the graph's own pool instead."""
        handle = self._torch.current_stream(self.device).cuda_stream
        with cupy().cuda.Device(self.device.index), _stream(self.device.index, handle):
            if workspace_bytes and self.is_capturing():
                yield self._allocated(workspace_bytes).data_ptr()
                return
            memory = self._workspace(handle)
            with memory.lock:
                if memory.bytes is None or memory.bytes.numel() < workspace_bytes:
                    memory.bytes = self._allocated(workspace_bytes)
                yield memory.bytes.data_ptr()

    def _workspace(self, handle: int) -> _Workspace:
        key = (handle, get_ident() if handle == PER_THREAD else 0)
        with self._lock:
            return self._workspaces.setdefault(key, _Workspace())

    def _allocated(self, size: int) -> torch.Tensor:
        return torch.empty(size, dtype=torch.uint8, device=self.device)


@dataclass
class _Workspace:
    """Device memory for the buffers between kernels, and a lock for the threads that launch kernels on it. bytes: None
    until the first launch that needs some."""

    lock: Lock = field(default_factory=Lock)
    bytes: torch.Tensor | None = None


@cache
def gpu_of(device: torch.device) -> TorchGpu:
    """Return the `TorchGpu` of a torch device with an index; equal devices have the same object."""
    return TorchGpu(device)


@cache
def _stream(index: int, handle: int) -> Cupy:
    """Return CuPy's stream for the `handle` of a torch stream on the device number `index`, cached."""
    return cupy().cuda.ExternalStream(handle)
