"""The backend of `torch.compile(model, backend="strata")`.

backend.py    `strata`: the backend, registered by the package's entry point, or by importing this package
options.py    the `options=` of torch.compile
partition.py  the partition of a graph into compiled parts and parts that stay with torch
aliases.py    results that share memory, as views made by torch
empties.py    tensors without elements
programs.py   a part of a graph as a te function
part.py       a compiled part on the CPU: its kernel, and its constant parameters
device_part.py a compiled part on a GPU: launches on torch's stream
comparison.py comparison of a graph with eager mode in its first call
costs.py      the cost of each group of a kernel, beside its bound
timing.py     the time of a graph's parts, for a report
"""

from torch._dynamo.backends.registry import list_backends, register_backend

from compiler.torch_backend.backend import strata

if strata.__name__ not in list_backends(exclude_tags=()):  # the package is on the path, its metadata is not
    register_backend(strata)

__all__ = ["strata"]
