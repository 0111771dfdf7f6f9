"""Random literals of all dtypes by te, ONNX and torch: what is built gives the numbers that numpy, ONNX and eager torch
have, bit for bit.

`python -m tests.fuzz.literals --seed 0 --cases 1000` runs many and reports each failure.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import compiler
from compiler.interpret.te import evaluate
from compiler.types.dtypes import DTYPES, is_float
from tests import literals
from tests.fuzz.alarm import alarm, asked
from tests.literals import CONDITION, INPUT, SIZE, Array, Number, differences
from tests.operators.catalogue import numpy_dtype

SECONDS = 120
"""The most that one program may take, on a machine that others use as well."""
POLICIES = ("strict", "contract", "fast")


def by_te(rng: random.Random) -> list[str]:
    """The evaluator, loops and machine code of a program of te, also by way of its text."""
    function, arrays, expected = literals.drawn(rng)
    ways = rng.sample(list(literals.WAYS_OUT), 3)
    return [f"{w}: {d}" for w in ways for d in differences(literals.WAYS_OUT[w](function, arrays, expected), expected)]


def by_onnx(rng: random.Random) -> list[str]:
    """A model whose initialisers and attributes are literals, beside the package's reference evaluator."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    dtype = rng.choice([d for d in DTYPES if d != "bf16"])  # which the reference evaluator lacks in places
    element = helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype))

    def stated(name: str, array: Array) -> Any:
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        return helper.make_tensor(name, kind, array.shape, np.ascontiguousarray(array).tobytes(), raw=True)

    def node(number: int, value: Array) -> tuple[list[Any], list[Any]]:
        name, out = f"k{number}", f"y{number}"
        kind = rng.choice(("Where", "Pad", "ConstantOfShape", "Constant", "Expand"))
        if kind == "Where":
            return [helper.make_node("Where", ["b", "x", name], [out])], [stated(name, value)]
        if kind == "Pad":
            return [helper.make_node("Pad", ["x", "p", name], [out])], [stated(name, value)]
        if kind == "Expand":
            made = helper.make_node("Expand", [name, "s"], [f"c{number}"])
            return [made, helper.make_node("Where", ["b", f"c{number}", "x"], [out])], [stated(name, value)]
        elements = stated("", value.reshape(1))
        given = ["s"] if kind == "ConstantOfShape" else []
        made = helper.make_node(kind, given, [f"c{number}"], value=elements)
        return [made, helper.make_node("Where", ["b", "x", f"c{number}"], [out])], []

    numbers = [literals.stored(literals.any_value(rng, dtype), dtype) for _ in range(4)]
    parts = [node(n, np.asarray(value, numpy_dtype(dtype))) for n, value in enumerate(numbers)]
    shared = [stated("p", np.array([1, 0])), stated("s", np.array([SIZE]))]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [made for nodes, _ in parts for made in nodes],
        "literals",
        [info("x", element, [SIZE]), info("b", TensorProto.BOOL, [SIZE])],
        [info(f"y{n}", element, [SIZE + (nodes[0].op_type == "Pad")]) for n, (nodes, _) in enumerate(parts)],
        [*shared, *(made for _, tensors in parts for made in tensors)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = INPUT.astype(numpy_dtype(dtype))
    expected = ReferenceEvaluator(model).run(None, {"x": x, "b": CONDITION})
    imported = compiler.from_onnx(model)
    arguments = {"x": x, "b": CONDITION} | imported.constants
    given = [arguments[tensor.name] for tensor in imported.function.inputs]
    found = evaluate(imported.function.module, given)
    built = compiler.build(imported, policy=rng.choice(POLICIES))
    called = built(*(arguments[argument.name] for argument in built.arguments if argument.name in ("x", "b")))
    return [*differences(found, expected), *differences(called, expected)]


def by_torch(rng: random.Random) -> list[str]:
    """Functions of a tensor and numbers, compiled and eager."""
    import torch
    from torch.nn.functional import pad

    import compiler.torch_backend  # noqa: F401  # the backend's name

    functions: dict[str, Callable[[Any, Number], Any]] = {
        "full_like": torch.full_like,
        "new_full": lambda x, v: x.new_full((2,), v),
        "masked_fill": lambda x, v: x.masked_fill(x == 0, v),
        "where": lambda x, v: torch.where(x == 0, x, torch.full_like(x, v)),
        "pad": lambda x, v: pad(x, (1, 1), value=v),
        "tensor": lambda x, v: torch.tensor([v, 1], dtype=x.dtype).expand(2, 2),
        "widened": lambda x, v: torch.full_like(x, v).to(torch.float64 if x.is_floating_point() else torch.int64),
        "scalar": lambda x, v: torch.where(x == 0, torch.scalar_tensor(v, dtype=x.dtype), x),
    }
    names = ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "i1")
    dtype = rng.choice(names)
    spelled = getattr(torch, DTYPES[dtype].numpy)
    cases = [(rng.choice(list(functions)), _of_torch(rng, dtype)) for _ in range(4)]
    x = torch.tensor(INPUT).to(spelled)

    def compute(x: Any) -> list[Any]:
        return [functions[name](x, value) for name, value in cases]

    expected, before = compute(x), torch._dynamo.config.recompile_limit
    torch._dynamo.reset()
    torch._dynamo.config.recompile_limit = 64
    try:
        found = torch.compile(compute, backend="strata", options={"policy": rng.choice(POLICIES)})(x)
    finally:
        torch._dynamo.config.recompile_limit = before
    said = differences([_array(t) for t in found], [_array(t) for t in expected])
    return [f"{cases}: {text}" for text in said]


def _of_torch(rng: random.Random, dtype: str) -> Number:
    """A number that torch takes: it refuses some that are rounded to the greatest float, and rounds integers twice."""
    import torch

    value = literals.any_value(rng, dtype)
    if not is_float(dtype) or not -math.inf < value < math.inf:
        return value
    most = torch.finfo(getattr(torch, DTYPES[dtype].numpy)).max
    near = min(max(value, -most), most)
    return float(near) if abs(near) > 2**53 else near


def _array(tensor: Any) -> Array:
    """A tensor as an array; bf16 as f32, which holds it."""
    tensor = tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor
    return np.asarray(tensor.contiguous().numpy())


DOORS: Sequence[Callable[[random.Random], list[str]]] = (by_te, by_onnx, by_torch)


def faults(seed: int) -> list[str]:
    """Run one program, by the door whose turn it is; what is wrong."""
    door = DOORS[seed % len(DOORS)]
    with np.errstate(all="ignore"):
        return [f"{door.__name__} {seed}: {text}" for text in door(random.Random(seed))]


def main(seed: int, cases: int) -> int:
    """Run seeds from the first on; the number of failures."""
    failures = 0
    for number, each_seed in enumerate(range(seed, seed + cases), 1):
        try:
            with alarm(SECONDS):
                found = faults(each_seed)
        except Exception as error:  # each seed is judged on its own, and all of them are reported
            found = [f"{type(error).__name__}: {str(error)[:300]}"]
        failures += bool(found)
        for text in found[:2]:
            print(f"literals: seed {each_seed}: {text}", flush=True)
        if number % 100 == 0:
            print(f"literals: {number} programs, {failures} failures", flush=True)
    print(f"literals: {cases} programs, {failures} failures")
    return failures


if __name__ == "__main__":
    sys.exit(main(*asked(__doc__)) > 0)
