"""`gather`: tensors read at data-dependent indices."""

from __future__ import annotations

from collections.abc import Callable

from compiler.support.errors import TeError
from compiler.te.compute import Labels, check_indices, check_labels, check_read, dims_of, spatial_axes
from compiler.te.expr import Number, const
from compiler.te.index import Axis, Index
from compiler.te.tensor import Gather, Read, Shape, TableRead, Tensor


def gather(
    shape: Shape,
    fn: Callable[..., TableRead],
    name: str = "T",
    axes: Labels = None,
    otherwise: Number = 0,
) -> Tensor:
    """Define a tensor by reads at data-dependent indices: `lambda i, d: T.at(I[i], d)`.

    fn maps one axis a dimension to one `.at` read of a table, with at least one index that is an element of an integer
    tensor. An index out of bounds yields `otherwise`; negative indices do not wrap. `axes` as for compute. Raises
    TeError, naming the tensor and the axis, for an invalid shape, index or read.

    >>> W, I = te.constant([1.0, 2.0, 3.0]), te.constant([2, 0])
    >>> B = te.gather((2,), lambda i: W.at(I[i]))
    >>> strata.interpret.evaluate(te.function("f", [], B).module, [])[0]
    array([3., 1.], dtype=float32)
    """
    spatial = spatial_axes(name, shape, fn, axes)
    try:
        op = _gather(name, spatial, fn(*spatial), otherwise)
    except TeError as error:
        raise TeError(f"in gather '{name}': {error}") from error
    return Tensor(name, dims_of(spatial), op.read.dtype, op)


def _gather(name: str, axes: tuple[Axis, ...], read: object, otherwise: Number) -> Gather:
    if not isinstance(read, TableRead):
        raise TeError("the function must return one read of a table, such as T.at(I[i], d)")
    op = Gather(name, axes, read, const(otherwise, read.dtype).value)
    if not op.reads:
        raise TeError(f"no index of '{read.tensor.name}' is an element of a tensor; write a te.compute")
    check_labels(op)
    for affine_index in op.read.indices:
        if isinstance(affine_index, Index) and affine_index.sizes():
            words = f"the table '{read.tensor.name}' is indexed with {affine_index}"
            raise TeError(f"{words}: sizes in the index of a table are not supported yet")
    for index in op.reads:
        check_read(axes, index)
    affine = [(d, index) for d, index in enumerate(read.indices) if not isinstance(index, Read)]
    check_indices(axes, read.tensor, affine, None)
    return op
