"""Laws that are choices: other forms of te functions, which change rounding, or do not always pay.

law.py          `Law`, `Form`, `Conditions`, `Rounding`
choice.py       the form that an estimate prefers
splice.py       forms written with te, in the place of a compute
convolutions.py groups around one convolution, to be matched
transforms.py   the transforms of Winograd, and convolutions by them
winograd.py     the laws of F(2x2, 3x3) and F(4x4, 3x3)
"""

from collections.abc import Sequence

from compiler.alternatives.choice import Chosen, best, offers, permitted
from compiler.alternatives.law import Conditions, Form, Law, Rounding, Scope
from compiler.alternatives.winograd import WINOGRAD_2, WINOGRAD_4
from compiler.support.plugins import Extended

GROUP_LAWS: Sequence[Law] = Extended("law", (WINOGRAD_2, WINOGRAD_4))
"""The laws of groups: plugins' laws, then ours."""

__all__ = [
    "GROUP_LAWS",
    "Chosen",
    "Conditions",
    "Form",
    "Law",
    "Rounding",
    "Scope",
    "best",
    "offers",
    "permitted",
]
