"""How building grows with the size of a program: `python -m benchmarks.growth [chain mlp encoder] [--repeats N]`.

Each program is built as written, in a process of its own, so that no earlier one helps. A row gives seconds, seconds a
compute relative to the smallest program of its family, groups, and the arena beside the sum of temporaries.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

from compiler import te

nn = te.nn
Sizes = tuple[int, ...]


def chain(computes: int) -> te.Function:
    """`computes` elementwise computes of 4096 elements, one after another: relu, tanh, a sum with the input and sigmoid
    in turns."""
    X = x = te.placeholder((4096,), "f32", "X")
    kinds: list[Callable[[te.Tensor], te.Tensor]] = [nn.relu, nn.tanh, lambda t: nn.add(t, X), nn.sigmoid]
    for n in range(computes):
        x = kinds[n % len(kinds)](x)
    return te.function("chain", [X], [x])


def mlp(layers: int) -> te.Function:
    """Dense layers of 16 rows and 64 features, every fifth of 96, each with bias and relu."""
    X = x = te.placeholder((16, 64), "f32", "X")
    inputs = [X]
    for n in range(layers):
        width = 96 if n % 5 == 4 else 64
        w = te.placeholder((x.shape[1], width), "f32", f"W{n}")
        b = te.placeholder((width,), "f32", f"b{n}")
        inputs += [w, b]
        x = nn.relu(nn.add(nn.matmul(x, w, name=f"mm{n}"), b))
    return te.function("mlp", inputs, [x])


def encoder(layers: int) -> te.Function:
    """`layers` layers of BERT-base on 128 tokens; weights are inputs."""
    from benchmarks.encoder import encoder as whole
    from benchmarks.encoder import weights

    return whole(layers, 128, weights(layers))


FAMILIES: dict[str, tuple[Callable[[int], te.Function], Sizes]] = {
    "chain": (chain, (100, 200, 400, 800)),
    "mlp": (mlp, (10, 25, 50, 100, 200)),
    "encoder": (encoder, (1, 2, 4, 12)),
}


def measure(family: str, size: int) -> dict[str, float]:
    """Build a family's program of a size, after a small other one; return the seconds, the computes, the groups, and
    the bytes of the arena and of all temporaries."""
    import compiler

    function = FAMILIES[family][0](size)
    compiler.build(te.function("warm", [w := te.placeholder((4,), "f32", "w")], [nn.relu(w)]))
    start = time.perf_counter()
    kernel = compiler.build(function, threads=1)
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "computes": str(function).count("te.compute"),
        "groups": len(kernel.groups),
        "arena": kernel.arena_bytes,
        "temporaries": kernel.temporaries_bytes,
    }


def main() -> None:
    """Print a row a program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("FAMILY", "SIZE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one[0], int(arguments.one[1]))))
        return
    for family in arguments.families:
        first: float | None = None
        for size in FAMILIES[family][1]:
            rows = [_apart(family, size) for _ in range(arguments.repeats)]
            row, seconds = rows[0], median(r["seconds"] for r in rows)
            each = seconds / row["computes"]
            first = first or each
            time_of = f"{seconds:6.2f} s, {1e3 * each:6.2f} ms a compute ({each / first:.2f} of the first)"
            memory = f"arena {row['arena'] / 1e6:.2f} MB, temporaries {row['temporaries'] / 1e6:.2f} MB"
            print(f"{family:8} {size:4}: {time_of}, {row['groups']:3} groups, {memory}", flush=True)


def _apart(family: str, size: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.growth", "--one", family, str(size)]
    row: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return row


if __name__ == "__main__":
    main()
