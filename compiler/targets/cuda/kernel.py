"""`CudaKernel`: the kernels of a function as text, as machine code of any architecture, and called on a GPU."""

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
from compiler.targets.cuda.callers import output_on_device, queue_of, result_of, to_device
from compiler.targets.cuda.emit import CudaSource, Launch, emit
from compiler.targets.cuda.graphs import CapturedCall, captured
from compiler.targets.cuda.interface import HostInterface, host_interface
from compiler.targets.cuda.launcher import file_text
from compiler.targets.cuda.nvrtc import Cubin, Resources
from compiler.targets.cuda.runtime import Cupy, LoadedKernels, OnDevice, cupy, device_dtype
from compiler.targets.groups import GroupFacts
from compiler.types.policies import POLICIES


@dataclass(frozen=True)
class CudaKernel:
    """A function on the GPU: a call takes its inputs and returns its outputs as CuPy arrays.

    `arguments` are the inputs, then the outputs; `constants` are bound arrays, by their positions among
    `native_arguments`, which are all arguments. `arch` is the default architecture of `cubin`. `groups` are those of a
    program whose groups were compiled separately. Inputs are CuPy arrays, numpy arrays, or objects with DLPack or the
    CUDA array interface.

    >>> A = te.placeholder((64,), name="A")
    >>> kernel = build(te.function("f", [A], te.nn.relu(A, name="B")), target="cuda", schedule="auto")
    >>> print(kernel.text[kernel.text.index("// grid"):].rstrip())
    // grid (1, 1, 1), block (256, 1, 1)
    extern "C" __global__ void __launch_bounds__(256)
    f_B(const float* __restrict__ A, float* __restrict__ B) {
      const int tx = threadIdx.x;
      if (tx < 64) {
        B[tx] = maximum<float>(A[tx], 0.0f);
      }
    }
    """

    name: str
    arguments: tuple[Argument, ...]
    outputs: int
    source: CudaSource
    policy: str
    arch: str = "sm_80"
    constants: Mapping[int, Array] = field(default_factory=dict)
    native_arguments: tuple[Argument, ...] = ()
    groups: tuple[GroupFacts, ...] = ()

    def __repr__(self) -> str:
        arguments = ", ".join(map(str, self.arguments))
        count = counted(self.outputs, "output")
        return display.line(f"<CudaKernel {self.name}({arguments}), {count}, {self.arch}>")

    def _repr_html_(self) -> str:
        launches = [(launch.name, launch.grid, launch.block, launch.shared_bytes) for launch in self.launches]
        started = display.table("launches", ("kernel", "blocks", "threads", "shared bytes"), launches)
        return arguments_html(f"{self.name} for {self.arch}", self.arguments, self.outputs) + started

    def __getstate__(self) -> dict[str, object]:
        """Pickle the fields; kernels are loaded again after unpickling."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def text(self) -> str:
        """The CUDA C++ of the kernels."""
        return self.source.text

    @property
    def file_text(self) -> str:
        """The text of a `.cu` file: the kernels, and behind them a launcher in C for nvcc."""
        return file_text(self.interface, self.text)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches in order, for other runtimes."""
        return self.source.launches

    @property
    def least_architecture(self) -> str:
        """The first architecture with a model that has the features of the text and takes the launches; `arch` if none
        does."""
        return self.interface.least_architecture

    @cached_property
    def interface(self) -> HostInterface:
        """The arguments, temporaries and launches, for hosts in other languages."""
        arguments = self.native_arguments or self.arguments
        options = (nvrtc.fmad(POLICIES[self.policy].fused),)
        return host_interface(self.name, arguments, self.outputs, self.constants, self.source, self.arch, options)

    @property
    def can_compile(self) -> bool:
        """Whether NVRTC is installed."""
        return nvrtc.is_available()

    def cubin(self, arch: str | None = None) -> Cubin:
        """Compile to machine code for an architecture (None: the kernel's). Raises TargetError without NVRTC, for text
        that it refuses, and for an architecture that lacks a feature or whose limits a launch exceeds."""
        self.source.check(arch or self.arch)
        return nvrtc.compiled(self.text, arch or self.arch, contract=POLICIES[self.policy].fused)

    def resources(self, arch: str | None = None) -> dict[str, Resources]:
        """Return the registers and memory of each kernel, by name, on an architecture (None: the kernel's). Raises
        TargetError without NVRTC, for text that it refuses, and for an architecture that lacks a feature or whose
        limits a launch exceeds."""
        dynamic_bytes = {launch.name: launch.shared_bytes for launch in self.source.all_launches}
        return {
            name: replace(static, shared_bytes=static.shared_bytes + dynamic_bytes[name])
            for name, static in self.cubin(arch).resources.items()
        }

    @cached_property
    def _on_devices(self) -> dict[int, LoadedKernels]:
        return {}

    @property
    def _loaded(self) -> LoadedKernels:
        """The kernels for CuPy's current device, one object for each device, which loads them at its first launch."""
        device = cupy().cuda.runtime.getDevice()
        if device not in self._on_devices:
            count = len(self.native_arguments or self.arguments)
            contract = POLICIES[self.policy].fused
            self._on_devices.setdefault(device, LoadedKernels(self.source, contract, count, self.constants))
        return self._on_devices[device]

    @property
    def workspace_bytes(self) -> int:
        """The bytes of the workspace, which contains all buffers between kernels; 0 without any."""
        return self.source.workspace_bytes

    def on_device(self) -> OnDevice:
        """Allocate a device array for each argument, constants included, which `fill` sets too and whose initial
        contents are undefined; kernels load at the first run. Raises TargetError without GPU."""
        arguments = self.native_arguments or self.arguments
        loaded = LoadedKernels(self.source, POLICIES[self.policy].fused, len(arguments), {})
        return OnDevice(loaded, arguments, self.outputs)

    def loaded(self) -> LoadedKernels:
        """Return the kernels, prepared on the current device, for launches by addresses. Raises TargetError without a
        GPU."""
        self.prepare()
        return self._loaded

    def prepare(self) -> None:
        """Load the kernels on the current device, and copy the constants there, as the first call does; required before
        a CUDA graph of another package captures a call. Raises TargetError without a GPU."""
        self._loaded.prepare()

    def __call__(self, *inputs: Cupy, out: Cupy = None, stream: Cupy = None, workspace: Cupy = None) -> Cupy:
        """Run on the current device and return the outputs, in `out` if it is not None: the array of a single output,
        else a tuple.

        Outputs are tensors of torch if an input is one, else CuPy's arrays; bf16 is uint16 there. stream: a CuPy
        stream; None for torch's current one if an input is a tensor on a GPU, else for CuPy's. workspace: an array of
        at least `workspace_bytes` bytes on the device, None for one that the kernel allocates for each stream. Calls
        return before their kernels end. Raises TargetError without a GPU, for arrays of another number, shape or dtype,
        for arrays in `out` that are not on the device, contiguous and aligned, for tensors that require a gradient, and
        for a workspace that is too small or misaligned.
        """
        with queue_of(inputs, stream):
            return self._called(inputs, out, workspace)

    def graph(self, *inputs: object) -> CapturedCall:
        """Capture a call with these inputs as a CUDA graph on the current device. The graph reads the memory of inputs
        on the device; inputs on the host, and those that are not contiguous or aligned, are copied once. Raises
        TargetError without a GPU, for arrays of another number, shape or dtype, and for launches that cannot be
        captured."""
        count = len(self.arguments) - self.outputs
        if len(inputs) != count:
            raise TargetError(f"{self.name}: takes {count} arrays, got {len(inputs)}")
        arrays = [to_device(self.name, array, a) for array, a in zip(inputs, self.arguments, strict=False)]
        outputs = [cupy().empty(a.shape, device_dtype(a.dtype)) for a in self.arguments[count:]]
        by_position = dict(zip(self._free_positions, [*arrays, *outputs], strict=True))
        return captured(self._loaded, by_position, arrays, outputs)

    @cached_property
    def _free_positions(self) -> tuple[int, ...]:
        """The positions, among all arguments, of those that are no constants."""
        return tuple(n for n in range(len(self.arguments) + len(self.constants)) if n not in self.constants)

    def _called(self, inputs: Sequence[object], out: object, workspace: Cupy) -> object:
        count = len(self.arguments) - self.outputs
        if len(inputs) != count:
            raise TargetError(f"{self.name}: takes {count} arrays, got {len(inputs)}")
        arrays = [to_device(self.name, array, a) for array, a in zip(inputs, self.arguments, strict=False)]
        expected = self.arguments[count:]
        given: tuple[object, ...] = tuple(out) if isinstance(out, tuple | list) else () if out is None else (out,)
        if given and len(given) != self.outputs:
            raise TargetError(f"{self.name}: gives {self.outputs} arrays, got {len(given)} for them")
        if given:
            outputs = [output_on_device(self.name, array, a) for array, a in zip(given, expected, strict=True)]
        else:
            outputs = [cupy().empty(a.shape, device_dtype(a.dtype)) for a in expected]
        self._loaded.launch(dict(zip(self._free_positions, [*arrays, *outputs], strict=True)), workspace)
        if not given:
            convert = result_of(inputs)
            given = tuple(outputs) if convert is None else tuple(map(convert, outputs, expected))
        return given[0] if self.outputs == 1 else given


def make_kernel(
    module: ModuleOp, host: FuncOp, arguments: Sequence[Argument], policy: str = "contract", arch: str = "sm_80"
) -> CudaKernel:
    """Write the kernels that a host function launches, with its constants bound to arrays. policy: the floating-point
    policy of the build, which decides on fused multiply-adds. Raises LoweringError for an op that CUDA C++ lacks,
    TargetError for an architecture that lacks a feature or whose limits a launch exceeds."""
    source = emit(module, host)
    source.check(arch)
    constants = {n: array_of(value.data) for n, value in constant_values(host).items()}
    inputs_and_outputs = tuple(a for n, a in enumerate(arguments) if n not in constants)
    name, count = host.sym_name.data, outputs(host)
    return CudaKernel(name, inputs_and_outputs, count, source, policy, arch, constants, tuple(arguments))
