"""The driver: from a program at any level to a callable kernel, or to machine code as data.

build_origin.py  the program of a kernel and the arguments of its build
building.py  `build`: the public entry point; te programs under good schedules
parts/       a program divided into parts that are scheduled separately
choice/      the schedule of each part, by the rules or by its records, and its verdict
kernels.py   `build_as_written`; `build_groups`: with schedules of groups; `build_planned`: by a plan
plan.py      BuildPlan: the modules and schedules to compile; the recipe of a program of groups
nests.py     the recipe of a program that calls no others; `build_unit`: such a program as data
recipe.py    Recipe: the deferred compilation of a program
caching.py   a program from the cache, or by its recipe
exporting.py `export`: a program as a library
c_library.py `export_c`: a program as one C file with the functions of a library
evidence.py  the evidence of a program for the certificate of a library
emission_again.py the code of a certificate's loops, compared with its hashes
on_demand.py  a mapping whose values are computed at first use
inputs.py    constant inputs: arrays by name, checked and copied
units/       one group: te, loops, its schedule, low, LLVM, object code; several in several processes
main/        a program of groups: its calls, its constants, its kernel
cache/       machine code on disk, by digests of its dependencies
reference/   random inputs and their expected results
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.support.deferral import lazy_names

if TYPE_CHECKING:
    from compiler.driver.building import build
    from compiler.driver.inputs import with_constants
    from compiler.driver.kernels import build_as_written, build_groups, build_planned, module_in_groups
    from compiler.driver.nests import build_unit
    from compiler.driver.plan import BuildPlan

__all__ = [
    "BuildPlan",
    "build",
    "build_as_written",
    "build_groups",
    "build_planned",
    "build_unit",
    "module_in_groups",
    "with_constants",
]
__getattr__ = lazy_names(
    __name__,
    {
        "BuildPlan": "plan",
        "build": "building",
        "build_as_written": "kernels",
        "build_groups": "kernels",
        "build_planned": "kernels",
        "build_unit": "nests",
        "module_in_groups": "kernels",
        "with_constants": "inputs",
    },
)
