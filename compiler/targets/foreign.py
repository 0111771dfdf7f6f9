"""Convert between arrays of other packages and numpy arrays on the same memory: torch's, and any with `__dlpack__`.

This module never imports torch: a caller with a tensor has imported it. `label` names a value in refusals.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from compiler.support.errors import TargetError
from compiler.types.dtypes import DTYPES

Array: TypeAlias = np.ndarray
Torch: TypeAlias = Any  # the package torch, its tensors and dtypes, untyped

CPU = "CPU"
_DEVICES = {1: CPU, 2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI"}


def imported_torch() -> Torch | None:
    """Return the package torch; None if the process has not imported it."""
    module = sys.modules.get("torch")
    return None if module is None or not hasattr(module, "Tensor") else module


def as_numpy(label: str, value: object) -> Array:
    """Return a numpy array on the memory of `value`, which it keeps alive; a numpy scalar is copied. `label` names it
    in messages. Raises TargetError for objects that are no arrays, for arrays outside the memory of the CPU or that
    numpy cannot import, for tensors that require a gradient, and for subclasses of ndarray or Tensor except memmap and
    Parameter, which may have a mask or a unit."""
    if type(value) is np.ndarray:
        return value
    if isinstance(value, _NUMPY):
        check_plain(label, value)
        return np.asarray(value)
    library = imported_torch()
    if library is not None and isinstance(value, library.Tensor):
        return _from_torch(label, library, value)
    if not hasattr(value, "__dlpack__"):
        raise TargetError(f"{label} is a {type(value).__name__}, expected a numpy array")
    return _from_dlpack(label, value)


def is_array(value: object) -> bool:
    """Return whether an object can be an output: it has `__dlpack__`, and is no numpy scalar."""
    return hasattr(value, "__dlpack__") and not isinstance(value, np.generic)


def result_wrapper(like: object) -> Callable[[Array], object]:
    """Return a function that converts a numpy array to the package of `like`: to a torch tensor on the same memory, by
    `from_dlpack` of the array API namespace of `like`, which may copy, or, for numpy's own and any other object, to the
    array itself."""
    if isinstance(like, _NUMPY):
        return identity
    library = imported_torch()
    if library is not None and isinstance(like, library.Tensor):
        return to_torch
    namespace = like.__array_namespace__() if hasattr(like, "__array_namespace__") else None
    return getattr(namespace, "from_dlpack", identity)


def bump_version(value: object) -> None:
    """Increment the version counter of a torch tensor after a write to it, as torch's in-place operations do, so that
    autograd refuses gradients that need its former elements; ignore other values."""
    library = imported_torch()
    if library is not None and isinstance(value, library.Tensor):
        library.autograd.graph.increment_version(value)


_NUMPY = (np.ndarray, np.generic)
_PLAIN = (np.ndarray, np.memmap)
"""The array classes without a mask or a unit."""


def check_plain(label: str, value: object) -> None:
    """Raise TargetError for an instance of a subclass of ndarray, which may have a mask or a unit; memmap is
    accepted."""
    if isinstance(value, np.ndarray) and type(value) not in _PLAIN:
        raise TargetError(f"{label} is a {type(value).__name__}: only its elements would be seen, give an ndarray")


def identity(array: object) -> object:
    """Return the argument: the wrapper of numpy arrays, and of results that are a caller's own arrays."""
    return array


def _from_torch(label: str, library: Torch, tensor: Torch) -> Array:
    if type(tensor) not in (library.Tensor, library.nn.Parameter):
        kind = type(tensor).__name__
        raise TargetError(f"{label} is a {kind}: only its elements would be seen, give a torch.Tensor")
    if tensor.requires_grad:
        raise TargetError(f"{label} requires a gradient, which a kernel does not compute: give it with .detach()")
    if not tensor.is_cpu:
        raise TargetError(f"{label} is on the device {tensor.device}, expected the CPU: give it with .cpu()")
    try:
        if tensor.dtype is library.bfloat16:
            return np.asarray(tensor.view(library.int16).numpy()).view(DTYPES["bf16"].array)
        return np.asarray(tensor.numpy())
    except (TypeError, RuntimeError) as error:
        raise TargetError(f"{label} has no elements in memory that numpy sees: {error}") from error


def to_torch(array: Array) -> Torch:
    """Return a torch tensor on the memory of an array; an array without a numpy dtype is bf16. Requires that torch is
    imported; it raises TypeError for a dtype that it lacks."""
    library: Torch = imported_torch()
    if array.dtype.kind == "V":  # numpy itself has no bf16
        return library.from_numpy(array.view(np.int16)).view(library.bfloat16)
    return library.from_numpy(array)


ZERO_COPY = (identity, to_torch)
"""The conversions of `result_wrapper` that copy nothing."""


def _from_dlpack(label: str, value: Any) -> Array:
    """Import an array by numpy's `from_dlpack`, which checks device, dtype, lanes and strides. Raises TargetError for
    any exception of numpy or of the array's package."""
    try:
        return np.from_dlpack(value)
    except Exception as error:  # the code of another package
        device = _device(value)
        if device != CPU:
            raise TargetError(f"{label} is on a device ({device}), expected the {CPU}") from error
        raise TargetError(f"{label} cannot be taken through __dlpack__: {error}") from error


def _device(value: Any) -> str:
    try:
        number, _ = value.__dlpack_device__()
    except Exception:  # the code of another package
        return CPU
    return _DEVICES.get(number, f"DLPack's number {int(number)}")
