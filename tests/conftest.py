"""What all tests share: property tests repeat exactly, no deadline, for machines that others use as well,
interruptions that are heard, bytecode that is kept, an empty cache of machine code for each test: some plant
faults in the compiler; passes that are verified in a share of them; and the processors that
they may use, which each test leaves as they were."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from tests.said import Strata, refusal
from tests.sample import all_asked, is_drawn, sample_of

settings.register_profile("strata", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("fuzz", settings.get_profile("strata"), derandomize=False, max_examples=1000)  # make fuzz
settings.load_profile("strata")
os.environ.setdefault("STRATA_SCHEDULE", "written")  # most tests are of programs as they stand
gc.set_threshold(50_000, 20, 50)  # IR and trees are many objects, and few of them are garbage
# Tests start hundreds of processes: without bytecode each compiles all sources of the package, for a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
VERIFY_EACH = "STRATA_VERIFY_EACH"
os.environ[VERIFY_EACH] = str(int(all_asked()))
VERIFIED = ("tests/unit/lowering/", "tests/unit/passes/")
"""The folders in whose tests modules are verified after each pass; in others it is a share of the tests."""


DOORS = ("torch", "onnx")
"""What tests with the mark `doors` need."""


def pytest_configure(config: pytest.Config) -> None:
    """The marks of tests that need torch and ONNX, which `make test-doors` runs, and of large families of cases."""
    config.addinivalue_line("markers", f"doors: needs {' and '.join(DOORS)}")
    config.addinivalue_line("markers", "sampled: a run takes a fourth of the cases, at least three; make test-all all")


SHARE = "STRATA_TEST_SHARE"
"""The environment variable that, set to N, keeps one test in N, always the same ones."""


@pytest.hookimpl(trylast=True)  # behind the filters -k and -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a sample of the large families, and the share of the tests that the environment asks for."""
    step = int(os.environ.get(SHARE, 1))
    families: dict[str, list[str]] = {}
    for item in items:
        family = item.nodeid.partition("[")[0] if item.get_closest_marker("sampled") else item.nodeid
        families.setdefault(family, []).append(item.nodeid)
    kept = {case for cases in families.values() for case in sample_of(cases) if is_drawn(case, step)}
    dropped = [item for item in items if item.nodeid not in kept]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item.nodeid in kept]


def pytest_collection_finish() -> None:
    """What was imported and collected stays: no later search for garbage looks at it."""
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs a package that is not installed."""
    if item.get_closest_marker("doors"):
        for name in DOORS:
            if find_spec(name) is None:
                pytest.skip(f"{name} is not installed")


@pytest.fixture(autouse=True, scope="session")
def _runnable() -> Iterator[None]:
    """Kernels for another architecture, by STRATA_MACHINE, run under qemu."""
    from tests import qemu_calls

    with qemu_calls.installed() if os.environ.get("STRATA_MACHINE") and qemu_calls.is_needed() else nullcontext():
        yield


@pytest.fixture(autouse=True, scope="session")
def _interruptible() -> None:
    """A shell that begins the tests in the background has them ignore interruptions."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


CACHE, TESTS = "STRATA_CACHE_DIR", count()
LOCKS = f"strata-fleet-{os.getuid()}"
"""The folder of the locks of this host's fleet workers, which stays."""


@pytest.fixture(autouse=True, scope="session")
def _temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The temporary folder of the tests and of the processes that they start: they leave none of ours there.

    It is in pytest's, which later runs remove, so that tests that are killed leave nothing either.
    """
    folder, before = tmp_path_factory.mktemp("t"), os.environ.get("TMPDIR")
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
    yield folder
    tempfile.tempdir = None
    os.environ.pop("TMPDIR")
    if before is not None:
        os.environ["TMPDIR"] = before
    left = sorted(path.name for path in folder.glob("strata-*") if path.name != LOCKS)
    assert not left, f"the tests have left folders in the temporary folder: {left}"


@pytest.fixture(autouse=True, scope="session")
def _caches(_temporary: Path) -> Iterator[str]:
    """The folder of all caches; what is not built in a test has one of its own."""
    with tempfile.TemporaryDirectory(prefix="strata-caches-") as folder:
        os.environ.pop("STRATA_CACHE", None)
        os.environ[CACHE] = os.path.join(folder, "shared")
        yield folder


@pytest.fixture(autouse=True)
def _empty_cache(_caches: str) -> Iterator[None]:
    """A cache of this test's, for its processes as well; the folder is made when something is kept."""
    before, own = os.environ[CACHE], os.path.join(_caches, str(next(TESTS)))
    os.environ[CACHE] = own
    yield
    os.environ[CACHE] = before
    shutil.rmtree(own, ignore_errors=True)


@pytest.fixture(autouse=True)
def _verified(request: pytest.FixtureRequest) -> Iterator[None]:
    """Modules are verified after each pass in tests of passes, and in one of five others: it takes half of a build."""
    name = request.node.nodeid
    before, os.environ[VERIFY_EACH] = os.environ[VERIFY_EACH], str(int(name.startswith(VERIFIED) or is_drawn(name, 5)))
    yield
    os.environ[VERIFY_EACH] = before


@pytest.fixture(autouse=True, scope="session")
def _short_samples() -> Iterator[None]:
    """Candidates that this process has measured are timed in few short samples, unless the test says otherwise."""
    from compiler.autotune.measure.limits import Limits, Sampling

    short = Sampling(min_seconds=1e-4, min_samples=2, max_samples=3, seconds=0.05)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Limits.__init__, "__defaults__", (*Limits.__init__.__defaults__[:-1], short))
        yield


@pytest.fixture(autouse=True)
def _same_processors() -> Iterator[None]:
    """A test that keeps its process to fewer processors would have later ones run there, or be skipped."""
    before = _processors()
    yield
    assert _processors() == before, "the test has changed the processors that its process may use"


def _processors() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


@pytest.fixture
def strata(capsys: pytest.CaptureFixture[str]) -> Strata:
    """Run a command and return what it prints; with status 1 and nothing printed, its one sentence. On stderr there may
    be the line that names another machine than this one, nothing else."""

    def run(*arguments: str, status: int = 0) -> str:
        from compiler.__main__ import main

        assert main(list(arguments)) == status
        out, err = capsys.readouterr()
        if status == 1 and not out:
            return refusal(err)
        assert [line for line in err.splitlines() if not line.startswith("strata: code for ")] == []
        return out

    return run
