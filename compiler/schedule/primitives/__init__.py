"""The schedule primitives, one a file: a function from a program to a plan, and the declaration of its parameters.

Each primitive checks its requirements, then plans; the caller that commits the plan asks `legal` first. Every file in
this folder is a primitive: an op, a method of `Schedule`, a pass and a page.
"""

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

from compiler import plugins
from compiler.schedule.primitive import DECLARED, Primitive

_NAMES = [module.name for module in iter_modules(__path__)]
for _name in _NAMES:
    import_module(f"{__name__}.{_name}")

PRIMITIVES: dict[str, Primitive] = {name: DECLARED[name] for name in _NAMES}
"""Every primitive of the compiler, by name."""


def of_plugins() -> dict[str, Primitive]:
    """The primitives that plugins add, by name; each is blamed for its crashes."""
    added = plugins.parts("primitive")
    for name, part in added.items():
        if DECLARED[name].plan is not part.guarded:
            DECLARED[name] = replace(DECLARED[name], plan=part.guarded)
    return {name: DECLARED[name] for name in added}
