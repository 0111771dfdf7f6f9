"""Try the wheel as its user has it: `python tools/wheel.py [PYTHON]`.

Builds the wheel, installs it into an empty environment, and runs there, in an empty folder with what `strata examples`
writes, what the README and the pages beside it show: their Python, and their commands of `strata` and
`strata-opt`, workloads at a sixteenth of their extents and with a few trials. Python that imports torch is left out.
The exit status is 1 where one fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
SMALL = {
    "tune": "--scale 1/16 --trials 4 --seconds 20 --quiet",
    "space": "--scale 1/16",
    "bench": "--scale 1/16 --rounds 2",
    "replay": "--scale 1/16",
}
"""What makes a command short."""
SHOWN = ("docs/shell.md", "README.md", *(f"docs/{name}.md" for name in ("schedules", "threads", "dtypes")))
"""The pages that are tried, the first one that writes examples/: no block of theirs needs another one."""


def blocks(language: str) -> list[str]:
    """The blocks of code of a language in the pages SHOWN, in order."""
    text = "".join((ROOT / name).read_text("utf-8") for name in SHOWN)
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands() -> Iterator[str]:
    """Yield the lines of the pages' shell blocks that run strata-opt or strata, the latter with smaller extents and
    fewer trials."""
    shown = "\n".join(blocks("sh")).replace(";", "\n").splitlines()
    for stated in shown:
        line = re.sub("--trials [0-9]+", "", stated.partition(" #")[0].strip())
        line = line.replace("--names mm_exp_mm", "--names mm_exp_mm:64x128x64x192")
        words = line.split()
        if words[:1] == ["strata-opt"]:
            yield line
        elif words[:1] == ["strata"]:
            yield f"{line} {SMALL.get(words[1], '')}"


def installed(folder: Path, python: str) -> Path:
    """Return the folder of the programs of a new environment of `python` that has the wheel and its dependencies."""
    subprocess.run([python, "-m", "venv", str(folder / "environment")], check=True)
    inside = folder / "environment" / "bin"
    pip = [str(inside / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(folder), str(ROOT)], check=True)
    subprocess.run([*pip, "install", *map(str, folder.glob("*.whl"))], check=True)
    return inside


def main(python: str = sys.executable) -> int:
    """Run the commands and the Python of the pages in an environment of `python`; return 1 if something fails."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        inside, away = installed(folder, python), folder / "away"
        away.mkdir()
        scripts = [[str(inside / "python"), "-c", text] for text in blocks("python") if "import torch" not in text]
        given = [*(["bash", "-c", f'PATH="{inside}:$PATH"; {line}'] for line in commands()), *scripts]
        own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        failed = 0
        for command in given:
            done = subprocess.run(command, cwd=away, env=own, capture_output=True, text=True, check=False)
            print("failed:" if done.returncode else "right: ", command[-1].strip().splitlines()[-1][-100:])
            failed += done.returncode != 0
            if done.returncode:
                print(done.stderr[-1000:])
        print(f"{len(given) - failed} of {len(given)} right")
        return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
