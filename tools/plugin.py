"""Try the example of a plugin as its user has it: `python -m tools.plugin [PYTHON]`.

Installs the compiler's wheel and examples/plugin into an empty environment, runs there the commands of its README, has
each part crash in turn, and sees that it is blamed. The exit status is 1 where one fails.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.wheel import ROOT, installed

EXAMPLE = ROOT / "examples" / "plugin"
TWICE = "from strata import te; x = te.placeholder((4, 6), name='X'); f = te.function('f', [x], te.nn.relu(x)); "
CRASHES = {
    "dialect example": ("dialect.py", "    def verify_(self) -> None:\n", "strata-opt tests/lowering.mlir"),
    "pass lower-example": (
        "lowering.py",
        "op: ModuleOp) -> None:\n",
        "strata-opt tests/lowering.mlir -p lower-example",
    ),
    "primitive halve": (
        "halve.py",
        "    extent = program.loops[loop].extent\n",
        "strata-opt tests/halve.mlir -p 'te-to-loop,halve{block=D loop=i}'",
    ),
    "operator squared_relu": (
        "operators.py",
        "    positive = te.nn.relu(x)\n",
        f'python -c "{TWICE} te.nn.squared_relu(x)"',
    ),
    "grouping rule squares_alone": (
        "rules.py",
        "    for name in view.names:\n",
        f'python -c "{TWICE} from strata.graph import group; group(f.module)"',
    ),
    "search rule halves_on_threads": (
        "rules.py",
        "    block = draft.block(label)\n",
        f'python -c "{TWICE} from strata import SearchTask; SearchTask(f, threads=2).space"',
    ),
}
"""By part: the file, a line of it before or behind which it is made to crash, and a command that comes there."""


def shell(inside: Path, line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of the shell in a folder, with the programs of the folder `inside` first in PATH."""
    command = ["bash", "-c", f'PATH="{inside}:$PATH"; {line}']
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    own["PYTHONDONTWRITEBYTECODE"] = "1"  # files that change within a second would be taken for unchanged
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False)


def commands() -> list[str]:
    """The lines of the shell blocks in the example's README."""
    shown = re.findall(r"```sh\n(.*?)```", (EXAMPLE / "README.md").read_text("utf-8"), re.DOTALL)
    return "\n".join(shown).splitlines()


def crashed(inside: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Make each part crash in turn: yield its name, and the output if the error message does not blame it, else ""."""
    for name, (file, line, command) in CRASHES.items():
        path = folder / "strata_example" / file
        before = path.read_text("utf-8")
        assert before.count(line) == 1, line
        indent = "        " if line.lstrip().startswith(("def", "op:")) else "    "
        planted = f"{indent}raise RuntimeError('planted')\n"
        path.write_text(before.replace(line, line + planted if line.startswith(("    def", "op:")) else planted + line))
        done = shell(inside, command, folder)
        path.write_text(before)
        said = f"plugin strata-example: {name} failed: RuntimeError: planted ("
        yield name, "" if done.returncode == 1 and said in done.stderr else done.stderr or "it did not fail"


def main(python: str = sys.executable) -> int:
    """Run the commands and the crashes in an environment of `python`; return 1 if something fails."""
    with TemporaryDirectory() as name:
        folder = Path(name) / "plugin"
        inside = installed(Path(name), python)
        wheel = next(Path(name).glob("strata_compiler*.whl"))
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
        failed = 0
        for line in [f"python -m pip install --quiet '{wheel}[test]' -e .", *commands()[1:]]:
            done = shell(inside, line, folder)
            failed += done.returncode != 0
            print("failed:" if done.returncode else "right: ", line)
            print((done.stdout + done.stderr)[-1500:] if done.returncode or "plugins" in line else "", end="")
        for part, wrong in crashed(inside, folder):
            failed += wrong != ""
            print("failed:" if wrong else "blamed:", part, wrong[-1500:])
        return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
