"""`ProgramValues`: the values that a te program computes, by the origin of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.dialects.functions import find_function, functions
from compiler.graph.main import BufferCall, read_tensors, size
from compiler.graph.read import read
from compiler.pipeline.certified.memory import Content, value_of, whole
from compiler.pipeline.certified.texts import module_of
from compiler.pipeline.certified.units import CertifiedUnit, ComputedFunction, names_of


@dataclass(frozen=True)
class ProgramValues:
    """The contents that a te program computes: of its results, by name, and of all its calls."""

    results: Mapping[str, Content]
    values: frozenset[Content]


def argument(name: str, bytes: int) -> Content:
    """Return the content of the input or weight `name` of the program, of `bytes` bytes."""
    return whole(value_of(bytes, "argument", name))


def values_of_groups(text: str) -> ProgramValues:
    """Return the values that a te program in groups, parsed from `text`, computes: of each result by its name, and of
    each output of a call of a group. Raises InputError for an invalid text."""
    module = module_of(text, "the groups")
    main = read_tensors(find_function(module))
    graphs = {function.sym_name.data: read(function) for function in functions(module)}
    computations, values = dict[str, ComputedFunction](), list[Content]()
    contents = {name: argument(name, size(main.buffers[name])) for name in (*main.elements, *names_of(main.inputs))}
    for step in main.steps:
        if not isinstance(step, BufferCall):
            contents[step.target] = contents[step.source]
            continue
        if step.callee not in computations:
            computations[step.callee] = ComputedFunction.of(graphs[step.callee])
        inputs = {n: contents[name] for n, name in enumerate(step.inputs)}
        for number, name in enumerate(step.outputs):
            contents[name] = computations[step.callee].result(number, size(main.buffers[name]), inputs)
            values.append(contents[name])
    return ProgramValues({name: contents[name] for name in names_of(main.results)}, frozenset(values))


def values_of_function(unit: CertifiedUnit) -> ProgramValues:
    """Return the contents that a program of one function computes."""
    inputs = {n: argument(buffer.name, size(buffer)) for n, buffer in enumerate(unit.inputs)}
    outputs = enumerate(unit.outputs)
    results = {b.name: unit.computation.result(n, size(b), inputs) for n, b in outputs}
    return ProgramValues(results, frozenset(results.values()))
