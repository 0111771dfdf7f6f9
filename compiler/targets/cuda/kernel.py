"""`CudaKernel`: the kernels of a function as text, as machine code of any architecture, and run on a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from compiler.dialects.functions import constant_values, outputs
from compiler.dialects.numbers import array_of
from compiler.support import display
from compiler.support.errors import TargetError
from compiler.support.text import counted
from compiler.targets.arguments import Argument, Array, arguments_html
from compiler.targets.cuda import nvrtc
from compiler.targets.cuda.emit import CudaSource, Launch, emit
from compiler.targets.cuda.nvrtc import Cubin, Resources
from compiler.targets.cuda.runtime import ALIGNMENT, Cupy, LoadedKernels, OnDevice, cupy
from compiler.targets.foreign import check_plain
from compiler.types.policies import POLICIES


@dataclass(frozen=True)
class CudaKernel:
    """A function on the GPU: called with its inputs, it gives its outputs, as CuPy arrays.

    `arguments` are the inputs, then the outputs; `constants` are arrays that it passes itself, by their positions among
    `native_arguments`, which are all. `arch` is the architecture that it is compiled for where no GPU says
    another. Inputs are CuPy arrays, numpy arrays, or whatever has DLPack or the CUDA array interface.
    """

    name: str
    arguments: tuple[Argument, ...]
    outputs: int
    source: CudaSource
    policy: str
    arch: str = "sm_80"
    constants: Mapping[int, Array] = field(default_factory=dict)
    native_arguments: tuple[Argument, ...] = ()

    def __repr__(self) -> str:
        arguments = ", ".join(map(str, self.arguments))
        count = counted(self.outputs, "output")
        return display.line(f"<CudaKernel {self.name}({arguments}), {count}, {self.arch}>")

    def _repr_html_(self) -> str:
        launches = [(launch.name, launch.grid, launch.block, launch.shared_bytes) for launch in self.launches]
        started = display.table("launches", ("kernel", "blocks", "threads", "shared bytes"), launches)
        return arguments_html(f"{self.name} for {self.arch}", self.arguments, self.outputs) + started

    def __getstate__(self) -> dict[str, object]:
        """It as data: what is loaded on a device is loaded again where it is called."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def text(self) -> str:
        """The CUDA C++."""
        return self.source.text

    @property
    def launches(self) -> tuple[Launch, ...]:
        """How its kernels are started, in order, so that others can."""
        return self.source.launches

    @property
    def can_compile(self) -> bool:
        """Whether there is a compiler for its machine code."""
        return nvrtc.is_available()

    def cubin(self, arch: str | None = None) -> Cubin:
        """Its machine code for an architecture. Raises TargetError without NVRTC, for text that NVRTC refuses, and for
        an architecture that lacks a feature of the text."""
        self.source.check(arch or self.arch)
        return nvrtc.compiled(self.text, arch or self.arch, contract=POLICIES[self.policy].fused)

    def resources(self, arch: str | None = None) -> dict[str, Resources]:
        """Registers, spills and shared memory of each kernel on an architecture."""
        asked = {launch.name: launch.shared_bytes for launch in self.launches}
        return {
            name: replace(used, shared_bytes=used.shared_bytes + asked[name])
            for name, used in self.cubin(arch).resources.items()
        }

    @cached_property
    def _loaded(self) -> LoadedKernels:
        return LoadedKernels(self.source, POLICIES[self.policy].fused)

    def on_device(self) -> OnDevice:
        """It with arrays of its own on the device, of its constants too, to be timed. Raises TargetError without CuPy
        or a GPU."""
        return OnDevice(self._loaded, self.native_arguments or self.arguments, self.outputs)

    @cached_property
    def _constants(self) -> list[tuple[int, Cupy]]:
        """The constants on the device, by their positions."""
        return [(position, cupy().asarray(array)) for position, array in sorted(self.constants.items())]

    def __call__(self, *inputs: Cupy, out: Cupy = None) -> Cupy:
        """Run on the current device and stream. Raises TargetError without CuPy or a GPU, and for arrays that do not
        fit."""
        library = cupy()
        count = len(self.arguments) - self.outputs
        if len(inputs) != count:
            raise TargetError(f"{self.name}: takes {count} arrays, got {len(inputs)}")
        arguments = [self._taken(library, array, a) for array, a in zip(inputs, self.arguments, strict=False)]
        outputs = list(out) if isinstance(out, tuple | list) else [out] if out is not None else []
        if outputs and len(outputs) != self.outputs:
            raise TargetError(f"{self.name}: gives {self.outputs} arrays, got {len(outputs)} for them")
        for array, expected in zip(outputs, self.arguments[count:], strict=False):
            self._check(array, expected)
            if not hasattr(array.data, "ptr"):
                raise TargetError(f"{self.name}: '{expected.name}' is not on the device")
            if array.data.ptr % ALIGNMENT:
                raise TargetError(f"{self.name}: '{expected.name}' does not begin at a multiple of {ALIGNMENT} bytes")
        if not outputs:
            outputs = [library.empty(a.shape, a.dtype) for a in self.arguments[count:]]
        passed = [*arguments, *outputs]
        for position, array in self._constants:
            passed.insert(position, array)
        self._loaded.launch([*passed, *self._loaded.temporaries()])
        return outputs[0] if self.outputs == 1 else tuple(outputs)

    def _taken(self, library: Cupy, array: Cupy, expected: Argument) -> Cupy:
        """An input on the device, contiguous, at an address that vectors may have."""
        if hasattr(array, "__dlpack__") and not hasattr(array, "__cuda_array_interface__") and not _is_host(array):
            array = library.from_dlpack(array)
        check_plain(f"{self.name}: argument '{expected.name}'", array)
        contiguous = library.ascontiguousarray(library.asarray(array))
        self._check(contiguous, expected)
        return contiguous.copy() if contiguous.data.ptr % ALIGNMENT else contiguous

    def _check(self, array: Cupy, expected: Argument) -> None:
        if array.shape != expected.shape or array.dtype != expected.dtype:
            raise TargetError(
                f"{self.name}: '{expected.name}' is {array.dtype}{list(array.shape)}, expected "
                f"{expected.dtype}{list(expected.shape)}"
            )


def made(
    module: ModuleOp, host: FuncOp, arguments: Sequence[Argument], policy: str = "contract", arch: str = "sm_80"
) -> CudaKernel:
    """The kernel of a host function and the kernels that it launches. Raises LoweringError for an op without a
    spelling, TargetError for features that the architecture lacks, and for launches that it does not take."""
    source = emit(module, host)
    source.check(arch)
    constants = {n: array_of(value.data) for n, value in constant_values(host).items()}
    given = tuple(a for n, a in enumerate(arguments) if n not in constants)
    name, count = host.sym_name.data, outputs(host)
    return CudaKernel(name, given, count, source, policy, arch, constants, tuple(arguments))


def _is_host(array: Cupy) -> bool:
    import numpy as np

    return isinstance(array, np.ndarray)
