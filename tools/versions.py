"""Try the package with other versions of its dependencies: `python tools/versions.py oldest|newest [PYTHON]`.

Makes an environment of the oldest, or the newest, that pyproject.toml allows, and runs a share of the tests there.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
TESTS = (
    *("repository/test_strata.py", "driver/test_defaults.py", "targets/test_kernel.py", "schedule/test_schedule.py"),
    *("driver/test_forest.py", "database/test_database.py", "schedule/test_found_scripts.py"),
)


def requirements(which: str) -> list[str]:
    """Return the requirements of the package for pip: as stated, or with "oldest" the lowest version of each."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    return (
        [re.sub(r">=([\d.]+),.*", r"==\1", requirement) for requirement in stated]
        if which == "oldest"
        else list(stated)
    )


def main(which: str, python: str = sys.executable) -> int:
    """Run the tests with the oldest or newest dependencies, and return their exit status."""
    with TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        inside = str(Path(folder) / "bin" / "python")
        tools = ["pytest", "pytest-xdist", "hypothesis", "filecheck", "ml_dtypes"]
        subprocess.run([inside, "-m", "pip", "install", "--quiet", *requirements(which), *tools], check=True)
        subprocess.run([inside, "-m", "pip", "list"], check=True)
        tests = [f"tests/unit/{name}" for name in TESTS]
        return subprocess.run([inside, "-m", "pytest", "-q", "-n", "auto", *tests], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    if sys.argv[1:2] not in (["oldest"], ["newest"]) or len(sys.argv) > 3:
        sys.exit(f"{__doc__}")
    sys.exit(main(*sys.argv[1:]))
