"""PTX that NVRTC made of our kernels, kept as text, beside numpy; and faults planted in it, each kinds_found."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from compiler.targets.ptx import PtxResult
from tests.unit.targets.ptx.kept import FOLDER, PROGRAMS, KeptText, kept

Array = np.ndarray[Any, Any]


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def normalised(x: Array, gamma: Array, beta: Array) -> Array:
    return np.asarray((x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * gamma + beta)


def convolution(x: Array, w: Array) -> Array:
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.maximum(np.einsum("nchwij,kcij->nkhw", windows, w), 0)


def power(a: Array, b: Array) -> Array:
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    powers = [0 if y < 0 and abs(x) != 1 else pow(x, abs(y), 2**32) for x, y in pairs]
    return np.array(powers, np.uint32).view(np.int32)


REFERENCES: dict[str, Callable[..., Array]] = {
    "product": lambda a, b: a @ b,
    "product_f16": lambda a, b: a @ b,
    "product_stages": lambda a, b: a @ b,
    "product_tf32": lambda a, b: a @ b.T,
    "convolution": convolution,
    "softmax": softmax,
    "layer_norm": normalised,
    "transpose": np.transpose,
    "columns": lambda x: x.sum(axis=0),
    "gather": lambda x, i: x[i],
    "attention": lambda q, k, v: softmax(q @ k.transpose(0, 2, 1) / np.sqrt(8)) @ v,
    "arrival": lambda x: np.exp(x.sum(axis=1)),
    "power": power,
}
LOOSE = {"product_tf32": 0.05}


def is_right(name: str, ran: PtxResult, inputs: Sequence[Array]) -> bool:
    expected = REFERENCES[name](*(x.astype(np.float64) if x.dtype.kind == "f" else x for x in inputs))
    loose = LOOSE.get(name, 1e-4)
    return bool(np.allclose(ran.arrays[0].astype(np.float64), expected, rtol=loose, atol=loose))


def inputs_of(name: str, text: KeptText) -> list[Array]:
    if name == "power":
        rng = np.random.default_rng(0)
        extreme = np.array([2**31 - 1, -(2**31), -1, 1, 0, 3, -3], np.int32)
        return [rng.choice(extreme, 24), rng.choice(extreme, 24)]
    return text.inputs()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_is_right_and_without_a_fault(name: str) -> None:
    """Of power: a negative exponent squares no base, which overflows to 1 for 2147483647."""
    text = kept(name)
    inputs = inputs_of(name, text)
    ran = text.run(inputs)
    assert ran.is_correct, [str(fault) for fault in ran.faults]
    assert all(each.all() for each, facts in zip(ran.written, text.buffers, strict=True) if facts[4])
    assert is_right(name, ran, inputs)


def test_each_text_is_of_a_program() -> None:
    assert {path.stem for path in FOLDER.glob("*.ptx")} == set(PROGRAMS) == set(REFERENCES)


def edited(text: str, pattern: str, new: str, number: int = 0) -> str:
    """The text with one match of a pattern replaced: that of a number, from the end if it is negative."""
    matches = list(re.finditer(pattern, text))
    assert matches, pattern
    match = matches[number]
    return text[: match.start()] + match.expand(new) + text[match.end() :]


def outcome(name: str, text: KeptText, changed: str) -> str:
    """The kind of the first fault, "wrong" for a wrong result, else "right"."""
    inputs = inputs_of(name, text)
    ran = text.run(inputs, changed)
    return ran.faults[0].kind if ran.faults else "right" if is_right(name, ran, inputs) else "wrong"


REDUNDANT = {"attention": 1}
"""Barriers without which no accesses race: before the first panel is fetched, and where other barriers order them."""


@pytest.mark.parametrize("name", [name for name in PROGRAMS if "bar.sync" in (FOLDER / f"{name}.ptx").read_text()])
def test_a_missing_barrier_is_a_race(name: str) -> None:
    text = kept(name)
    barriers = text.text.count("bar.sync")
    kinds_found = [outcome(name, text, edited(text.text, r"bar\.sync\s+0;", "", number)) for number in range(barriers)]
    assert sum(kind.startswith("race") for kind in kinds_found) == barriers - REDUNDANT.get(name, 0), kinds_found


PENDING = "read of an asynchronous copy that nobody has waited for"
UNSET = "read of memory that nobody has set"
FAULTS: dict[str, tuple[str, str, str, int, str]] = {
    # kernel, pattern, what is there instead, which match, what is kinds_found
    "a guard": ("transpose", r"@%p1 bra", "// bra", 0, "access outside of memory"),
    "a wait": ("product_f16", r"cp\.async\.wait_all;", "", -1, PENDING),
    "a count": ("product_f16", r"cp\.async\.wait_all;", "cp.async.commit_group; cp.async.wait_group 1;", -1, PENDING),
    "a copy": ("product_f16", r"cp\.async\.ca[^;]*;", "", 0, UNSET),
    "a wait behind the barrier": (
        "product_f16",
        r"(cp\.async\.wait_all;)\s+(bar\.sync\s+0;)",
        r"\2\n\1",
        -1,
        "race of a read with a write",
    ),
    "a count of groups": ("product_stages", r"cp\.async\.wait_group 2;", "cp.async.wait_group 3;", -1, PENDING),
    "a group": ("product_stages", r"cp\.async\.commit_group;", "", -1, PENDING),
    "rows of A": ("product_f16", r"(mma\S+ \{[^}]*\}, \{)(%r\d+), (%r\d+)", r"\1\3, \2", 0, "wrong"),
    "columns of A": ("product_f16", r"(mma\S+ \{[^}]*\}, \{)(%r\d+), (%r\d+), (%r\d+)", r"\1\4, \3, \2", 0, "wrong"),
    "B": ("product_f16", r"(mma\S+ \{[^}]*\}, \{[^}]*\}, \{)(%r\d+), (%r\d+)", r"\1\3, \2", 0, "wrong"),
    "the sums": (
        "product_f16",
        r"(mma\S+ \{[^}]*\}, \{[^}]*\}, \{[^}]*\}, \{)(%f\d+), (%f\d+)",
        r"\1\3, \2",
        2,
        "wrong",
    ),
    "an address": ("product_f16", r"(ldmatrix[^;]*\[%r\d+)\]", r"\1+16]", 0, "wrong"),
    "an address that is not aligned": ("product_f16", r"(ldmatrix[^;]*\[%r\d+)\]", r"\1+8]", 0, "misaligned access"),
    "a transposition": ("product_f16", r"(ldmatrix\S+)\.trans", r"\1", 0, "wrong"),
    "sums that nobody sets": ("product_f16", r"mov\.f32\s+%f\d+, 0f00000000;", "", 0, "use of a register"),
    "tf32's rows": ("product_tf32", r"(mma\S+ \{[^}]*\}, \{)(%r\d+), (%r\d+)", r"\1\3, \2", 0, "wrong"),
    "a distance": ("softmax", r"(shfl\.sync\.bfly\.b32\s+\S+, \S+, )%r\d+", r"\g<1>2", -1, "wrong"),
    "members": ("softmax", r"(shfl\.sync\.bfly[^;]*), %r\d+;", r"\1, 65535;", 0, "a thread that takes part unnamed"),
    "a fence before an arrival": ("arrival", r"membar\.gl;", "", 0, "race of a read with a write of block"),
    "a fence behind an arrival": ("arrival", r"membar\.gl;", "", 1, "race of a read with a write of block"),
    "a fence of the block": ("arrival", r"membar\.gl;", "membar.cta;", 0, "race of a read with a write of block"),
    "a counter": ("arrival", r"st\.global\.u32[^;]*;", "", 0, UNSET),
    "an index": ("gather", r"ld\.global\.nc\.u32\s+(%r\d+), \[[^;]*;", r"mov.u32 \1, 40;", 0, ""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    name, pattern, new, number, kind = FAULTS[fault]
    text = kept(name)
    kinds_found = outcome(name, text, edited(text.text, pattern, new, number))
    assert kinds_found != "right" and kinds_found.startswith(kind), kinds_found


def test_a_barrier_that_some_threads_miss_is_named() -> None:
    text = kept("softmax")
    some = r"mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 3; @!%p1 \1"
    changed = edited(text.text, r"(bar\.sync\s+0;)", some)
    ran = text.run(text.inputs(), changed)
    assert "divergent barrier" in [fault.kind for fault in ran.faults]
