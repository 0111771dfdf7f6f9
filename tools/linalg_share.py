"""How many functions of linalg in .mlir files are read, and why not: `python -m tools.linalg_share FOLDER ...`.

A function counts if it has ops of linalg or tensor and no memref; it is static without a `?` in a tensor type. IREE's
`check.expect_*` are evaluated, so that what is read is also computed.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError, VerifyException

from compiler.dialects.dominance import last_sentence
from compiler.interpret.te import evaluate
from compiler.pipeline.source import parse
from compiler.support.errors import StrataError

RE_FLAGS = re.MULTILINE | re.DOTALL
FUNCTION = re.compile(r"^( *)func\.func[^\n@]*@(\w+)\(.*?^\1\}", RE_FLAGS)
ALIAS = re.compile(r"^[#!][\w.$]+ = .*?(?=^\S)", RE_FLAGS)
RESOURCES = re.compile(r"^\{-#.*?^#-\}", RE_FLAGS)
CHECK = re.compile(r"^ *check\.expect_(almost_)?eq(_const)? ?\((.*?)\)(?: *\{[^}]*\})? *: *(tensor<[^\n]*>)$", RE_FLAGS)


@dataclass(frozen=True)
class FunctionText:
    """A function of a file, with the aliases and resources of its part of the file."""

    place: str
    text: str
    is_checked: bool

    @property
    def kind(self) -> str:
        """Whether the shapes of its tensors are static."""
        return "dynamic" if re.search(r"tensor<[^>]*\?", self.text) else "static"


def functions_in(path: Path) -> Iterator[FunctionText]:
    """The functions of a file that compute tensors by linalg or tensor."""
    for part in re.split(r"^// -----.*$", path.read_text(), flags=re.MULTILINE):
        code = re.sub(r"//.*", "", part) + "\n"
        aliases, resources = ([found[0] for found in kind.finditer(code + "}")] for kind in (ALIAS, RESOURCES))
        bodies = {found[2]: found[0] for found in FUNCTION.finditer(code)}
        for name, body in bodies.items():
            if re.search(r"\b(linalg|tensor)\.", body) and "memref<" not in body:
                callees = [re.sub(r"func( private)? @", "func private @", bodies[c]) for c in called(bodies, name)]
                text = "\n".join([*aliases, *map(returning_checks, [body, *callees]), *resources])
                yield FunctionText(f"{path}: @{name}", text, "check." in body)


def called(bodies: Mapping[str, str], name: str) -> list[str]:
    """The functions that a function calls, directly or not."""
    names = [name]
    for caller in names:
        names += {c for c in re.findall(r"call @(\w+)", bodies[caller]) if c in bodies}.difference(names)
    return names[1:]


def returning_checks(text: str) -> str:
    """A function of IREE's tests that returns what it checks, values and expectations in turns. Others stay."""
    text = re.sub(r"util\.unfoldable_constant", "arith.constant", text)
    text = re.sub(
        r"(?:util\.optimization_barrier|flow\.tensor\.tie_shape) (%\S+) : ([^{\n]*).*",
        r"tensor.cast \1 : \2 to \2",
        text,
    )
    text = re.sub(
        r"(%\S+) = flow\.tensor\.dynamic_constant\s+([^%]*?: *)(\S+) -> (\S+)",
        r"\1_s = arith.constant \2\3\n  \1 = tensor.cast \1_s : \3 to \4",
        text,
    )
    values: list[tuple[str, str]] = []
    lines: list[str] = []
    for number, (_, is_const, arguments, type) in enumerate(CHECK.findall(text)):
        value, expected = re.split(r", *", arguments, maxsplit=1)
        expected = re.sub(r", *atol.*", "", expected)
        if is_const:
            lines.append(f"  %expected{number} = arith.constant {expected}")
            expected = f"%expected{number}"
        values += [(value, type), (expected, type)]
    if not values:
        return text
    names, types = (", ".join(column) for column in zip(*values, strict=True))
    text = CHECK.sub("", text)
    text = re.sub(r"^ *return *$", lambda _: "\n".join([*lines, f"  return {names} : {types}"]), text, flags=re.M)
    return re.sub(r"\)(?= *(attributes[^\n]*)?\{)", f") -> ({types})", text, count=1)


def outcome(function: FunctionText) -> str:
    """Why a function is not read, or computes what its checks do not expect; empty if all is well."""
    try:
        module = parse(function.text, function.place)
        return mismatch(module) if function.is_checked else ""
    except (ParseError, VerifyException, StrataError) as error:
        return last_sentence(str(error))


def mismatch(module: ModuleOp) -> str:
    """Evaluate a function without arguments; compare its results, values and expectations in turns."""
    results = [np.asarray(value, np.float64) for value in evaluate(module, [])]
    for value, expected in zip(results[::2], results[1::2], strict=True):
        if not np.allclose(value, expected, rtol=1e-3, atol=1e-4, equal_nan=True):
            return f"WRONG: {value.ravel()[:4]} instead of {expected.ravel()[:4]}"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the share of static and of dynamic functions that are read, and the reasons of the others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--each", action="store_true", help="print each function that is not read")
    options = parser.parse_args(arguments)
    for folder in options.folders:
        found = [f for path in sorted(folder.rglob("*.mlir")) for f in functions_in(path)]
        for kind in ("static", "dynamic"):
            reasons = {function.place: outcome(function) for function in found if function.kind == kind}
            failed = {place: reason for place, reason in reasons.items() if reason}
            print(f"{folder}: {len(reasons) - len(failed)} of {len(reasons)} {kind} functions are read")
            for reason, count in Counter(re.sub(r"[%@]\S+|\d+", "_", r) for r in failed.values()).most_common():
                print(f"  {count:4}  {reason[:150]}")
            if options.each:
                print("\n".join(f"{place}: {reason}" for place, reason in failed.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
