"""All FileCheck files, and that the runner itself can fail."""

from pathlib import Path

import pytest

from tests.filecheck_runner import FileCheckError, check

ROOT = Path(__file__).parent / "filecheck"
FILES = sorted(ROOT.rglob("*.mlir"))


@pytest.mark.parametrize("path", FILES, ids=[str(p.relative_to(ROOT)) for p in FILES])
def test_file(path: Path) -> None:
    check(path)


FUNCTION = "func.func @f() {\n  func.return\n}\n"


@pytest.mark.parametrize(
    "text",
    [
        FUNCTION,
        "// RUN: strata-opt %s | filecheck %s\n" + FUNCTION,
        "// RUN: strata-opt %s | filecheck %s\n// CHECK: nowhere\n" + FUNCTION,
        "// RUN: strata-opt %s | filecheck %s\n// CHECK: func\n// CHECK nothing\n" + FUNCTION,
        "// RUN: not strata-opt %s\n" + FUNCTION,
        "// RUN: strata-opt %s --verify-diagnostics\n// expected-error@+1 {{never}}\n" + FUNCTION,
    ],
)
def test_the_runner_fails(tmp_path: Path, text: str) -> None:
    path = tmp_path / "case.mlir"
    path.write_text(text)
    with pytest.raises(FileCheckError):
        check(path)
