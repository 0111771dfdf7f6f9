"""`@primitive`: the declaration of a schedule primitive, from which its op, its method of `Schedule`, its pass, its
call in Python and its page are derived."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias, TypeVar

from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, result_def, var_result_def
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.sched import BlockType, LoopType, ParamType, SchedOp
from compiler.schedule.parameters import (
    AttributeParameter,
    HandleParameter,
    Parameter,
    ResultsParameter,
    SizesParameter,
    Value,
)
from compiler.schedule.plan import Plan, block_place, refuse
from compiler.schedule.plugins import plugin_plans
from compiler.schedule.state import State
from compiler.support.errors import InputError, refused_by

Function = TypeVar("Function", bound=Callable[..., Plan])
Check: TypeAlias = Callable[[Mapping[str, Value], int], str]
"""Maps the properties of an op and the number of its results to a sentence about a fault; empty for a valid op."""
TYPES = {"block": BlockType(), "loop": LoopType(), "param": ParamType()}
"""The types of results, by the words of declarations."""


@dataclass(frozen=True)
class Primitive:
    """A declared primitive: `plan` maps a program and parameters to the planned step; `name` is its function's name.
    The other fields are the arguments of `@primitive`.

    >>> split = strata.schedule.PRIMITIVES["split"]
    >>> split.pass_name, split.consumes, dict(split.gives)
    ('split', ('loop',), {'loops': 'loop*'})
    """

    name: str
    plan: Callable[..., Plan]
    syntax: str
    example: str
    shell: str
    parameters: Mapping[str, Parameter]
    gives: Mapping[str, str]
    consumes: tuple[str, ...]
    check: Check | None
    placed_by: str

    @cached_property
    def summary(self) -> str:
        """The first paragraph of the planning function's docstring, on one line. Requires a docstring."""
        return " ".join(inspect.getdoc(self.plan).partition("\n\n")[0].split())  # type: ignore[union-attr]

    @property
    def pass_name(self) -> str:
        """The name of the pass; empty for a primitive without one."""
        return self.shell.partition("{")[0]

    @property
    def gives_several(self) -> bool:
        """Whether the number of results depends on the call."""
        return any(kind.endswith("*") for kind in self.gives.values())

    @property
    def gives_list(self) -> bool:
        """Whether the method returns a list of handles."""
        return self.gives_several or len(self.gives) > 1

    @cached_property
    def op(self) -> type[SchedOp]:
        """The class of the op in the `sched` dialect, built at the first use."""
        fields: dict[str, object] = {}
        for name, parameter in self.parameters.items():
            fields |= parameter.definitions(name)
        for name, kind in self.gives.items():
            fields[name] = (var_result_def if kind.endswith("*") else result_def)(TYPES[kind.removesuffix("*")])
        several = f" `:` type(${next(iter(self.gives))})" if self.gives_several else ""
        members: dict[str, Value] = {
            **fields,
            "__doc__": self.summary,
            "__module__": __name__,
            "name": f"sched.{self.name}",
            "CONSUMES": self.consumes,
            "__annotations__": {"CONSUMES": ClassVar[tuple[str, ...]]},
            "assembly_format": f"{self.syntax} attr-dict{several}",
            "custom_directives": (DynamicIndexList,),
            "verify_": lambda op: self._verify(op),
        }
        title = "".join(word.capitalize() for word in self.name.split("_"))
        return irdl_op_definition(type(f"{title}Op", (SchedOp,), members))

    def _verify(self, op: SchedOp) -> None:
        faults = (parameter.fault(op, name) for name, parameter in self.parameters.items())
        fault = next((fault for fault in faults if fault), "")
        if not fault and self.check is not None:
            fault = self.check(self.stated(op), len(op.results))
        if fault:
            raise VerifyException(fault)

    def stated(self, op: SchedOp) -> dict[str, Value]:
        """Map the names of an op's parameters that are no handles to their values; sizes may contain handles."""
        values: dict[str, Value] = {}
        for name, parameter in self.parameters.items():
            if isinstance(parameter, AttributeParameter):
                values[name] = parameter.value(op, name)
            elif isinstance(parameter, SizesParameter):
                values[name] = parameter.sizes(op, name)
        return values

    def planned(self, state: State, op: SchedOp) -> Plan:
        """Plan an op. Raises ScheduleError for a refusal, and for more or fewer results than the op has."""
        with refused_by(self.name):
            values = {n: p.decoded(op, n, state) for n, p in self.parameters.items() if p.planned}
            plan = self.plan(state.program, **values)
            result_count = len(plan.loops) + len(plan.blocks) + len(plan.params)
            if result_count != len(op.results):
                what = next(iter(self.gives), "results")
                refuse(
                    block_place(values["block"]) if "block" in values else "",
                    f"it has {result_count} {what}, not {len(op.results)}",
                )
        return plan

    def results(
        self, state: State, arguments: Mapping[str, Value], properties: Mapping[str, Attribute]
    ) -> list[Attribute]:
        """The types of the results of a call; `arguments` are those of the method, `properties` those of its op."""
        if not self.gives_several:
            return [TYPES[kind] for kind in self.gives.values()]
        (kind,) = self.gives.values()
        return [TYPES[kind.removesuffix("*")]] * self._count(state, arguments, properties)

    def _count(self, state: State, arguments: Mapping[str, Value], properties: Mapping[str, Attribute]) -> int:
        """The number of results of a call: an argument, the length of a list, or that of the plan."""
        for name, parameter in self.parameters.items():
            if isinstance(parameter, ResultsParameter):
                return int(arguments[name])
            if isinstance(parameter, SizesParameter):
                return parameter.length(properties[name])
        plan = self.plan(state.program, **{name: state.block(value) for name, value in arguments.items()})
        return len(plan.loops) + len(plan.blocks)

    @cached_property
    def signature(self) -> inspect.Signature:
        """The parameters of the method of `Schedule`, without self."""
        plan_parameters = inspect.signature(self.plan).parameters
        return inspect.Signature(
            [_asked(plan_parameters[name], kind) for name, kind in self.parameters.items() if kind.asked]
        )

    @property
    def method_signature(self) -> inspect.Signature:
        """The signature of the method of `Schedule`, its types as text."""
        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        gives = "list[Handle]" if self.gives_list else "Handle" if self.gives else "None"
        return inspect.Signature([itself, *self.signature.parameters.values()], return_annotation=gives)

    def call(self, op: SchedOp, names: Mapping[SSAValue, str]) -> str:
        """Print an op as a call of the method; `names` are the variables of its handles."""
        texts = []
        for name, parameter in self.parameters.items():
            text = parameter.text(op, name, names) if parameter.asked else None
            if text is not None:
                texts.append(f"{name}={text}" if parameter.optional else text)
        return f"{self.name}({', '.join(texts)})"


def _asked(parameter: inspect.Parameter, kind: Parameter) -> inspect.Parameter:
    several = isinstance(kind, HandleParameter) and kind.several
    annotation = kind.annotation if parameter.default is not None else f"{kind.annotation} | None"
    if several:
        return inspect.Parameter(parameter.name, inspect.Parameter.VAR_POSITIONAL, annotation=annotation)
    return parameter.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation)


def primitive(
    syntax: str,
    example: str,
    shell: str = "",
    *,
    gives: Mapping[str, str] | None = None,
    consumes: Sequence[str] = (),
    check: Check | None = None,
    placed_by: str = "",
    **parameters: Parameter,
) -> Callable[[Function], Function]:
    """Declare that a function plans a primitive, which has its name.

        @primitive("$loop", "sched.unroll %l", "unroll{block=C loop=l}", loop=LOOP)
        def unroll(program: Program, loop: int) -> Plan: ...

    `syntax` is the assembly format of the op in xDSL's notation. `example` is a line of a script: %c and %d are blocks,
    %m, %l and %k the loops of %c, %n the loop of %d. `shell` is an example of the pass, with its name. `gives` are the
    results by kind: block, loop or param; `loop*` is any number of loops. `consumes` are the parameters whose handles
    are invalid afterwards. `check` verifies the op as a whole. With `placed_by`, the pass has an option `at`, a loop to
    which that primitive moves the resulting block. Parameters are in the order of the op's operands. The function is
    returned unchanged. Raises InputError if another file has a primitive of that name.

    >>> unroll = strata.schedule.PRIMITIVES["unroll"]
    >>> unroll.syntax, list(unroll.parameters)
    ('$loop', ['loop'])
    """

    def declare(plan: Function) -> Function:
        declared = Primitive(
            plan.__name__, plan, syntax, example, shell, parameters, gives or {}, tuple(consumes), check, placed_by
        )
        before = DECLARED.get(plan.__name__)
        if before is not None and _file(before.plan) != _file(plan) and _stands(before):
            raise InputError(f"there is a primitive '{plan.__name__}' already, of {before.plan.__module__}")
        DECLARED[plan.__name__] = declared
        return plan

    return declare


def _file(plan: Callable[..., Plan]) -> str:
    """The file of a planning function; that of a plugin is unwrapped first."""
    return inspect.getfile(inspect.unwrap(plan))


def _stands(declared: Primitive) -> bool:
    """Whether a primitive belongs to the compiler or to a plugin that is loaded."""
    return declared.plan.__module__.startswith("compiler.") or declared.name in plugin_plans()


DECLARED: dict[str, Primitive] = {}
"""All primitives declared so far; `primitives.PRIMITIVES` are the built-in ones."""

CHOICES = ("sample_perfect_tile", "sample_categorical", "sample_location")
"""The primitives that are open choices: ops with an optional `decision`."""


def applies(op: Operation, *primitives: str) -> bool:
    """Whether an op applies one of the primitives of these names; not for an op of another dialect."""
    return isinstance(op, SchedOp) and op.primitive in primitives


def primitive_of(op: Operation) -> Primitive:
    """The primitive that an op of the sched dialect applies. Raises KeyError for an include, which is none."""
    assert isinstance(op, SchedOp)
    return DECLARED[op.primitive]
