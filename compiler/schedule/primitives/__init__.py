"""The schedule primitives, a file each: a function from a program to a plan, with the declaration of what it takes.

Each checks what it requires, then plans; whoever commits the plan asks `legal` first. A file that is put here is a
primitive: an op, a method of `Schedule`, a pass and a page.
"""

from importlib import import_module
from pkgutil import iter_modules

from compiler.schedule.primitive import DECLARED, Primitive

_NAMES = [module.name for module in iter_modules(__path__)]
for _name in _NAMES:
    import_module(f"{__name__}.{_name}")

PRIMITIVES: dict[str, Primitive] = {name: DECLARED[name] for name in _NAMES}
"""Every primitive, by name."""
