"""Exceptions of xDSL's parser, verifiers and passes for texts and programs that they were not written for."""

import struct

from xdsl.utils.exceptions import (
    AlreadyRegisteredConstructException,
    BuilderNotFoundException,
    InvalidIRException,
    PyRDLError,
    UnregisteredConstructException,
)

FOREIGN = (
    AlreadyRegisteredConstructException,
    ArithmeticError,
    AssertionError,
    AttributeError,
    BuilderNotFoundException,
    InvalidIRException,
    LookupError,
    NotImplementedError,
    PyRDLError,
    TypeError,
    UnregisteredConstructException,
    ValueError,
    struct.error,
)


def is_foreign(error: BaseException) -> bool:
    """Whether an exception is of a class in FOREIGN, or a plain Exception, as xDSL raises for indices of a buffer."""
    return isinstance(error, FOREIGN) or type(error) is Exception


def said(error: BaseException) -> str:
    """Return a text for an exception of xDSL: the last line of its message and its type in parentheses; its type alone
    if the message is empty."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{lines[-1]} ({type(error).__name__})" if lines else type(error).__name__
