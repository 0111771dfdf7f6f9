"""The schedule primitives, a file for each: a function from a program to a plan, and a declaration of its parameters.

Each primitive checks its requirements, then plans; the caller that commits the plan asks `legal` first. Every file in
this folder or one of its folders is a primitive: an op, a method of `Schedule`, a pass and a page.

hardware/ for threads of a GPU, intrinsics, memory spaces; layouts/ for the places of elements; choices/ for searches;
this folder for primitives that move and rewrite loops and blocks, which docs/reading.md counts to the core.
"""

from dataclasses import replace
from importlib import import_module
from pkgutil import walk_packages

from compiler.schedule.plugins import plugin_plans
from compiler.schedule.primitive import DECLARED, Primitive

_MODULES = [module.name for module in walk_packages(__path__, f"{__name__}.") if not module.ispkg]
for _module in _MODULES:
    import_module(_module)

PRIMITIVES: dict[str, Primitive] = {name: DECLARED[name] for name in sorted(m.rpartition(".")[2] for m in _MODULES)}
"""Every primitive of the compiler, by name."""


def of_plugins() -> dict[str, Primitive]:
    """The primitives of plugins by name; a crash in a planning function raises PluginError."""
    for name, plan in plugin_plans().items():
        if DECLARED[name].plan is not plan:
            DECLARED[name] = replace(DECLARED[name], plan=plan)
    return {name: DECLARED[name] for name in plugin_plans()}
