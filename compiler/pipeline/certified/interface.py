"""`LibraryInterface`: the arrays of a library by the JSON that it returns; whether they are those of a program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.dialects.func import FuncOp

from compiler.analysis.verify.prove import Verdict
from compiler.certificate.text import VersionCertificate
from compiler.dialects.numbers import dtype_of
from compiler.graph.canonical import canonical
from compiler.graph.main import read_tensors
from compiler.graph.read import read
from compiler.lowering.te_to_loop.nests import arguments_of
from compiler.pipeline.certified.texts import function_of, te_function_of
from compiler.program.tree import Buffer
from compiler.support.errors import InputError
from compiler.types.dtypes import DTYPES


@dataclass(frozen=True)
class InterfaceArray:
    """An array that callers of a library pass or receive: its name, numpy's name of its dtype, and its shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def bytes(self) -> int:
        """The size of the array in bytes. Raises StopIteration for a dtype that Strata lacks."""
        row = next(row for row in DTYPES.values() if row.numpy == self.dtype)
        return prod(self.shape) * -(-row.bits // 8)


@dataclass(frozen=True)
class LibraryInterface:
    """The arrays of a library, in order: inputs, outputs, and weights, which are the arrays of constants. results:
    whether the outputs are results, not arrays that the library changes in place. arguments: by processor, the pointers
    that each run passes to the native function, in order, each as its kind and number."""

    inputs: tuple[InterfaceArray, ...]
    outputs: tuple[InterfaceArray, ...]
    weights: tuple[InterfaceArray, ...]
    results: bool
    arguments: Mapping[str, Sequence[Sequence[object]]]

    def weights_for(self, cpu: str) -> list[str]:
        """Return the names of the weights in the program for a processor: without the suffix with the processor's name
        of a weight that differs between versions."""
        return [weight.name.removesuffix(f" for {cpu}") for weight in self.weights]


def parsed_interface(text: str) -> LibraryInterface:
    """Parse the JSON of a library's interface. Raises InputError for any other text."""

    def arrays(rows: Any) -> tuple[InterfaceArray, ...]:
        return tuple(InterfaceArray(str(row["name"]), str(row["dtype"]), tuple(row["shape"])) for row in rows)

    try:
        facts = json.loads(text)
        arguments = {row["cpu"]: row["arguments"] for row in facts["versions"]}
        inputs, outputs, weights = (arrays(facts[kind]) for kind in ("inputs", "outputs", "weights"))
        interface = LibraryInterface(inputs, outputs, weights, bool(facts["results"]), arguments)
        if not all(isinstance(array.bytes, int) for array in (*interface.inputs, *interface.outputs)):
            raise TypeError("an extent is no number")
    except (ValueError, TypeError, KeyError, AttributeError, StopIteration) as error:
        raise InputError(f"the interface of the certificate is damaged: {error}") from error
    return interface


def interface_verdict(version: VersionCertificate, interface: LibraryInterface) -> Verdict:
    """Prove that the arrays of a library are those of its te program, in order, by names, dtypes and shapes, and that
    the native function's parameters are the pointers that the library's text passes; else refuted, with the first
    difference as the reason. Raises InputError for a text that is no program."""
    read_function = function_of if version.program else te_function_of
    function = read_function(version.source, "the program")
    buffers, count = arguments_of(function), len(function.args)
    weights = interface.weights_for(version.cpu)
    absent = {*weights, *_unused(function)} - {array.name for array in interface.inputs}
    inputs = [_array(buffer) for buffer in buffers[:count] if buffer.name not in absent]
    results = [_array(buffer) for buffer in buffers[count:]]
    if version.program:
        named = read_tensors(function_of(version.program, "the groups")).arguments
        results = [_array(buffer) for buffer in named[count:]]
    for kind, expected, stated in (("input", inputs, interface.inputs), ("output", results, interface.outputs)):
        if len(expected) != len(stated):
            return Verdict("refuted", f"the program has {len(expected)} {kind}s, the library {len(stated)}")
        for number, (array, actual) in enumerate(zip(expected, stated, strict=True)):
            if array != actual:
                return Verdict("refuted", f"{kind} {number} is '{array}' in the program, '{actual}' in the library")
    for actual, name in zip(interface.weights, weights, strict=True):
        buffer = next((buffer for buffer in buffers[:count] if buffer.name == name), None)
        if buffer is not None and (_array(buffer).dtype, buffer.shape) != (actual.dtype, actual.shape):
            return Verdict("refuted", f"the weight '{actual}' is '{_array(buffer)}' in the program")
    if version.calls[-1].pointers != interface.arguments.get(version.cpu):
        return Verdict("refuted", "the call of the native function is not that of the library's interface")
    return Verdict("proved")


def _unused(function: FuncOp) -> list[str]:
    """Return the names of the inputs of a te function that do not occur in its canonical form."""
    used = canonical(read(function), keep_signature=False).arguments
    return [buffer.name for n, buffer in enumerate(arguments_of(function)[: len(function.args)]) if n not in used]


def _array(buffer: Buffer) -> InterfaceArray:
    return InterfaceArray(buffer.name, str(dtype_of(buffer.element)), buffer.shape)
