"""Shrink a module: each change is kept if the module still verifies and the test still holds.

The changes, until none is kept: functions and scripts are erased; ops are erased, where uses of a result are replaced
by an operand of its type, or by a new argument of the function; operands that a body does not use, results of
functions, unused arguments and attributes go; each number of the text becomes 1, 2, or a half of it, everywhere at
once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from compiler import universe
from compiler.dialects.dominance import verify_module
from compiler.dialects.foreign_errors import FOREIGN
from compiler.dialects.parser import Parser
from compiler.opt.diagnostics import PROGRAM_ERRORS
from compiler.reduce.delta import shortened
from compiler.support.errors import InputError

Holds = Callable[[str], bool]
Change = Callable[[ModuleOp, Sequence[int]], bool]
"""Keeps some of the numbered parts of a module, and removes the others; False if it cannot."""
_NUMBER = re.compile(r'(?<![\w.%@#"!^-])\d+(?=x|\b(?!\.))|(?<=\dx)\d+(?=[x>])')


def reduce_module(text: str, holds: Holds, file: str = "<reduced>") -> str:
    """Return a shorter module for which `holds` is true.

    text: a module of any level, or with a script; `file` is its name in messages. holds: the test, called with texts
    that parse and verify. Raises ParseError or VerifyException for an invalid `text`, and InputError if `holds` is
    false for it.

    >>> from compiler.reduce import reduce_module
    >>> A = te.placeholder((64, 32), name="A")
    >>> module = te.function("f", [A], te.nn.relu(te.nn.exp(A, name="B"), name="C")).module
    >>> print(reduce_module(str(module), lambda text: "math.exp" in text))
    func.func @f(%A: tensor<1x1xf32>) {
      %B = te.compute "B" [i0 = 1, i1 = 1]
          (%a = %A[i0, i1] : tensor<1x1xf32>) -> tensor<1x1xf32> {
        %0 = math.exp %a : f32
        te.yield %0 : f32
      }
      func.return
    }
    <BLANKLINE>
    """
    reduction = _Reduction(holds, file)
    module = reduction.parsed(text)
    verify_module(module)
    if not reduction.keep(str(module) + "\n"):
        raise InputError("the test does not hold for the file, as it is printed")
    length = len(reduction.text) + 1
    while len(reduction.text) < length:
        length = len(reduction.text)
        for parts, change in (
            (_top, _keep_top),
            (_inner, _keep_ops),
            (_body_operands, _keep_operands),
            (_results, _keep_results),
            (_arguments, _keep_arguments),
            (_attributes, _keep_attributes),
        ):
            reduction.shorten(parts, change)
        _return_earlier(reduction)
        _shrink_numbers(reduction)
    first, *inner, last = reduction.text.rstrip("\n").split("\n")
    if (first, last) == ("builtin.module {", "}"):
        reduction.keep("".join(f"{line.removeprefix('  ')}\n" for line in inner))
    return reduction.text


@dataclass
class _Reduction:
    """The shortest text so far. answers: whether the test holds, by the texts that were tried."""

    holds: Holds
    file: str
    text: str = ""
    answers: dict[str, bool] = field(default_factory=dict)

    def parsed(self, text: str) -> ModuleOp:
        """Return the module of a text. Raises ParseError for a malformed text."""
        return Parser(universe.context(), text, self.file).parse_module()

    def keep(self, text: str) -> bool:
        """Record a text as the shortest if it verifies and the test holds; return whether it is recorded."""
        if text not in self.answers:
            self.answers[text] = self._is_program(text) and self.holds(text)
        if self.answers[text]:
            self.text = text
        return self.answers[text]

    def _is_program(self, text: str) -> bool:
        try:
            verify_module(self.parsed(text))
        except (*PROGRAM_ERRORS, *FOREIGN):
            return False
        return True

    def shorten(self, parts: Callable[[ModuleOp], Iterator[object]], change: Change) -> None:
        """Remove `parts` of the module by `change`, in runs that become shorter, as long as the test holds."""
        whole = self.text
        count = sum(1 for _ in parts(self.parsed(whole)))

        def holds(kept: list[int]) -> bool:
            module = self.parsed(whole)
            try:
                return change(module, kept) and self.keep(str(module) + "\n")
            except (*PROGRAM_ERRORS, *FOREIGN):  # for a change that an op does not take
                return False

        shortened(range(count), holds)


def _removed(parts: Iterator[Operation], kept: Sequence[int]) -> list[Operation]:
    """Return the parts at other positions than `kept`, the last ones first."""
    numbers = set(kept)
    return [part for number, part in enumerate(parts) if number not in numbers][::-1]


def _top(module: ModuleOp) -> Iterator[Operation]:
    yield from module.ops


def _keep_top(module: ModuleOp, kept: Sequence[int]) -> bool:
    for op in _removed(_top(module), kept):
        module.body.block.erase_op(op, safe_erase=False)
    return bool(kept)


def _inner(module: ModuleOp) -> Iterator[Operation]:
    for op in module.walk():
        if op.parent_op() not in (None, module) and not op.has_trait(IsTerminator):
            yield op


def _keep_ops(module: ModuleOp, kept: Sequence[int]) -> bool:
    return all(_erase(op) for op in _removed(_inner(module), kept))


def _erase(op: Operation) -> bool:
    """Erase an op; uses of its results become uses of an operand of their type, or of a new argument of the function.
    Return False, and leave the op, if a result has neither."""
    for result in op.results:
        if not result.uses:
            continue
        value = next((operand for operand in op.operands if operand.type == result.type), None)
        value = _argument(op, result) if value is None else value
        if value is None:
            return False
        result.replace_all_uses_with(value)
    block = op.parent
    if block is not None:
        block.erase_op(op)
    return True


def _argument(op: Operation, result: SSAValue) -> SSAValue | None:
    """Add a first argument, of the type of a result, to the function around an op, which loses its argument attributes;
    return the argument, None without a function."""
    scope = op.parent_op()
    while scope is not None and not isinstance(scope, FuncOp):
        scope = scope.parent_op()
    if scope is None:
        return None
    argument = scope.body.blocks[0].insert_arg(result.type, 0)
    argument.name_hint = result.name_hint
    scope.update_function_type()
    scope.properties.pop("arg_attrs", None)
    return argument


def _body_operands(module: ModuleOp) -> Iterator[tuple[Operation, int]]:
    """Yield the ops whose one region has an argument for each operand, with the position of each operand whose argument
    the region does not use."""
    for op in module.walk():
        if len(op.regions) == 1 and op.operands and "operandSegmentSizes" not in op.properties:
            arguments = op.regions[0].blocks[0].args if op.regions[0].blocks else ()
            if len(arguments) == len(op.operands):
                yield from ((op, number) for number, argument in enumerate(arguments) if not argument.uses)


def _keep_operands(module: ModuleOp, kept: Sequence[int]) -> bool:
    numbers = set(kept)
    dropped = [part for number, part in enumerate(_body_operands(module)) if number not in numbers]
    for op, number in reversed(dropped):
        count, block = len(op.operands), op.regions[0].blocks[0]
        op.operands = [operand for n, operand in enumerate(op.operands) if n != number]
        block.erase_arg(block.args[number])
        for name, value in op.properties.items():
            if isinstance(value, ArrayAttr) and len(value.data) == count:
                op.properties[name] = ArrayAttr([each for n, each in enumerate(value.data) if n != number])
    return True


def _functions(module: ModuleOp) -> Iterator[FuncOp]:
    return (op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks)


def _results(module: ModuleOp) -> Iterator[tuple[FuncOp, int]]:
    for function in _functions(module):
        yield from ((function, number) for number in range(len(function.function_type.outputs)))


def _keep_results(module: ModuleOp, kept: Sequence[int]) -> bool:
    numbers, outputs = set(kept), list(_results(module))
    for function in list(_functions(module)):
        own = [position for number, (of, position) in enumerate(outputs) if of is function and number in numbers]
        for block in function.body.blocks:
            end = block.last_op
            if isinstance(end, ReturnOp):
                end.operands = [end.operands[position] for position in own]
        types = list(function.function_type.outputs)
        function.properties["function_type"] = FunctionType.from_lists(
            list(function.function_type.inputs), [types[position] for position in own]
        )
        function.properties.pop("res_attrs", None)
    return True


def _return_earlier(reduction: _Reduction) -> None:
    """Make each function return one value instead of its results: the first in its body with which the test holds."""
    for number in range(len(list(_functions(reduction.parsed(reduction.text))))):
        whole = reduction.text
        count = sum(len(op.results) for op in list(_functions(reduction.parsed(whole)))[number].body.block.ops)
        for position in range(count):
            module = reduction.parsed(whole)
            function = list(_functions(module))[number]
            end = function.body.block.last_op
            value = [result for op in function.body.block.ops for result in op.results][position]
            if not isinstance(end, ReturnOp) or list(end.operands) == [value]:
                break
            end.operands = [value]
            inputs = list(function.function_type.inputs)
            function.properties["function_type"] = FunctionType.from_lists(inputs, [value.type])
            function.properties.pop("res_attrs", None)
            if reduction.keep(str(module) + "\n"):
                break


def _arguments(module: ModuleOp) -> Iterator[tuple[FuncOp, int]]:
    for function in _functions(module):
        yield from ((function, number) for number, argument in enumerate(function.args) if not argument.uses)


def _keep_arguments(module: ModuleOp, kept: Sequence[int]) -> bool:
    numbers = set(kept)
    dropped = [part for number, part in enumerate(_arguments(module)) if number not in numbers]
    for function, position in reversed(dropped):
        block = function.body.blocks[0]
        block.erase_arg(block.args[position])
        function.properties.pop("arg_attrs", None)
        function.update_function_type()
    return True


def _attributes(module: ModuleOp) -> Iterator[tuple[Operation, str, bool]]:
    for op in module.walk():
        yield from ((op, name, True) for name in op.properties)
        yield from ((op, name, False) for name in op.attributes)


def _keep_attributes(module: ModuleOp, kept: Sequence[int]) -> bool:
    numbers = set(kept)
    for op, name, is_property in [a for number, a in enumerate(list(_attributes(module))) if number not in numbers]:
        del (op.properties if is_property else op.attributes)[name]
    return True


def _shrink_numbers(reduction: _Reduction) -> None:
    """Replace each number of the text by 1, 2 or a half, the largest numbers first."""
    numbers = sorted({int(match[0]) for match in _NUMBER.finditer(reduction.text)}, reverse=True)
    while numbers:
        number = numbers.pop(0)
        for smaller in sorted({1, 2, number // 2}):
            if 0 < smaller < number and reduction.keep(_with_number(reduction.text, number, smaller)):
                numbers = [smaller, *numbers] if smaller > 2 else numbers
                break


def _with_number(text: str, number: int, smaller: int) -> str:
    """A text with each occurrence of a number replaced by a smaller one."""

    def replaced(match: re.Match[str]) -> str:
        return str(smaller) if int(match[0]) == number else match[0]

    return _NUMBER.sub(replaced, text)
