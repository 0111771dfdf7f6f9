"""The threads of a parallel region, each on a distinct core as soon as it wakes.

Linux may wake a worker on the core of the thread that wakes it, even beside an idle core, and migrate it milliseconds
later; until then the two alternate. A worker that wakes on a core taken by a team-mate migrates to a free one; its
affinity mask does not change. Bound threads (OMP_PROC_BIND) and long spinning avoid this too, but bind the caller or
keep a core busy.

`.join(team, threads)` runs when a thread arrives: in the caller before it starts the region, in workers when they run.
`.meet(team, threads)` runs in the caller after it has started the others.

Median speedup on two cores after pauses of 20 ms (`python -m benchmarks.price team`): a product of 128 x 128 matrices
30 to 50, of 512 x 512 1.1 to 1.6, softmax 1.4 to 1.6. `.join` or `.meet` alone is slower than both. For calls in a row,
with threads awake, and beside a busy process the speedup is 1.
"""

from __future__ import annotations

from compiler.lowering.low_to_llvm.function import FunctionEmitter

_WORDS = 16
"""The length of an affinity mask in 64-bit words, as in the C library's cpu_set_t."""

TEAM = f"[{_WORDS + 1} x i64]"
"""The head of a region's data: the cores of its threads, and the number of threads that have arrived."""

_JOIN = f"""
define internal void @".join"(ptr %team, i64 %threads) noinline #0 {{
entry:
  %allowed = alloca [{_WORDS} x i64]
  %free = alloca [{_WORDS} x i64]
  %come = getelementptr inbounds i64, ptr %team, i64 {_WORDS}
  %number = atomicrmw add ptr %come, i64 1 monotonic
  br label %look
look:
  %tries = phi i32 [ 3, %entry ], [ %left, %back ]
  %cpu = call i32 @sched_getcpu()
  %known = icmp ult i32 %cpu, {64 * _WORDS}
  br i1 %known, label %mark, label %done
mark:
  %wide = zext i32 %cpu to i64
  %word = lshr i64 %wide, 6
  %place = and i64 %wide, 63
  %bit = shl nuw i64 1, %place
  %taken = getelementptr inbounds i64, ptr %team, i64 %word
  %before = atomicrmw or ptr %taken, i64 %bit monotonic
  %shared = and i64 %before, %bit
  %alone = icmp eq i64 %shared, 0
  %tired = icmp eq i32 %tries, 0
  %stays = or i1 %alone, %tired
  br i1 %stays, label %done, label %ask
ask:
  %asked = call i32 @sched_getaffinity(i32 0, i64 {8 * _WORDS}, ptr %allowed)
  %unknown = icmp ne i32 %asked, 0
  br i1 %unknown, label %done, label %choose
choose:
  %i = phi i64 [ 0, %ask ], [ %next, %choose ]
  %any = phi i64 [ 0, %ask ], [ %more, %choose ]
  %places = phi i64 [ 0, %ask ], [ %sum, %choose ]
  %of.allowed = getelementptr inbounds i64, ptr %allowed, i64 %i
  %of.taken = getelementptr inbounds i64, ptr %team, i64 %i
  %of.free = getelementptr inbounds i64, ptr %free, i64 %i
  %may = load i64, ptr %of.allowed
  %has = load atomic i64, ptr %of.taken monotonic, align 8
  %others = xor i64 %has, -1
  %new = and i64 %may, %others
  store i64 %new, ptr %of.free
  %more = or i64 %any, %new
  %bits = call i64 @llvm.ctpop.i64(i64 %may)
  %sum = add nuw nsw i64 %places, %bits
  %next = add nuw nsw i64 %i, 1
  %again = icmp ult i64 %next, {_WORDS}
  br i1 %again, label %choose, label %chosen
chosen:
  %full = icmp eq i64 %more, 0
  %crowded = icmp ult i64 %sum, %threads
  %must = or i1 %full, %crowded
  br i1 %must, label %done, label %move
move:
  %moved = call i32 @sched_setaffinity(i32 0, i64 {8 * _WORDS}, ptr %free)
  %refused = icmp ne i32 %moved, 0
  br i1 %refused, label %done, label %back
back:
  %restored = call i32 @sched_setaffinity(i32 0, i64 {8 * _WORDS}, ptr %allowed)
  %left = sub nuw nsw i32 %tries, 1
  br label %look
done:
  ret void
}}
"""
"""The arrival of a thread: it counts itself, marks its core as taken, and migrates if the core was taken before.

To migrate, it restricts its affinity mask to the free cores, which takes effect at once, and restores the mask. It does
not if no core is free, if there are fewer cores than threads, if the system refuses, or after three lost races.
"""

_LOOKS = 2000
"""The polls of the caller for the others: about a microsecond, in which spinning threads arrive."""

_MEET = f"""
define internal void @".meet"(ptr %team, i64 %threads) noinline #0 {{
entry:
  %come = getelementptr inbounds i64, ptr %team, i64 {_WORDS}
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %more ]
  %present = load atomic i64, ptr %come monotonic, align 8
  %all = icmp uge i64 %present, %threads
  br i1 %all, label %done, label %more
more:
  %next = add nuw nsw i64 %i, 1
  %again = icmp ult i64 %next, {_LOOKS}
  br i1 %again, label %look, label %yield
yield:
  %yielded = call i32 @sched_yield()
  br label %done
done:
  ret void
}}
"""
"""The caller's actions after it has started the others: it yields its core once to a thread that waits for it."""


def join(f: FunctionEmitter, region: str, threads: str) -> None:
    """Emit the arrival of the current thread at a team of `threads`, an i64; `region` is the pointer to the region's
    data."""
    f.declare("i64", "llvm.ctpop.i64", ["i64"])
    f.declare("i32", "sched_getcpu", [])
    for name in ("sched_getaffinity", "sched_setaffinity"):
        f.declare("i32", name, ["i32", "i64", "ptr"])
    f.externals.add(_JOIN)
    f.line(f'call void @".join"(ptr {region}, i64 {threads})')


def meet(f: FunctionEmitter, region: str, threads: str) -> None:
    """Emit the brief wait of the thread that starts a region for its team of `threads`, an i64; `region` is the pointer
    to the region's data."""
    f.declare("i32", "sched_yield", [])
    f.externals.add(_MEET)
    f.line(f'call void @".meet"(ptr {region}, i64 {threads})')
