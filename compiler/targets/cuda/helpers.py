"""Device functions that the text of kernels defines if it uses them: asynchronous copies, MMA, and extrema."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from compiler.targets.clike.numbers import NUMBERS, parameters, with_callees

_FRAGMENT = """template <class T, int n> struct Fragment {
  T at[n];
};"""

_LOAD = """template <class T, int n> __device__ __forceinline__ Fragment<T, n> {name}(const void* row) {{
  Fragment<T, n> to;
  unsigned(&r)[n] = reinterpret_cast<unsigned(&)[n]>(to.at);
  const unsigned from = (unsigned)__cvta_generic_to_shared(row);
  if constexpr (n == 4)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%0, %1, %2, %3}}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2{trans}.shared.b16 {{%0, %1}}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(from) : "memory");
  return to;
}}"""

_MULTIPLY = """__device__ __forceinline__ Fragment<float2, 2> multiply_add(
    const Fragment<{type}, 4>& a, const Fragment<{type}, 2>& b, Fragment<float2, 2> c) {{
  const unsigned(&x)[4] = reinterpret_cast<const unsigned(&)[4]>(a.at);
  const unsigned(&y)[2] = reinterpret_cast<const unsigned(&)[2]>(b.at);
{body}
  return c;
}}"""

_MMA = """  asm volatile("mma.sync.aligned.{shape}.row.col.f32.{kind}.{kind}.f32 "
               "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
               : "+f"(c.at[0].x), "+f"(c.at[0].y), "+f"(c.at[1].x), "+f"(c.at[1].y)
               : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));"""

_HALVES = f"""#if __CUDA_ARCH__ >= 800
{_MMA.format(shape="m16n8k16", kind="f16")}
#else
  for (int k = 0; k < 2; ++k)
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                 "{{%0, %1, %2, %3}}, {{%4, %5}}, {{%6}}, {{%0, %1, %2, %3}};"
                 : "+f"(c.at[0].x), "+f"(c.at[0].y), "+f"(c.at[1].x), "+f"(c.at[1].y)
                 : "r"(x[2 * k]), "r"(x[2 * k + 1]), "r"(y[k]));
#endif"""

WARPS: Mapping[str, str] = {
    "Fragment": _FRAGMENT,
    "load_matrices": _LOAD.format(name="load_matrices", trans=""),
    "load_transposed": _LOAD.format(name="load_transposed", trans=".trans"),
    "multiply_add of f16": _MULTIPLY.format(type="__half2", body=_HALVES),
    "multiply_add of bf16": _MULTIPLY.format(type="__nv_bfloat162", body=_MMA.format(shape="m16n8k16", kind="bf16")),
    "multiply_add of f32": _MULTIPLY.format(type="float", body=_MMA.format(shape="m16n8k8", kind="tf32")),
}
"""Functions of a warp on MMA tiles."""

FIRST_ARCH = {
    "Fragment": ("products of small matrices", "sm_75"),
    "multiply_add of bf16": ("products of small matrices of bf16", "sm_80"),
    "multiply_add of f32": ("products of small matrices of tf32", "sm_80"),
}
"""The feature that a helper needs, in words, and its first architecture."""

COPIES: Mapping[str, str] = {
    "copy_async": """template <int bytes> __device__ __forceinline__ void copy_async(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from),
               "n"(bytes) : "memory");
#else
  for (int n = 0; n < bytes / 4; ++n) static_cast<unsigned*>(to)[n] = static_cast<const unsigned*>(from)[n];
#endif
}""",
    "copy_some_async": """template <int bytes> __device__ __forceinline__ void copy_some_async(
    void* to, const void* from, int size) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from),
               "n"(bytes), "r"(size) : "memory");
#else
  for (int n = 0; n < bytes / 4; ++n)
    static_cast<unsigned*>(to)[n] = 4 * n < size ? static_cast<const unsigned*>(from)[n] : 0;
#endif
}""",
    "commit_copies": """__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}""",
    "wait_for_groups": """template <int in_flight> __device__ __forceinline__ void wait_for_groups() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(in_flight) : "memory");
#endif
}""",
    "wait_for_copies": """__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}""",
}
"""Asynchronous copies to shared memory; before sm_80, and on a host, they are synchronous."""

ARRIVALS: Mapping[str, str] = {
    "arrives_last": """__device__ __forceinline__ bool arrives_last(int* counter, unsigned count) {
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
    __threadfence();
    is_last = atomicInc(reinterpret_cast<unsigned*>(counter), count - 1) == count - 1;
    __threadfence();
  }
  __syncthreads();
  return is_last;
}"""
}
"""The arrival of a block: whether it is the last of `count`. The fences order what earlier blocks have written before
what the last one reads; the counter wraps to zero. Source: the barrier of cooperative groups, threadFenceReduction."""

_EXTREMUM = """#if __CUDA_ARCH__ >= 800
template <> __device__ __forceinline__ {type} {name}({type} a, {type} b) {{
  asm("{opcode}.NaN.{kind} %0, %0, %1;" : "+{letter}"({a}) : "{letter}"({b}));
  return a;
}}
#endif"""

EXTREMA: Mapping[str, str] = {
    f"{name}<{type_}>": _EXTREMUM.format(
        name=name, opcode=name[:3], type=type_, kind=kind, letter=letter, a=value.format("a"), b=value.format("b")
    )
    for name in ("maximum", "minimum")
    for type_, kind, letter, value in (
        ("float", "f32", "f", "{}"),
        ("__half", "f16", "h", "reinterpret_cast<unsigned short&>({})"),
    )  # bf16 is computed in f32
}
"""Maxima and minima in one instruction, which propagates NaN and orders zeros, on sm_80 and later."""


NARROWED_POWER = "narrowed_exp2"
"""The helper for a power of two that is rounded to 16 bits: one instruction, with a relative error of 2^-22."""
POWERS = {
    NARROWED_POWER: f"""__device__ __forceinline__ float {NARROWED_POWER}(float x) {{
#ifdef __CUDA_ARCH__
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
#else
  return exp2f(x);
#endif
}}"""
}
"""The definition of NARROWED_POWER."""


def definitions(names: Collection[str]) -> list[str]:
    """Return the definitions of the helpers with these names, and of those that they call, which come first. The type
    Fragment is a helper; unknown names are dropped."""
    texts = [text for name, text in {**WARPS, **COPIES, **POWERS, **ARRIVALS}.items() if name in names]
    extrema = [text for name, text in EXTREMA.items() if name in names]
    return [*texts, *(_function(name) for name in with_callees(names)), *extrema]


def _function(name: str) -> str:
    takes = ", ".join(f"T {parameter}" for parameter in parameters(name))
    return f"template <class T> __device__ __forceinline__ T {name}({takes}) {{ return {NUMBERS[name]}; }}"
