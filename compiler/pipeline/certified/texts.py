"""The modules of a certificate's texts, in which large constants have a name and a digest instead of their elements."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseResourceAttr, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.exceptions import ParseError, VerifyException

from compiler import universe
from compiler.dialects.dense import DenseAttr
from compiler.dialects.dense_elements import DIGITS, Lost
from compiler.dialects.dominance import last_sentence, verify_module
from compiler.dialects.functions import find_function
from compiler.dialects.parser import Parser
from compiler.passes.lift_constants import lift
from compiler.support.errors import InputError


class DigestOnly(Lost):
    """The elements of a constant of which a text has only the name and the digest; constants of equal digests are
    equal."""

    is_splat = False
    """Those of equal elements have them in the text."""

    def __init__(self, type: TensorType, handle: str) -> None:
        name, _, digits = handle.rpartition("_")
        super().__init__(type, b"", name)
        self.digest = digits if len(digits) == DIGITS else handle


class _DigestParser(Parser):
    """A parser that reads each large constant as a DigestOnly, whether or not the text has its elements."""

    def _settled(self, value: Attribute, upstream_kind: bool = False) -> Attribute:
        if isinstance(value, DenseResourceAttr) and isinstance(value.type, TensorType):
            return DenseAttr(DigestOnly(value.type, value.resource_handle.data))
        return super()._settled(value, upstream_kind)


def module_of(text: str, subject: str) -> ModuleOp:
    """Parse and verify a text of a certificate, named `subject` in errors. Raises InputError for an invalid text."""
    try:
        module = _DigestParser(universe.context(), text, subject).parse_module()
        verify_module(module)
    except (ParseError, VerifyException) as error:
        raise InputError(f"{subject} of the certificate is no program: {last_sentence(str(error))}") from error
    return module


def te_function_of(text: str, subject: str) -> FuncOp:
    """Return the only te function of a certificate's text, its large constants turned into arguments, as in its loops.
    Raises InputError for an invalid text, named `subject`."""
    function = function_of(text, subject)
    lift(function)
    return function


def function_of(text: str, subject: str) -> FuncOp:
    """Return the only function of a certificate's text, or the only public one. Raises InputError, which names
    `subject`, without it and for an invalid text."""
    return find_function(module_of(text, subject))
