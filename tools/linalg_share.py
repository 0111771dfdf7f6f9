"""How many functions of linalg in .mlir files are read, and why not: `python -m tools.linalg_share FOLDER ...`.

A function counts if it has ops of linalg or tensor and no memref. It is dynamic with a `?` in a tensor type, foreign
with ops of dialects that are not MLIR's on tensors. What IREE's `check.expect_*` state is computed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from xdsl.utils.exceptions import ParseError, VerifyException

from compiler.dialects.dominance import last_sentence
from compiler.interpret.te import evaluate
from compiler.pipeline.source import parse
from compiler.support.errors import StrataError

FLAGS = re.MULTILINE | re.DOTALL
FUNCTION = re.compile(r"^( *)func\.func[^\n@]*@(\w+)\(.*?^\1\}", FLAGS)
ALIAS = re.compile(r"^[#!][\w.$]+ = .*?(?=^\S)", FLAGS)
RESOURCES = re.compile(r"^\{-#.*?^#-\}", FLAGS)
CHECK = re.compile(r"^ *check\.expect_(?:almost_)?eq(_const)? ?\((.*?)\)(?: *\{[^}]*\})? *: *(tensor<[^\n]*>)$", FLAGS)
OP = re.compile(r"^ *(?:%[^=\n]*= *)?\"?([a-z]\w*)\.", FLAGS)
DIALECTS = {"linalg", "tensor", "arith", "math", "func", "affine", "bufferization", "cf"}
IREE = {
    r"util\.unfoldable_constant": "arith.constant",
    r"(?:util\.optimization_barrier|flow\.tensor\.tie_shape) (%\S+) : ([^{\n]*).*": r"tensor.cast \1 : \2 to \2",
    r"(%\S+) = flow\.tensor\.dynamic_constant\s+([^%]*?: *)(\S+) -> (\S+)": (
        r"\1_s = arith.constant \2\3\n  \1 = tensor.cast \1_s : \3 to \4"
    ),
}
"""Map ops of IREE's tests to what they do."""


@dataclass(frozen=True)
class FunctionText:
    """A function of a file, made a module of its own with its callees. place: FILE: @NAME. kind: static, dynamic (some
    shape has a `?`) or foreign (ops of other dialects). is_checked: whether it has checks of IREE."""

    place: str
    text: str
    kind: str
    is_checked: bool


def functions_in(path: Path) -> Iterator[FunctionText]:
    """Yield the functions of a file that have ops of linalg or tensor and no memref, with their callees."""
    for part in re.split(r"^// -----.*$", path.read_text("utf-8"), flags=re.MULTILINE):
        code = re.sub(r"//.*", "", part) + "\n"
        aliases, resources = ([match[0] for match in kind.finditer(code + "}")] for kind in (ALIAS, RESOURCES))
        bodies = {match[2]: match[0] for match in FUNCTION.finditer(code)}
        for name, body in bodies.items():
            if not re.search(r"\b(linalg|tensor)\.", body) or "memref<" in body:
                continue
            names = [name]
            for caller in names:
                names += {c for c in re.findall(r"call @(\w+)", bodies[caller]) if c in bodies}.difference(names)
            callees = [re.sub(r"func( private)? @", "func private @", bodies[callee]) for callee in names[1:]]
            texts = [returning_checks(text) for text in (body, *callees)]
            kind = "dynamic" if any(re.search(r"tensor<[^>]*\?", text) for text in texts) else "static"
            kind = kind if DIALECTS.issuperset(OP.findall("\n".join(texts))) else "foreign"
            yield FunctionText(f"{path}: @{name}", "\n".join([*aliases, *texts, *resources]), kind, "check." in body)


def returning_checks(text: str) -> str:
    """Rewrite a function of IREE's tests to return the values that it checks and their expectations, in turns.
    Functions without checks stay."""
    for pattern, replacement in IREE.items():
        text = re.sub(pattern, replacement, text)
    values, lines = [], []
    for number, (is_const, arguments, type) in enumerate(CHECK.findall(text)):
        value, expected = re.split(r", *", re.sub(r", *atol.*", "", arguments), maxsplit=1)
        if is_const:
            lines.append(f"  %expected{number} = arith.constant {expected}")
            expected = f"%expected{number}"
        values += [(value, type), (expected, type)]
    if not values:
        return text
    names, types = (", ".join(column) for column in zip(*values, strict=True))
    end = "\n".join([*lines, f"  return {names} : {types}"])
    text = re.sub(r"^ *return *$", lambda _: end, CHECK.sub("", text), flags=re.MULTILINE)
    return re.sub(r"\)(?= *(attributes[^\n]*)?\{)", f") -> ({types})", text, count=1)


def outcome(function: FunctionText) -> str:
    """Return the reason for which a function is not read, or "is WRONG" if it computes other values than its checks
    expect; empty otherwise."""
    try:
        module = parse(function.text, function.place)
        values = evaluate(module, []) if function.is_checked else []
    except (ParseError, VerifyException, StrataError) as error:
        return last_sentence(str(error))
    numbers = [np.asarray(value, np.float64) for value in values]
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return "" if all(np.allclose(*pair, rtol=1e-3, atol=1e-4, equal_nan=True) for pair in pairs) else "is WRONG"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the number of functions of each kind that are read, and the reasons for the others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--each", action="store_true", help="print each function that is not read")
    parser.add_argument("--accepted-by", metavar="MLIR_OPT", help="count functions that this program takes")
    options = parser.parse_args(arguments)
    for folder in options.folders:
        texts = [f for path in sorted(folder.rglob("*.mlir")) for f in functions_in(path)]
        if program := options.accepted_by:
            texts = [
                f for f in texts if not subprocess.run([program], input=f.text.encode(), capture_output=True).returncode
            ]
        for kind in ("static", "dynamic", "foreign"):
            reasons = {function.place: outcome(function) for function in texts if function.kind == kind}
            failed = {place: reason for place, reason in reasons.items() if reason}
            print(f"{folder}: {len(reasons) - len(failed)} of {len(reasons)} {kind} functions are read")
            for reason, count in Counter(re.sub(r"[%@]\S+|\d+", "_", r) for r in failed.values()).most_common():
                print(f"  {count:4}  {reason[:150]}")
            if options.each:
                print("\n".join(f"{place}: {reason}" for place, reason in failed.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
