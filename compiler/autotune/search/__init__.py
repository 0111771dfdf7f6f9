"""The search: fills the open choices of sketches, guided by the cost model, repeatable from its log.

search.py      Search: propose, update, leaders, best; the order of its phases
options.py     what can be set
trials.py      the candidates that were measured, or failed: outcomes combined
model.py       the cost model: a random forest, expected improvement, earlier tasks
warm_start.py  what earlier tasks of a database say before the first trial
ranking.py     ranking quality: how well the model ranks
scorer.py      what the models say of candidates
supply.py      candidates to choose from, drawn, enumerated, changed from good ones
batch.py       which of a pool are proposed together
log.py         what was asked of a search and what it answered
repetition.py  a search again from its log
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.support.deferral import lazy_names

if TYPE_CHECKING:
    from compiler.autotune.search.options import Options
    from compiler.autotune.search.repetition import replay
    from compiler.autotune.search.search import Proposal, Search

__all__ = ["Options", "Proposal", "Search", "replay"]
__getattr__ = lazy_names(
    __name__, {"Options": "options", "Proposal": "search", "Search": "search", "replay": "repetition"}
)  # the cost model's library takes seconds to load
