"""`Helpers`: the types and functions that a text defines if it uses them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from compiler.targets.clike.numbers import NUMBERS, parameters, with_callees

SUFFIXES = {
    "float": "f32",
    "double": "f64",
    "_Float16": "f16",
    **{f"int{bits}_t": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": f"u{bits}" for bits in (8, 16, 32, 64)},
}
"""The suffixes of function names, by the C type that they work on."""

WIDTH = 118
EXTREMES = {"min": "a < b ? a : b", "max": "a > b ? a : b"}
"""The return expressions of functions that CUDA C++ has and C lacks."""

CONVERSIONS = {
    "bf16": "typedef uint16_t bf16;",
    "float_of_bf16": """static inline float float_of_bf16(bf16 a) {
  const uint32_t bits = (uint32_t)a << 16;
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}""",
    "bf16_of_float": """static inline bf16 bf16_of_float(float a) {
  uint32_t bits;
  memcpy(&bits, &a, sizeof bits);
  return (bf16)(a != a ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}""",
    "float_to_odd": """static inline float float_to_odd(double a) {
  float nearest = (float)a;
  uint32_t bits;
  memcpy(&bits, &nearest, sizeof bits);
  if (nearest == a || a != a) return nearest;
  if (fabs((double)nearest) > fabs(a)) --bits;
  bits |= 1;
  memcpy(&nearest, &bits, sizeof bits);
  return nearest;
}""",
}
"""Conversions to bf16, which C lacks. Rounding to odd makes the second rounding exact (Boldo, Melquiond)."""

VECTORS = {
    "splat": "static inline {v} splat_{v}({e} a) {{ return {splat}; }}",
    "load": """static inline {v} load_{v}(const void *from) {{
  {v} v{zero};
  memcpy(&v, from, {size});
  return v;
}}""",
    "store": "static inline void store_{v}(void *to, {v} v) {{ memcpy(to, &v, {size}); }}",
    "load_first": """static inline {v} load_first_{v}(const void *from, int64_t count, {v} v) {{
  if (count > 0) memcpy(&v, from, (size_t)(count < {n} ? count : {n}) * sizeof({e}));
  return v;
}}""",
    "store_first": """static inline void store_first_{v}(void *to, int64_t count, {v} v) {{
  if (count > 0) memcpy(to, &v, (size_t)(count < {n} ? count : {n}) * sizeof({e}));
}}""",
    "load_where": """static inline {v} load_where_{v}(const {m} *from, {mask} mask, {v} v) {{
  for (int lane = 0; lane < {n}; ++lane)
    if (mask[lane]) v[lane] = from[lane];
  return v;
}}""",
    "store_where": """static inline void store_where_{v}({m} *to, {mask} mask, {v} v) {{
  for (int lane = 0; lane < {n}; ++lane)
    if (mask[lane]) to[lane] = v[lane];
}}""",
    "gather": """static inline {v} gather_{v}_{at}(const {m} *from, {at} at, {mask} mask, {v} v) {{
  for (int lane = 0; lane < {n}; ++lane)
    if (mask[lane]) v[lane] = from[at[lane]];
  return v;
}}""",
    "scatter": """static inline void scatter_{v}_{at}({m} *to, {at} at, {mask} mask, {v} v) {{
  for (int lane = 0; lane < {n}; ++lane)
    if (mask[lane]) to[at[lane]] = v[lane];
}}""",
}
"""Functions on a vector type v of n lanes of the type e, stored as m; masks have a byte a lane; `at` is an index vector
type."""


@dataclass
class Helpers:
    """The definitions of a text by name, each after those that it depends on."""

    texts: dict[str, str] = field(default_factory=dict)

    def definitions(self) -> list[str]:
        """Return all definitions, first the types as one text, then the functions, each after its dependencies."""
        types = [text for text in self.texts.values() if text.startswith("typedef")]
        types.sort(key=lambda text: "vector_size" in text)
        return [*filter(None, ["\n".join(types)]), *(text for text in self.texts.values() if text not in types)]

    def add(self, name: str) -> str:
        """Define an entry of CONVERSIONS, and the type bf16 that it needs; return its name."""
        if name != "float_to_odd":
            self.texts.setdefault("bf16", CONVERSIONS["bf16"])
        self.texts.setdefault(name, CONVERSIONS[name])
        return name

    def number(self, name: str, type_: str) -> str:
        """Define rsqrt or a function from NUMBERS or EXTREMES, and its callees, for a C type of SUFFIXES, unless
        defined; return its name, such as `min_i32`."""
        suffix = SUFFIXES[type_]
        for callee in with_callees([name]) or [name]:
            self.texts.setdefault(f"{callee}_{suffix}", _function(callee, type_, suffix))
        return f"{name}_{suffix}"

    def vector(self, dtype: str, element: str, count: int) -> str:
        """Define a vector type of `count` lanes of a dtype, stored as the C type `element`; return its name, such as
        `f32x8`. gcc accepts powers of two only, so the type may have unused lanes."""
        name = f"{dtype}x{count}"
        size = f"{1 << (count - 1).bit_length()} * sizeof({element})"
        self.texts.setdefault(name, f"typedef {element} {name} __attribute__((vector_size({size})));")
        return name

    def on_vector(self, kind: str, dtype: str, element: str, count: int, at: str = "") -> str:
        """Define the function `kind` of VECTORS for the vector type of `vector`, with the same dtype, element and
        count; `at` is the name of the index vector type of gathers and scatters. Return its name."""
        v = self.vector(dtype, element, count)
        name, template = "_".join(filter(None, (kind, v, at))), VECTORS[kind]
        is_power_of_two = count & (count - 1) == 0
        fields = {
            "v": v,
            "e": element,
            "m": "bool" if dtype == "i1" else element,
            "n": count,
            "at": at,
            "mask": self.vector("i1", "int8_t", count) if "{mask}" in template else "",
            "size": "sizeof v" if is_power_of_two else f"{count} * sizeof({element})",
            "zero": "" if is_power_of_two else " = {0}",
            "splat": _splat(dtype, v),
        }
        self.texts.setdefault(name, template.format(**fields))
        return name


def _splat(dtype: str, v: str) -> str:
    """Return the expression of a vector of the type named `v` with the scalar `a` in each lane. For f16 lanes are
    listed, since C computes f16 in single precision."""
    if dtype == "f16":
        return f"({v}){{{', '.join(['a'] * int(v.partition('x')[2]))}}}"
    return f"a {'-' if dtype[0] == 'f' else '+'} ({v}){{0}}"  # -0.0 - 0 is -0.0


def _function(name: str, type_: str, suffix: str) -> str:
    """Return the definition of the numeric function `name` for the C type `type_`, which replaces T; the names of the
    function and its callees end with `_` and the suffix."""
    if name == "rsqrt":
        root = "sqrtf" if type_ == "float" else "sqrt"
        return f"static inline {type_} {name}_{suffix}({type_} a) {{ return 1 / {root}(a); }}"
    body = EXTREMES.get(name) or NUMBERS[name]
    body = re.sub(r"\b([a-z_]+)\((?=a|\(T\))", lambda call: f"{call[1]}_{suffix}(", body)
    body = re.sub(r"\bT\b", type_, body)
    names = ("a", "b") if name in EXTREMES else parameters(name)
    signature = f"static inline {type_} {name}_{suffix}({', '.join(f'{type_} {n}' for n in names)})"
    line = f"{signature} {{ return {body}; }}"
    return line if len(line) <= WIDTH else f"{signature} {{\n  return {body};\n}}"
