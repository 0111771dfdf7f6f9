"""Laws that are choices: other forms of te functions that change rounding or do not always pay.

law.py          `Law`, `Form`, `Conditions`, `Rounding`
choice.py       the form that an estimate prefers
program.py      laws on a whole te function, before it is grouped
cost.py         the estimate of whole te functions: cycles
explained.py    sentences on where each law applies, or why not
flattened.py    a sum of sums as one sum
chain.py        a chain of products in the order of the fewest operations
layouts/        images channels last, by segment
online.py       the maximum and the sums of an online softmax, in two passes
exponentials.py  symbolic evaluation of combiners of maxima and sums
windows.py      a fold of one expression at offsets that form a box, as a reduction
folds.py        operations of one kind on terms, through computes
boxes.py        boxes of points
logarithm.py    a softmax by its logarithm, as a quotient
normalised.py   a softmax that is divided behind a product
streamed/       attention by blocks of keys, for targets whose registers hold its scores
splice.py       te functions in the place of a compute, or after a graph
convolutions.py groups around one convolution, to be matched
transforms.py   the transforms of Winograd, and convolutions by them
winograd.py     the laws of F(2x2, 3x3) and F(4x4, 3x3)
"""

from collections.abc import Sequence

from compiler.alternatives.chain import CHAIN
from compiler.alternatives.choice import Chosen, best, offers, permitted
from compiler.alternatives.flattened import FLATTENED
from compiler.alternatives.law import Conditions, Form, Law, LawScope, Rounding
from compiler.alternatives.layouts import CHANNELS_LAST
from compiler.alternatives.logarithm import LOGARITHM
from compiler.alternatives.normalised import NORMALISED
from compiler.alternatives.online import ONLINE
from compiler.alternatives.streamed import StreamedForm, StreamedNames, streamed_attention
from compiler.alternatives.windows import WINDOWS
from compiler.alternatives.winograd import WINOGRAD_2, WINOGRAD_4
from compiler.support.plugins import Extended

_OF_PROGRAMS = (FLATTENED, WINDOWS, CHAIN, ONLINE, LOGARITHM, NORMALISED, CHANNELS_LAST)
_OF_GROUPS = (WINOGRAD_2, WINOGRAD_4)
LAWS = {law.name: law for law in (*_OF_PROGRAMS, *_OF_GROUPS)}
"""The built-in laws by name."""
PROGRAM_LAWS: Sequence[Law] = Extended("program law", _OF_PROGRAMS)
"""The laws of whole te functions: plugins' laws, then the built-in ones."""
GROUP_LAWS: Sequence[Law] = Extended("group law", _OF_GROUPS)
"""The laws of groups: plugins' laws, then the built-in ones."""

__all__ = [
    "GROUP_LAWS",
    "LAWS",
    "PROGRAM_LAWS",
    "Chosen",
    "Conditions",
    "Form",
    "Law",
    "LawScope",
    "Rounding",
    "StreamedForm",
    "StreamedNames",
    "best",
    "offers",
    "permitted",
    "streamed_attention",
]
