"""Arrays of other packages as numpy arrays on the same memory, and back: torch's, and any with `__dlpack__`.

torch is imported nowhere: who gives a tensor has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from compiler.support.errors import TargetError
from compiler.types.elements import DTYPES

Array: TypeAlias = np.ndarray
Torch: TypeAlias = Any  # the package torch, its tensors and dtypes, which types do not know

CPU = "CPU"
_DEVICES = {
    1: CPU,
    2: "CUDA",
    4: "OpenCL",
    7: "Vulkan",
    8: "Metal",
    10: "ROCm",
    14: "oneAPI",
}


def torch() -> Torch | None:
    """The package torch, if it is imported."""
    module = sys.modules.get("torch")
    return None if module is None or not hasattr(module, "Tensor") else module


def as_numpy(where: str, given: object) -> Array:
    """An array on the memory of a given one, which it keeps alive. Raises TargetError for objects that are no arrays,
    arrays outside the memory of the CPU, and arrays with a meaning beside their elements."""
    if type(given) is np.ndarray:
        return given
    if isinstance(given, _NUMPY):
        check_plain(where, given)
        return np.asarray(given)
    library = torch()
    if library is not None and isinstance(given, library.Tensor):
        return _of_torch(where, library, given)
    if not hasattr(given, "__dlpack__"):
        raise TargetError(f"{where} is a {type(given).__name__}, expected a numpy array")
    return _of_dlpack(where, given)


def is_array(given: object) -> bool:
    """Whether something is an array that can be written to, as far as its class tells."""
    return hasattr(given, "__dlpack__") and not isinstance(given, np.generic)


def returned_as(given: object) -> Callable[[Array], object]:
    """A function that wraps a new array as the package of a given array does, on the same memory.

    That is torch, or the namespace of the array API standard which the array names; otherwise it stays numpy's.
    """
    if isinstance(given, _NUMPY):
        return as_it_is
    library = torch()
    if library is not None and isinstance(given, library.Tensor):
        return to_torch
    namespace = given.__array_namespace__() if hasattr(given, "__array_namespace__") else None
    return getattr(namespace, "from_dlpack", as_it_is)


def note_writing(given: object) -> None:
    """Tell torch that a tensor was written, as its own operations in place do: gradients that need its old elements
    are refused then."""
    library = torch()
    if library is not None and isinstance(given, library.Tensor):
        library.autograd.graph.increment_version(given)


_NUMPY = (np.ndarray, np.generic)
_PLAIN = (np.ndarray, np.memmap)
"""The classes of arrays that mean no more than their elements; others have a mask, or a unit."""


def check_plain(where: str, given: object) -> None:
    """Raise TargetError for a numpy array of a class that gives its elements a further meaning."""
    if isinstance(given, np.ndarray) and type(given) not in _PLAIN:
        raise TargetError(f"{where} is a {type(given).__name__}: only its elements would be seen, give an ndarray")


def as_it_is(array: object) -> object:
    """An array of numpy, or one that a caller has given."""
    return array


def _of_torch(where: str, library: Torch, tensor: Torch) -> Array:
    if type(tensor) not in (library.Tensor, library.nn.Parameter):
        kind = type(tensor).__name__
        raise TargetError(f"{where} is a {kind}: only its elements would be seen, give a torch.Tensor")
    if tensor.requires_grad:
        raise TargetError(f"{where} requires a gradient, which a kernel does not compute: give it with .detach()")
    if not tensor.is_cpu:
        raise TargetError(f"{where} is on the device {tensor.device}, expected the CPU: give it with .cpu()")
    try:
        if tensor.dtype is library.bfloat16:
            return np.asarray(tensor.view(library.int16).numpy()).view(DTYPES["bf16"].array)
        return np.asarray(tensor.numpy())
    except (TypeError, RuntimeError) as error:
        raise TargetError(f"{where} has no elements in memory that numpy sees: {error}") from error


def to_torch(array: Array) -> Torch:
    """A tensor on the memory of an array."""
    library: Torch = torch()
    if array.dtype.kind == "V":  # numpy itself has no bf16
        return library.from_numpy(array.view(np.int16)).view(library.bfloat16)
    return library.from_numpy(array)


ON_SAME_MEMORY = (as_it_is, to_torch)
"""The conversions of `returned_as` that copy nothing."""


def _of_dlpack(where: str, given: Any) -> Array:
    """What numpy takes, which looks at device, dtype, lanes and strides itself."""
    try:
        return np.from_dlpack(given)
    except Exception as error:  # the code of another package
        device = _device(given)
        if device != CPU:
            raise TargetError(f"{where} is on a device ({device}), expected the {CPU}") from error
        raise TargetError(f"{where} cannot be taken through __dlpack__: {error}") from error


def _device(given: Any) -> str:
    try:
        number, _ = given.__dlpack_device__()
    except Exception:  # the code of another package
        return CPU
    return _DEVICES.get(number, f"DLPack's number {int(number)}")
