"""`strata`: the backend of torch.compile."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._guards import TracingContext

from compiler.frontends.torch.report import GraphReport
from compiler.frontends.torch.tracing import captured_decompositions, keep_undecomposed
from compiler.support.errors import StrataError
from compiler.targets.torch_gpus import TARGETS, TorchGpu, gpu_of
from compiler.torch_backend.comparison import EagerComparison, is_repeatable
from compiler.torch_backend.costs import Cost
from compiler.torch_backend.device_part import Capturing, DevicePart
from compiler.torch_backend.options import OPTIONS_OF_CPU, Options, options_of
from compiler.torch_backend.part import Part
from compiler.torch_backend.partition import CPU, computes, split
from compiler.torch_backend.timing import TimedGraph

Compiled = Callable[..., Any]
DEVICE = (
    "strata compiles for the CPU and for CUDA, and an input is on the device {device}: its graph stays with torch, none"
    " of its operators is compiled"
)
NO_LAUNCH = "strata compiles nothing on the device {device}, whose graph stays with torch: {reason}"
OF_CPU = "strata: the options {names} are of the CPU: the graph on {device} is compiled without them"
PARTLY = "strata compiles {compiled} of {count} operators of a graph on {device}; the others stay with torch: {reasons}"
NOTHING = "strata compiles none of the {count} operators of a graph, which stays with torch: {reason}"
GRADIENTS = (
    "strata compiles the forward pass; gradients stay with torch, and what they need is kept: for inference alone, call"
    " the model under torch.no_grad()"
)

DYNAMIC = (
    "strata compiles for fixed shapes, and an input is marked as dynamic: its graph stays with torch; without the mark,"
    " each shape is compiled"
)


def strata(
    graph: fx.GraphModule, examples: list[Any], *, options: object = None, mode: object = None
) -> Callable[..., Any]:
    """Compile a graph that torch has captured, for inference: `torch.compile(model, backend="strata")`.

    Parameters and buffers are constants, prepared in the first call of the graph, and again after a write or a
    replacement. On a GPU they are inputs, read by address, and kernels are launched on torch's current stream.
    Operators without a te form stay with torch, as do backward passes, graphs with an input marked dynamic, and those
    on other devices than the CPU and GPUs of NVIDIA. A graph is compiled for the shapes of its capture; torch captures
    other shapes again, up to its own limit.
    `options`: a dictionary of the fields of `compiler.torch_backend.options.Options`. `mode`: None or "default".
    Raises InputError for other options and modes.
    """
    chosen = options_of(options, mode)
    if any(getattr(x, "_dynamo_dynamic_indices", None) for x in examples):
        warnings.warn(DYNAMIC, stacklevel=2)
        return graph.forward  # type: ignore[no-any-return]
    device = device_of(examples)
    if reason := device_refusal(device, chosen):
        warnings.warn(reason, stacklevel=2)
        return graph.forward  # type: ignore[no-any-return]
    _fix_shapes(graph)
    gradients = torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in examples)
    if gradients:
        warnings.warn(GRADIENTS, stacklevel=2)

    compared: list[CompiledGraph] = []

    def forward(captured: fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
        compiled = compile_graph(captured, chosen, device)
        if chosen.compare and chosen.report is None and not gradients and is_repeatable(captured):
            compared.append(compiled)
        return make_boxed_func(compiled.run)  # type: ignore[no-any-return]

    def backward(captured: fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
        return make_boxed_func(captured.forward)  # type: ignore[no-any-return]

    compiler = aot_autograd(
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=forward,
        decompositions=captured_decompositions(),
    )
    with nullcontext() if gradients else keep_undecomposed():
        run = compiler(graph, examples)
    if not compared:
        return run  # type: ignore[no-any-return]
    return EagerComparison(run, graph.forward, compared[0].report, compared[0].costs, gpu_at(device))


def device_of(examples: Sequence[Any]) -> torch.device:
    """Return the device, other than the CPU, that has most of a graph's inputs; the CPU if no tensor is elsewhere."""
    devices = Counter(x.device for x in examples if isinstance(x, torch.Tensor))
    elsewhere = Counter({device: count for device, count in devices.items() if device.type != "cpu"})
    return elsewhere.most_common(1)[0][0] if elsewhere else CPU


def gpu_at(device: torch.device) -> TorchGpu | None:
    """Return the GPU of a device; None for the CPU."""
    return None if device.type == "cpu" else gpu_of(device)


def device_refusal(device: torch.device, options: Options) -> str | None:
    """Return the reason why graphs on a device stay with torch; None if they are compiled. Warns of options that have
    no effect on a GPU."""
    gpu = gpu_at(device)
    if gpu is None:
        return None
    if device.type not in TARGETS:
        return DEVICE.format(device=device)
    if reason := gpu.refusal():
        return NO_LAUNCH.format(device=device, reason=reason)
    names = [name for name in OPTIONS_OF_CPU if getattr(options, name)]
    if names:
        warnings.warn(OF_CPU.format(names=", ".join(names), device=device), stacklevel=3)
    return None


def _fix_shapes(graph: fx.GraphModule) -> None:
    """Specialise the symbolic sizes of a graph's inputs to their current values; torch captures a new graph for
    others."""
    for node in graph.graph.nodes:
        value = node.meta.get("example_value") if node.op == "placeholder" else None
        for size in (*value.shape, *value.stride()) if isinstance(value, torch.Tensor) else (value,):
            if isinstance(size, torch.SymInt):
                int(size)


@dataclass(frozen=True)
class CompiledGraph:
    """A compiled graph of core ATen operators: its callable, its compiled parts, each with torch as a fallback, and its
    report."""

    run: Compiled
    parts: Sequence[_OrTorch]
    report: GraphReport

    def costs(self) -> Iterator[Cost]:
        """Measure and yield the cost of each group of the parts that have a kernel."""
        return chain.from_iterable(part.costs() for part in self.parts)


def compile_graph(graph: fx.GraphModule, options: Options, device: torch.device = CPU) -> CompiledGraph:
    """Compile the parts of a core ATen graph that have a te form, for the device, each in its first call. Warns if no
    operator has a te form, and on a GPU if some have none.

    With `options.report`, add the graph's report to it, and record the seconds of the parts in each run.
    """
    partition, fixed, gpu = split(graph, device), _parameters(), gpu_at(device)
    module = partition.module
    places = [node for node in module.graph.nodes if node.op == "placeholder"]
    constant = {node for n, node in enumerate(places) if n in fixed}
    parts: dict[str, _OrTorch] = {}
    report = GraphReport(partition.computing_compiled, partition.computing, len(partition.compiled), partition.reasons)
    if partition.computing and not partition.computing_compiled:
        reason = partition.reasons.most_common(1)[0][0]
        warnings.warn(NOTHING.format(count=partition.computing, reason=reason), stacklevel=2)
    elif gpu is not None and partition.reasons:  # on the CPU the comparison with eager mode tells
        reasons = "; ".join(f"{reason} ({count})" for reason, count in partition.reasons.most_common())
        counts = {"compiled": partition.computing_compiled, "count": partition.computing}
        warnings.warn(PARTLY.format(**counts, device=device, reasons=reasons), stacklevel=2)
    for node in module.graph.nodes:
        if node.op == "call_module" and node.target in partition.compiled:
            fixed_places = [n for n, argument in enumerate(node.args) if argument in constant]
            submodule, name = module.get_submodule(node.target), f"graph_{node.target}"
            if gpu is None:
                compiled: Part | DevicePart = Part(submodule, name, fixed_places, options)
            else:
                compiled = DevicePart(submodule, name, gpu, options)
            part = _OrTorch(submodule, compiled, report)
            delattr(module, node.target)  # a module cannot be replaced by a function, whose call is cheaper
            setattr(module, node.target, part)
            parts[node.target] = part
    module = fx.GraphModule(module, module.graph)  # a lazy module adds an indirection to each call
    if options.report is None:
        return CompiledGraph(module.forward, [*parts.values()], report)
    options.report.graphs.append(report)
    return CompiledGraph(TimedGraph(module, set(parts), report, gpu).run, [*parts.values()], report)


def _parameters() -> set[int]:
    """Return the positions of a graph's inputs that are parameters or buffers which the graph does not write; empty
    outside of torch's compilation."""
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is None:
        return set()
    written = {n for n, info in enumerate(metadata.input_info) if info.mutates_data}
    return set(metadata.static_input_indices) - written


class _OrTorch:
    """A compiled part, with torch as a fallback if no kernel can be built; `refused` is then the reason, else None."""

    def __init__(self, module: Any, compiled: Part | DevicePart, report: GraphReport) -> None:
        self._plain, self._run, self._report = module, compiled, report
        self.refused: str | None = None

    def costs(self) -> Iterator[Cost]:
        """Measure and yield the cost of each group of the part's kernel; nothing before the first call, and if torch
        runs the part."""
        return iter(()) if self.refused is not None else self._run.costs()

    def __call__(self, *arguments: Any) -> Any:
        """Run the part's kernel and return its results. If no kernel can be built, warn once and run the part in torch,
        in all later calls too; while a CUDA graph is captured, warn and run it in torch in this call only."""
        if self.refused is not None:
            return self._plain(*arguments)
        try:
            return self._run(*arguments)
        except Capturing as error:
            warnings.warn(f"{error}: torch runs a part in this call; call the model once before", stacklevel=2)
            return self._plain(*arguments)
        except StrataError as error:
            self.refused = str(error)
            nodes = sum(computes(node) for node in self._plain.graph.nodes)
            self._report.compiled -= nodes
            self._report.reasons[self.refused] += nodes
            warnings.warn(f"a part of a graph stays with torch: {error}", stacklevel=2)
            return self._plain(*arguments)
