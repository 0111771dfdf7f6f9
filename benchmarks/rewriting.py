"""Rewrites of the low level by xDSL's drivers and by our loops: `python -m benchmarks.rewriting [NETWORK ...]`.

The groups of a network, as its build lowers them, are rewritten in turns in one process; a row gives milliseconds for
all groups, the median of `--rounds`, and the ops left: one number if all ways leave as many.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from statistics import median
from unittest import mock

from xdsl.dialects.builtin import ModuleOp, bf16, f64
from xdsl.ir import Attribute, Operation
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.transforms import canonicalize, common_subexpression_elimination

import compiler
from benchmarks.networks import bert, resnet50
from compiler import universe
from compiler.dialects.functions import functions
from compiler.dialects.parser import Parser
from compiler.dialects.upstream.casts import element_of
from compiler.dialects.upstream.walk import ops_in
from compiler.driver.reference.retype import _Retype
from compiler.passes import expand_math, extend_floats
from compiler.passes.canonicalize import CanonicalizePass
from compiler.passes.cse import CsePass
from compiler.passes.expand_math import ExpandMathPass
from compiler.passes.expand_math.values import Constants
from compiler.passes.extend_floats import ExtendFloatsPass

NETWORKS = {"resnet50": resnet50, "bert layer": lambda: bert(1)}
Rewrite = Callable[[ModuleOp], object]


class Extend(RewritePattern):
    """extend-floats as a pattern."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        narrow = extend_floats._narrow(type(op))
        values = (*op.operands, *op.results)
        if narrow and any(isinstance(element_of(v.type), narrow) for v in values):
            extend_floats._extend(rewriter, op, narrow)


class Expand(RewritePattern):
    """expand-math as a pattern; `pool`: the constants of the function."""

    def __init__(self, pool: Constants) -> None:
        self.pool = pool

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if expand_math._format(op) is not None:
            expand_math._expand(op, self.pool)


def _walked(pattern: RewritePattern) -> Rewrite:
    return lambda module: PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(module)


def _expanded(module: ModuleOp) -> None:
    for function in functions(module):
        walker = PatternRewriteWalker(Expand(Constants(function.body.block)), apply_recursively=False)
        walker.rewrite_region(function.body)


def _retyped(module: ModuleOp) -> None:
    """Convert all types to f64 as the walker does, each different one once."""
    pattern, converted = _Retype(f64), dict[Attribute, Attribute]()

    def convert(attribute: Attribute) -> Attribute:
        if attribute not in converted:
            converted[attribute] = pattern._convert_type_rec(attribute) or attribute
        return converted[attribute]

    for op in ops_in(module):
        op.properties = {name: convert(value) for name, value in op.properties.items()}
        op.attributes = {name: convert(value) for name, value in op.attributes.items()}
        arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
        for value in (*op.results, *arguments):
            value._type = convert(value.type)


def _greedy(module: ModuleOp) -> None:
    PatternRewriteWalker(GreedyRewritePatternApplier([Extend()], dce_enabled=False)).rewrite_module(module)


def _applied(kind: type) -> Rewrite:
    return lambda module: kind().apply(universe.context(), module)


CASES: dict[str, dict[str, Rewrite]] = {
    "extend-floats, f32": {"loop": _applied(ExtendFloatsPass), "walker": _walked(Extend())},
    "extend-floats, bf16": {"loop": _applied(ExtendFloatsPass), "walker": _walked(Extend()), "greedy": _greedy},
    "expand-math": {"loop": _applied(ExpandMathPass), "walker": _expanded},
    "types to f64": {"loop": _retyped, "walker": _walked(_Retype(f64))},
    "canonicalize": {"ours": _applied(CanonicalizePass), "xDSL's": _applied(canonicalize.CanonicalizePass)},
    "cse": {
        "ours": _applied(CsePass),
        "xDSL's": _applied(common_subexpression_elimination.CommonSubexpressionElimination),
    },
}
"""The ways of each rewrite."""


def groups(network: str) -> list[ModuleOp]:
    """The groups of a network at the low level, before extend-floats."""
    collected: list[ModuleOp] = []
    apply = ExtendFloatsPass.apply

    def kept(self: ExtendFloatsPass, ctx, op: ModuleOp) -> None:  # type: ignore[no-untyped-def]
        collected.append(op.clone())
        apply(self, ctx, op)

    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict("os.environ", STRATA_CACHE_DIR=folder),
        mock.patch.object(ExtendFloatsPass, "apply", kept),
    ):
        compiler.build(NETWORKS[network](), threads=1)
    return collected


def measured(modules: Sequence[ModuleOp], ways: dict[str, Rewrite], rounds: int) -> dict[str, tuple[float, int]]:
    """Milliseconds of processor time for all modules by each way, in turns, and the ops left."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    left: dict[str, int] = {}
    for _ in range(rounds):
        for way, rewrite in ways.items():
            copies = [module.clone() for module in modules]
            gc.collect()
            gc.disable()
            start = time.process_time()
            for copy in copies:
                rewrite(copy)
            times[way].append(1e3 * (time.process_time() - start))
            gc.enable()
            left[way] = sum(len(ops_in(copy)) for copy in copies)
    return {way: (median(samples), left[way]) for way, samples in times.items()}


def left_by_mlir(modules: Sequence[ModuleOp], option: str) -> int:
    """The ops that mlir-opt 22 leaves with an option."""
    command = ["mlir-opt-22", option]
    texts = [subprocess.run(command, input=str(m), capture_output=True, text=True, check=True).stdout for m in modules]
    return sum(len(ops_in(Parser(universe.context(), text, "<mlir-opt>").parse_module())) for text in texts)


def main() -> None:
    """Print a row a rewrite."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("networks", nargs="*", default=list(NETWORKS), help=", ".join(NETWORKS))
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for network in arguments.networks:
        modules = groups(network)
        print(f"\n{network}: {len(modules)} groups, {sum(len(ops_in(module)) for module in modules)} ops\n")
        print("| rewrite | ms | ops left |\n|---|---|---|")
        for name, ways in CASES.items():
            narrow = [module.clone() for module in modules] if "bf16" in name else modules
            for module in narrow if "bf16" in name else ():
                _walked(_Retype(bf16))(module)
            rows = measured(narrow, ways, arguments.rounds)
            times = ", ".join(f"{way} {ms:.0f}" for way, (ms, _) in rows.items())
            ops = " / ".join(str(count) for count in dict.fromkeys(count for _, count in rows.values()))
            print(f"| {name} | {times} | {ops} |", flush=True)
            if name in ("canonicalize", "cse") and shutil.which("mlir-opt-22"):
                print(f"| {name} by mlir-opt | | {left_by_mlir(modules, f'--{name}')} |", flush=True)


if __name__ == "__main__":
    main()
