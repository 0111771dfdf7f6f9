"""`Linear`: the canonical form of a quasi-affine expression, simplified by the ranges of its variables.

A form is a constant plus integer multiples of atoms; an atom is a variable, or a floordiv or mod of a form.
Two expressions with equal forms are equal; with ranges, `(16*i + j) floordiv 16` for j in [0, 15] is `i`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

Range = tuple[int, int]  # inclusive
Ranges = Mapping[int, Range]


@dataclass(frozen=True, slots=True)
class Quotient:
    """The atom `form floordiv divisor` or `form mod divisor`.

    >>> from strata.analysis import Quotient, variable
    >>> quotient = Quotient(variable(0), 16, is_mod=False)
    >>> quotient.form.variables(), quotient.divisor
    ({0}, 16)
    """

    form: "Linear"
    divisor: int
    is_mod: bool


Atom = int | Quotient


@dataclass(frozen=True, slots=True)
class Linear:
    """constant + sum of coefficient * atom; terms are sorted and have non-zero coefficients.

    >>> from strata.analysis import constant, variable
    >>> form = variable(0).scaled(4) + variable(1) + constant(2)
    >>> form.terms, form.constant
    (((0, 4), (1, 1)), 2)
    """

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    def __add__(self, other: "Linear") -> "Linear":
        sums = dict(self.terms)
        for atom, factor in other.terms:
            sums[atom] = sums.get(atom, 0) + factor
        return _form(sums, self.constant + other.constant)

    def __sub__(self, other: "Linear") -> "Linear":
        return self + other.scaled(-1)

    def scaled(self, factor: int) -> "Linear":
        """The form times an integer; 0 times a form is the constant 0."""
        return _form({atom: f * factor for atom, f in self.terms}, self.constant * factor)

    @property
    def is_constant(self) -> bool:
        """Whether no atom occurs."""
        return not self.terms

    @property
    def as_variable(self) -> int | None:
        """The variable of a form that is a variable, such as `i`; None for any other form, such as `i + 1` or `2*i`."""
        match self.terms:
            case ((int() as atom, 1),) if self.constant == 0:
                return atom
        return None

    def variables(self) -> set[int]:
        """All variables that occur, also inside floordiv and mod."""
        variables: set[int] = set()
        for atom, _ in self.terms:
            if isinstance(atom, int):
                variables.add(atom)
            else:
                variables |= atom.form.variables()
        return variables

    def depends_on(self, variable: int) -> bool:
        """Whether a variable occurs, also inside floordiv and mod."""
        for atom, _ in self.terms:
            if atom.form.depends_on(variable) if isinstance(atom, Quotient) else atom == variable:
                return True
        return False

    def coefficient(self, variable: int) -> int | None:
        """The factor of a variable, 0 if the variable does not occur; None if it occurs inside a floordiv or mod."""
        coefficient = 0
        for atom, factor in self.terms:
            if isinstance(atom, Quotient):
                if atom.form.depends_on(variable):
                    return None
            elif atom == variable:
                coefficient = factor
        return coefficient


def variables_of(atom: Atom) -> set[int]:
    """The variables of an atom: the variable that it is, or those of a quotient's form."""
    return {atom} if isinstance(atom, int) else atom.form.variables()


def constant(value: int) -> Linear:
    """Return the form of an integer.

    >>> strata.analysis.constant(3).is_constant
    True
    """
    return Linear((), value)


def variable(index: int) -> Linear:
    """Return the form of one variable.

    >>> strata.analysis.variable(2).variables()
    {2}
    """
    return Linear(((index, 1),), 0)


def variables(count: int) -> tuple[Linear, ...]:
    """The forms of variables 0 to count - 1, such as the axes of a block."""
    return tuple(map(variable, range(count)))


def box(shape: Sequence[int]) -> dict[int, Range]:
    """The ranges of the indices of a shape: dimension d is in [0, shape[d])."""
    return {d: (0, size - 1) for d, size in enumerate(shape)}


def strides(shape: Sequence[int]) -> list[int]:
    """Row-major strides of a shape, in elements."""
    return [prod(shape[d + 1 :]) for d in range(len(shape))]


def offset(index: Sequence[Linear], shape: Sequence[int]) -> Linear:
    """Row-major offset of an index into a shape, in elements; 0 without dimensions. Raises ValueError for another
    number of indices than dimensions."""
    total = constant(0)
    for form, stride in zip(index, strides(shape), strict=True):
        total = total + form.scaled(stride)
    return total


def linear(expr: AffineExpr, dims: Sequence[Linear], ranges: Ranges) -> Linear:
    """Translate an expression without symbols to a form, dimension i replaced by dims[i]; `ranges` are those of
    variables in `dims`. Divisors must be positive constants, and one factor of a product constant."""
    match expr:
        case AffineConstantExpr(value):
            return constant(value)
        case AffineDimExpr(position):
            return dims[position]
        case AffineBinaryOpExpr(kind, lhs, rhs):
            return _combine(kind, linear(lhs, dims, ranges), linear(rhs, dims, ranges), ranges)
    raise AssertionError(f"symbols do not occur here: {expr}")


def _combine(kind: AffineBinaryOpKind, lhs: Linear, rhs: Linear, ranges: Ranges) -> Linear:
    match kind:
        case AffineBinaryOpKind.Add:
            return lhs + rhs
        case AffineBinaryOpKind.Mul:
            return lhs.scaled(rhs.constant) if rhs.is_constant else rhs.scaled(lhs.constant)
        case AffineBinaryOpKind.FloorDiv:
            return floordiv(lhs, rhs.constant, ranges)
        case AffineBinaryOpKind.CeilDiv:
            return floordiv(lhs + constant(rhs.constant - 1), rhs.constant, ranges)
        case AffineBinaryOpKind.Mod:
            return mod(lhs, rhs.constant, ranges)


def substitute(form: Linear, values: Mapping[int, Linear], ranges: Ranges) -> Linear:
    """Substitute forms for variables; variables without one in `values` stay; `ranges` are the ranges of the variables
    that the new form may contain.

    >>> from strata.analysis import constant, substitute, variable
    >>> form = substitute(variable(0).scaled(4), {0: variable(1) + constant(2)}, {1: (0, 7)})
    >>> form.terms, form.constant
    (((1, 4),), 8)
    """
    terms: dict[Atom, int] = {}
    constant = form.constant
    for atom, factor in form.terms:
        if isinstance(atom, int):
            value = values.get(atom)
            if value is None:
                terms[atom] = terms.get(atom, 0) + factor
                continue
        else:
            inner = substitute(atom.form, values, ranges)
            value = (mod if atom.is_mod else floordiv)(inner, atom.divisor, ranges)
        constant += factor * value.constant
        for part, coefficient in value.terms:
            terms[part] = terms.get(part, 0) + factor * coefficient
    return _form(terms, constant)


def to_affine(form: Linear, dims: Mapping[int, AffineExpr]) -> AffineExpr:
    """Translate a form to an expression, variables replaced by dims[variable]."""
    total: AffineExpr | None = None
    for atom, factor in form.terms:
        term = dims[atom] if isinstance(atom, int) else _quotient(atom, dims)
        term = term if factor == 1 else term * factor
        total = term if total is None else total + term
    if total is None:
        return AffineExpr.constant(form.constant)
    return total + form.constant if form.constant else total


def _quotient(atom: Quotient, dims: Mapping[int, AffineExpr]) -> AffineExpr:
    kind = AffineBinaryOpKind.Mod if atom.is_mod else AffineBinaryOpKind.FloorDiv
    return AffineBinaryOpExpr(kind, to_affine(atom.form, dims), AffineExpr.constant(atom.divisor))


def to_isl(form: Linear, names: Mapping[int, str]) -> str:
    """Print a form in isl's syntax, variables spelled names[variable]."""
    parts = [str(form.constant)] if form.constant or not form.terms else []
    for atom, factor in form.terms:
        if isinstance(atom, int):
            text = names[atom]
        else:
            inner = to_isl(atom.form, names)
            text = f"(({inner}) mod {atom.divisor})" if atom.is_mod else f"floor(({inner})/{atom.divisor})"
        parts.append(text if factor == 1 else f"{factor}*{text}")
    return " + ".join(parts)


def evaluate(form: Linear, values: Mapping[int, int]) -> int:
    """The number that a form has where each variable v is values[v]."""
    total = form.constant
    for atom, factor in form.terms:
        if isinstance(atom, int):
            total += factor * values[atom]
        else:
            inner = evaluate(atom.form, values)
            total += factor * (inner % atom.divisor if atom.is_mod else inner // atom.divisor)
    return total


def bounds(form: Linear, ranges: Ranges) -> Range:
    """An inclusive interval of all values of a form over `ranges`; tight if each variable occurs once, and no mod.
    Raises KeyError for a variable without a range.

    >>> from strata.analysis import variable
    >>> strata.analysis.bounds(variable(0).scaled(2) + variable(1), {0: (0, 3), 1: (-1, 1)})
    (-1, 7)
    """
    low = high = form.constant
    for atom, factor in form.terms:
        smallest, largest = _atom_bounds(atom, ranges)
        low += factor * (smallest if factor > 0 else largest)
        high += factor * (largest if factor > 0 else smallest)
    return low, high


def largest(form: Linear, ranges: Ranges) -> int:
    """Bound the magnitude of every intermediate value of a form, for any order in which its terms are added, over the
    inclusive ranges of its variables."""
    total, inside = abs(form.constant), 0
    for atom, factor in form.terms:
        low, high = ranges[atom] if isinstance(atom, int) else _atom_bounds(atom, ranges)
        total += abs(factor) * max(-low, high)
        if not isinstance(atom, int):
            inside = max(inside, largest(atom.form, ranges) + atom.divisor)
    return max(total, inside)


def floordiv(form: Linear, divisor: int, ranges: Ranges) -> Linear:
    """Simplify `form floordiv divisor`, rounded down, by a positive divisor: `(16*i + 2*j) floordiv 8`, j in [0, 8), is
    `2*i + j floordiv 4`."""
    multiples, remainder = _divided(form, divisor)
    low, high = bounds(remainder, ranges)
    if low // divisor == high // divisor:
        return multiples + constant(low // divisor)
    common = divisor
    for _, factor in remainder.terms:
        common = _common(common, factor)
    if common > 1:
        reduced = _form({a: f // common for a, f in remainder.terms}, remainder.constant // common)
        return multiples + floordiv(reduced, divisor // common, ranges)
    parts = low_part(remainder, divisor, ranges)
    if parts is not None:
        step, high_part, _ = parts
        return multiples + floordiv(high_part, divisor // step, ranges)
    return multiples + Linear(((Quotient(remainder, divisor, False), 1),), 0)


def mod(form: Linear, divisor: int, ranges: Ranges) -> Linear:
    """Simplify `form mod divisor`, which is in [0, divisor) also for negative forms, by a positive divisor: `(4*i + j)
    mod 8`, j in [0, 4), is `4*(i mod 2) + j`."""
    _, remainder = _divided(form, divisor)
    low, high = bounds(remainder, ranges)
    if low // divisor == high // divisor:
        return remainder - constant(low // divisor * divisor)
    parts = low_part(remainder, divisor, ranges)
    if parts is not None:
        step, high_part, lanes = parts
        return mod(high_part, divisor // step, ranges).scaled(step) + lanes
    return Linear(((Quotient(remainder, divisor, True), 1),), 0)


def low_part(form: Linear, divisor: int | None, ranges: Ranges) -> tuple[int, Linear, Linear] | None:
    """Split a form into `step * high + low`, low in [0, step) with a term or more, as (step, high, low); None if no
    step serves. `ranges`: of the variables, inclusive.

    The step is the magnitude of a factor, not 1, that divides `divisor` unless that is None. `4*i + lane + 2`, lane in
    [0, 2), is split into (4, i, lane + 2).
    """
    for _, factor in form.terms:
        step = abs(factor)
        if step == 1 or (divisor is not None and divisor % step):
            continue
        multiples = {atom: factor // step for atom, factor in form.terms if factor % step == 0}
        low = _form({atom: factor for atom, factor in form.terms if factor % step}, form.constant % step)
        if not low.terms:
            continue
        smallest, largest = bounds(low, ranges)
        if smallest >= 0 and largest < step:
            return step, _form(multiples, form.constant // step), low
    return None


def _common(a: int, b: int) -> int:
    """The greatest common divisor, also of traced sizes, which are no ints, so that math.gcd refuses them."""
    while b:
        a, b = b, a % b
    return a


def joined(form: Linear) -> Linear:
    """Rewrite each `a*d*(f floordiv d) + a*(f mod d)` of a form to `a*f`, as in the offset of fused dimensions."""
    for atom, factor in form.terms:
        if not isinstance(atom, Quotient) or atom.is_mod:
            continue
        remainder = _remainder(atom.form, atom.divisor)
        scale, left = factor // atom.divisor, factor % atom.divisor
        if left == 0 and scale and (remainder, scale) in form.terms:
            pair = Linear(((atom, factor),)) + Linear(((remainder, scale),))
            return joined(form - pair + atom.form.scaled(scale))
    return form


def _remainder(form: Linear, divisor: int) -> Atom:
    """The atom `form mod divisor`, simplified: a term `a*(f mod d)` becomes `a*f` if the divisor divides `a*d`."""
    for atom, factor in form.terms:
        if isinstance(atom, Quotient) and atom.is_mod and factor * atom.divisor % divisor == 0:
            return _remainder(form - Linear(((atom, factor),)) + atom.form.scaled(factor), divisor)
    return Quotient(_divided(form, divisor)[1], divisor, True)


def _divided(form: Linear, divisor: int) -> tuple[Linear, Linear]:
    quotients = {atom: factor // divisor for atom, factor in form.terms}
    remainders = {atom: factor % divisor for atom, factor in form.terms}
    return _form(quotients, form.constant // divisor), _form(remainders, form.constant % divisor)


def _form(terms: Mapping[Atom, int], constant: int) -> Linear:
    nonzero = [(a, f) for a, f in terms.items() if f]
    if len(nonzero) > 1:
        try:
            nonzero.sort()
        except TypeError:  # quotients have no order of their own
            nonzero.sort(key=_atom_key)
    return Linear(tuple(nonzero), constant)


def _atom_key(term: tuple[Atom, int]) -> tuple[Any, ...]:
    """The sort key of a term: variables by number, then quotients by dividend, kind (floordiv, mod) and divisor."""
    atom, _ = term
    if isinstance(atom, int):
        return (atom,)
    inner = tuple((*_atom_key(t), t[1]) for t in atom.form.terms)
    return (1 << 30, inner, atom.form.constant, atom.is_mod, atom.divisor)


def _atom_bounds(atom: Atom, ranges: Ranges) -> Range:
    if isinstance(atom, int):
        return ranges[atom]
    low, high = bounds(atom.form, ranges)
    if not atom.is_mod:
        return low // atom.divisor, high // atom.divisor
    return (0, atom.divisor - 1)
