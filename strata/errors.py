"""The errors that a caller can cause, and the source location of an error."""

from compiler.support.errors import InputError, LoweringError, ScheduleError, StrataError, TargetError, TeError
from compiler.support.plugins import PluginError
from compiler.support.spans import Span, of_error

__all__ = [
    "InputError",
    "LoweringError",
    "PluginError",
    "ScheduleError",
    "Span",
    "StrataError",
    "TargetError",
    "TeError",
    "of_error",
]
