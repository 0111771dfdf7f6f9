"""The exceptions a user can cause, one for each boundary; each is built with one sentence."""


class StrataError(Exception):
    """Base of all errors that a user's input can cause; the message is a sentence for that user."""


class TeError(StrataError):
    """A tensor expression that cannot be built."""


class ScheduleError(StrataError):
    """A schedule primitive that was refused; the payload is untouched."""


class LoweringError(StrataError):
    """A program that verifies but that a lowering cannot express."""


class TargetError(StrataError):
    """A target that is missing, or arguments that a built kernel does not take."""


class InputError(StrataError):
    """A command line, a pipeline or a file that cannot be read."""
