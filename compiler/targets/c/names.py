"""The names that texts of C keep to themselves, so that no buffer of a program has one."""

from __future__ import annotations

import re

from compiler.targets.c.helpers import CONVERSIONS, EXTREMES, VECTORS
from compiler.targets.clike.expressions import KEYWORDS
from compiler.targets.clike.numbers import NUMBERS
from compiler.targets.clike.operations import FUNCTIONS

LANE = "lane"
"""The variable of loops over the lanes of vectors."""
_LANGUAGE = frozenset(
    """restrict _Alignas _Alignof _Atomic _Bool _Complex _Float16 _Generic _Imaginary _Noreturn _Static_assert
    _Thread_local typeof INFINITY NAN NULL EOF errno size_t main abort malloc free aligned_alloc memcpy
    linux unix""".split()  # noqa: SIM905
)
_MATHEMATICS = frozenset(name + single for name in FUNCTIONS.values() for single in ("", "f", "l"))
RESERVED = KEYWORDS | _LANGUAGE | _MATHEMATICS | frozenset(CONVERSIONS) | {LANE}
"""A variable of such a name has an underscore before it, as has one that begins with two; a function has `strata`."""
_KINDS = "|".join((*VECTORS, *NUMBERS, *EXTREMES, "rsqrt"))
_OURS = re.compile(rf"({_KINDS})_(i|u|f|bf)\d+\w*|(i|u|f|bf)\d+x\d+|u?int\w*_t|bf16")
_LIBRARY = re.compile(
    r"(a?(sin|cos|tan)h?|atan2|exp(2|m1)?|log(2|10|1p|b)?|frexp|ldexp|modf|ilogb|scalbl?n|pow|sqrt|cbrt|hypot|fabs"
    r"|erfc?|[lt]gamma|floor|ceil|nearbyint|l?l?r(int|ound)|trunc|fmod|remainder|remquo|copysign|nan|next(after|toward)"
    r"|fdim|fmax|fmin|fma|j[01n]|y[01n])[fl]?|(fp|un)?classify|signbit|is(finite|inf|nan|normal|unordered|(greater|less)"
    r"(equal|greater)?)|l?l?abs|l?l?div|ato(f|i|ll?)|s?rand|[cm]alloc|realloc|[bq]s(ort|earch)|(quick_)?exit|system|getenv"
    r"|mem(cpy|move|set|cmp|chr)|str(cpy|cat|cmp|chr|len|dup|tok|str|coll|xfrm|spn|error|to\w+)"
)
"""What the headers declare."""


def is_reserved(name: str) -> bool:
    """Whether a text may mean something else by a name."""
    return name in RESERVED or name[:2] == "__" or _OURS.fullmatch(name) is not None


def symbol(name: str) -> str:
    """The name of a function in the text."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII) or "f"
    is_free = plain[0].isalpha() and not is_reserved(plain) and not _LIBRARY.fullmatch(plain)
    return plain if is_free else f"strata_{plain}"
