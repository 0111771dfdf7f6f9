"""A package that stands for torch where it is not installed: tensors on numpy's memory, as kernels see them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes

NAMES = ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "bool", "bfloat16")


class Tensor:
    """A tensor; attributes may be set to pretend more."""

    is_cpu, is_cuda, device, requires_grad, layout, version = True, False, "cpu", False, "strided", 0

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> str:
        return DTYPES[self.array.dtype.name]

    def numpy(self) -> Any:
        if self.dtype == DTYPES["bfloat16"]:
            raise TypeError("Got unsupported ScalarType BFloat16")
        if self.layout != "strided":
            raise TypeError(f"can't convert {self.layout} layout tensor to numpy")
        if self.is_neg():
            raise RuntimeError("Can't call numpy() on Tensor that has negative bit set")
        return self.array

    def view(self, dtype: str) -> Tensor:
        name = next(name for name, of in DTYPES.items() if of is dtype)
        return Tensor(self.array.view(ml_dtypes.bfloat16 if name == "bfloat16" else name))

    def is_neg(self) -> bool:
        return False

    def is_contiguous(self) -> bool:
        return bool(self.array.flags.c_contiguous)

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def clone(self, memory_format: str) -> Tensor:
        return Tensor(self.array.copy(order="C"))

    def __dlpack__(self, **options: object) -> object:
        raise AssertionError("slow, and without bf16")


class CudaTensor(Tensor):
    """A tensor on a pretended GPU, as CuPy sees it."""

    is_cpu, is_cuda, device = False, True, SimpleNamespace(type="cuda", index=0)

    @property
    def __cuda_array_interface__(self) -> object:
        if self.dtype == DTYPES["bfloat16"]:
            raise TypeError("bfloat16 has no typestr")
        return {"shape": self.shape, "data": (self.data_ptr(), False), "version": 3}

    def view(self, dtype: str) -> Tensor:
        return CudaTensor(super().view(dtype).array)


class Parameter(Tensor):
    """A tensor whose class means no more."""


class Other(Tensor):
    """A tensor whose class means more."""


def _from_numpy(array: Any) -> Tensor:
    if array.dtype == ml_dtypes.bfloat16:
        raise TypeError("can't convert np.ndarray of type ml_dtypes.bfloat16")
    return Tensor(array)


def _count(tensor: Tensor) -> None:
    tensor.version += 1


STREAM = 0x7
"""The handle of the current stream of the pretended GPU."""
DTYPES = {name: f"torch.{name}" for name in NAMES}
MODULE = SimpleNamespace(
    Tensor=Tensor,
    nn=SimpleNamespace(Parameter=Parameter),
    strided="strided",
    contiguous_format="contiguous",
    from_numpy=_from_numpy,
    from_dlpack=lambda array: CudaTensor(array.array),
    cuda=SimpleNamespace(current_stream=lambda device: SimpleNamespace(cuda_stream=STREAM)),
    autograd=SimpleNamespace(graph=SimpleNamespace(increment_version=_count)),
    **DTYPES,
)
"""What `sys.modules` has for torch."""
