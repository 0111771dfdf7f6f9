"""Wrong calls of a library's C functions: each returns its status, and no byte of the caller's memory changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strata
from compiler.targets.cpu.library.description import HEADER_BYTES
from compiler.targets.cpu.library.source import MOST_THREADS
from tests import guard_pages
from tests.programs import matmul
from tests.unit.targets.libraries import INPUTS, SHAPES, WEIGHTS, Array, Block, Call, CLibrary, needs_compiler, network

pytestmark = needs_compiler
WEIGHT_NAMES = sorted(WEIGHTS)


@dataclass
class Setting:
    """A library, its file of weights, the block with the memory of a call, the call, and the expected results."""

    library: CLibrary
    file: Path
    block: Block
    call: Call
    expected: tuple[Array, ...]

    @property
    def constants_bytes(self) -> int:
        return self.block.sizes["constants"]

    def prepare(self) -> str:
        weights = [self.block[name] for name in WEIGHT_NAMES]
        return self.library.prepare(weights, self.block["constants"], self.constants_bytes)

    def restore(self) -> None:
        """The memory as before a right call."""
        self.block.bytes[:] = Block.CANARY
        for name, array in [*WEIGHTS.items(), *zip("xy", INPUTS, strict=True)]:
            self.block.array(name)[:] = np.frombuffer(array.tobytes(), np.uint8)
        assert self.prepare() == "OK"
        self.block.remember()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    folder = tmp_path_factory.mktemp("calls")
    kernel = strata.build(network(), threads=1, constants=WEIGHTS, schedule="auto")
    strata.export(network(), folder / "libnet.so", "file", threads=1, constants=WEIGHTS, schedule="auto")
    library = CLibrary(folder / "libnet.so")
    sizes = {name: array.nbytes for name, array in [*WEIGHTS.items(), *zip("xy", INPUTS, strict=True)]}
    sizes |= {name: 4 * rows * columns for name, (rows, columns) in zip("pq", SHAPES, strict=True)}
    memory = {"constants": library.constants_bytes, "workspace": library.workspace_bytes()}
    block = Block({**sizes, **memory})
    inputs, outputs = (block["x"], block["y"]), (block["p"], block["q"])
    call = Call(block["constants"], inputs, outputs, block["workspace"], memory["workspace"])
    return Setting(library, folder / "net.safetensors", block, call, kernel(*INPUTS))


@pytest.fixture
def setting(shared: Setting) -> Setting:
    shared.restore()
    return shared


def check_refused(setting: Setting, status: str, call: Call) -> None:
    assert setting.library.run(call) == status
    assert setting.block.changed == set()


def test_a_right_call_changes_its_results_and_workspace_alone(setting: Setting) -> None:
    assert setting.library.run(setting.call) == "OK"
    assert setting.block.changed == {"p", "q", "workspace"}
    for name, array in zip("pq", setting.expected, strict=True):
        assert setting.block.array(name).tobytes() == array.tobytes()


@pytest.mark.parametrize("at_end", [False, True])
def test_a_right_call_between_forbidden_pages(shared: Setting, at_end: bool) -> None:
    """A read or write outside an array would end the process."""
    library, sizes = shared.library, shared.block.sizes
    memory = {name: guard_pages.memory(size, at_end) for name, size in sizes.items()}
    for name, array in [*WEIGHTS.items(), *zip("xy", INPUTS, strict=True)]:
        memory[name][:] = np.frombuffer(array.tobytes(), np.uint8)
    at = {name: int(array.ctypes.data) for name, array in memory.items()}
    weights = [at[name] for name in WEIGHT_NAMES]
    assert library.prepare(weights, at["constants"], sizes["constants"]) == "OK"
    call = Call(at["constants"], (at["x"], at["y"]), (at["p"], at["q"]), at["workspace"], sizes["workspace"])
    assert library.run(call) == "OK"
    for name, array in zip("pq", shared.expected, strict=True):
        assert memory[name].tobytes() == array.tobytes()


Change = Callable[[Setting, Any], Call]
RUNS: dict[str, tuple[str, Change]] = {
    "no constants": ("NULL", lambda s, c: replace(c, constants=None)),
    "no inputs": ("NULL", lambda s, c: replace(c, inputs=None)),
    "no outputs": ("NULL", lambda s, c: replace(c, outputs=None)),
    "no first input": ("NULL", lambda s, c: replace(c, inputs=(None, s.block["y"]))),
    "no last input": ("NULL", lambda s, c: replace(c, inputs=(s.block["x"], None))),
    "no first output": ("NULL", lambda s, c: replace(c, outputs=(None, s.block["q"]))),
    "no last output": ("NULL", lambda s, c: replace(c, outputs=(s.block["p"], None))),
    "no workspace": ("NULL", lambda s, c: replace(c, workspace=None)),
    "constants between elements": ("MISALIGNED", lambda s, c: replace(c, constants=s.block["constants"] + 1)),
    "constants at 32 bytes": ("MISALIGNED", lambda s, c: replace(c, constants=s.block["constants"] + 32)),
    "first input misaligned": ("MISALIGNED", lambda s, c: replace(c, inputs=(s.block["x"] + 1, s.block["y"]))),
    "last input misaligned": ("MISALIGNED", lambda s, c: replace(c, inputs=(s.block["x"], s.block["y"] + 2))),
    "first output misaligned": ("MISALIGNED", lambda s, c: replace(c, outputs=(s.block["p"] + 3, s.block["q"]))),
    "last output misaligned": ("MISALIGNED", lambda s, c: replace(c, outputs=(s.block["p"], s.block["q"] + 1))),
    "workspace misaligned": ("MISALIGNED", lambda s, c: replace(c, workspace=s.block["workspace"] + 32)),
    "workspace too small": ("TOO_SMALL", lambda s, c: replace(c, workspace_bytes=c.workspace_bytes - 1)),
    "workspace of no bytes": ("TOO_SMALL", lambda s, c: replace(c, workspace_bytes=0)),
    "an output is an input": ("OVERLAP", lambda s, c: replace(c, outputs=(s.block["y"], s.block["q"]))),
    "an output begins in an input": ("OVERLAP", lambda s, c: replace(c, outputs=(s.block["p"], s.block["x"] + 4092))),
    "an output ends in an input": ("OVERLAP", lambda s, c: replace(c, outputs=(s.block["p"], s.block["y"] - 2044))),
    "outputs are equal": ("OVERLAP", lambda s, c: replace(c, outputs=(s.block["p"], s.block["p"]))),
    "an output begins in another": ("OVERLAP", lambda s, c: replace(c, outputs=(s.block["p"], s.block["p"] + 3068))),
    "an output ends in another": ("OVERLAP", lambda s, c: replace(c, outputs=(s.block["q"] - 3068, s.block["q"]))),
    "an output in the constants": (
        "OVERLAP",
        lambda s, c: replace(c, outputs=(s.block["constants"] + 64, s.block["q"])),
    ),
    "an output in their header": (
        "OVERLAP",
        lambda s, c: replace(c, outputs=(s.block["p"], s.block["constants"] - 2044)),
    ),
    "an output at their end": (
        "OVERLAP",
        lambda s, c: replace(c, outputs=(s.block["constants"] + s.constants_bytes - 4, s.block["q"])),
    ),
    "an output in the workspace": ("OVERLAP", lambda s, c: replace(c, outputs=(s.block["p"], s.block["workspace"]))),
    "an output at its end": (
        "OVERLAP",
        lambda s, c: replace(c, outputs=(s.block["p"], s.block["workspace"] + c.workspace_bytes - 4)),
    ),
    "the workspace is an input": ("OVERLAP", lambda s, c: replace(c, workspace=s.block["y"])),
    "the workspace begins in an input": ("OVERLAP", lambda s, c: replace(c, workspace=s.block["x"] + 4032)),
    "the workspace is the constants": ("OVERLAP", lambda s, c: replace(c, workspace=s.block["constants"])),
    "the workspace ends in the constants": (
        "OVERLAP",
        lambda s, c: replace(c, workspace=s.block["constants"] - c.workspace_bytes + 64),
    ),
    **{
        f"{count} threads": ("THREADS", lambda s, c, count=count: replace(c, threads=count))
        for count in (0, -1, -(1 << 31), MOST_THREADS + 1, 5000, (1 << 31) - 1)
    },
}


@pytest.mark.parametrize("case", RUNS)
def test_a_wrong_call(case: str, setting: Setting) -> None:
    status, change = RUNS[case]
    check_refused(setting, status, change(setting, setting.call))


def test_arrays_that_touch_do_not_overlap(setting: Setting) -> None:
    p, constants = setting.block["p"], setting.block["constants"]
    for outputs in ((p, p + 3072), (p, p - 2048), (p, constants - 2048), (constants + setting.constants_bytes, p)):
        assert setting.library.run(replace(setting.call, outputs=outputs)) == "OK"


def test_inputs_may_overlap(setting: Setting) -> None:
    x, y = setting.block["x"], setting.block["x"] + 1024
    assert setting.library.run(replace(setting.call, inputs=(x, y))) == "OK"
    assert "canaries" not in setting.block.changed


def test_constants_of_others(setting: Setting, tmp_path: Path) -> None:
    """Constants that were not filled, by another library, by another build, and with a wrong version."""
    builds = {"other": {"schedule": "auto", "policy": "strict"}, "net": {"schedule": "written"}}
    stranger = setting.block.array("constants")
    right = stranger[:HEADER_BYTES].copy()
    for name, options in builds.items():
        strata.build(network(), threads=1, constants=WEIGHTS, **options).export(tmp_path / f"lib{name}.so")
        library = CLibrary(tmp_path / f"lib{name}.so")
        assert library.constants_bytes <= setting.constants_bytes
        assert library.prepare(None, setting.block["constants"], setting.constants_bytes) == "OK"
        assert stranger[:8].tobytes() != right[:8].tobytes()
        setting.block.remember()
        check_refused(setting, "UNPREPARED", setting.call)
    for header in (
        np.zeros(HEADER_BYTES, np.uint8),
        np.full(HEADER_BYTES, 0xFF, np.uint8),
        np.concatenate([right[:8], np.full(4, 0xFF, np.uint8), right[12:]]),
        np.concatenate([right[:8], np.array([1, 0, 0, 0], np.uint8), right[12:]]),
        np.concatenate([right[:7], right[7:8] ^ 1, right[8:]]),
        np.concatenate([right[:1] ^ 1, right[1:]]),
    ):
        stranger[:HEADER_BYTES] = header
        setting.block.remember()
        check_refused(setting, "UNPREPARED", setting.call)
    stranger[:HEADER_BYTES] = right
    assert setting.prepare() == "OK" and setting.library.run(setting.call) == "OK"


def test_wrong_memory_for_constants(setting: Setting) -> None:
    block, size = setting.block, setting.constants_bytes
    weights = [block[name] for name in WEIGHT_NAMES]
    for status, given, constants, room in (
        ("NULL", weights, None, size),
        ("NULL", None, block["constants"], size),
        *(("NULL", [*weights[:n], None, *weights[n + 1 :]], block["constants"], size) for n in range(3)),
        *(
            ("MISALIGNED", [*weights[:n], weights[n] + 2, *weights[n + 1 :]], block["constants"], size)
            for n in range(3)
        ),
        ("MISALIGNED", weights, block["constants"] + 16, size),
        ("TOO_SMALL", weights, block["constants"], size - 1),
        ("TOO_SMALL", weights, block["constants"], HEADER_BYTES),
        ("TOO_SMALL", weights, block["constants"], 0),
        ("OVERLAP", weights, block["W"], size),
        ("OVERLAP", [block["constants"] + size - 4, *weights[1:]], block["constants"], size),
        ("OVERLAP", [*weights[:2], block["constants"]], block["constants"], size),
    ):
        assert setting.library.prepare(given, constants, room) == status
        assert block.changed == set()
    for status, path, constants, room in (
        ("NULL", None, block["constants"], size),
        ("NULL", setting.file, None, size),
        ("MISALIGNED", setting.file, block["constants"] + 1, size),
        ("TOO_SMALL", setting.file, block["constants"], size - 1),
    ):
        assert setting.library.prepare_file(path, constants, room) == status
        assert block.changed == set()


def test_files_of_weights(setting: Setting, tmp_path: Path) -> None:
    block, size, content = setting.block, setting.constants_bytes, setting.file.read_bytes()

    def prepared(path: Path) -> str:
        return setting.library.prepare_file(path, block["constants"], size)

    assert prepared(setting.file) == "OK" and block.changed == set()  # the same constants
    file = tmp_path / "file"
    for damaged in (b"", content[:-1], content[:64], content + b"\0", bytes(len(content)), content[64:] + content[:64]):
        file.write_bytes(damaged)
        assert prepared(file) == "DAMAGED" and block.changed == set()
    for position in (0, 9, len(content) // 3, len(content) // 2, len(content) - 1):
        for bit in (0, 7):
            flipped = bytearray(content)
            flipped[position] ^= 1 << bit
            file.write_bytes(flipped)
            assert prepared(file) == "DAMAGED" and block.changed == set(), (position, bit)
    first, second = content[-8:], content[-16:-8]
    file.write_bytes(content[:-16] + first + second)
    assert prepared(file) == "DAMAGED" and block.changed == set()
    assert prepared(tmp_path / "missing") == prepared(tmp_path / "file" / "below") == "FILE"
    assert prepared(tmp_path) == "DAMAGED" and prepared(Path("")) in ("FILE", "DAMAGED")
    if os.geteuid():
        file.chmod(0)
        assert prepared(file) == "FILE"
    assert block.changed == set() and setting.library.run(setting.call) == "OK"


def test_a_library_without_weights_takes_none(tmp_path: Path) -> None:
    strata.export(network(), tmp_path / "libnet.so", threads=1)
    library = CLibrary(tmp_path / "libnet.so")
    assert library.constants_bytes == HEADER_BYTES
    block = Block({"constants": HEADER_BYTES})
    assert library.prepare(None, block["constants"], HEADER_BYTES) == "OK" and block.changed == {"constants"}
    assert library.prepare(None, block["constants"], HEADER_BYTES - 1) == "TOO_SMALL"
    assert [library.workspace_bytes(count) for count in (0, -1, MOST_THREADS + 1)] == [0, 0, 0]


def test_a_library_without_a_workspace_ignores_it(tmp_path: Path) -> None:
    """Its name makes MOST_THREADS of a status."""
    strata.export(matmul(4, 4, 4), tmp_path / "libmost.so", threads=1)
    library, block = CLibrary(tmp_path / "libmost.so"), Block({"constants": 64, "A": 64, "B": 64, "C": 64})
    block.array("A").view(np.float32)[:] = block.array("B").view(np.float32)[:] = 1
    assert library.workspace_bytes() == 0 and library.prepare(None, block["constants"], 64) == "OK"
    for workspace in (None, 1, block["C"], block["constants"] + 8):
        call = Call(block["constants"], (block["A"], block["B"]), (block["C"],), workspace, 0)
        assert library.run(call) == "OK"
    assert (block.array("C").view(np.float32) == 4).all()
    assert library.run(replace(call, threads=0)) == "THREADS"
