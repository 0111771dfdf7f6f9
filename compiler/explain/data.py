"""An explanation as JSON data: times in seconds, sizes in bytes, loops by number."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, TypeAlias

from compiler.explain.code import LoopCode
from compiler.explain.explanation import Explanation
from compiler.explain.nests import LoopNest
from compiler.explain.profile import Profile
from compiler.types.machines import host

Json: TypeAlias = dict[str, Any]  # texts, numbers, lists and objects by their names


def as_data(e: Explanation) -> Json:
    """Convert all results to JSON data: `loops` are machine loops, `nests` source loops, `outside` other instructions,
    by the number of their source loop (0: none); `time` is None if nothing was run."""
    machine, p = host(), e.profile
    return {
        "function": e.kernel.name,
        "arguments": list(map(str, e.kernel.arguments)),
        "threads": e.kernel.threads or 1,
        "machine": {"cpu": machine.cpu, "vector_bits": machine.vector_bits},
        "loops": [loop_data(code) for code in e.codes],
        "outside": [
            {"number": outside.nest.number if outside.nest else 0, "instructions": outside.instructions}
            for outside in e.outside
        ],
        "time": None if p is None else {"plain": p.plain, "profiled": p.profiled, "peak_flops": p.peak},
        "nests": [_nest(nest, p) for nest in e.nests],
        "temporaries": asdict(e.temporaries),
    }


def loop_data(code: LoopCode) -> Json:
    """Convert a machine loop to JSON data; `path` has the source loops around it, outermost first, its own last."""
    bare = asdict(replace(code, path=(), unrolled=()))
    return {
        **bare,
        "path": [{"number": nest.number, "name": nest.name} for nest in code.path],
        "blocks": list(code.path[-1].blocks) if code.path else [],
        "unrolled": [nest.name for nest in code.unrolled],
        "loads_per_fma": code.census.loads_per_fma,
        "stores_per_fma": code.census.stores_per_fma,
    }


def _nest(nest: LoopNest, profile: Profile | None) -> Json:
    """Convert a source loop with its inner loops to JSON data; a measured loop, none without a profile, has `seconds`
    and `runs` per call."""
    loop_time = None if profile is None else profile.loops.get(nest.number)
    times = {} if loop_time is None else {"seconds": loop_time.seconds, "runs": loop_time.runs}
    return asdict(replace(nest, inner=())) | times | {"inner": [_nest(inner, profile) for inner in nest.inner]}
