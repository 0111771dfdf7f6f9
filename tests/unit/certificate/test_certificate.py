"""Certificates of libraries: proofs anew from text, hashes, and what is said of changed files."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import strata
from compiler.__main__ import main
from compiler.certificate.elf import sections
from compiler.certificate.text import Certificate, parse
from compiler.driver.emission_again import emitted_again
from compiler.pipeline.certified import check_certificate, verdict_of
from compiler.support.errors import InputError
from compiler.targets import compilers
from strata import te

pytestmark = pytest.mark.skipif(compilers.compiler_command() is None, reason="there is no C compiler")
N = 32


def network() -> te.Function:
    """Two groups: a product with a softmax, and a sum."""
    x, w = te.placeholder((N, N), name="x"), te.placeholder((N, N), name="w")
    hidden = te.nn.softmax(te.nn.matmul(x, w, name="h"), name="s")
    return te.function("network", [x, w], te.nn.softmax(te.nn.matmul(hidden, w, name="y"), name="z"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of two processors, with a constant."""
    path = tmp_path_factory.mktemp("certified") / "libnet.so"
    weights = {"w": np.random.default_rng(0).random((N, N), np.float32)}
    strata.export(network(), path, cpus=("native", "haswell"), threads=1, constants=weights, schedule="auto")
    return path


def certificate_of(library: Path) -> Certificate:
    return parse(library.with_name("net.certificate.json").read_text(), "it")


def findings(library: Path, certificate: Path | None = None) -> list[str]:
    """What does not hold of a library."""
    return [str(finding) for finding in check_certificate(library, certificate) if not finding.holds]


def written(certificate: Certificate, folder: Path) -> Path:
    path = folder / "changed.json"
    path.write_text(certificate.text())
    return path


def test_all_schedules_are_proved_and_emitted_again(library: Path) -> None:
    stated = list(check_certificate(library))
    assert all(finding.holds for finding in stated) and sum("proved" in str(finding) for finding in stated) >= 4
    again = list(emitted_again(library))
    assert all(finding.holds for finding in again) and any(f.subject.endswith("main") for f in again)


def test_a_kernel_of_one_nest(tmp_path: Path) -> None:
    a = te.placeholder((N, N), name="A")
    kernel = strata.build(te.function("f", [a], te.nn.softmax(a, name="B")), threads=1, schedule="auto")
    kernel.export(tmp_path / "libf.so")
    assert findings(tmp_path / "libf.so") == []
    assert all(finding.holds for finding in emitted_again(tmp_path / "libf.so"))
    for name in ("f.o", "f.a"):
        kernel.export(tmp_path / name)
        assert findings(tmp_path / name) == []


def test_written_loops_with_weights_are_proved(tmp_path: Path) -> None:
    x, w = te.placeholder((N, N), name="x"), te.placeholder((N, N), name="w")
    f = te.function("f", [x, w], te.nn.matmul(x, w, name="y"))
    strata.export(f, tmp_path / "f.o", threads=1, constants={"w": np.ones((N, N), np.float32)}, schedule="written")
    assert findings(tmp_path / "f.o") == []
    assert all(finding.holds for finding in emitted_again(tmp_path / "f.o"))


def test_a_low_program_is_undecided_and_emitted_again(tmp_path: Path) -> None:
    a = te.placeholder((N,), name="A")
    low = strata.build(te.function("f", [a], te.nn.exp(a, name="B")), threads=1).text("low")
    strata.export(low, tmp_path / "f.o", threads=1)
    (line,) = findings(tmp_path / "f.o")
    assert "undecided" in line
    assert all(finding.holds for finding in emitted_again(tmp_path / "f.o"))


def test_a_wrong_schedule_is_refuted(library: Path) -> None:
    version = certificate_of(library).versions[0]
    group = next(group for group in version.groups if "matmul" in group.te or "arith.mulf" in group.te)
    wrong = replace(group, loops=group.loops.replace("arith.mulf", "arith.addf", 1))
    assert wrong != group and verdict_of(group)
    assert verdict_of(wrong).answer == "refuted"


def test_loops_without_a_te_function_are_undecided(library: Path) -> None:
    group = certificate_of(library).versions[0].groups[0]
    assert verdict_of(replace(group, te="")).answer == "undecided"


def test_changed_certificates_are_found(library: Path, tmp_path: Path) -> None:
    stated = certificate_of(library)
    text = library.with_name("net.certificate.json").read_text()
    (tmp_path / "edited.json").write_text(text.replace('"source": "model"', '"source": "written"', 1))
    with pytest.raises(InputError, match="was changed: its digest is not that of its text"):
        findings(library, tmp_path / "edited.json")
    other = replace(stated, error=0.5)
    (line,) = findings(library, written(other, tmp_path))
    assert "does not name this certificate" in line
    (line,) = findings(library, written(replace(stated, interface=stated.interface + " "), tmp_path))[1:]
    assert line.endswith("has another interface")
    sections_changed = replace(stated, sections={**stated.sections, ".text": "0" * 64})
    (line,) = findings(library, written(sections_changed, tmp_path))
    assert line.endswith(".text changed")


def test_a_changed_library_is_found(library: Path, tmp_path: Path) -> None:
    payload = bytearray(library.read_bytes())
    code = sections(bytes(payload), "it")[".text"]
    payload[bytes(payload).index(code) + len(code) // 2] ^= 1
    changed = tmp_path / "libnet.so"
    changed.write_bytes(payload)
    (line,) = findings(changed, library.with_name("net.certificate.json"))
    assert line.endswith(".text changed")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no certificate"),
        ("[]", "is no certificate"),
        ("{}", "is no certificate"),
        ('{"strata_certificate": 99}', "of another format"),
        ('{"strata_certificate": 2, "digest": "", "versions": 3}', "is no certificate"),
        ('{"strata_certificate": 2, "digest": "", "versions": [{}]}', "is no certificate"),
    ],
)
def test_texts_that_are_no_certificate(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse(text, "it")


def test_files_that_are_no_elf(library: Path) -> None:
    with pytest.raises(InputError, match="is not an ELF file"):
        sections(b"", "it")
    with pytest.raises(InputError, match="is not an ELF file"):
        sections(b"!<arch>\n" + b"x" * 60, "it")
    with pytest.raises(InputError, match="is a damaged ELF file"):
        sections(library.read_bytes()[:100], "it")


def test_the_command(library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(library), "--emit-again"]) == 0
    out = capsys.readouterr().out
    assert "names this certificate" in out and "main: emitted again to the same code" in out
    assert "not proved: the lowering of the scheduled loops to machine code is hashed, not proved" in out
    changed = written(replace(certificate_of(library), error=0.5), tmp_path)
    assert main(["verify", str(library), "--certificate", str(changed)]) == 1
    assert main(["verify", str(tmp_path / "none.so")]) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_the_check_imports_nothing_of_the_scheduler(library: Path) -> None:
    rooms = ("schedule", "autotune", "driver", "space", "recipes", "targets")
    code = f"""
import sys
from compiler.__main__ import main
status = main(["verify", {str(library)!r}])
print(status, [m for m in sys.modules if m.startswith(tuple("compiler." + room for room in {rooms!r}))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


def test_laws_have_their_conditions(tmp_path: Path) -> None:
    x, w = te.placeholder((1, 64, 28, 28), name="X"), te.placeholder((64, 64, 3, 3), name="W")
    f = te.function("f", [x, w], te.nn.relu(te.nn.conv2d(x, w, padding=1, name="Y")))
    weights = {"W": np.random.default_rng(0).random((64, 64, 3, 3), np.float32)}
    strata.export(f, tmp_path / "net.o", threads=1, constants=weights, schedule="auto", error=1e-3)
    (version,) = certificate_of(tmp_path / "net.o").versions
    laws = {group.law for group in version.groups if group.law}
    assert laws == set(version.laws) and laws <= {"winograd-2x2", "winograd-4x4"} and laws
    assert all("no intermediate result overflows" in words for words in version.laws.values())


def test_it_is_json_with_limits(library: Path) -> None:
    facts = json.loads(library.with_name("net.certificate.json").read_text())
    assert facts["strata_certificate"] == 2 and len(facts["not_proved"]) == 3
    assert {version["cpu"] for version in facts["versions"]} >= {"haswell"}
