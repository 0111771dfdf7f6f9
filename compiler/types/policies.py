"""`POLICIES`: the liberties of floating point, as data that lowerings, targets and commands read.

Flags are LLVM's fast-math flags. Infinities and NaN stay values like any other, so no policy sets

- nnan or ninf, which make them undefined;
- nsz together with reassoc on sums: LLVM then takes x - x for 0, also where x is infinite;
- arcp or afn, by which x / 0, x / inf and sqrt(inf) can become NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler.support.errors import StrataError


@dataclass(frozen=True)
class Policy:
    """The liberties of one policy.

    body: flags of the additions, subtractions and multiplications of bodies; their other operations have none.
    sums: flags of the additions and multiplications that combine the contributions of a reduction.
    extremes: flags of the maxima and minima that do.
    polynomials: whether exp, log, tanh, erf, sin and their kin are expanded (expand-math).
    fused: whether CUDA text may be compiled to fused multiply-adds (`--fmad`).
    zeros: whether a product with a 0 that a constant holds is 0, whatever the other factor is, and adds nothing.
    narrow: whether instructions that drop digits of their operands may be used, such as those of tf32.
    """

    body: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    extremes: tuple[str, ...] = ()
    polynomials: bool = True
    fused: bool = True
    zeros: bool = True
    narrow: bool = False

    @property
    def of_literals(self) -> Policy:
        """That of sums whose terms have numbers of constants as factors: the 0 that they begin with adds nothing."""
        return replace(self, sums=("contract", "nsz")) if self.zeros else self


_ANY_ORDER = ("reassoc", "contract")
POLICIES = {
    "strict": Policy(polynomials=False, fused=False, zeros=False),
    "contract": Policy(body=("contract",), sums=_ANY_ORDER, extremes=("nsz",)),
    "fast": Policy(body=_ANY_ORDER, sums=_ANY_ORDER, extremes=("nsz",), narrow=True),
}


def policy_named(name: object, error: type[StrataError]) -> Policy:
    """The policy of a name. Raises the error where there is none."""
    if not isinstance(name, str) or name not in POLICIES:
        raise error(f"unknown policy '{name}' (there are {', '.join(POLICIES)})")
    return POLICIES[name]
