"""Texts of the low level that leave out what most of them have."""

from __future__ import annotations

import re


def with_constants(text: str) -> str:
    """Functions in text, each with the index constants %c0, %c1, ... that it uses and does not define."""
    before, *functions = re.split(r"(?=func\.func @)", text)
    return before + "".join(map(_with_constants, functions))


def _with_constants(function: str) -> str:
    used = sorted({int(number) for number in re.findall(r"%c(\d+)\b", function)})
    missing = [number for number in used if f"%c{number} =" not in function]
    constants = "".join(f"%c{number} = arith.constant {number} : index\n" for number in missing)
    return function.replace("{\n", "{\n" + constants, 1)
