"""Main functions of calls and concatenations at random, what they compute, and their low form run on bytes."""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp, UnrealizedConversionCastOp, f32
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import SSAValue

from compiler import universe
from compiler.driver.main.constants import with_steps
from compiler.driver.main.occurrences import Pairs, coalesced, replaceable
from compiler.driver.main.slices import Joins, sliced
from compiler.driver.main.texts import empty_function
from compiler.graph.concatenation import Slot
from compiler.graph.main import BufferCall, BufferCopy, Main, write_low
from compiler.passes.plan_buffers import PlanBuffersPass
from compiler.program.tree import Buffer

Bytes = np.ndarray


def buffer(name: str, length: int) -> Buffer:
    """A vector of f32."""
    return Buffer(name, (length,), f32)


def random_main(rng: random.Random, calls: int) -> tuple[Main, Joins]:
    """Calls of earlier values, some of them concatenations; functions are named by the lengths that they take and
    give."""
    lengths = {f"x{n}": rng.randint(1, 3) * 4 for n in range(2)}
    inputs, steps, joins = list(lengths), list[BufferCall](), dict[str, tuple[Slot, ...]]()
    for number in range(calls):
        name, known = f"t{number}", list(lengths)
        parts = [rng.choice(known[-5:] if rng.random() < 0.8 else known) for _ in range(rng.randint(1, 3))]
        sizes = [lengths[part] for part in parts]
        if steps and rng.random() < 0.4 and sum(sizes) < 400:
            callee = f"join_{'_'.join(map(str, sizes))}"
            joins[callee] = tuple(Slot(n, sum(sizes[:n])) for n in range(len(sizes)))
            lengths[name] = sum(sizes)
        else:
            lengths[name] = rng.choice((*sizes, *sizes, 8))
            callee = f"f_{'_'.join(map(str, sizes))}_{lengths[name]}"
        steps.append(BufferCall(callee, tuple(parts), (name,)))
    made = [name for name in lengths if name not in inputs]
    outputs = dict.fromkeys([*(name for name in made[:-1] if rng.random() < 0.15), made[-1]])
    arguments = tuple(buffer(name, lengths[name]) for name in (*inputs, *outputs))
    temporaries = tuple(buffer(name, lengths[name]) for name in made if name not in outputs)
    return Main("main", arguments, len(outputs), temporaries, tuple(steps)), joins


def shared_pairs(main: Main, rng: random.Random) -> dict[str, Pairs]:
    """By function inputs and outputs that are one array: some of those that may be."""
    return {name: pairs[-1:] for name, pairs in replaceable(main).items() if pairs and rng.random() < 0.8}


def as_compiled(main: Main, joins: Joins, rng: random.Random) -> tuple[Main, dict[str, Pairs]]:
    """Main with slices, and with outputs in the place of inputs."""
    cut = sliced(main, joins, main.buffers)
    pairs = shared_pairs(cut, rng)
    stands = coalesced(((call, pairs.get(call.callee, ())) for call in cut.calls), cut.bases)

    def place(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(stands.get(name, name) for name in names)

    steps = [
        replace(step, inputs=place(step.inputs), outputs=place(step.outputs))
        if isinstance(step, BufferCall)
        else BufferCopy(*place([step.source, step.target]))
        for step in cut.steps
    ]
    return with_steps(cut, steps, {}), pairs


def called(callee: str, joins: Joins, inputs: Sequence[Bytes], size: int) -> Bytes:
    """What a function gives: the concatenation, or bytes that depend on all that it reads."""
    if callee in joins:
        return np.concatenate([inputs[part.input] for part in joins[callee]])
    seed = zlib.crc32(b"".join(array.tobytes() for array in inputs), zlib.crc32(callee.encode()))
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def bytes_of(value: Buffer | SSAValue) -> int:
    if isinstance(value, Buffer):
        return 4 * prod(value.shape)
    assert isinstance(value.type, memref.MemRefType)
    return prod(value.type.get_shape()) * (4 if value.type.element_type == f32 else 1)


def computed(main: Main, joins: Joins, inputs: Sequence[Bytes]) -> list[Bytes]:
    """The results of main, each value in memory of its own."""
    values = {buffer.name: array for buffer, array in zip(main.inputs, inputs, strict=True)}
    for step in main.steps:
        assert isinstance(step, BufferCall)
        arrays = [values[name] for name in step.inputs]
        values[step.outputs[0]] = called(step.callee, joins, arrays, bytes_of(main.buffers[step.outputs[0]]))
    return [values[output.name] for output in main.results]


def low_form(main: Main) -> FuncOp:
    """Main at the low level, its temporaries planned."""
    function = empty_function(main.name)
    write_low(function, main)
    PlanBuffersPass().apply(universe.context(), ModuleOp([function]))
    return function


def run_low(main: Main, joins: Joins, pairs: Mapping[str, Pairs], inputs: Sequence[Bytes]) -> list[Bytes]:
    """The results of the low form of main, run on bytes. Raises AssertionError where a function writes what it reads,
    other than an input in whose place its output stands."""
    function = low_form(main)
    function_inputs = [array.copy() for array in inputs]
    outputs = [np.full(bytes_of(output), 170, np.uint8) for output in main.results]
    values: dict[SSAValue, Bytes] = dict(zip(function.args, [*function_inputs, *outputs], strict=True))
    for op in function.body.block.ops:
        match op:
            case memref.AllocOp():
                values[op.memref] = np.full(bytes_of(op.memref), 85, np.uint8)
            case memref.ViewOp():
                assert isinstance(op.byte_shift.owner, ConstantOp)
                start = op.byte_shift.owner.value.value.data
                values[op.result] = values[op.source][start : start + bytes_of(op.result)]
                assert values[op.result].size == bytes_of(op.result)
            case UnrealizedConversionCastOp():
                values[op.results[0]] = values[op.inputs[0]]
            case memref.CopyOp():
                assert not np.shares_memory(values[op.source], values[op.destination])
                values[op.destination][:] = values[op.source]
            case CallOp():
                callee = op.callee.string_value()
                *given, target = (values[value] for value in op.arguments)
                apart = {n for n in range(len(given)) if (n, 0) not in pairs.get(callee, ())}
                assert not any(np.shares_memory(given[n], target) for n in apart)
                target[:] = called(callee, joins, [array.copy() for array in given], target.size)
    assert all(np.array_equal(now, before) for now, before in zip(function_inputs, inputs, strict=True))
    return outputs
