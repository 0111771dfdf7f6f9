"""Check the declaration of a primitive against its function, its op and its example: those of plugins are checked when
they are registered, the compiler's own by a test."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.transform import Transform
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, PyRDLOpDefinitionError, VerifyException

from compiler.schedule.dialect import SCHED
from compiler.schedule.parameters import HandleParameter, Parameter, SizesParameter
from compiler.schedule.primitive import TYPES, Primitive, applies

_FUNCTION = "transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {"
_EXAMPLE_HANDLES = {
    "c": '%c = sched.get_block %f "C"',
    "m": "%m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop",
    "d": '%d = sched.get_block %f "D"',
    "n": "%n = sched.get_loops %d : !sched.loop",
}
"""The handles that examples may use, and the ops that define them."""
_QUOTED = re.compile(r"`[^`]*`")
_PUNCTUATION = re.compile(r"(`[^`]*`|<[^>]*>\([^)]*\)|type\([^)]*\))|\s*([,:=\[\](){}]+)")
"""Group 1: text in backticks or a directive. Group 2: punctuation elsewhere."""


def declaration_fault(primitive: Primitive) -> str:
    """Describe the first fault of a declaration in one sentence; empty for a correct one."""
    return next(_faults(primitive), "")


def _faults(primitive: Primitive) -> Iterator[str]:
    """Yield the faults of a declaration; later checks rely on the earlier ones."""
    if not inspect.getdoc(primitive.plan):
        yield "it has no docstring, whose first sentence describes it in `help` and in the pass"
    yield from _parameter_faults(primitive)
    yield from _result_faults(primitive)
    named = re.findall(r"\$(\w+)", _QUOTED.sub("", primitive.syntax))
    operands = {"params"} if any(isinstance(p, SizesParameter) for p in primitive.parameters.values()) else set[str]()
    unknown = [name for name in named if name not in primitive.parameters.keys() | operands]
    if unknown:
        yield f"the parameters are {_listed(primitive.parameters)}; the syntax has ${unknown[0]}"
    try:
        op = primitive.op
    except PyRDLOpDefinitionError as error:
        reason = str(error.args[-1][-1] if isinstance(error.args[-1], tuple) else error.args[-1])
        yield f"the syntax '{primitive.syntax}' is refused: {reason}{_with_backticks(primitive.syntax)}"
    else:
        yield from _example_faults(primitive, op.name)


def _with_backticks(syntax: str) -> str:
    """Advice to put the punctuation of a syntax in backticks, with the result; empty if that changes nothing."""
    quoted = _PUNCTUATION.sub(lambda found: found[1] or f" `{found[2]}`", syntax)
    return "" if quoted == syntax else f"; punctuation stands in backticks: {quoted}"


def _parameter_faults(primitive: Primitive) -> Iterator[str]:
    """Yield the differences between a declaration's parameters and those of its function after the program."""
    plan_parameters = list(inspect.signature(primitive.plan).parameters.values())[1:]
    declared = {name: kind for name, kind in primitive.parameters.items() if getattr(kind, "planned", True)}
    wrong = [name for name, kind in declared.items() if not isinstance(kind, Parameter)]
    if wrong:
        yield f"its parameter {wrong[0]} is {declared[wrong[0]]!r}, expected a kind such as LOOP or INT"
    names = [p.name for p in plan_parameters]
    extra = [name for name in declared if name not in names]
    missing = [p.name for p in plan_parameters if p.name not in declared and p.default is p.empty]
    if extra:
        yield f"the parameters are {_listed(names)}; the declaration has {_listed(extra)}"
    if missing:
        yield f"the parameters are {_listed(names)}; the declaration lacks {_listed(missing)}"


def _result_faults(primitive: Primitive) -> Iterator[str]:
    """Yield a sentence for results of an unknown kind, a list among several results, and a consumed name that is no
    handle parameter."""
    kinds = {name: kind for name, kind in primitive.gives.items() if kind.removesuffix("*") not in TYPES}
    if kinds:
        name, kind = next(iter(kinds.items()))
        yield f"its result {name} is of the kind {kind!r}; there are {_listed(TYPES)}, and lists such as loop*"
    if primitive.gives_several and len(primitive.gives) > 1:
        yield f"a result of any number is the only one, and the declaration gives {_listed(primitive.gives)}"
    handles = [name for name, kind in primitive.parameters.items() if isinstance(kind, HandleParameter)]
    wrong = [name for name in primitive.consumes if name not in handles]
    if wrong:
        yield f"it consumes {wrong[0]!r}, and its handles are {_listed(handles)}"


def _example_faults(primitive: Primitive, name: str) -> Iterator[str]:
    """Yield the faults of the example, which is parsed as part of a script and must contain the op `name`."""
    context = Context()
    for dialect in (Builtin, Transform, SCHED):
        context.load_dialect(dialect)
    if SCHED.operations and name not in {op.name for op in SCHED.operations}:
        context.load_op(primitive.op)
    try:
        module = Parser(context, example_script(primitive)).parse_module()
        module.verify()
    except (ParseError, VerifyException) as error:
        reason = getattr(error, "msg", None) or str(error).splitlines()[-1]
        yield f"its example '{primitive.example}' is refused: {' '.join(str(reason).split())}"
    else:
        if not any(applies(op, primitive.name) for op in module.walk()):
            yield f"its example '{primitive.example}' has no {name}"


def example_script(primitive: Primitive) -> str:
    """The script of a primitive's example, with the ops that define the handles which it uses."""
    example = primitive.example
    defined = " ".join(line.partition(" = ")[0] for line in example.splitlines() if " = sched." in line)
    needed = [name for name in re.findall(r"%([cmlkdn])\b", example) if not re.search(rf"%{name}\b", defined)]
    sources = {"l": "m", "k": "m"}
    handles = {sources.get(name, name) for name in needed}
    handles |= {{"m": "c", "n": "d"}.get(name, name) for name in handles}
    definitions = [op for name, op in _EXAMPLE_HANDLES.items() if name in handles]
    return "\n".join((_FUNCTION, *definitions, *example.splitlines(), "transform.yield", "}"))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
