"""The search: fills the open choices of sketches, guided by the cost model, repeatable from its log.

search.py      Search: propose, update, leaders, best; the order of its phases
options.py     the parameters of a search
trials.py      the outcomes of each candidate, combined, and the ranking
model.py       the cost model: a random forest, expected improvement, earlier tasks
warm_start.py  features and costs of earlier tasks in a database, for the model before the first trial
ranking.py     ranking quality: pairs in the right order, recall of the best
scorer.py      predictions of the models for candidates
supply.py      candidates to choose from: drawn, enumerated, mutated
batch.py       pick dissimilar candidates of a pool for a batch
log.py         the calls of a search and their results, as JSON lines
repetition.py  replay a search from its log
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
