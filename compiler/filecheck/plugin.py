"""A pytest plugin: collects `.mlir` files with RUN lines in the folders of its option `strata_filecheck`."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.filecheck.payload import FOLDER

OPTION = "strata_filecheck"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addini(OPTION, "folders with FileCheck tests of strata-opt: *.mlir with RUN lines", type="paths", default=[])


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a file in one of the folders, except payloads."""
    folders: list[Path] = parent.config.getini(OPTION)
    is_test = file_path.suffix == ".mlir" and file_path.parent.name != FOLDER
    if not is_test or not any(file_path.is_relative_to(folder) for folder in folders):
        return None
    return MlirFile.from_parent(parent, path=file_path)


class MlirFile(pytest.File):
    """A file with one test."""

    def collect(self) -> list[pytest.Item]:
        """Yield the test."""
        return [MlirTest.from_parent(self, name=self.path.stem)]


class MlirTest(pytest.Item):
    """The RUN lines of a file."""

    def runtest(self) -> None:
        """Run them. Raises FileCheckError."""
        from compiler.filecheck.runner import check

        check(self.path)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        """The failure's message; with a traceback only for unexpected exceptions."""
        from compiler.filecheck.payload import FileCheckError

        if isinstance(excinfo.value, FileCheckError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        """The location of the test."""
        return self.path, 0, self.name
