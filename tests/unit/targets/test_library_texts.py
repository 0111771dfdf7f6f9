"""Texts of libraries: LLVM IR and assembly for each processor, and one C file of which a compiler makes the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strata
from compiler.__main__ import main
from compiler.targets import compilers
from compiler.types.machines import MACHINES
from compiler.types.selection import compiling_for
from strata import te
from strata.errors import InputError, TargetError
from tests.unit.targets.libraries import INPUTS, WEIGHTS, needs_compiler, network, normal


def doubled() -> te.Function:
    """A program of one compute."""
    A = te.placeholder((64, 64), name="A")
    return te.function("net", [A], te.nn.add(A, A, name="B"))


def names(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


@needs_compiler
def test_a_folder_has_the_texts_of_each_version(tmp_path: Path) -> None:
    cpus = ("haswell", "x86-64")
    paths = strata.export(doubled(), tmp_path / "net", cpus=cpus, threads=1, schedule="auto")
    texts = {path.name: path.read_text() for path in paths if path.suffix in (".ll", ".s")}
    assert set(texts) == {f"net.{cpu}.{end}" for cpu in ("haswell", "x86-64") for end in ("ll", "s")}
    assert "<8 x float>" in texts["net.haswell.ll"] and "<8 x float>" not in texts["net.x86-64.ll"]
    assert "ymm" in texts["net.haswell.s"] and "ymm" not in texts["net.x86-64.s"]
    assert all('define void @"net"' in text for name, text in texts.items() if name.endswith(".ll"))


@needs_compiler
def test_a_kernel_writes_its_texts_and_those_of_its_preparation(tmp_path: Path) -> None:
    x, w = te.placeholder((64, 256), name="x"), te.placeholder((256, 128), name="w")
    with compiling_for(MACHINES["haswell"]):
        f = te.function("f", [x, w], te.nn.matmul(x, w, name="y"))
        kernel = strata.build(f, threads=1, constants={"w": normal(256, 128)}, schedule="auto")
        written = names(kernel.export(tmp_path / "f"))
    assert {"f.ll", "f.s", "f.prepare.ll", "f.prepare.s"} <= set(written)
    assert "prepare" in (tmp_path / "f/f.prepare.ll").read_text()
    for name in ("f.c", "f.ll", "f.s"):
        with pytest.raises(InputError, match=f"a kernel is written as a library, '{name}' is written by strata.export"):
            kernel.export(tmp_path / name)


def test_texts_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a C compiler."""
    monkeypatch.setattr(compilers, "compiler_command", lambda: None)
    monkeypatch.chdir(tmp_path)
    assert names(strata.export(doubled(), "net.ll", cpus=("haswell",), threads=1, schedule="auto")) == ["net.ll"]
    assert "<8 x float>" in Path("net.ll").read_text()
    Path("net.mlir").write_text(str(doubled().module))
    build = ["build", "net.mlir", "--threads", "1", "-o"]
    assert main([*build, "net.s", "--cpu", "haswell,x86-64"]) == 0
    assert capsys.readouterr().out.split() == ["net.haswell.s", "net.x86-64.s"]
    assert main([*build, "net.s"]) == 0 and main([*build, "net.ll"]) == 0 and main([*build, "net.c"]) == 0
    assert main([*build, "net.c", "--cpu", "haswell"]) == 1
    assert "net.c has its weights, and is for any processor and one thread" in capsys.readouterr().err


def compiled(source: Path) -> Path:
    """The shared library of a C file."""
    library = source.with_name(f"lib{source.stem}.so")
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-shared", "-fPIC"]
    compilers.run_compiler([*flags, source.name, "-lm", "-o", library.name], source.parent)
    return library


@needs_compiler
@pytest.mark.parametrize("constants", [{}, WEIGHTS], ids=["inputs", "weights"])
def test_a_c_file_is_the_library(constants: dict[str, Any], tmp_path: Path) -> None:
    source = tmp_path / "net.c"
    assert names(strata.export(network(), source, constants=constants)) == ["net.h", "net.hpp", "net.c"]
    loaded = strata.load(compiled(source))
    inputs = INPUTS if constants else [*INPUTS, *WEIGHTS.values()]
    assert len(loaded.arguments) == len(inputs) + 2
    for actual, expected in zip(loaded(*inputs), strata.build(network())(*INPUTS, *WEIGHTS.values()), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
    (tmp_path / "net.h").unlink()
    compiled(source)  # it needs no other file


@needs_compiler
def test_names_in_a_c_file(tmp_path: Path) -> None:
    """Constants and arrays that are called like parts of the text."""
    words = ("INPUTS", "VERSIONS", "NET_OK", "check", "fill", "HEADER_BYTES", "strata_program", "int", "a b", "größe")
    tensors = [te.placeholder((2,), name=word) for word in words]
    total = te.nn.mul(tensors[0], te.constant(np.arange(2, dtype=np.float32), name="OUTPUTS"))
    for tensor in tensors[1:]:
        total = te.nn.add(total, tensor)
    arrays = [normal(2, seed=number) for number in range(len(words))]
    f, weights = te.function("check", tensors, [total]), dict(list(zip(words, arrays, strict=True))[1::2])
    strata.export(f, tmp_path / "net.c", constants=weights)
    inputs = [array for word, array in zip(words, arrays, strict=True) if word not in weights]
    expected = strata.build(f, constants=weights)(*inputs)
    np.testing.assert_allclose(strata.load(compiled(tmp_path / "net.c"))(*inputs), expected, rtol=1e-6)


def test_what_a_c_file_cannot_be(tmp_path: Path) -> None:
    source, words = tmp_path / "net.c", "net.c has its weights, and is for any processor and one thread: state none of"
    for wrong in ({"cpus": ("haswell",)}, {"features": "+fma"}, {"threads": 2}, {"weights": "none"}, {"error": 0.1}):
        with pytest.raises(InputError, match=words):
            strata.export(network(), source, **wrong)
    with pytest.raises(InputError, match="has no input 'Q'"):
        strata.export(network(), source, constants={"Q": normal(2)})
    with pytest.raises(TargetError, match="W"):
        strata.export(network(), source, constants={"W": normal(2)})
    assert not source.exists()
