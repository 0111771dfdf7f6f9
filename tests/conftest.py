"""What all tests share: property tests repeat exactly, no deadline, for machines that others use as well, and
interruptions that are heard."""

import signal

import pytest
from hypothesis import settings

settings.register_profile("strata", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("strata")


@pytest.fixture(autouse=True, scope="session")
def _interruptible() -> None:
    """A shell that begins the tests in the background has them ignore interruptions."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
