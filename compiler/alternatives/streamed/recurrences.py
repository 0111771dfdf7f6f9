"""A te function that computes with the results of former iterations, and its loops, in which these are recurrences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compiler.graph.tree import Graph
from compiler.program.tree import Access, Block, Program, map_blocks


@dataclass(frozen=True)
class StreamedForm:
    """An attention by blocks of keys: `graph`, a te function. `former` maps inputs of it to results of its computes:
    the compute of such a result reads the input in its stead, at an earlier iteration of one axis.

    >>> Q, K, V = (te.placeholder((2, 64, 64), "f16", name=name) for name in "QKV")
    >>> f = te.function("attention", [Q, K, V], te.nn.attention(Q, K, V))
    >>> graph = strata.graph.read(strata.dialects.find_function(strata.graph.canonicalize(f.module)))
    >>> strata.alternatives.streamed_attention(graph, "contract").former
    {'running.former': 'running', 'wide.former': 'wide'}
    """

    graph: Graph
    former: Mapping[str, str]

    def tied(self, loops: Program) -> Program:
        """Return the loops of the graph without the inputs `former`: a block reads its own result of an earlier
        iteration.

            m { t { W[m, t] = f(former[m, t - 1] where t - 1 >= 0 else 0.0, ...) } }
          ->
            m { t { W[m, t] = f(W[m, t - 1] where t - 1 >= 0 else 0.0, ...) } }
        """

        def tied(access: Access) -> Access:
            return replace(access, buffer=self.former.get(access.buffer, access.buffer))

        def with_results(block: Block) -> Block:
            return replace(block, reads=tuple(map(tied, block.reads)))

        arguments = tuple(buffer for buffer in loops.arguments if buffer.name not in self.former)
        return replace(loops, arguments=arguments, body=map_blocks(loops.body, with_results))
