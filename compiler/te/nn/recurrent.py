"""Recurrent layers of one direction, unrolled; states are in f32 for narrower floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.index import Index
from compiler.te.nn.common import accumulator, astype, check_equal, check_flag, check_float, check_rank, check_tensor
from compiler.te.nn.shape import stack
from compiler.te.tensor import Tensor, reduce_axis
from compiler.types.dtypes import INDICES

MAX_STEPS = 512
"""The maximal number of steps of a sequence: they are unrolled into the program."""
ACTIVATIONS: dict[str, Callable[[Expr], Expr]] = {
    "tanh": e.tanh,
    "relu": lambda x: e.maximum(x, 0.0),
    "sigmoid": e.sigmoid,
}
Element: TypeAlias = Callable[[Index, Index], Expr]
"""Maps a batch index and a hidden index to an element of a state."""


class _Layer:
    """The tensors of a recurrent layer with a number of gates, and the sums common to rnn, lstm and gru. Raises TeError
    for shapes, dtypes and lengths that do not fit."""

    def __init__(
        self,
        operator: str,
        gates: int,
        x: Tensor,
        w: Tensor,
        r: Tensor,
        biases: Sequence[Tensor | None],
        states: Sequence[Tensor | None],
        lengths: Tensor | None,
        name: str,
    ) -> None:
        check_float(operator, check_rank(operator, x, 3, "T, B, I"))
        check_rank(operator, w, 2, "gates * H, I")
        check_rank(operator, r, 2, "gates * H, H")
        self.steps, self.batch, input_size = x.shape
        self.hidden, self.dtype, self.acc_dtype, self.name = r.shape[1], x.dtype, accumulator(x.dtype), name
        check_equal(operator, f"the widths of '{x.name}' and '{w.name}'", input_size, w.shape[1])
        rows = gates * self.hidden
        for tensor, shape in [(w, (rows, input_size)), (r, (rows, self.hidden)), *((b, (rows,)) for b in biases)]:
            if tensor is not None and check_float(operator, tensor).shape != shape:
                raise TeError(f"{operator}: '{tensor.name}' has shape {tensor.shape}, expected {shape}")
        for state in states:
            if state is not None and check_float(operator, state).shape != (self.batch, self.hidden):
                raise TeError(
                    f"{operator}: '{state.name}' has shape {state.shape}, expected {(self.batch, self.hidden)}"
                )
        for tensor in (w, r, *biases, *states):
            if tensor is not None and tensor.dtype != x.dtype:
                raise TeError(f"{operator}: '{x.name}' is of {x.dtype}, '{tensor.name}' of {tensor.dtype}")
        if self.steps > MAX_STEPS:
            raise TeError(f"{operator}: '{x.name}' has {self.steps} steps; up to {MAX_STEPS} are unrolled")
        self.lengths = lengths if lengths is None else _lengths(operator, lengths, self.batch)
        self.r, self.biases, self.x, self.w = r, [b for b in biases if b is not None], x, w
        self.input_sums = self.input_projection(self.biases)

    def input_projection(self, biases: Sequence[Tensor]) -> Tensor:
        """Compute X W^T plus biases for all steps: [T, B, gates * H]."""
        k, acc_dtype, x, w = reduce_axis(self.x.shape[2], "k"), self.acc_dtype, self.x, self.w

        def product(t: Index, b: Index, g: Index) -> Reduce:
            return e.sum(e.cast(x[t, b, k], acc_dtype) * e.cast(w[g, k], acc_dtype), axis=k)

        sums = compute((self.steps, self.batch, w.shape[0]), product, f"{self.name}.products")

        def biased(t: Index, b: Index, g: Index) -> Expr:
            value: Expr = sums[t, b, g]
            for bias in biases:
                value = value + e.cast(bias[g], acc_dtype)
            return value

        return compute(sums.shape, biased, f"{self.name}.inputs") if biases else sums

    def project(self, state: Tensor | None, name: str, start: int = 0, gates: int | None = None) -> Tensor | None:
        """Compute state R^T for the rows of `gates` gates (default: all) of R from row `start` on: [B, gates * H]. None
        for the state None, which is zero."""
        if state is None:
            return None
        k, r, acc_dtype = reduce_axis(self.hidden, "k"), self.r, self.acc_dtype
        rows = r.shape[0] if gates is None else gates * self.hidden

        def element(b: Index, g: Index) -> Reduce:
            return e.sum(e.cast(state[b, k], acc_dtype) * e.cast(r[g + start, k], acc_dtype), axis=k)

        return compute((self.batch, rows), element, name)

    def times(self, reverse: bool) -> list[int]:
        """Return the steps' numbers in execution order."""
        return list(range(self.steps))[:: -1 if reverse else 1]

    def state(self, element: Element, name: str) -> Tensor:
        """Compute a tensor [B, H] by its element function."""
        return compute((self.batch, self.hidden), element, name, axes=("b", "j"))

    def within(self, t: Index | int, b: Index, value: Expr, otherwise: Expr | float) -> Expr:
        """Select `value` if step t is before the end of sequence b, else `otherwise`; without lengths, `value`."""
        if self.lengths is None:
            return value
        length = e.cast(self.lengths[b], "i64")
        return e.select(length > (e.cast(t, "i64") if isinstance(t, Index) else t), value, otherwise)

    def step(self, element: Element, t: int, previous: Tensor | None, name: str) -> Tensor:
        """Compute the state after step t by its element function; beyond the end of a sequence it is the previous state
        (None: 0)."""
        return self.state(lambda b, j: self.within(t, b, element(b, j), _state_or_zero(previous, b, j, self)), name)

    def results(self, states: Sequence[Tensor], reverse: bool, *final: Tensor) -> tuple[Tensor, ...]:
        """Return all states as [T, B, H] in the order of time, 0 beyond a sequence's end, then the final states, 0 for
        a sequence of a length below 1; all in x's dtype. `states` are in execution order."""
        ordered = list(states)[:: -1 if reverse else 1]
        stacked = stack(ordered, 0, f"{self.name}.states")
        if self.lengths is not None:
            unmasked, unmasked_final = stacked, final
            stacked = compute(
                stacked.shape, lambda t, b, j: self.within(t, b, unmasked[t, b, j], 0.0), f"{self.name}.within"
            )
            final = tuple(
                self.state(lambda b, j, state=state: self.within(0, b, state[b, j], 0.0), f"{state.name}.ended")  # type: ignore[misc]
                for state in unmasked_final
            )
        stacked = astype(stacked, self.dtype, self.name)
        return (stacked, *(astype(t, self.dtype, f"{self.name}.last{n}") for n, t in enumerate(final)))


def _lengths(operator: str, lengths: Tensor, batch: int) -> Tensor:
    if check_tensor(operator, lengths).dtype not in INDICES or lengths.shape != (batch,):
        raise TeError(
            f"{operator}: '{lengths.name}' has shape {lengths.shape} of {lengths.dtype}, expected the lengths of "
            f"{batch} sequences, integers"
        )
    return lengths


def _state_or_zero(state: Tensor | None, b: Index, j: Index, layer: _Layer) -> Expr:
    return e.const(0.0, layer.acc_dtype) if state is None else e.cast(state[b, j], layer.acc_dtype)


def _gate_sum(layer: _Layer, t: int, product: Tensor | None, gate: int) -> Element:
    """Return the element function of gate number `gate` before its activation: the input sums of step t plus `product`,
    the state's part of the sums (None: zero)."""
    start = gate * layer.hidden

    def element(b: Index, j: Index) -> Expr:
        value: Expr = layer.input_sums[t, b, j + start]
        return value if product is None else value + product[b, j + start]

    return element


def rnn(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor | None = None,
    recurrent_bias: Tensor | None = None,
    initial: Tensor | None = None,
    activation: str = "tanh",
    reverse: bool = False,
    lengths: Tensor | None = None,
    name: str = "rnn",
) -> tuple[Tensor, ...]:
    """Y, H = all states H[t] = activation(X[t] W^T + H[t - 1] R^T + biases), and the last one.

    x is [T, B, I], w [H, I], r [H, H], biases [H] and the initial state [B, H] (both 0 if None), all of one float
    dtype; Y is [T, B, H], H [B, H]. The activation is tanh, relu or sigmoid; `reverse` runs from the last step to the
    first. `lengths`, B integers (None, or above T: T), are those of the sequences: after the end of a sequence Y is 0,
    `reverse` begins there, and the final state is that of the step that runs last, 0 for lengths below 1. Raises
    TeError for other arguments, and for more than 512 steps.
    """
    check_flag("rnn", "reverse", reverse)
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise TeError(f"rnn: unknown activation {activation!r} (there are {', '.join(ACTIVATIONS)})")
    layer = _Layer("rnn", 1, x, w, r, (bias, recurrent_bias), (initial,), lengths, name)
    state, states = initial, []
    for t in layer.times(reverse):
        gate = _gate_sum(layer, t, layer.project(state, f"{name}.product{t}"), 0)
        element = lambda b, j, gate=gate: ACTIVATIONS[activation](gate(b, j))  # noqa: E731
        state = layer.step(element, t, state, f"{name}.state{t}")
        states.append(state)
    return layer.results(states, reverse, states[-1])


def lstm(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor | None = None,
    recurrent_bias: Tensor | None = None,
    initial: Tensor | None = None,
    initial_cell: Tensor | None = None,
    order: str = "iofc",
    reverse: bool = False,
    peepholes: Tensor | None = None,
    lengths: Tensor | None = None,
    name: str = "lstm",
) -> tuple[Tensor, ...]:
    """Y, H, C = all states H[t] = o * tanh(C[t]) with C[t] = f * C[t - 1] + i * tanh(c), and the last ones of both.

    i, o, f are sigmoids, and c the plain value, of the rows of X[t] W^T + H[t - 1] R^T + biases in the stated order; w
    is [4 H, I], r [4 H, H], biases [4 H], the initial cell [B, H] (default 0); peepholes [3 H] are the weights of the
    cell in i, o and f, in this order (None: no such terms); the rest as rnn. ONNX has the order iofc, torch ifco.
    Raises TeError for other arguments. Source: Hochreiter and Schmidhuber, Long Short-Term Memory, 1997.
    """
    check_flag("lstm", "reverse", reverse)
    if not isinstance(order, str) or sorted(order) != sorted("iofc"):
        raise TeError(f"lstm: the order of gates is {order!r}, expected one of the letters iofc")
    layer = _Layer("lstm", 4, x, w, r, (bias, recurrent_bias), (initial, initial_cell), lengths, name)
    if peepholes is not None and (check_float("lstm", peepholes).shape != (3 * layer.hidden,)):
        raise TeError(f"lstm: '{peepholes.name}' has shape {peepholes.shape}, expected {(3 * layer.hidden,)}")
    state, cell, states = initial, initial_cell, []
    for t in layer.times(reverse):
        product = layer.project(state, f"{name}.product{t}")
        cell = _cell(layer, t, product, cell, order, peepholes)
        state = _output(layer, t, product, cell, order, peepholes, state)
        states.append(state)
    assert cell is not None
    return layer.results(states, reverse, states[-1], cell)


def _peephole(layer: _Layer, peepholes: Tensor | None, n: int, cell: Tensor | None) -> Element | None:
    """Return the element function of a gate's peephole term, weights number n times the cell; None without either."""
    if peepholes is None or cell is None:
        return None
    return lambda b, j: e.cast(peepholes[j + n * layer.hidden], layer.acc_dtype) * e.cast(cell[b, j], layer.acc_dtype)


def _gate(layer: _Layer, t: int, product: Tensor | None, order: str, name: str, peephole: Element | None) -> Element:
    """Return the element function of gate `name`: the sigmoid of its sum and its peephole term, if any."""
    gate = _gate_sum(layer, t, product, order.index(name))
    return lambda b, j: e.sigmoid(gate(b, j) if peephole is None else gate(b, j) + peephole(b, j))


def _cell(
    layer: _Layer, t: int, product: Tensor | None, cell: Tensor | None, order: str, peepholes: Tensor | None
) -> Tensor:
    take = _gate(layer, t, product, order, "i", _peephole(layer, peepholes, 0, cell))
    keep = _gate(layer, t, product, order, "f", _peephole(layer, peepholes, 2, cell))
    candidate = _gate_sum(layer, t, product, order.index("c"))

    def element(b: Index, j: Index) -> Expr:
        update = take(b, j) * e.tanh(candidate(b, j))
        return update if cell is None else keep(b, j) * _state_or_zero(cell, b, j, layer) + update

    return layer.step(element, t, cell, f"{layer.name}.cell{t}")


def _output(
    layer: _Layer,
    t: int,
    product: Tensor | None,
    cell: Tensor,
    order: str,
    peepholes: Tensor | None,
    previous: Tensor | None,
) -> Tensor:
    give = _gate(layer, t, product, order, "o", _peephole(layer, peepholes, 1, cell))
    return layer.step(lambda b, j: give(b, j) * e.tanh(cell[b, j]), t, previous, f"{layer.name}.state{t}")


def gru(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor | None = None,
    recurrent_bias: Tensor | None = None,
    initial: Tensor | None = None,
    order: str = "zrh",
    reverse: bool = False,
    linear_before_reset: bool = False,
    lengths: Tensor | None = None,
    name: str = "gru",
) -> tuple[Tensor, ...]:
    """Y, H = all states H[t] = (1 - z) * tanh(h) + z * H[t - 1], and the last one.

    z and r are sigmoids of their rows of X[t] W^T + H[t - 1] R^T + biases in the stated order; h is that of X[t] W^T +
    (r * H[t - 1]) R^T + biases, or with linear_before_reset of X[t] W^T + bias + r * (H[t - 1] R^T + recurrent bias). w
    is [3 H, I], r [3 H, H], biases [3 H]; the rest as rnn. ONNX has the order zrh, torch rzh and linear_before_reset.
    Raises TeError for other arguments. Source: Cho et al., Learning Phrase Representations, 2014.
    """
    check_flag("gru", "reverse", reverse)
    check_flag("gru", "linear_before_reset", linear_before_reset)
    if not isinstance(order, str) or sorted(order) != sorted("zrh"):
        raise TeError(f"gru: the order of gates is {order!r}, expected one of the letters zrh")
    layer = _Layer("gru", 3, x, w, r, (bias, recurrent_bias), (initial,), lengths, name)
    if linear_before_reset and recurrent_bias is not None:
        layer.input_sums = layer.input_projection([] if bias is None else [bias])
    state, states = initial, []
    for t in layer.times(reverse):
        if linear_before_reset:
            state = _linear_step(layer, t, state, recurrent_bias, order)
        else:
            state = _reset_step(layer, t, state, order)
        states.append(state)
    return layer.results(states, reverse, states[-1])


def _reset_step(layer: _Layer, t: int, state: Tensor | None, order: str) -> Tensor:
    """Compute the state after a GRU step that applies the reset gate to the state, before the recurrent product. state:
    the one before, None for zero. order: the order of the gates' rows."""
    name, start = layer.name, order.index("h") * layer.hidden
    product = layer.project(state, f"{name}.product{t}")
    keep = _gate(layer, t, product, order, "z", None)
    reset = _gate(layer, t, product, order, "r", None)
    candidate_product = None
    if state is not None:
        reset_state = layer.state(lambda b, j: reset(b, j) * _state_or_zero(state, b, j, layer), f"{name}.reset{t}")
        candidate_product = layer.project(reset_state, f"{name}.fresh{t}", start, 1)

    def element(b: Index, j: Index) -> Expr:
        value: Expr = layer.input_sums[t, b, j + start]
        candidate = e.tanh(value if candidate_product is None else value + candidate_product[b, j])
        update = keep(b, j)
        return (1.0 - update) * candidate + update * _state_or_zero(state, b, j, layer)

    return layer.step(element, t, state, f"{name}.state{t}")


def _linear_step(layer: _Layer, t: int, state: Tensor | None, bias: Tensor | None, order: str) -> Tensor:
    """Compute the state after a GRU step that applies the reset gate to the recurrent product plus its bias. state,
    bias: None for zero. order: the order of the gates' rows."""
    product = layer.project(state, f"{layer.name}.product{t}")

    def recurrent(name: str) -> Element:
        start = order.index(name) * layer.hidden

        def element(b: Index, j: Index) -> Expr:
            value = e.const(0.0, layer.acc_dtype) if product is None else product[b, j + start]
            return value if bias is None else value + e.cast(bias[j + start], layer.acc_dtype)

        return element

    def input_sum(name: str, b: Index, j: Index) -> Expr:
        return layer.input_sums[t, b, j + order.index(name) * layer.hidden]

    def element(b: Index, j: Index) -> Expr:
        keep, reset = (e.sigmoid(input_sum(n, b, j) + recurrent(n)(b, j)) for n in "zr")
        candidate = e.tanh(input_sum("h", b, j) + reset * recurrent("h")(b, j))
        return (1.0 - keep) * candidate + keep * _state_or_zero(state, b, j, layer)

    return layer.step(element, t, state, f"{layer.name}.state{t}")
