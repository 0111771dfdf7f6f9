"""Names that a C text reserves, so that no buffer of a program gets one."""

from __future__ import annotations

import re

from compiler.targets.c.helpers import CONVERSIONS, EXTREMES, VECTORS
from compiler.targets.clike.expressions import KEYWORDS
from compiler.targets.clike.numbers import NUMBERS
from compiler.targets.clike.operations import FUNCTIONS

LANE = "lane"
"""The index of loops over the lanes of vectors."""
_LANGUAGE = frozenset(
    """restrict _Alignas _Alignof _Atomic _Bool _Complex _Float16 _Generic _Imaginary _Noreturn _Static_assert
    _Thread_local typeof INFINITY NAN NULL EOF errno size_t main abort malloc free aligned_alloc memcpy
    linux unix""".split()  # noqa: SIM905
)
_MATHEMATICS = frozenset(name + single for name in FUNCTIONS.values() for single in ("", "f", "l"))
RESERVED = KEYWORDS | _LANGUAGE | _MATHEMATICS | frozenset(CONVERSIONS) | {LANE}
"""Reserved names, like those that begin with two underscores: variables of such names get the prefix `_`, functions
`strata_`."""
_HELPER_KINDS = "|".join((*VECTORS, *NUMBERS, *EXTREMES, "rsqrt"))
_HELPER_NAMES = re.compile(rf"({_HELPER_KINDS})_(i|u|f|bf)\d+\w*|(i|u|f|bf)\d+x\d+|u?int\w*_t|bf16")
_C_LIBRARY = re.compile(
    r"(a?(sin|cos|tan)h?|atan2|exp(2|m1)?|log(2|10|1p|b)?|frexp|ldexp|modf|ilogb|scalbl?n|pow|sqrt|cbrt|hypot|fabs"
    r"|erfc?|[lt]gamma|floor|ceil|nearbyint|l?l?r(int|ound)|trunc|fmod|remainder|remquo|copysign|nan|next(after|toward)"
    r"|fdim|fmax|fmin|fma|j[01n]|y[01n])[fl]?|(fp|un)?classify|signbit|is(finite|inf|nan|normal|unordered|(greater|less)"
    r"(equal|greater)?)|l?l?abs|l?l?div|ato(f|i|ll?)|s?rand|[cm]alloc|realloc|[bq]s(ort|earch)|(quick_)?exit|system|getenv"
    r"|mem(cpy|move|set|cmp|chr)|str(cpy|cat|cmp|chr|len|dup|tok|str|coll|xfrm|spn|error|to\w+)"
)
"""Names that the headers declare."""


def is_reserved(name: str) -> bool:
    """Return whether a name must not be a variable's: a keyword, one of RESERVED, a name of a helper or of a type, and
    any name that begins with two underscores."""
    return name in RESERVED or name[:2] == "__" or _HELPER_NAMES.fullmatch(name) is not None


def symbol(name: str) -> str:
    """Return the C identifier of a function of the program: its name with `_` for other characters, `f` for an empty
    name; with the prefix `strata_` if it does not begin with a letter, is reserved, or is declared by a header."""
    identifier = re.sub(r"\W", "_", name, flags=re.ASCII) or "f"
    is_free = identifier[0].isalpha() and not is_reserved(identifier) and not _C_LIBRARY.fullmatch(identifier)
    return identifier if is_free else f"strata_{identifier}"
