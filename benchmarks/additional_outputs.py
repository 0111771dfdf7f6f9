"""The cost of returning intermediate values too.

    python -m benchmarks.additional_outputs [PROGRAM ...]

A line for each output that is added, and one for all: microseconds of the program as written and of the script that the
rules prefer, on one thread, and that as a part of the program without the output.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from compiler import build, te
from compiler.autotune import SearchTask
from compiler.te import nn
from compiler.te.tensor import Tensor

ROWS, LENGTH = 128, 768
ROUNDS = 9


def add_softmax(rows: int = ROWS, length: int = LENGTH) -> te.Function:
    """The softmax of a sum."""
    x, y = (te.placeholder((rows, length), name=name) for name in "XY")
    return te.function("add_softmax", [x, y], [nn.softmax(nn.add(x, y))])


def softmax(rows: int = ROWS, length: int = LENGTH) -> te.Function:
    """Softmax along rows."""
    x = te.placeholder((rows, length), name="X")
    return te.function("softmax", [x], [nn.softmax(x)])


def layer_norm(rows: int = ROWS, length: int = LENGTH) -> te.Function:
    """Layer norm along rows."""
    x, scale, shift = _normalised(rows, length)
    return te.function("layer_norm", [x, scale, shift], [nn.layer_norm(x, scale, shift)])


def add_and_norm(rows: int = ROWS, length: int = LENGTH) -> te.Function:
    """The layer norm of a residual addition."""
    x, scale, shift = _normalised(rows, length)
    y = te.placeholder((rows, length), name="Y")
    return te.function("add_and_norm", [x, y, scale, shift], [nn.layer_norm(nn.add(x, y), scale, shift)])


def attention(rows: int = ROWS, length: int = 64) -> te.Function:
    """Attention of four heads."""
    q, k, v = (te.placeholder((4, rows, length), name=name) for name in "qkv")
    return te.function("attention", [q, k, v], [nn.attention(q, k, v)])


def _normalised(rows: int, length: int) -> tuple[Tensor, Tensor, Tensor]:
    x = te.placeholder((rows, length), name="X")
    return x, te.placeholder((length,), name="scale"), te.placeholder((length,), name="shift")


PROGRAMS: dict[str, Callable[..., te.Function]] = {
    made.__name__: made for made in (add_softmax, softmax, layer_norm, add_and_norm, attention)
}


def with_outputs(f: te.Function) -> dict[str, te.Function]:
    """Map each name of an intermediate value to the program that returns it before its outputs; also "" to the program
    itself, and "all" to the program that returns all of them."""
    between = _between(f)
    sets = {"": [], **{t.name: [t] for t in between}, "all": between}
    return {name: te.function(f.name, f.inputs, [*tensors, *f.outputs]) for name, tensors in sets.items()}


def _between(f: te.Function) -> list[Tensor]:
    """The tensors that a function computes and does not return, producers first."""
    between: dict[Tensor, None] = {}

    def visit(tensor: Tensor) -> None:
        if tensor.source is not None and tensor not in between:
            for operand in tensor.source.sources():
                visit(operand)
            between[tensor] = None

    for output in f.outputs:
        visit(output)
    return [tensor for tensor in between if tensor not in f.outputs]


def microseconds(f: te.Function) -> tuple[float, float]:
    """The least microseconds of a program as written, and under the script that the rules prefer."""
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-1, 1, t.shape).astype(np.float32) for t in f.inputs]
    task = SearchTask(func=f, threads=1)
    by_rule = task.schedule_of(task.space.script(task.space.defaults[0]))
    written, preferred = (
        build(x, threads=1, schedule="written").time(*arrays, repeats=ROUNDS).minimum * 1e6 for x in (f, by_rule)
    )
    return written, preferred


def main(names: list[str]) -> int:
    """Print the table of the named programs (default: all); return 1 for an unknown name."""
    unknown = [name for name in names if name not in PROGRAMS]
    if unknown:
        print(f"there is no program '{unknown[0]}' (there are {', '.join(PROGRAMS)})")
        return 1
    print(f"{'program':<14}{'also returns':<24}{'written':>9}{'preferred':>11}{'of without':>12}")
    for name in names or PROGRAMS:
        alone = None
        for outputs, f in with_outputs(PROGRAMS[name]()).items():
            written, preferred = microseconds(f)
            alone = alone or preferred
            print(
                f"{name:<14}{outputs or '-':<24}{written:>9.1f}{preferred:>11.1f}{preferred / alone:>12.2f}", flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
