"""Arrays of callers on a GPU: CuPy's, numpy's, torch's, and any with DLPack; results for the caller's package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from compiler.support.errors import TargetError
from compiler.targets.arguments import Argument
from compiler.targets.cuda.runtime import Cupy, cupy, device_dtype
from compiler.targets.foreign import Torch, as_numpy, check_plain, imported_torch
from compiler.targets.launches import ALIGNMENT


def queue_of(inputs: Sequence[object], stream: Cupy) -> AbstractContextManager[object]:
    """Return a context in which a stream is CuPy's current one: `stream` if it is not None; else torch's current stream
    if an input is a torch tensor on a GPU; else CuPy's current stream stays."""
    if stream is not None:
        return stream  # type: ignore[no-any-return]
    if imported_torch() is None:
        return _AS_IT_IS
    tensor = next((x for x in inputs if _is_torch(x) and x.is_cuda), None)  # type: ignore[attr-defined]
    return _AS_IT_IS if tensor is None else _queue_of_torch(tensor.device)  # type: ignore[attr-defined]


_AS_IT_IS = nullcontext()


@contextmanager
def _queue_of_torch(device: Any) -> Iterator[None]:
    library: Torch = imported_torch()
    handle = library.cuda.current_stream(device).cuda_stream
    with cupy().cuda.Device(device.index), cupy().cuda.ExternalStream(handle):
        yield


def to_device(kernel: str, array: object, expected: Argument) -> Cupy:
    """Return an input as a contiguous device array, aligned to ALIGNMENT bytes; one that is such an array already is
    not copied. Raises TargetError, with the name `kernel`, for a tensor that requires a gradient, for a subclass of
    ndarray or of a tensor on the CPU, and for another shape or dtype. An array without the GPU's memory is copied to
    the current device."""
    library = cupy()
    if type(array) is library.ndarray and _fits(array, expected):
        return array
    label = f"{kernel}: argument '{expected.name}'"
    if _is_torch(array):
        array = _from_torch(label, array)
    elif hasattr(array, "__dlpack__") and not hasattr(array, "__cuda_array_interface__") and not _is_host(array):
        array = library.from_dlpack(array)
    check_plain(label, array)
    if _is_host(array):
        array = array.view(device_dtype(array.dtype))  # type: ignore[attr-defined]
    contiguous = library.ascontiguousarray(library.asarray(array))
    check(kernel, contiguous, expected)
    return contiguous.copy() if contiguous.data.ptr % ALIGNMENT else contiguous


def _fits(array: Cupy, expected: Argument) -> bool:
    """Return whether a device array is contiguous, aligned, and of the shape and dtype of an argument, so that kernels
    can access it without a copy."""
    return bool(
        array.shape == expected.shape
        and array.dtype == device_dtype(expected.dtype)
        and array.flags.c_contiguous
        and array.data.ptr % ALIGNMENT == 0
    )


def check(kernel: str, array: Cupy, expected: Argument) -> None:
    """Raise TargetError, with the name `kernel`, for an array of another shape or dtype than the argument's; uint16
    stands for bf16."""
    if array.shape != expected.shape or array.dtype != device_dtype(expected.dtype):
        raise TargetError(
            f"{kernel}: '{expected.name}' is {array.dtype}{list(array.shape)}, expected "
            f"{expected.dtype}{list(expected.shape)}"
        )


def result_of(inputs: Sequence[object]) -> Callable[[Cupy, Argument], object] | None:
    """Return a function that converts an output on the device to a torch tensor on the same memory, if an input is a
    tensor; else None: outputs stay CuPy's arrays. The function takes the output and its argument, whose dtype tells
    bf16 from uint16."""
    if not any(map(_is_torch, inputs)):
        return None
    library: Torch = imported_torch()

    def tensor(array: Cupy, expected: Argument) -> object:
        if device_dtype(expected.dtype) != expected.dtype:
            return library.from_dlpack(array.view(np.int16)).view(library.bfloat16)
        return library.from_dlpack(array)

    return tensor


def output_on_device(kernel: str, array: object, expected: Argument) -> Cupy:
    """Return a caller's array for an output as a device array on its memory. Raises TargetError for an array that is
    not on the device, contiguous and aligned, for another shape or dtype, and for a tensor that requires a gradient.
    Raises AttributeError for an object without shape and dtype."""
    if type(array) is cupy().ndarray and _fits(array, expected):
        return array
    if _is_torch(array):
        array = _from_torch(f"{kernel}: '{expected.name}'", array)
        array = cupy().asarray(array) if hasattr(array, "__cuda_array_interface__") else array
    shown: Any = array
    check(kernel, shown, expected)
    if not hasattr(shown.data, "ptr"):
        raise TargetError(f"{kernel}: '{expected.name}' is not on the device")
    if not shown.flags.c_contiguous:
        raise TargetError(f"{kernel}: '{expected.name}' is not contiguous")
    if shown.data.ptr % ALIGNMENT:
        raise TargetError(f"{kernel}: '{expected.name}' does not begin at a multiple of {ALIGNMENT} bytes")
    return shown


def _is_torch(value: object) -> bool:
    library = imported_torch()
    return library is not None and isinstance(value, library.Tensor)


def _from_torch(label: str, tensor: Torch) -> Any:
    """Convert a tensor for CuPy: one on a GPU is returned unchanged, but bf16 as a uint16 array of its bits; one on the
    CPU as a numpy array. Raises TargetError, with `label`, for a tensor that requires a gradient."""
    if not tensor.is_cuda:
        return as_numpy(label, tensor)
    if tensor.requires_grad:
        raise TargetError(f"{label} requires a gradient, which a kernel does not compute: give it with .detach()")
    library: Torch = imported_torch()
    return cupy().asarray(tensor.view(library.int16)).view(np.uint16) if tensor.dtype is library.bfloat16 else tensor


def _is_host(array: object) -> bool:
    return isinstance(array, np.ndarray)
