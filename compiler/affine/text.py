"""Quasi-affine expressions as text: printed with names, parsed within MLIR text."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineConstraintExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)
from xdsl.parser import AttrParser
from xdsl.parser.affine_parser import AffineParser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRToken, MLIRTokenKind

_T = TypeVar("_T")

_WORDS = {AffineBinaryOpKind.Mod: "mod", AffineBinaryOpKind.FloorDiv: "floordiv", AffineBinaryOpKind.CeilDiv: "ceildiv"}
_SEMI_AFFINE = {word: kind for kind, word in _WORDS.items()} | {"*": AffineBinaryOpKind.Mul}
_DIVISIONS = frozenset(("mod", "floordiv", "ceildiv"))
RESERVED = frozenset(("mod", "floordiv", "ceildiv", "reduce"))


class SizedNames(list[str]):
    """The names of dimensions, such as axes, and in `sizes` those of symbols."""

    def __init__(self, dims: Iterable[str], sizes: Sequence[str] = ()) -> None:
        super().__init__(dims)
        self.sizes = tuple(sizes)


def size_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names of symbols beside names of dimensions; none for a plain sequence."""
    return names.sizes if isinstance(names, SizedNames) else ()


def to_text(expr: AffineExpr, names: Sequence[str]) -> str:
    """Print an expression in MLIR's affine syntax, dimension i spelled names[i] and symbol i by `size_names`; negative
    terms become subtractions. An expression with symbols needs SizedNames."""
    match expr:
        case AffineSymExpr(position):
            return size_names(names)[position]
        case AffineConstantExpr(value):
            return str(value)
        case AffineDimExpr(position):
            return names[position]
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            return f"{to_text(lhs, names)} {_added(rhs, names)}"
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, AffineConstantExpr(-1)):
            return f"-{_tight(lhs, names)}"
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, rhs):
            return f"{_tight(lhs, names)} * {_tight(rhs, names)}"
        case AffineBinaryOpExpr(kind, lhs, rhs):
            return f"{_tight(lhs, names)} {_WORDS[kind]} {_tight(rhs, names)}"
    raise AssertionError(f"symbols do not occur here: {expr}")


def _tight(expr: AffineExpr, names: Sequence[str]) -> str:
    text = to_text(expr, names)
    return f"({text})" if isinstance(expr, AffineBinaryOpExpr) else text


def _added(expr: AffineExpr, names: Sequence[str]) -> str:
    match expr:
        case AffineConstantExpr(value) if value < 0:
            return f"- {-value}"
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, AffineConstantExpr(value)) if value < 0:
            return f"- {_tight(lhs, names)}" + (f" * {-value}" if value != -1 else "")
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add):
            return f"+ ({to_text(expr, names)})"
    return f"+ {to_text(expr, names)}"


def constraint_text(constraint: AffineConstraintExpr, names: Sequence[str]) -> str:
    """Print a constraint in MLIR's affine syntax, such as `h + kh - 1 >= 0`, dimension i spelled names[i]."""
    return f"{to_text(constraint.lhs, names)} {constraint.kind.value} {to_text(constraint.rhs, names)}"


class SemiAffineParser(AffineParser):
    """Parser of affine maps and sets as xDSL's, also semi-affine ones, `d0 * s0`, and `symbol(%n)` for `%n`."""

    def _create_binop_expr(self, lhs: AffineExpr, rhs: AffineExpr, binop: MLIRToken) -> AffineExpr:
        kind = _SEMI_AFFINE.get(binop.text)
        if kind is None or isinstance(rhs, AffineConstantExpr):
            return super()._create_binop_expr(lhs, rhs, binop)
        if kind is AffineBinaryOpKind.Mul and (isinstance(lhs, AffineConstantExpr) or not _is_symbolic(rhs)):
            lhs, rhs = rhs, lhs
        if not _is_symbolic(rhs):
            raise ParseError(binop.span, f"one side of {binop.text} is a constant or an expression of symbols")
        return lhs * rhs if isinstance(rhs, AffineConstantExpr) else AffineBinaryOpExpr(kind, lhs, rhs)

    def _get_parse_optional_ssa_value(self) -> tuple[Callable[[], AffineExpr | None], dict[str, int], list[Span]]:
        value, numbers, spans = super()._get_parse_optional_ssa_value()

        def value_or_symbol() -> AffineExpr | None:
            if self._current_token.kind is not MLIRTokenKind.BARE_IDENT or self._current_token.text != "symbol":
                return value()
            self._consume_token()
            with self.in_parens():
                return self.expect(value, "a value is expected in 'symbol(...)'")

        return value_or_symbol, numbers, spans


def _is_symbolic(expr: AffineExpr) -> bool:
    """Whether an expression has no dimensions."""
    return not any(isinstance(part, AffineDimExpr) for part in expr.dfs())


class NamedAffineParser(AffineParser):
    """Parser of expressions over `names` or, if these are None, over `%` values: it then collects the values in
    `names`, and their positions in the text in `spans`, in the order of first uses. Sizes beside the names (SizedNames)
    are symbols."""

    def __init__(self, parser: AttrParser, names: Sequence[str] | None) -> None:
        super().__init__(parser._parser_state)  # pyright: ignore
        self.names = list(names or ())
        self.sizes = () if names is None else size_names(names)
        self.ssa = names is None
        self.spans: list[Span] = []

    def _create_binop_expr(self, lhs: AffineExpr, rhs: AffineExpr, binop: MLIRToken) -> AffineExpr:
        if binop.text in _DIVISIONS and not (isinstance(rhs, AffineConstantExpr) and rhs.value > 0):
            raise ParseError(binop.span, f"the right side of {binop.text} is not a positive integer")
        return super()._create_binop_expr(lhs, rhs, binop)

    def expr(self) -> AffineExpr:
        """Parse one expression; `%` values that are new are appended to `names`. Raises ParseError for other text."""
        return self._guarded(lambda: self._parse_affine_expr(self._leaf))

    def constraint(self) -> AffineConstraintExpr:
        """Parse one constraint with >=, <= or ==; `%` values that are new are appended to `names`. Raises ParseError
        for other text."""
        return self._guarded(lambda: self._parse_affine_constraint(self._leaf))

    def _unknown(self, name: str) -> str:
        axes, sizes = ", ".join(self.names), ", ".join(self.sizes)
        if not sizes:
            return f"unknown axis '{name}' (the axes are {axes})"
        return f"unknown axis or size '{name}' (the axes are {axes or 'none'}, the sizes {sizes})"

    def _guarded(self, parse: Callable[[], _T]) -> _T:
        start = self._current_token.span
        try:
            return parse()
        except (NotImplementedError, ValueError, ZeroDivisionError) as error:
            raise ParseError(start, f"not a quasi-affine expression: {error}") from error

    def _leaf(self) -> AffineExpr | None:
        kind = MLIRTokenKind.PERCENT_IDENT if self.ssa else MLIRTokenKind.BARE_IDENT
        token = self._parse_optional_token(kind)
        if token is None:
            return None
        name = token.text
        if name not in self.names:
            if name in self.sizes:
                return AffineExpr.symbol(self.sizes.index(name))
            if not self.ssa:
                raise ParseError(token.span, self._unknown(name))
            self.names.append(name)
            self.spans.append(token.span)
        return AffineExpr.dimension(self.names.index(name))
