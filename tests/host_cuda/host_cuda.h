// Enough of CUDA C++ for kernels to be compiled by a C++20 compiler and run on the host, a block at a time. The threads of a
// block are fibers of one thread of the host: a barrier is a switch between stacks, without the kernel of the host.
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"

#include <ucontext.h>

#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

struct dim3 { int x, y, z; };
template <class T> struct vector1 { T x; };
template <class T> struct alignas(2 * sizeof(T)) vector2 { T x, y; };
template <class T> struct vector3 { T x, y, z; };
template <class T> struct alignas(4 * sizeof(T)) vector4 { T x, y, z, w; };
using float2 = vector2<float>;
using float3 = vector3<float>;
using float4 = vector4<float>;
using double2 = vector2<double>;
using char1 = vector1<signed char>;
using char2 = vector2<signed char>;
using char3 = vector3<signed char>;
using char4 = vector4<signed char>;
using short2 = vector2<short>;
using short3 = vector3<short>;
using short4 = vector4<short>;
using double4 = vector4<double>;
using int3 = vector3<int>;
using int2 = vector2<int>;
using int4 = vector4<int>;
using uint2 = vector2<unsigned>;
using uint4 = vector4<unsigned>;

inline thread_local dim3 threadIdx, blockIdx;

constexpr int STACK = 256 << 10;
struct Fiber {  // a thread of a block, where it waits, and its stack
  std::jmp_buf at;
  ucontext_t start;
  std::unique_ptr<char[]> stack{new char[STACK]};
  bool is_started, has_ended;
};
inline std::vector<Fiber> fibers;
inline std::jmp_buf scheduler;
inline std::function<void()> fiber_body;
inline int running, alive;

__attribute__((noinline)) inline void let_others_run() {
  if (!_setjmp(fibers[running].at)) _longjmp(scheduler, 1);
}

inline void enter_fiber() {
  fiber_body();
  fibers[running].has_ended = true, --alive;
  _longjmp(scheduler, 1);
}

__attribute__((noinline)) inline void resume_fiber() {
  Fiber& fiber = fibers[running];
  if (_setjmp(scheduler)) return;
  if (fiber.is_started) _longjmp(fiber.at, 1);
  fiber.is_started = true;
  getcontext(&fiber.start);
  fiber.start.uc_stack = {fiber.stack.get(), 0, STACK};
  fiber.start.uc_link = nullptr;
  makecontext(&fiber.start, enter_fiber, 0);
  setcontext(&fiber.start);
}

struct Barrier {
  int count, arrived = 0;
  unsigned round = 0;
  void release() { arrived = 0, ++round; }
  void wait() {
    const unsigned mine = round;
    if (++arrived == count) release();
    while (mine == round) let_others_run();
  }
  void drop() {
    if (arrived == --count) release();
  }
};
inline Barrier block_barrier;
inline void __syncthreads() { block_barrier.wait(); }
inline void __threadfence() {}
inline unsigned atomicInc(unsigned* at, unsigned most) {  // blocks run one after another
  const unsigned former = *at;
  *at = former >= most ? 0 : former + 1;
  return former;
}

struct Warp {  // what its threads hand to each other
  const void* slots[32];
  Barrier together{32};
};
inline std::vector<Warp> block_warps;
inline thread_local int this_warp, this_lane;

#define __global__
#define __device__
#define __constant__ static const
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static

using std::max;
using std::min;
inline float rsqrtf(float a) { return 1.0f / std::sqrt(a); }
inline double rsqrt(double a) { return 1.0 / std::sqrt(a); }
inline float __fadd_rn(float a, float b) { volatile float c = a + b; return c; }
inline float __fsub_rn(float a, float b) { volatile float c = a - b; return c; }
inline float __fmul_rn(float a, float b) { volatile float c = a * b; return c; }
inline double __dadd_rn(double a, double b) { volatile double c = a + b; return c; }
inline double __dsub_rn(double a, double b) { volatile double c = a - b; return c; }
inline double __dmul_rn(double a, double b) { volatile double c = a * b; return c; }
inline float __int_as_float(int a) { float b; std::memcpy(&b, &a, 4); return b; }

template <class... P, std::size_t... I>
void call(void (*kernel)(P...), void** arguments, std::index_sequence<I...>) {
  kernel((P)arguments[I]...);
}

inline dim3 place(long long number, dim3 extents) {
  const long long row = number / extents.x;
  return {int(number % extents.x), int(row % extents.y), int(row / extents.y)};
}

inline long long size(dim3 extents) { return (long long)extents.x * extents.y * extents.z; }

template <class... P>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments) {
  const int count = size(block);
  if ((int)fibers.size() < count) fibers = std::vector<Fiber>(count);
  fiber_body = [=] {
    call(kernel, arguments, std::index_sequence_for<P...>());
    block_barrier.drop();
  };
  for (long long number = 0; number < size(grid); ++number) {
    blockIdx = place(number, grid), block_barrier = {count}, alive = count;
    block_warps.assign(count / 32 + 1, Warp());
    for (auto& fiber : fibers) fiber.is_started = fiber.has_ended = false;
    while (alive)
      for (running = 0; running < count; ++running) {
        if (fibers[running].has_ended) continue;
        threadIdx = place(running, block), this_warp = running / 32, this_lane = running % 32;
        resume_fiber();
      }
  }
}

// Threads that never wait for each other, one after another: blocks from the first on, so many.
template <class... P>
void launch_alone(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, long long first, long long blocks) {
  for (long long number = first; number < first + blocks; ++number)
    for (long long thread = 0; thread < size(block); ++thread) {
      blockIdx = place(number, grid), threadIdx = place(thread, block);
      call(kernel, arguments, std::index_sequence_for<P...>());
    }
}
