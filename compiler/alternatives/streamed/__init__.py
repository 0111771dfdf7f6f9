"""Attention by blocks of keys, for targets whose registers hold its scores.

matched.py      the group that is an attention
form.py         copies with padding, scores, logits, values, and the division
running.py      the form with a running maximum, by which sums are scaled
recurrences.py  a form with the recurrences along blocks of keys, and its loops
"""

from __future__ import annotations

from compiler.alternatives.streamed.form import StreamedNames
from compiler.alternatives.streamed.matched import matched_attention
from compiler.alternatives.streamed.recurrences import StreamedForm
from compiler.alternatives.streamed.running import RunningMaximum
from compiler.graph.tree import Graph

__all__ = ["StreamedForm", "StreamedNames", "streamed_attention"]


def streamed_attention(graph: Graph, policy: str) -> StreamedForm | None:
    """Rewrite a group of attention to a form that works by blocks of keys; None for any other group, under `strict`,
    for fewer than FEWEST queries, unless queries, keys and values have one dtype of f16, bf16 and f32 and the powers
    are f32, and for f16 or bf16 values of a number of columns that is no multiple of LANES. See `RunningMaximum`.

    >>> Q, K, V = (te.placeholder((2, 64, 64), "f16", name=name) for name in "QKV")
    >>> f = te.function("attention", [Q, K, V], te.nn.attention(Q, K, V))
    >>> graph = strata.graph.read(strata.dialects.find_function(strata.graph.canonicalize(f.module)))
    >>> [node.block.label for node in strata.alternatives.streamed_attention(graph, "contract").graph.nodes][-3:]
    ['part', 'wide', 'result']
    """
    attention = None if policy == "strict" else matched_attention(graph)
    return None if attention is None else RunningMaximum(graph, attention).form()
