"""`from_torch`: import a module as a te function, by torch.export."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx
from torch.export.graph_signature import ExportGraphSignature, InputKind, OutputKind

from compiler.frontends.model import Imported
from compiler.frontends.torch.conversion import Values, convert, placeholder_of, refusal_of, remove_assertions, te_name
from compiler.frontends.torch.table import Unsupported
from compiler.frontends.torch.tracing import decompositions
from compiler.program.names import Names
from compiler.support.errors import InputError
from compiler.te.function import function
from compiler.te.tensor import Tensor

_CONSTANT_KINDS = {InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR}


def from_torch(module: torch.nn.Module, inputs: torch.Tensor | Sequence[Any]) -> Imported:
    """Import a module in inference mode, for the shapes and dtypes of example inputs, as a te function.

    Used parameters and buffers are inputs of the function under their names, and `constants` has their values: `build`
    and `tune` take both. Results in lists and mappings are flattened; assertions on values are removed. Raises
    InputError for an object that is no module, for inputs that are no tensors or of a dtype that te lacks, for a module
    that torch.export refuses, that writes to its inputs or buffers, that has a result that is no tensor, or that has
    operators without a te form, all of which are listed.

    >>> import torch
    >>> imported = from_torch(torch.nn.Linear(3, 2), torch.ones(4, 3))
    >>> imported.function
    <Function Linear(input: f32[4, 3], weight: f32[2, 3], bias: f32[2]) -> linear: f32[4, 2]>
    >>> list(imported.constants)
    ['weight', 'bias']
    """
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"from_torch takes a torch.nn.Module, not a {type(module).__name__}")
    if not isinstance(inputs, torch.Tensor | list | tuple):
        raise InputError(f"the inputs of a module are a tensor, or a list of them, not a {type(inputs).__name__}")
    program = _export(module, (inputs,) if isinstance(inputs, torch.Tensor) else tuple(inputs))
    graph = program.graph_module.graph
    remove_assertions(graph, of_values=True)
    calls = [node for node in graph.nodes if node.op == "call_function"]
    reasons = dict.fromkeys(reason for node in calls if (reason := refusal_of(node)))
    refusal = f"operators without a te form: {'; '.join(reasons)}" if reasons else _write_fault(program.graph_signature)
    if refusal:
        hint = "; it is in training mode: .eval() makes it one for inference" if module.training else ""
        raise InputError(f"{refusal}{hint}")
    return _convert(type(module).__name__, program)


def _export(module: torch.nn.Module, inputs: tuple[Any, ...]) -> torch.export.ExportedProgram:
    table = dict(decompositions())
    try:
        with torch.no_grad(), _without_fast_path():
            return torch.export.export(module, inputs).run_decompositions(table)
    except Exception as error:  # torch or the module may raise any type
        message = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(f"torch.export refuses {type(module).__name__}: {message}") from error


@contextmanager
def _without_fast_path() -> Iterator[None]:
    """Disable torch's fast path of encoder layers in the context, so that their export has plain operators."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


def _write_fault(signature: ExportGraphSignature) -> str | None:
    """Return a sentence that refuses a module which writes to an input or a buffer; None for other modules."""
    for output in signature.output_specs:
        if output.kind not in (OutputKind.USER_OUTPUT, OutputKind.TOKEN):
            kind = output.kind.name.lower().replace("_", " ")
            return f"the module writes to '{output.target}' ({kind}): a te function writes to no input"
    return None


def _convert(name: str, program: torch.export.ExportedProgram) -> Imported:
    names, values = Names(separator="_"), Values()
    inputs: list[Tensor] = []
    weights: list[Tensor] = []
    constants: dict[str, Any] = {}
    nodes = {node.name: node for node in program.graph.nodes}
    state = {**program.state_dict, **program.constants}
    for spec in program.graph_signature.input_specs:
        node = nodes[spec.arg.name]
        if spec.kind in _CONSTANT_KINDS and not node.users:
            continue
        tensor = _input(node, names.fresh(te_name(spec.target if spec.kind in _CONSTANT_KINDS else node.name)))
        values[node] = tensor
        (weights if spec.kind in _CONSTANT_KINDS else inputs).append(tensor)
        if spec.kind in _CONSTANT_KINDS:
            constants[tensor.name] = state[spec.target].detach().cpu()
    outputs: list[Tensor] = []
    for node in program.graph.nodes:
        if node.op == "call_function":
            values[node] = convert(node, values)
        elif node.op == "output":
            outputs = [_output(argument, values) for argument in node.args[0]]
    return Imported(function(names.fresh(te_name(name)), [*inputs, *weights], outputs), constants)


def _input(node: fx.Node, name: str) -> Tensor:
    try:
        return placeholder_of(node, name)
    except Unsupported as error:
        raise InputError(f"input '{node.name}': {error}") from error


def _output(argument: object, values: Values) -> Tensor:
    tensor = values.get(argument) if isinstance(argument, fx.Node) else None
    if not isinstance(tensor, Tensor):
        raise InputError(f"a result of the module is no tensor: {argument!r}")
    return tensor
