"""First and second builds of whole networks, each in a process of its own: `python -m benchmarks.again [NETWORK ...]`.

The first one finds an empty cache, the second one what it has kept. A row gives seconds from the te function to the
kernel, after imports, without constants and with all weights constant; `--repeats` second builds, their median.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from statistics import median

import numpy as np

from benchmarks.networks import NETWORKS


def measure(name: str, constant: bool) -> dict[str, float]:
    """Build a network in this process, with all weights as ones if `constant`; return the seconds, the number of
    groups, and of those from the cache."""
    import compiler

    function = NETWORKS[name]()
    weights = {t.name: np.ones(t.shape, np.float32) for t in function.inputs[1:]} if constant else None
    facts = compiler.build(function, threads=1, constants=weights).facts
    return {"seconds": facts.build_seconds, "groups": len(facts.groups), "cached": facts.cached}


def main() -> None:
    """Print a row a network."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("networks", nargs="*", default=list(NETWORKS), help=", ".join(NETWORKS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("NETWORK", "CONSTANT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one[0], arguments.one[1] == "constant")))
        return
    print("| network | weights | groups | first build | second build | ratio |\n|---|---|---|---|---|---|")
    for name in arguments.networks:
        for weights in ("inputs", "constant"):
            print(row(name, weights, arguments.repeats), flush=True)


def row(name: str, weights: str, repeats: int) -> str:
    """A network's row of the table; `weights`: "inputs" or "constant", `repeats`: the number of second builds."""
    with tempfile.TemporaryDirectory() as folder:
        first, *later_builds = (_apart(name, weights, os.path.join(folder, "cache")) for _ in range(1 + repeats))
    assert not first["cached"] and all(later["cached"] for later in later_builds)
    first_build, again = first["seconds"], median(later["seconds"] for later in later_builds)
    return (
        f"| {name} | {weights} | {first['groups']} | {first_build:.2f} s | {again:.3f} s | {first_build / again:.0f} |"
    )


def _apart(name: str, weights: str, folder: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.again", "--one", name, weights]
    environment = {**os.environ, "STRATA_CACHE_DIR": folder}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


if __name__ == "__main__":
    main()
