"""`Recorder`: a loop function and the script applied to it; `Schedule` without the methods of primitives."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from math import prod
from os import PathLike
from typing import Any, Self

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.transform import YieldOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from compiler.analysis.combiners import check_combiners
from compiler.analysis.verify.prove import Verdict, verify_schedule
from compiler.dialects import loop as loop_dialect
from compiler.dialects import te
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import find_function, functions, has_tensors
from compiler.dialects.sched import BlockType, LoopType, ParamType, SchedOp
from compiler.lowering.te_to_loop import TeToLoopPass
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.program.write import write
from compiler.schedule.include import INCLUDER, MACHINE, IncludeOp, Includes, Inclusion, only_included, sizes_attribute
from compiler.schedule.names import handles_of
from compiler.schedule.parameters import Handle, HandleParameter, Size
from compiler.schedule.plan import Plan
from compiler.schedule.primitive import Primitive, primitive_of
from compiler.schedule.primitives import PRIMITIVES
from compiler.schedule.python import as_python
from compiler.schedule.script import Script, script_of
from compiler.schedule.show import outline
from compiler.schedule.state import State, empty_script
from compiler.support import display
from compiler.support.errors import ScheduleError, StrataError, refused_by
from compiler.support.text import counted
from compiler.support.unpicklable import Unpicklable
from compiler.support.validation import LARGEST, integer, text


class Recorder(Unpicklable):
    """A loop-level function and the script that leads from the original to it; `Schedule` adds the primitives. Its
    arguments are those of `Schedule`. name: of the function. unscheduled: the original as a program. script: the op of
    the script. inclusions: the recipes that the script includes, with their steps."""

    _refusal = "a schedule cannot be pickled: keep its text, str(schedule), and apply that to a Schedule of the program"

    def __init__(self, x: object, name: str | None = None, seed: int = 0) -> None:
        self._module = None if isinstance(x, Program) else _checked_module(x, name)
        self.unscheduled = x if isinstance(x, Program) else read(find_function(self.original, name))
        self.name = self.unscheduled.name
        self.script, body = empty_script()
        self._state = State(self.unscheduled, random.Random(integer("seed", seed, 0, error=ScheduleError)), body)
        self._written: tuple[Program, ModuleOp] | None = None
        self._includer: Includes | None = None
        self.inclusions: list[Inclusion] = []

    @property
    def original(self) -> ModuleOp:
        """The module with the unscheduled function."""
        if self._module is None:
            self._module = ModuleOp([write(self.unscheduled)])
        return self._module

    @property
    def program(self) -> Program:
        """The scheduled program, as the primitives see it."""
        return self._state.program

    @property
    def module(self) -> ModuleOp:
        """The original module with the function replaced by the scheduled one; cached until the next step."""
        if self._written is None or self._written[0] is not self.program:
            module = self.original.clone()
            old = find_function(module, self.name)
            new = write(self.program)
            new.attributes |= {k: v for k, v in old.attributes.items() if k not in new.attributes}
            new.location = old.location
            module.body.block.insert_op_before(new, old)
            module.body.block.erase_op(old)
            self._written = self.program, module
        return self._written[1]

    @property
    def function(self) -> FuncOp:
        """The scheduled function."""
        return find_function(self.module, self.name)

    def __str__(self) -> str:
        return str(self.script)

    def __repr__(self) -> str:
        return display.line(f"<Schedule of {self.name}, {counted(self.length, 'step')}>")

    def _repr_html_(self) -> str:
        caption = f"{self.name}, {counted(self.length, 'step')}"
        return display.text(caption, outline(self.program)) + display.text("script", str(self))

    def fork(self, judged: bool = True) -> tuple[Self, dict[Handle, Handle]]:
        """Copy the schedule, and map its handles to those of the copy. Without `judged`, and if those of this schedule
        are, steps of the copy are applied without legality checks; `verify` then decides whether the result is legal.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B")))
        >>> (loop,) = s.get_loops("B")
        >>> copy, handles = s.fork()
        >>> copy.parallel(handles[loop])
        >>> s.program.body[0].kind, copy.program.body[0].kind
        ('serial', 'parallel')
        """
        new = object.__new__(type(self))
        handles: dict[Handle, Handle] = {}
        new.name, new.unscheduled, new._module, new._written = self.name, self.unscheduled, self._module, None
        new.script = self.script.clone(handles)
        new._state = self._state.fork(script_of(new.script).body.block, handles)
        new._state.judged = new._state.judged and judged
        new._includer, new.inclusions = None, list(self.inclusions)
        return new, handles

    def __copy__(self) -> Self:
        return self.fork()[0]

    def __deepcopy__(self, memo: object) -> Self:
        return self.fork()[0]

    def verify(self) -> Verdict:
        """Prove or refute that the scheduled function computes the same as the original; the verdict may be undecided.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B")))
        >>> outer, inner = s.split("B.i0", [2, 4])
        >>> str(s.verify())
        'proved'
        """
        return verify_schedule(self.program, self.unscheduled)

    def label(self, handle: Handle) -> str:
        """The label of the block or loop of a live handle, also of an omitted loop of one iteration. Raises
        ScheduleError for any other value.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B")))
        >>> s.label(s.get_block("B")), s.label(s.get_loops("B")[0])
        ('B', 'i0')
        """
        if isinstance(handle, SSAValue) and handle in self._state.units:
            return self._state.names[handle]
        value = self._value(handle)
        return self.program.loops[value].label if isinstance(value, int) else value

    def extent(self, loop: Handle) -> int:
        """The extent of a loop, by its live handle: 1 for an omitted loop of one iteration. Raises ScheduleError for
        any other value.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B")))
        >>> s.extent(s.get_loops("B")[0])
        8
        """
        if isinstance(loop, SSAValue) and loop in self._state.units:
            return 1
        value = self._value(loop)
        if not isinstance(value, int):
            raise ScheduleError("it is a block, which has no extent", "extent", f"block '{value}'")
        return self.program.loops[value].extent

    def value(self, parameter: Size) -> int:
        """The integer of a parameter, or of a constant. Raises ScheduleError for any other value.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B")))
        >>> s.value(s.sample_categorical([4, 8], decision=1))
        8
        """
        if isinstance(parameter, int):
            return parameter
        value = self._state.values.get(parameter) if isinstance(parameter, SSAValue) else None
        if not isinstance(value, int) or not isinstance(parameter.type, ParamType):
            raise ScheduleError("it is not the handle of a parameter of this schedule", "value")
        return value

    def when(self, choice: Handle) -> Program:
        """The program before a choice was decided; `choice` is its first result. Raises ScheduleError for any other
        value.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B")))
        >>> choice, decided = s.sample_categorical([4, 8], decision=1), s.program
        >>> loops = s.split("B.i0", [None, choice])
        >>> s.when(choice) is decided
        True
        """
        decided = self._state.decided.get(choice) if isinstance(choice, SSAValue) else None
        if decided is None:
            raise ScheduleError("it is not the handle of a choice of this schedule", "when")
        return decided

    def meaning(self, handle: Handle) -> int | str:
        """The number of the loop, the label of the block or the integer of the parameter of a handle, which may be
        consumed; ROOT or INLINE for a location. Raises ScheduleError for any other value.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B")))
        >>> s.meaning(s.get_block("B")), s.meaning(s.get_loops("B")[0])
        ('B', 0)
        """
        value = self._state.values.get(handle) if isinstance(handle, SSAValue) else None
        if value is None:
            raise ScheduleError(self._no_handle(handle), "meaning")
        return value

    def _value(self, handle: Handle) -> int | str:
        """The number of the loop, or the label of the block, of a live handle. Raises ScheduleError for any other."""
        value = self._state.values.get(handle) if isinstance(handle, SSAValue) else None
        if value is None or not isinstance(handle.type, BlockType | LoopType):
            raise ScheduleError(self._no_handle(handle))
        by = self._state.consumed.get(handle)
        if by or value not in (self.program.loops if isinstance(value, int) else self.program.blocks):
            raise ScheduleError(f"it has been consumed by '{by}'" if by else "it is no loop, but a location")
        return value

    def _no_handle(self, value: object) -> str:
        """The sentence that refuses a value that is no handle of a block or loop."""
        if isinstance(value, str) and value in self.program.blocks:
            return f"'{value}' is a label: pass s.get_block('{value}')"
        if isinstance(value, str) and any(loop.label == value for loop in self.program.loops.values()):
            return f"'{value}' is a label: pass a handle that s.get_loops gives"
        shown = "it" if isinstance(value, SSAValue) else repr(value)
        return f"{shown} is not the handle of a block or loop of this schedule"

    def python(self, schedule: str = "s") -> str:
        """The script as a Python function of a schedule, which records the same script; `schedule` is its argument's
        name.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B")))
        >>> s.parallel("B.i0")
        >>> s.python("schedule").splitlines()[-1].strip()
        'schedule.parallel(i0)'
        """
        return as_python(self.script, schedule)

    def apply(self, script: Script, judged: bool = True) -> Self:
        """Apply and record the ops of a script; open choices are decided.

        A script is IR, such as another schedule's `script`, the text that this prints as, or the path of a file.
        Without `judged`, legality is not checked, which halves the time; `verify` then decides it.
        Raises ScheduleError for what is no script, and at the first refusal, with the op as its `op`; earlier steps
        stay applied.

        >>> A = te.placeholder((64,), name="A")
        >>> f = te.function("f", [A], te.nn.exp(A, name="B"))
        >>> s = Schedule(f)
        >>> s.parallel("B.i0")
        >>> Schedule(f).apply(str(s.script)).program == s.program
        True
        """
        for _ in self.steps(script, judged):
            pass
        return self

    def steps(self, script: Script, judged: bool = True) -> Iterator[Operation]:
        """Apply a script, without legality checks if not `judged`, and yield each of its ops after it is applied and
        recorded, but for a get_block whose handle only includes use, which is skipped. Raises ScheduleError for what is
        no script, and at the first refusal; earlier steps stay applied.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B")))
        >>> s.parallel("B.i0")
        >>> [op.name for op in Schedule(s.original).steps(s.script)]
        ['sched.get_block', 'sched.get_loops', 'sched.parallel']
        """
        sequence = script_of(script)
        self._includer = None
        if any(isinstance(op, IncludeOp) for op in sequence.body.block.ops):
            self._includer = _includer(self, sequence.attributes.get(MACHINE))
        values: dict[SSAValue, SSAValue] = {sequence.body.block.args[0]: self._state.function}
        for op in sequence.body.block.ops:
            if isinstance(op, YieldOp):
                break
            if only_included(op):
                continue
            values.update(zip(op.results, self.step(op, values, judged), strict=True))
            yield op

    def step(self, op: Operation, handles: Mapping[Handle, Handle], judged: bool = True) -> list[Handle]:
        """Apply one op of another script, and return its results, none for an include; `handles` maps its operands to
        handles of this schedule. Without `judged`, legality is not checked.

        Raises ScheduleError, with the op as its `op`, for a refusal and for an op of another dialect.

        >>> f = te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B"))
        >>> s, other = Schedule(f), Schedule(f)
        >>> (copy,) = s.step(other.get_block("B").owner, {other.root: s.root})
        >>> s.label(copy)
        'B'
        """
        if not isinstance(op, SchedOp):
            name = op.name if isinstance(op, Operation) else type(op).__name__
            raise _at(op, ScheduleError("it is not an op of the sched dialect", name))
        if not isinstance(handles, Mapping):
            raise _at(op, ScheduleError("the handles do not correspond to the other script's", op.name))
        try:
            if isinstance(op, IncludeOp):
                self._includer = self._includer or _includer(self)
                self._includer.apply(op, self.label(handles[op.block]) if op.block in handles else op.label, judged)
                return []
            copy = op.clone(dict(handles))
            self._state.apply(copy, primitive_of(copy).planned, judged)
        except ScheduleError as error:
            raise _at(op, error) from error
        return list(copy.results)

    def include(self, recipe: str, block: Handle | str, sizes: Mapping[str, Any] | None = None, way: str = "") -> None:
        """Apply the steps of a recipe, a search rule, to a block; `way` names one of its alternatives, the first if it
        is empty.

        `sizes` are integers, or lists of the factors of an extent, by the names of the recipe's choices; the recipe has
        defaults for missing ones. Raises ScheduleError for an unknown recipe, way or size, and for a step that is
        refused; earlier steps stay applied.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 256), name="B")))
        >>> s.include("vectors", "B")
        >>> s.program.loops[s.meaning(s.get_loops("B")[-1])].kind
        'vectorized'
        """
        with refused_by("include"):
            label = block if isinstance(block, str) else self._state.block(block)
            self._includer = self._includer or _includer(self)
            stated = sizes_attribute({} if sizes is None else sizes)
            recipe, way = text("the recipe", recipe, ScheduleError), text("the way", way, ScheduleError)
            self._includer.apply(IncludeOp.of(recipe, stated, way), label)

    def note(self, inclusion: Inclusion) -> None:
        """Append to `inclusions` the steps of a recipe, which are the last ones of the script."""
        self.inclusions.append(inclusion)

    @property
    def root(self) -> Handle:
        """The handle on the function, which is the argument of the script."""
        return self._state.function

    @property
    def length(self) -> int:
        """The number of ops of the script, without its yield."""
        return len(self._state.script.ops) - 1

    def call(self, primitive: Primitive, *args: object, **kwargs: object) -> list[Handle]:
        """Apply a primitive to the arguments of its method, record its op, and return its results.

        Raises ScheduleError for invalid arguments and a refusal; then nothing is recorded.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B")))
        >>> loops = s.call(strata.schedule.PRIMITIVES["split"], "B.i0", [2, 4])
        >>> [s.extent(loop) for loop in loops]
        [2, 4]
        """
        if not isinstance(primitive, Primitive):
            raise ScheduleError(f"it takes a declared primitive, not a {type(primitive).__name__}", "call")
        try:
            bound = primitive.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ScheduleError(f"it takes {_asked(primitive)}: {error}", primitive.name) from error
        bound.apply_defaults()
        length = self.length
        try:
            op = self._op(primitive, self._with_handles(primitive, bound.arguments))
            try:
                self._state.apply(op, self._planner(primitive))
            except StrataError:
                op.erase()
                raise
        except StrataError:
            self._state.drop_after(length)
            raise
        return list(op.results)

    def _planner(self, primitive: Primitive) -> Callable[[State, SchedOp], Plan]:
        """The function that plans the op of a call; subclasses may replace it."""
        return primitive.planned

    def _with_handles(self, primitive: Primitive, arguments: Mapping[str, object]) -> dict[str, object]:
        """Replace names in the arguments of a call by handles. Raises ScheduleError for a name without a block or
        loop."""
        with refused_by(primitive.name):
            return {
                name: handles_of(self, kind, value) if isinstance(kind, HandleParameter) else value
                for name, value in arguments.items()
                for kind in [primitive.parameters[name]]
            }

    def handle_on(self, value: int | str) -> Handle | None:
        """The latest live handle on a loop, by its number, or on a block, by its label; None if there is none. Raises
        ScheduleError for any other value.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B")))
        >>> block = s.get_block("B")
        >>> s.handle_on("B") is block, s.handle_on("C")
        (True, None)
        """
        if not isinstance(value, int | str):
            raise ScheduleError(
                f"it takes a loop's number or a block's label, not a {type(value).__name__}", "handle_on"
            )
        handles = reversed(self._state.handles.get(value, []))
        return next((handle for handle in handles if handle not in self._state.consumed), None)

    def _op(self, primitive: Primitive, arguments: Mapping[str, object]) -> SchedOp:
        """Build the op of a call. Raises ScheduleError for invalid arguments."""
        operands: list[SSAValue] = []
        properties: dict[str, Attribute] = {}
        with refused_by(primitive.name):
            for name, parameter in primitive.parameters.items():
                fields = parameter.encoded(name, arguments[name] if parameter.asked else self.root)
                operands += fields.operands
                properties |= fields.properties
            result_types = primitive.results(self._state, arguments, properties)
        return primitive.op.create(operands=operands, properties=properties, result_types=result_types)

    # --- what Python adds to primitives ---------------------------------------------------------------------------

    def transform_layout(
        self,
        block: Handle,
        buffer: str,
        by: AffineMap | Callable[..., Any] | None = None,
        tiles: Sequence[Size] = (),
        order: Sequence[int] = (),
    ) -> None:
        """Index a temporary through a map, or a Python function of its indices; or store it in blocks of the sizes
        `tiles`, one for each dimension, with the resulting dimensions in `order`.

        >>> A = te.placeholder((8, 4), name="A")
        >>> s = Schedule(te.function("f", [A], te.nn.exp(te.nn.relu(A, name="B"), name="C")))
        >>> s.transform_layout("B", "B", lambda i, j: (j, i))
        >>> s.program.buffers["B"].shape
        (4, 8)
        """
        layout = by if by is None or isinstance(by, AffineMap) else self._layout(buffer, by)
        self.call(PRIMITIVES["transform_layout"], block, buffer, layout, tiles, order)

    def _layout(self, buffer: str, by: Callable[..., Sequence[AffineExpr]]) -> AffineMap:
        """Evaluate a function of a buffer's indices to a map. Raises ScheduleError if there is no such buffer or
        map."""
        if buffer not in self.program.buffers:
            raise ScheduleError("there is no such buffer", "transform_layout", f"buffer '{buffer}'")
        rank = len(self.program.buffers[buffer].shape)
        try:
            indices = by(*(AffineExpr.dimension(d) for d in range(rank)))
            exprs = [AffineExpr.constant(e) if isinstance(e, int) else e for e in indices]
        except (TypeError, IndexError, ValueError, ArithmeticError, NotImplementedError) as error:
            reason = f"the layout is no quasi-affine function of {rank} indices: {error}"
            raise ScheduleError(reason, "transform_layout", f"buffer '{buffer}'") from error
        if not all(isinstance(e, AffineExpr) for e in exprs):
            reason = "the layout's results are not all made of its indices"
            raise ScheduleError(reason, "transform_layout", f"buffer '{buffer}'")
        return AffineMap(rank, 0, tuple(exprs))

    def sample_categorical(
        self,
        candidates: Sequence[int],
        probabilities: Sequence[float] | None = None,
        decision: int | None = None,
        name: str | None = None,
    ) -> Handle:
        """Choose one of several integers, uniformly without probabilities. `decision` is the position of the chosen
        integer, drawn if None; `name` is the name of the handle, without effect if it is None or no name in IR.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B")))
        >>> loops = s.split("B.i0", [None, s.sample_categorical([4, 8], decision=1)])
        >>> s.extent(loops[1])
        8
        """
        (chosen,) = self.call(PRIMITIVES["sample_categorical"], candidates, probabilities, decision)
        if name is not None and SSAValue.is_valid_name(name):
            chosen.name_hint = name
        return chosen

    def multiple(self, size: Size, factor: int) -> Size:
        """Multiply a parameter or a constant by an integer: a handle for a parameter, an integer for a constant. Raises
        ScheduleError for a factor that is no integer or too large, for a parameter also for one below 1, and for any
        other `size`.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B")))
        >>> s.value(s.multiple(s.sample_categorical([4, 8], decision=1), 2))
        16
        """
        if isinstance(size, int):
            return size * integer("factor", factor, -LARGEST, LARGEST, ScheduleError)
        return self.call(PRIMITIVES["multiple"], size, factor)[0]

    def product(self, *sizes: Size) -> Size:
        """The product of parameters and constants: an integer if all are constants, 1 if there are none, else a handle.

        >>> s = Schedule(te.function("f", [], te.nn.exp(te.constant([1.0] * 8), name="B")))
        >>> s.value(s.product(3, s.sample_categorical([4, 8], decision=1)))
        24
        """
        number = prod(size for size in sizes if isinstance(size, int))
        params = [size for size in sizes if not isinstance(size, int)]
        if not params:
            return number
        param = params[0] if len(params) == 1 else self.call(PRIMITIVES["product"], *params)[0]
        return param if number == 1 else self.multiple(param, number)


def _asked(primitive: Primitive) -> str:
    """The arguments of a primitive's method without their types: `(loop, factors, tail='guard')`."""
    parameters = primitive.signature.parameters.values()
    return str(inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in parameters]))


def _checked_module(x: object, name: str | None) -> ModuleOp:
    """Copy and verify the module of `x`. Raises ScheduleError for an `x` that is no te function or module, and if its
    function `name`, or for None its only one, is not at the loop level; InputError if no function or several fit;
    VerifyException for an invalid module."""
    module = _loop_module(x)
    function = find_function(module, name)
    if not any(isinstance(op, loop_dialect.ForOp | loop_dialect.Placed) for op in function.walk()):
        by = "te-to-loop" if has_tensors(function) else "raise-affine-to-loop"
        raise ScheduleError(f"@{function.sym_name.data} is not at the loop level; lower it with {by} first")
    verify_module(module)
    check_combiners(module)
    return module.clone()


def _loop_module(x: object) -> ModuleOp:
    """The module of a caller's function; a te function is lowered without changes. Raises ScheduleError for any other
    value, and for te with large constants."""
    module = x if isinstance(x, ModuleOp) else getattr(x, "module", None)
    if not isinstance(module, ModuleOp):
        reason = f"not of a {type(x).__name__}{': strata.lower reads a file' if isinstance(x, str | PathLike) else ''}"
        raise ScheduleError(f"a schedule is of a te function or a loop-level module, {reason}")
    if isinstance(x, ModuleOp) or not any(map(has_tensors, functions(module))):
        return module
    if any(isinstance(op, te.ConstantOp) and not op.value.data.is_inline for op in module.walk()):
        raise ScheduleError("the program has large constants, which strata.lower makes arguments: lower it first")
    module = module.clone()
    TeToLoopPass().apply(Context(), module)
    return module


def _at(op: Operation, error: ScheduleError) -> ScheduleError:
    error.op = op
    return error


def _includer(schedule: Recorder, facts: Attribute | None = None) -> Includes:
    """The interpreter of includes for the machine of `facts`, the attribute MACHINE of a script (None: this machine);
    imported by name, since the recipes' package imports this one."""
    includer: Includes = import_module(INCLUDER).Includer(schedule, facts)
    return includer
