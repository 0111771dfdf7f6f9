"""torch's own samples of its operators, compiled, beside eager: shares, reasons, and what is wrong."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

import torch

from compiler.driver.cache.fingerprint import fingerprint
from tests.operator_samples.report import lines, write
from tests.operator_samples.running import CRASHED, WRONG
from tests.operator_samples.samples import BY_NAME, FEW, units
from tests.operator_samples.workers import Kept, run

FOLDER = Path("build") / "operator_samples"


def main() -> int:
    """Run, or continue; 1 where something is wrong or has crashed."""
    parser = argparse.ArgumentParser(prog="python -m tests.operator_samples", description=__doc__)
    parser.add_argument("--dtype", default="f32", help="f32 by default; 'others' for all but f32")
    parser.add_argument("--operators", default="", metavar="REGEX", help="those whose names have it")
    parser.add_argument("--all", action="store_true", help="all samples also of dtypes other than f32")
    parser.add_argument("--most", type=int, help="at most so many samples an operator, by seed")
    parser.add_argument("--special", action="store_true", help="special values and other layouts")
    parser.add_argument("--dry", action="store_true", help="capture and convert only: nothing is built or compared")
    parser.add_argument("--dynamo", action="store_true", help="every sample through all of torch.compile")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop then; the next run continues")
    parser.add_argument("--json", type=Path, help="where the figures go; else beside what is kept")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dtypes = [name for name in BY_NAME if name != "f32"] if asked.dtype == "others" else [asked.dtype]
    most = asked.most or (None if asked.all or (asked.dtype == "f32" and not asked.special) else FEW)
    options = {"most": most, "special": asked.special, "dry": asked.dry, "dynamo": asked.dynamo}
    todo = units(dtypes, asked.operators, **options)
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = Kept(FOLDER / f"{(fingerprint() or 'none')[:16]}.jsonl")
    done = run(todo, kept, asked.jobs, asked.seconds)
    wanted = set(todo)
    outcomes = [outcome for outcome in kept.outcomes if outcome.unit in wanted]
    print("\n".join(lines(outcomes)))
    path = (
        asked.json or FOLDER / f"{asked.dtype}{'-special' if asked.special else ''}{'-dry' if asked.dry else ''}.json"
    )
    write(outcomes, path)
    print(f"{'all done' if done else 'interrupted: the same command continues'}; figures in {path}")
    return int(any(outcome.kind in (WRONG, CRASHED) for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
