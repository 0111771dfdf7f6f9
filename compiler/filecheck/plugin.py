"""A pytest plugin: collects the `.mlir` files in the folders of its option `strata_filecheck`; one without RUN lines
fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.filecheck.payload import FOLDER

OPTION = "strata_filecheck"
SUBSTITUTIONS = "strata_filecheck_substitutions"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini options: `strata_filecheck`, the folders with tests, and the substitutions of their RUN lines,
    NAME=TEXT; others are ignored."""
    parser.addini(OPTION, "folders with FileCheck tests of strata-opt: *.mlir with RUN lines", type="paths", default=[])
    parser.addini(SUBSTITUTIONS, "NAME=TEXT for each %{NAME} of their RUN lines", type="linelist", default=[])


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect an .mlir file in one of the folders of the option, except payloads; None for other files."""
    folders: list[Path] = parent.config.getini(OPTION)
    is_test = file_path.suffix == ".mlir" and file_path.parent.name != FOLDER
    if not is_test or not any(file_path.is_relative_to(folder) for folder in folders):
        return None
    return MlirFile.from_parent(parent, path=file_path)


class MlirFile(pytest.File):
    """A FileCheck file, which is one test."""

    def collect(self) -> list[pytest.Item]:
        """Return the test of the file, in a list."""
        return [MlirTest.from_parent(self, name=self.path.stem)]


class MlirTest(pytest.Item):
    """The test that runs the RUN lines of a file."""

    def runtest(self) -> None:
        """Run the RUN lines; skip a file that is not run here. Raises FileCheckError for a failure."""
        from compiler.filecheck.runner import Unsupported, check

        settings: list[str] = self.config.getini(SUBSTITUTIONS)
        try:
            check(self.path, dict(setting.split("=", 1) for setting in settings if "=" in setting))
        except Unsupported as reason:
            pytest.skip(str(reason))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        """The message of a failure; a traceback for exceptions other than FileCheckError, in pytest's default style:
        `style` is not read."""
        from compiler.filecheck.payload import FileCheckError

        if isinstance(excinfo.value, FileCheckError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        """The file, its line 0, and the name of the test."""
        return self.path, 0, self.name
