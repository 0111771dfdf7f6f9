"""What `torch.compile(model, backend="strata")` calls.

backend.py    `strata`: the backend, which torch finds by the package's entry point, or once this is imported
options.py    what `options=` of torch.compile says
partition.py  a graph as parts that are compiled in turn with parts that stay with torch
aliases.py    results that share memory: views that torch makes
empties.py    tensors without elements
part.py       one compiled part: its kernel, and the parameters that are constants of it
comparison.py whether a graph is slower than eager, timed in its first call
costs.py      the cost of each group of a kernel, beside its bound
timing.py     the time of a graph's parts, for a report
"""

from torch._dynamo.backends.registry import list_backends, register_backend

from compiler.torch_backend.backend import strata

if strata.__name__ not in list_backends(exclude_tags=()):  # the package is on the path, its metadata is not
    register_backend(strata)

__all__ = ["strata"]
