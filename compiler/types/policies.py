"""`POLICIES`: the floating-point policies, as data that lowerings, targets and commands read.

Flags are LLVM's fast-math flags. Infinities and NaN are ordinary values, so no policy sets

- nnan or ninf, which make them undefined;
- nsz together with reassoc on sums: LLVM then takes x - x for 0, also where x is infinite;
- arcp or afn, by which x / 0, x / inf and sqrt(inf) can become NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler.support.errors import StrataError


@dataclass(frozen=True)
class Policy:
    """The freedom of floating-point code under a policy.

    body: flags of additions, subtractions and multiplications in bodies; other operations have none.
    sums: flags of the additions and multiplications of reductions.
    extremes: flags of the maxima and minima of reductions.
    polynomials: true if functions such as exp, log, tanh, erf and sin become polynomials (expand-math).
    fused: true if CUDA text may be compiled to fused multiply-adds (`--fmad`).
    zeros: true if a product with a constant 0 is 0 for any other factor, also infinite ones and NaN.
    narrow: true if instructions may drop digits of their operands, such as those of tf32.
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
        """The policy of sums with constant factors: this one, but their initial 0 may be dropped if `zeros`."""
        return replace(self, sums=("contract", "nsz")) if self.zeros else self


_ANY_ORDER = ("reassoc", "contract")
POLICIES = {
    "strict": Policy(polynomials=False, fused=False, zeros=False),
    "contract": Policy(body=("contract",), sums=_ANY_ORDER, extremes=("nsz",)),
    "fast": Policy(body=_ANY_ORDER, sums=_ANY_ORDER, extremes=("nsz",), narrow=True),
}


def policy_named(name: object, error: type[StrataError]) -> Policy:
    """Find a policy by name. Raises `error` for an unknown name."""
    if not isinstance(name, str) or name not in POLICIES:
        raise error(f"unknown policy '{name}' (there are {', '.join(POLICIES)})")
    return POLICIES[name]
