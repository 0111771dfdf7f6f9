"""The operators of te.nn at extents of networks, in every dtype: stems, patches, vocabularies, batch one, long rows.

`python -m tests.real_extents [NAME ...] --every 4 --compile` builds one of four by default for CUDA, each at an
architecture in turn, and prints those that fail, those that have not the schedule that the rules prefer, and with
--compile those that spill. --all takes every architecture.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import compiler
from benchmarks.cuda_networks import has_refusal
from compiler import te
from compiler.support.errors import StrataError
from compiler.targets.cuda import ARCHITECTURES, CudaKernel
from tests.operators import OPERATORS, Operator
from tests.operators.catalogue import Parameters

WORDS, LONG, MANY = 50257, 80000, 1_000_003
"""A vocabulary, a long row, and a prime number of elements."""


def _windows(x: tuple[int, ...], w: tuple[int, ...], stride: int, padding: int, groups: int = 1) -> Parameters:
    rank = len(x) - 2
    return {
        "x": x,
        "w": w,
        "bias": True,
        "stride": (stride,) * rank,
        "padding": (padding,) * 2 * rank,
        "dilation": (1,) * rank,
        "groups": groups,
    }


def _transposed(x: tuple[int, ...], filters: int, kernel: int) -> Parameters:
    rank = len(x) - 2
    return {
        "x": x,
        "share": x[1],
        "kernel": (kernel,) * rank,
        "filters": filters,
        "bias": True,
        "stride": (2,) * rank,
        "padding": (0,) * rank,
        "output_padding": (0,) * rank,
        "dilation": (1,) * rank,
        "groups": 1,
        "w": (x[1], filters, *(kernel,) * rank),
    }


def _pool(x: tuple[int, ...], kernel: int, stride: int, padding: int) -> Parameters:
    rank = len(x) - 2
    return {
        "x": x,
        "kernel": (kernel,) * rank,
        "stride": (stride,) * rank,
        "padding": (padding,) * 2 * rank,
        "dilation": (1,) * rank,
        "ceil_mode": False,
    }


def _product(m: int, k: int, n: int, i: int = 1, ta: bool = False, tb: bool = False) -> Parameters:
    return {"m": m, "k": k, "n": n, "i": i, "ta": ta, "tb": tb}


_PRODUCTS = [
    _product(1, 4096, 4096),
    _product(197, 192, 768, 12),
    _product(1, 768, WORDS, tb=True),
    _product(128, 16384, 128, ta=True),
    _product(127, 511, 333),
]
_CONVOLUTIONS = [
    _windows((1, 3, 224, 224), (64, 3, 7, 7), 2, 3),
    _windows((1, 3, 224, 224), (768, 3, 16, 16), 16, 0),
    _windows((1, 512, 7, 7), (512, 512, 3, 3), 1, 1),
    _windows((1, 256, 56, 56), (64, 256, 1, 1), 1, 0),
]
_DEPTHWISE = [
    _windows((1, 384, 14, 14), (384, 1, 5, 5), 1, 2, 384),
    _windows((1, 96, 112, 112), (96, 1, 3, 3), 2, 1, 96),
]
_ROWS = [((1, LONG), -1), ((1, 12, 197, 197), -1), ((LONG, 64), 0), ((1, 1280, 49), 1), ((1, WORDS), -1)]
_REDUCED = [*_ROWS, ((MANY,), 0), ((8, 1280, 7, 7), (2, 3)), ((32, 64, 112, 112), (0, 2, 3))]
_IMAGE = (1, 64, 112, 112)
PARAMETERS: dict[str, list[Parameters]] = {
    **dict.fromkeys(("matmul", "batch_matmul", "dense"), _PRODUCTS),
    "conv1d": [_windows((1, 80, 3000), (384, 80, 3), 1, 1), _windows((1, 512, 16001), (512, 512, 10), 5, 0)],
    "conv2d": _CONVOLUTIONS,
    "conv2d_grad_data": _CONVOLUTIONS,
    "conv2d_grad_weight": _CONVOLUTIONS,
    "conv3d": [_windows((1, 3, 16, 112, 112), (64, 3, 3, 7, 7), 2, 3)],
    "depthwise_conv2d": _DEPTHWISE,
    "conv1d_transpose": [_transposed((1, 256, 1000), 128, 4)],
    "conv2d_transpose": [_transposed((1, 512, 14, 14), 256, 2), _transposed((1, 64, 56, 56), 3, 4)],
    "conv3d_transpose": [_transposed((1, 32, 8, 14, 14), 16, 2)],
    **{name: [_pool((1, 64, 3000), 3, 2, 1)] for name in ("max_pool1d", "max_pool_with_places")},
    "max_pool2d": [_pool(_IMAGE, 3, 2, 1)],
    "max_pool3d": [_pool((1, 32, 16, 56, 56), 3, 2, 1)],
    **{
        f"avg_pool{rank}d": [_pool(x, 3, 2, 1) | {"divisor": None, "count_include_pad": True}]
        for rank, x in ((1, (1, 64, 3000)), (2, _IMAGE), (3, (1, 32, 16, 56, 56)))
    },
    "lp_pool": [_pool(_IMAGE, 3, 2, 1) | {"p": 2}],
    **{name: [{"x": (1, 256, 13, 13), "size": (6, 6)}] for name in ("adaptive_avg_pool", "adaptive_max_pool")},
    "global_avg_pool": [{"x": (1, 1280, 7, 7)}, {"x": (1, 3, 1024, 1024)}],
    "attention": [
        {"q": (1, 12, 197, 64), "k": (1, 12, 197, 64), "v": (1, 12, 197, 64), "mask": "none", "full": False}
        | {"causal": causal, "scale": None, "offset": 0, "softcap": None}
        for causal in (False, True)
    ],
    "rotary_embedding": [{"x": (1, 32, 128, 128), "table": (1, 32, 128, 64), "interleaved": False}],
    "transpose": [{"shape": (4096, 4096), "perm": (1, 0)}, {"shape": (1, 197, 12, 64), "perm": (0, 2, 1, 3)}],
    "reshape": [{"shape": (1, 197, 768), "to": (197, 12, 64)}],
    "concat": [{"shapes": [(1, 512, 28, 28), (1, 256, 28, 28)], "axis": 1}],
    "gather_nd": [{"x": (WORDS, 768), "indices": (128, 1), "batch": 0, "wrap": True}],
    "topk": [{"x": (1, 1000), "axis": -1, "k": 5, "largest": True}],
    "sort": [{"x": (1, 1000), "axis": -1, "descending": True}],
    **{name: [{"x": (1, 1000), "axis": -1, "exclusive": False, "reverse": False}] for name in ("cumsum", "cumprod")},
    "resize_nearest": [{"x": (1, 256, 14, 14), "size": (28, 28), "align_corners": False}],
    "resize_bilinear": [{"x": (1, 21, 65, 65), "size": (513, 513), "align_corners": False}],
    **{
        name: [{"x": (16, 1, 128), "hidden": 256, "bias": 2, "initial": True, "reverse": False, "choice": 1}]
        for name in ("rnn", "gru", "lstm")
    },
    "grid_sample": [
        {"x": (1, 64, 56, 56), "grid": (1, 56, 56, 2), "mode": "linear", "padding": "zeros", "align_corners": False}
    ],
    "embedding": [{"shape": (WORDS, 768), "indices": (1, 128), "index": "i64", "otherwise": 0}],
    "gather": [{"shape": (WORDS, 768), "axis": 0, "indices": (128,), "index": "i64", "otherwise": 0}],
    "one_hot": [{"shape": (128,), "depth": WORDS, "axis": -1, "on": 1, "off": 0}],
    **{
        name: [{"shape": (128, WORDS), "reduction": "mean", "target": "i64", "weight": False}]
        for name in ("cross_entropy", "nll_loss")
    },
    "local_response_norm": [{"x": (1, 96, 55, 55), "size": 5, "before": None}],
    "group_norm": [{"x": (1, 320, 64, 64), "axis": 1, "scales": ("gamma", "beta"), "groups": 32}],
    "batch_norm": [{"x": _IMAGE, "axis": 1}],
    **{
        name: [{"x": _IMAGE, "axis": 1, "scales": ("gamma", "beta")}]
        for name in ("batch_norm_training", "instance_norm")
    },
    **{
        name: [{"shape": x, "axis": axis, "keep": False, "last": False} for x, axis in _ROWS]
        for name in ("argmax", "argmin")
    },
}
"""The parameters of each operator that needs some; others have those of `_like_a_sample`."""


@dataclass(frozen=True)
class Case:
    """An operator at real extents in a dtype, and the architecture that it is built for in turn."""

    operator: Operator
    number: int
    parameters: Parameters
    dtype: str
    arch: str

    @property
    def name(self) -> str:
        """The name of a test: operator, number of its parameters, dtype and architecture."""
        return f"{self.operator.name}-{self.number}-{self.dtype}-{self.arch}"

    def function(self) -> te.Function:
        """The te function."""
        return self.operator.build(self.dtype, self.parameters)

    def built(self) -> CudaKernel:
        """The kernel by default. Raises AssertionError for launches beyond the architecture's limits."""
        kernel = compiler.build(self.function(), "cuda", arch=self.arch, schedule="auto")
        assert isinstance(kernel, CudaKernel) and kernel.source.takes(self.arch), self.name
        return kernel


def cases(names: Sequence[str] = (), all_architectures: bool = False) -> Iterator[Case]:
    """Yield each operator, or those of these names, at each of its parameters in each dtype, with architectures in
    turn."""
    turn = 0
    for name, operator in OPERATORS.items():
        if names and name not in names:
            continue
        for number, parameters in enumerate(PARAMETERS.get(name) or _like_a_sample(operator)):
            for dtype in operator.dtypes:
                turn += 1
                chosen = ARCHITECTURES if all_architectures else (ARCHITECTURES[turn % len(ARCHITECTURES)],)
                yield from (Case(operator, number, parameters, dtype, arch) for arch in chosen)


def _like_a_sample(operator: Operator) -> list[Parameters]:
    """Parameters of an operator that has none above: a sample's, at larger extents where their keys are known."""
    sample = next(p for seed in range(99) if _is_plain(p := operator.sample(random.Random(seed))))
    if {"a", "b"} <= sample.keys():
        return [sample | {"a": (1, 197, 768), "b": (768,)}, sample | {"a": (MANY,), "b": ()}]
    if "axis" in sample and {"keep", "keepdims"} & sample.keys():
        key = "shape" if "shape" in sample else "x"
        return [
            sample | {key: x, "axis": axis if isinstance(axis, tuple) or key == "shape" else (axis,)}
            for x, axis in _REDUCED
        ]
    if sample.keys() in ({"x", "axis"}, {"x", "axis", "scales"}):
        return [sample | {"x": x, "axis": axis} for x, axis in _ROWS]
    if sample.keys() == {"shape"}:
        return [{"shape": (1, 197, 768)}, {"shape": (MANY,)}]
    if sample.keys() >= {"shape", "beta"}:
        return [sample | {"shape": (128, 1000)}]
    return [sample]


def _is_plain(parameters: Parameters) -> bool:
    """Whether a reduction of a sample is over an axis, not over all of them."""
    return parameters.get("axis", 0) is not None


def report(case: Case, compiles: bool) -> str | None:
    """What is wrong with a case, or None."""
    try:
        kernel = case.built()
    except StrataError as error:
        return f"refused: {error}"
    except AssertionError as error:
        return f"launches: {error}"
    refused = [group.verdict for group in kernel.groups if has_refusal(group.verdict)]
    if refused:
        return f"not the first schedule: {refused[0][:200]}"
    spilled = kernel.resources(case.arch).items() if compiles else ()
    return ", ".join(f"{name} spills {r.spill_bytes} bytes" for name, r in spilled if r.spill_bytes) or None


def main() -> int:
    """Print what is wrong; 1 if something is refused."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", metavar="NAME", help="some operators")
    parser.add_argument("--every", type=int, default=1, help="one of so many cases")
    parser.add_argument("--first", type=int, default=0, help="the first case")
    parser.add_argument("--all", action="store_true", help="every architecture")
    parser.add_argument("--compile", action="store_true", help="compile by NVRTC and name spills")
    options = parser.parse_args()
    chosen = list(cases(options.names, options.all))[options.first :: options.every]
    wrong = 0
    for number, case in enumerate(chosen, 1):
        said = report(case, options.compile)
        if said is not None:
            print(f"{case.name}: {said}", flush=True)
            wrong += said.startswith(("refused", "launches"))
        if number % 50 == 0:
            print(f"{number} of {len(chosen)}, {wrong} refused", flush=True)
    print(f"{len(chosen)} cases, {wrong} refused")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
