"""The innermost loops of ten programs for a processor: `python -m tools.innermost [--cpu NAME] [--all]`.

Prints the loop with the most fused multiply-adds of each program under its default schedule: its instructions, the
share of fused multiply-adds, the accesses of the stack, and the estimated share of the peak. `--all` prints each
innermost loop. Nothing is run, so that the processor may be of another architecture.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext

from compiler import te
from compiler.explain.builds import builds
from compiler.explain.code import LoopCode
from compiler.explain.explanation import explain
from compiler.explain.text import loop_label
from compiler.types.selection import NATIVE, compiling_for, machine_for

nn = te.nn


def _tensor(name: str, *shape: int, dtype: str = "f32") -> te.Tensor:
    return te.placeholder(shape, dtype, name=name)


def _product(dtype: str, m: int, k: int, n: int) -> te.Function:
    a, b = _tensor("A", m, k, dtype=dtype), _tensor("B", k, n, dtype=dtype)
    return te.function("f", [a, b], nn.matmul(a, b, name="C"))


def _convolution(channels: int, filters: int, taps: int, groups: int = 1) -> te.Function:
    x, w = _tensor("X", 1, channels, 28, 28), _tensor("W", filters, channels // groups, taps, taps)
    return te.function("f", [x, w], nn.conv2d(x, w, padding=taps // 2, groups=groups, name="Y"))


def _rows(operator: Callable[..., te.Tensor], *parameters: str) -> te.Function:
    tensors = [_tensor("X", 128, 768), *(_tensor(name, 768) for name in parameters)]
    return te.function("f", tensors, operator(*tensors))


PROGRAMS: dict[str, Callable[[], te.Function]] = {
    "product f32 256": lambda: _product("f32", 256, 256, 256),
    "product f64 192": lambda: _product("f64", 192, 192, 192),
    "product f16 192": lambda: _product("f16", 192, 192, 192),
    "product f32 1x1024x1000": lambda: _product("f32", 1, 1024, 1000),
    "convolution 3x3 64@28": lambda: _convolution(64, 64, 3),
    "convolution 1x1 64@28": lambda: _convolution(64, 128, 1),
    "depthwise 96@28": lambda: _convolution(96, 96, 3, groups=96),
    "softmax 128x768": lambda: _rows(nn.softmax),
    "gelu 128x768": lambda: _rows(nn.gelu),
    "layer norm 128x768": lambda: _rows(nn.layer_norm, "g", "b"),
}
"""The programs by name."""


def innermost(function: te.Function) -> tuple[LoopCode, ...]:
    """Return the innermost machine loops of a program under its default schedule, for the machine to compile for."""
    return explain(builds(function, schedule="auto")).codes


def busiest(codes: tuple[LoopCode, ...]) -> LoopCode:
    """Return the loop with the most fused multiply-adds in an iteration."""
    return max(codes, key=lambda code: code.census.fma)


def _line(program: str, code: LoopCode) -> str:
    c, peak = code.census, "-" if code.percent is None else f"{code.percent:.0f}"
    stack = c.stack_loads + c.stack_stores
    share = f"{100 * c.fma / c.instructions:.0f}"
    figures = f"{c.instructions:6} {c.fma:5} {share:>6} {c.loads:6} {stack:6} {code.estimate.cycles:7.1f} {peak:>7}"
    return f"{program:24}{figures}  {code.estimate.limit}; {loop_label(code)}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cpu", default=NATIVE, help="the processor (default: this one)")
    parser.add_argument("--all", action="store_true", help="each innermost loop")
    options = parser.parse_args()
    with nullcontext() if options.cpu == NATIVE else compiling_for(machine_for(options.cpu)):
        print(
            f"{'program':24}{'instr':>6} {'fma':>5} {'% fma':>6} {'loads':>6} {'stack':>6} {'cycles':>7} {'% peak':>7}"
        )
        for name, program in PROGRAMS.items():
            codes = innermost(program())
            for code in codes if options.all else [busiest(codes)]:
                print(_line(name, code))


if __name__ == "__main__":
    main()
