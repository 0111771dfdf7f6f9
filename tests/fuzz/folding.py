"""canonicalize and cse on random programs of each level: the results have the same bits before and after, and a second
run of the passes changes nothing.

`python -m tests.fuzz.folding --seed 0 --cases 1000` runs many and reports each failure.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    BoolAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Block, Operation, SSAValue

import compiler
from compiler import universe
from compiler.analysis.combiners import CombinerError
from compiler.dialects import te
from compiler.dialects.combination import Combining
from compiler.dialects.dominance import verify_module
from compiler.dialects.upstream.arith import CmpiOp, SelectOp
from compiler.dialects.upstream.walk import ops_in
from compiler.fuzz import programs, results
from compiler.fuzz.scripts import Walker
from compiler.pipeline.parser import parse_passes
from compiler.pipeline.passes import PIPELINES, run
from compiler.pipeline.source import level_of
from compiler.schedule import Schedule
from compiler.types.elements import element_bits
from tests import bitwise
from tests.fuzz.alarm import asked, failures_of

SECONDS = 120
"""The most that one program may take, on a machine that others use as well."""
NATIVE = 8
"""One program in so many is also compiled, from the low level."""
PASSES = ("canonicalize", "cse", "canonicalize,cse,canonicalize")
REALS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0e38, 1e-40, float("inf"), float("nan"))


def check(seed: int, counts: Counter[str] | None = None) -> None:
    """Run the passes on one program at each level. Raises AssertionError for other results, or passes that do not
    settle. counts: increased by the ops before and after, by level."""
    rng = random.Random(seed)
    undisturbed, arrays = drawn(rng, seed)
    module = disturbed(undisturbed, rng)
    try:
        like = _results(module, arrays, [])
    except CombinerError:  # what is combined jointly became NaN
        return
    scheduled = Walker(Schedule(lowered(module, "te-to-loop")), rng)
    for _ in range(rng.randint(0, 5)):
        scheduled.step()
    levels = {"te": module, "loop": disturbed(scheduled.s.module, rng)}
    if seed % NATIVE == 0:
        levels["low"] = disturbed(lowered(module, PIPELINES["te-to-low"]), rng, addresses=False)
    for level, program in levels.items():
        before = _results(program.clone(), arrays, like)
        for passes in PASSES:
            after = lowered(program, passes)
            verify_module(after)
            if counts is not None:
                counts[f"{level} {passes}: before"] += len(ops_in(program))
                counts[f"{level} {passes}: after"] += len(ops_in(after))
            again = lowered(after, passes)
            assert str(again) == str(after), f"{passes} at the level {level} changes its own output"
            for number, (found, expected) in enumerate(zip(_results(after, arrays, like), before, strict=True)):
                assert bitwise.same_bits(found, expected), f"{passes} at the level {level}: result {number} is another"


def drawn(rng: random.Random, seed: int) -> tuple[ModuleOp, results.Arrays]:
    """A random program, and the arrays that it is run on."""
    function = programs.program(rng, views=rng.random() < 0.3, constants=0.3 if rng.random() < 0.4 else 0.0)
    return function.module, programs.arrays_for(function, seed)


def _results(module: ModuleOp, arrays: results.Arrays, like: results.Arrays) -> results.Arrays:
    """The results of a module by the evaluator of its level; of the low level as machine code of the strict policy."""
    level = level_of(module)
    if level == "te":
        with np.errstate(all="ignore"):
            return bitwise.results(module, arrays)
    if level == "loop":
        return results.results(module, arrays, like)
    computed = compiler.build(module, policy="strict")(*arrays)
    return list(computed) if isinstance(computed, tuple) else [computed]


def lowered(module: ModuleOp, passes: str) -> ModuleOp:
    """A copy of a module after passes."""
    copy = module.clone()
    run(universe.context(), copy, parse_passes(passes))
    return copy


def disturbed(module: ModuleOp, rng: random.Random, addresses: bool = True) -> ModuleOp:
    """Another program: a copy of a module with arithmetic of constants on some scalars, and, in te, some computes
    twice. Without `addresses` floats alone are computed with: at the low level integers may be addresses."""
    copy = module.clone()
    for op in ops_in(copy):
        block, parent = op.parent_block(), op.parent_op()
        if block is None or (isinstance(parent, Combining) and op.parent_region() is parent.joint):
            continue  # a combiner must stay one
        if isinstance(op, te.ComputeOp) and rng.random() < 0.4:
            _doubled(op, block, rng)
        if len(op.results) != 1 or not op.name.startswith("arith.") or rng.random() > 0.3:
            continue
        if addresses or isinstance(op.results[0].type, AnyFloat):
            _noise(op, block, rng)
    return copy


def _doubled(op: te.ComputeOp, block: Block, rng: random.Random) -> None:
    """Compute a tensor once more, under another label, for some of its readers."""
    twin = op.clone()
    twin.properties["label"] = StringAttr(f"{op.label.data}.twin")
    block.insert_op_after(twin, op)
    for old, new in zip(op.results, twin.results, strict=True):
        old.replace_uses_with_if(new, lambda use: use.operation is not twin and rng.random() < 0.5)


def _noise(op: Operation, block: Block, rng: random.Random) -> None:
    """Let the readers of a scalar read an expression of it and of constants."""
    value = op.results[0]
    made = _expression(value, rng)
    if not made:
        return
    for new in reversed(made):
        block.insert_op_after(new, op)
    value.replace_uses_with_if(made[-1].results[0], lambda use: use.operation not in made)


def _expression(value: SSAValue, rng: random.Random) -> list[Operation]:
    """Ops that compute a value of the same type."""
    type: Any = value.type
    if isinstance(type, AnyFloat) and element_bits(type) in (16, 32, 64):
        low = {16: 1e4, 32: 1e38, 64: 1e300}[element_bits(type)]
        a, b = (arith.ConstantOp(FloatAttr(max(-low, min(low, rng.choice(REALS))), type)) for _ in range(2))
        kinds: list[Any] = [arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp]
    elif isinstance(type, IndexType) or (isinstance(type, IntegerType) and type.width.data in (8, 16, 32, 64)):
        bits = 64 if isinstance(type, IndexType) else type.width.data
        numbers = (0, 1, -1, 2, 3, (1 << bits - 1) - 1, -1 << bits - 1)
        a, b = (arith.ConstantOp(IntegerAttr(rng.choice(numbers), type)) for _ in range(2))
        kinds = [arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.MaxSIOp]
        kinds += [arith.MinUIOp]
    else:
        return []
    first = rng.choice(kinds)(a, b)
    second = rng.choice(kinds)(*rng.sample([value, rng.choice([a, b, first]).results[0]], 2))
    if rng.random() < 0.3:
        test: Operation = arith.ConstantOp(BoolAttr.from_bool(rng.random() < 0.5))
        if not isinstance(type, AnyFloat) and rng.random() < 0.5:
            test = CmpiOp(*rng.sample([a.result, b.result, value], 2), rng.randrange(10))
        return [a, b, first, second, test, SelectOp(test.results[0], second.results[0], value)]
    return [a, b, first, second]


def main(seed: int, cases: int) -> int:
    """Run seeds from the first on; print the ops before and after; the number of failures."""
    counts: Counter[str] = Counter()
    failures = failures_of("folding", lambda seed: check(seed, counts), range(seed, seed + cases), SECONDS)
    for name in sorted(counts):
        print(f"{name} {counts[name]}")
    print(f"folding: {cases} programs, {failures} failures")
    return failures


if __name__ == "__main__":
    sys.exit(main(*asked(__doc__)) > 0)
