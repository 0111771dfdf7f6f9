"""One example of each primitive, executed: what the pages in docs/primitives show.

A function of the primitive's name applies it to the program that `on` names; `<name>_refused` is a use that is
refused. `tools/docs.py` runs both and prints their source, so a body here is written to be read.
"""

# Every loop of a nest is named, as a reader would, also where only one is used.
# ruff: noqa: RUF059

from __future__ import annotations

from collections.abc import Callable

from strata import Schedule, te

Program = Callable[[], te.Function]
Example = Callable[[Schedule], None]

PROGRAMS: dict[str, Program] = {}
"""The program of each example, by the example's name."""


def on(program: Program) -> Callable[[Example], Example]:
    """Say which program an example is applied to."""

    def with_program(example: Example) -> Example:
        PROGRAMS[example.__name__] = program
        return example

    return with_program


# --- programs -------------------------------------------------------------------------------------------------------


def scale() -> te.Function:
    """One loop."""
    A = te.placeholder((10,), name="A")
    D = te.compute((10,), lambda i: A[i] * 2.0, name="D")
    return te.function("scale", [A], [D])


def third_of_each() -> te.Function:
    """Rows of which one element is read."""
    A = te.placeholder((4, 8), name="A")
    T = te.compute((4, 8), lambda i, t: A[i, t] * 2.0, name="T")
    Y = te.compute((4,), lambda i: T[i, 2], name="Y")
    return te.function("third_of_each", [A], [Y])


def total() -> te.Function:
    """One reduction."""
    A = te.placeholder((32,), name="A")
    k = te.reduce_axis(32, "k")
    T = te.compute((1,), lambda i: te.sum(A[k], axis=k), name="T")
    return te.function("total", [A], [T])


def matmul() -> te.Function:
    """Two spatial loops and a reduction."""
    A, B = te.placeholder((6, 4), name="A"), te.placeholder((4, 8), name="B")
    k = te.reduce_axis(4, "k")
    C = te.compute((6, 8), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="C")
    return te.function("matmul", [A, B], [C])


def matmul_exp() -> te.Function:
    """A reduction and an elementwise consumer."""
    A, B = te.placeholder((6, 4), name="A"), te.placeholder((4, 8), name="B")
    k = te.reduce_axis(4, "k")
    C = te.compute((6, 8), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="C")
    D = te.compute((6, 8), lambda m, n: te.exp(C[m, n]), name="D")
    return te.function("matmul_exp", [A, B], [D])


def blur() -> te.Function:
    """A producer and a stencil."""
    A = te.placeholder((10,), name="A")
    T = te.compute((10,), lambda i: A[i] * 0.5, name="T")
    S = te.compute((8,), lambda i: T[i] + T[i + 1] + T[i + 2], name="S")
    return te.function("blur", [A], [S])


def edges() -> te.Function:
    """A stencil that reads zero beyond the edge."""
    A = te.placeholder((8,), name="A")
    r = te.reduce_axis(3, "r")
    S = te.compute((8,), lambda i: te.sum(A.padded(0.0)[i + r - 1], axis=r), name="S")
    return te.function("edges", [A], [S])


def transposed() -> te.Function:
    """A producer and a consumer that reads its columns."""
    A = te.placeholder((8, 32), name="A")
    T = te.compute((8, 32), lambda i, j: A[i, j] + 1.0, name="T")
    S = te.compute((32, 8), lambda j, i: T[i, j] * 2.0, name="S")
    return te.function("transposed", [A], [S])


def quantised() -> te.Function:
    """A product of bytes, the right operand in groups of four rows."""
    A, B = te.placeholder((2, 8), "u8", name="A"), te.placeholder((2, 16, 4), "i8", name="B")
    k = te.reduce_axis(8, "k")
    C = te.compute(
        (2, 16), lambda m, n: te.sum(te.cast(A[m, k], "i32") * te.cast(B[k // 4, n, k % 4], "i32"), axis=k), name="C"
    )
    return te.function("quantised", [A, B], [C])


# --- loops ----------------------------------------------------------------------------------------------------------


@on(scale)
def split(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("D"))
    s.split(i, [None, 4])


@on(scale)
def split_refused(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("D"))
    s.split(i, [2, 4])


@on(scale)
def reverse(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("D"))
    s.reverse(i)


@on(blur)
def reverse_refused(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("T"))
    (j,) = s.get_loops(s.get_block("S"))
    both = s.merge(i, j, shift=2)
    s.reverse(both)


@on(total)
def add_unit_loop(s: Schedule) -> None:
    *_, k = s.get_loops(s.get_block("T"))
    s.add_unit_loop(k)


@on(total)
def add_unit_loop_refused(s: Schedule) -> None:
    *_, k = s.get_loops(s.get_block("T"))
    s.unroll(k)
    s.add_unit_loop(k)


@on(scale)
def partition(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("D"))
    s.partition(i, 8)


@on(scale)
def partition_refused(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("D"))
    s.partition(i, 10)


@on(third_of_each)
def trim(s: Schedule) -> None:
    i, t = s.get_loops(s.get_block("T"))
    s.reorder(t, i)
    s.trim(t)


@on(third_of_each)
def trim_refused(s: Schedule) -> None:
    i, t = s.get_loops(s.get_block("T"))
    s.trim(t)


@on(matmul)
def fuse(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.fuse(m, n)


@on(matmul)
def fuse_refused(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.fuse(m, k)


@on(matmul)
def join_axes(s: Schedule) -> None:
    C = s.get_block("C")
    m, n, k = s.get_loops(C)
    s.fuse(m, n)
    s.join_axes(C)


@on(matmul)
def join_axes_refused(s: Schedule) -> None:
    C = s.get_block("C")
    m, n, k = s.get_loops(C)
    s.fuse(n, k)
    s.join_axes(C)


@on(matmul)
def reorder(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.reorder(m, k, n)


@on(blur)
def reorder_refused(s: Schedule) -> None:
    (t,) = s.get_loops(s.get_block("T"))
    (i,) = s.get_loops(s.get_block("S"))
    both = s.merge(t, i, shift=2)
    s.transform_layout(s.get_block("T"), "T", lambda i: (i % 3,))
    outer, inner = s.split(both, [None, 5])
    s.reorder(inner, outer)


@on(blur)
def merge(s: Schedule) -> None:
    (t,) = s.get_loops(s.get_block("T"))
    (i,) = s.get_loops(s.get_block("S"))
    s.merge(t, i, shift=2)


@on(blur)
def merge_refused(s: Schedule) -> None:
    (t,) = s.get_loops(s.get_block("T"))
    (i,) = s.get_loops(s.get_block("S"))
    s.merge(t, i, shift=1)


@on(matmul_exp)
def distribute(s: Schedule) -> None:
    c, d = s.get_block("C"), s.get_block("D")
    both = s.merge(s.get_loops(c)[0], s.get_loops(d)[0])
    s.distribute(both, c)


@on(blur)
def distribute_refused(s: Schedule) -> None:
    t, b = s.get_block("T"), s.get_block("S")
    (i,) = s.get_loops(b)
    s.compute_at(t, i)
    s.distribute(i, t)


@on(matmul)
def unroll(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.unroll(k)


@on(matmul)
def unroll_refused(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.vectorize(n)
    s.unroll(n)


@on(matmul)
def vectorize(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.reorder(m, k, n)
    s.vectorize(n)


@on(matmul)
def vectorize_refused(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.vectorize(k)


@on(matmul)
def parallel(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.parallel(m)


@on(matmul)
def parallel_refused(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.parallel(k)


@on(matmul)
def bind(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.bind(m, "block_x")
    s.bind(n, "thread_x")


@on(matmul)
def bind_refused(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.bind(m, "thread_x")
    s.bind(n, "thread_x")


@on(quantised)
def tensorize(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    k, g = s.split(k, [None, 4])
    s.reorder(m, k, n, g)
    s.tensorize(n, "dot.i32.u8i8x4")


@on(quantised)
def tensorize_refused(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    k, g = s.split(k, [None, 4])
    s.reorder(n, k, m, g)
    s.tensorize(m, "dot.i32.u8i8x4")


@on(scale)
def annotate(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("D"))
    s.annotate(i, "hint", 4)


@on(scale)
def annotate_refused(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("D"))
    s.split(i, [None, 4])
    s.annotate(i, "hint", 4)


# --- placement ------------------------------------------------------------------------------------------------------


@on(blur)
def compute_at(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("S"))
    s.compute_at(s.get_block("T"), i)


@on(matmul_exp)
def compute_at_refused(s: Schedule) -> None:
    c = s.get_block("C")
    s.compute_at(c, s.get_loops(c)[0])


@on(matmul_exp)
def reverse_compute_at(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.reverse_compute_at(s.get_block("D"), m)


@on(blur)
def reverse_compute_at_refused(s: Schedule) -> None:
    s.reverse_compute_at(s.get_block("S"), s.get_loops(s.get_block("T"))[0])


@on(blur)
def inline(s: Schedule) -> None:
    s.inline(s.get_block("T"))


@on(matmul_exp)
def inline_refused(s: Schedule) -> None:
    s.inline(s.get_block("C"))


@on(transposed)
def reverse_inline(s: Schedule) -> None:
    s.reverse_inline(s.get_block("S"))


@on(blur)
def reverse_inline_refused(s: Schedule) -> None:
    s.reverse_inline(s.get_block("S"))


# --- reductions -----------------------------------------------------------------------------------------------------


@on(matmul)
def decompose_reduction(s: Schedule) -> None:
    c = s.get_block("C")
    m, n, k = s.get_loops(c)
    s.reorder(m, k, n)
    s.decompose_reduction(c, k)


@on(matmul)
def decompose_reduction_refused(s: Schedule) -> None:
    c = s.get_block("C")
    m, n, k = s.get_loops(c)
    s.reorder(m, k, n)
    s.fuse(m, k)
    s.decompose_reduction(c, n)


@on(total)
def rfactor(s: Schedule) -> None:
    t = s.get_block("T")
    k = s.get_loops(t)[-1]
    k0, k1 = s.split(k, [None, 8])
    s.rfactor(t, k1)


@on(matmul)
def rfactor_refused(s: Schedule) -> None:
    c = s.get_block("C")
    m, n, k = s.get_loops(c)
    s.rfactor(c, n)


# --- staging --------------------------------------------------------------------------------------------------------


@on(matmul)
def cache_read(s: Schedule) -> None:
    s.cache_read(s.get_block("C"), "B", "shared")


@on(matmul)
def cache_read_refused(s: Schedule) -> None:
    s.cache_read(s.get_block("C"), "C", "shared")


@on(matmul)
def cache_write(s: Schedule) -> None:
    s.cache_write(s.get_block("C"), "local")


@on(blur)
def cache_write_refused(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("T"))
    s.partition(i, 5)
    last = s.get_producers(s.get_block("S"))[1]
    s.cache_write(last, "local")


@on(matmul)
def stage(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    m0, m1 = s.split(m, [None, 3])
    s.stage(m0, "A", "shared")


@on(matmul)
def stage_refused(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.reorder(m, k, n)
    s.stage(k, "C")


@on(blur)
def lift_alloc(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("S"))
    s.compute_at(s.get_block("T"), i)
    s.lift_alloc("T")


@on(blur)
def lift_alloc_refused(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("S"))
    s.compute_at(s.get_block("T"), i)
    s.parallel(i)
    s.lift_alloc("T")


@on(blur)
def set_scope(s: Schedule) -> None:
    s.set_scope(s.get_block("T"), "shared")


@on(blur)
def set_scope_refused(s: Schedule) -> None:
    s.set_scope(s.get_block("S"), "shared")


# --- layout ---------------------------------------------------------------------------------------------------------


@on(blur)
def transform_layout(s: Schedule) -> None:
    (t,) = s.get_loops(s.get_block("T"))
    (i,) = s.get_loops(s.get_block("S"))
    s.merge(t, i, shift=2)
    s.transform_layout(s.get_block("T"), "T", lambda i: (i % 3,))


@on(blur)
def transform_layout_refused(s: Schedule) -> None:
    (t,) = s.get_loops(s.get_block("T"))
    (i,) = s.get_loops(s.get_block("S"))
    s.merge(t, i, shift=2)
    s.transform_layout(s.get_block("T"), "T", lambda i: (i % 2,))


@on(matmul)
def pack(s: Schedule) -> None:
    s.pack(s.get_block("C"), "B", [1, 3], [1, 0, 2])


@on(matmul)
def pack_refused(s: Schedule) -> None:
    s.pack(s.get_block("C"), "B", [1, 3], [1, 0])


@on(edges)
def pad(s: Schedule) -> None:
    s.pad(s.get_block("S"), "A")


@on(blur)
def pad_refused(s: Schedule) -> None:
    s.pad(s.get_block("S"), "T")


@on(edges)
def reindex(s: Schedule) -> None:
    s.reindex(s.get_block("S"), "A")


@on(blur)
def reindex_refused(s: Schedule) -> None:
    s.reindex(s.get_block("S"), "T")


@on(transposed)
def storage_align(s: Schedule) -> None:
    s.storage_align(s.get_block("T"), 0, 32, 8)


@on(blur)
def storage_align_refused(s: Schedule) -> None:
    s.storage_align(s.get_block("T"), 0, 32, 8)


@on(transposed)
def swizzle(s: Schedule) -> None:
    s.swizzle(s.get_block("T"), 8)


@on(blur)
def swizzle_refused(s: Schedule) -> None:
    s.swizzle(s.get_block("T"), 8)


# --- moving data while working --------------------------------------------------------------------------------------


@on(matmul)
def prefetch(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.prefetch(k, "B", 2)
    s.prefetch(m, "A", 1, over=n)


@on(matmul_exp)
def prefetch_refused(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("C"))
    s.prefetch(k, "D", 2)


@on(blur)
def double_buffer(s: Schedule) -> None:
    t = s.get_block("T")
    (i,) = s.get_loops(s.get_block("S"))
    s.compute_at(t, i)
    s.double_buffer(t)


@on(blur)
def double_buffer_refused(s: Schedule) -> None:
    s.double_buffer(s.get_block("T"))


@on(blur)
def software_pipeline(s: Schedule) -> None:
    t = s.get_block("T")
    (i,) = s.get_loops(s.get_block("S"))
    s.compute_at(t, i)
    s.double_buffer(t)
    s.software_pipeline(i, [0, 1])


@on(blur)
def software_pipeline_refused(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("S"))
    s.compute_at(s.get_block("T"), i)
    s.software_pipeline(i, [0, 1])


# --- choices --------------------------------------------------------------------------------------------------------


@on(scale)
def sample_perfect_tile(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("D"))
    factors = s.sample_perfect_tile(i, 2, innermost=8)
    s.split(i, factors)


@on(scale)
def sample_perfect_tile_refused(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("D"))
    s.sample_perfect_tile(i, 2, decision=[3, 4])


@on(scale)
def sample_categorical(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("D"))
    outer = s.sample_categorical([5, 10], [0.75, 0.25])
    inner = s.sample_categorical([2, 4, 8])
    s.split(i, [outer, inner])


@on(scale)
def sample_categorical_refused(s: Schedule) -> None:
    s.sample_categorical([2, 4, 8], decision=3)


@on(scale)
def multiple(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("D"))
    vectors = s.sample_categorical([1, 2, 4], decision=1)
    s.split(i, [None, s.multiple(vectors, 4)])


@on(scale)
def multiple_refused(s: Schedule) -> None:
    s.multiple(s.sample_categorical([1, 2, 4], decision=1), 0)


@on(scale)
def product(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("D"))
    rows = s.sample_categorical([1, 2], decision=1)
    columns = s.sample_categorical([1, 5], decision=1)
    s.split(i, [None, s.product(rows, columns)])


@on(scale)
def product_refused(s: Schedule) -> None:
    (i,) = s.get_loops(s.get_block("D"))
    s.product(i, s.sample_categorical([1, 2], decision=1))


@on(blur)
def sample_location(s: Schedule) -> None:
    t = s.get_block("T")
    at = s.sample_location(t)
    s.compute_at(t, at)


@on(blur)
def sample_location_refused(s: Schedule) -> None:
    s.sample_location(s.get_block("T"), decision=1)
