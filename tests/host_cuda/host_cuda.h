// Enough of CUDA C++ for kernels to be compiled by a C++20 compiler, and run on threads of the host, a block at a time.
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"

#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
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
inline std::barrier<>* block_barrier;
inline void __syncthreads() { block_barrier->arrive_and_wait(); }

struct Warp {  // what its threads hand to each other
  const void* slots[32];
  std::unique_ptr<std::barrier<>> together = std::make_unique<std::barrier<>>(32);
};
inline std::vector<Warp> block_warps;
inline thread_local int this_warp, this_lane;

#define __global__
#define __device__
#define __constant__ static const
#define __forceinline__ inline
#define __launch_bounds__(threads)
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
  for (long long number = 0; number < size(grid); ++number) {
    std::barrier<> together(count);
    block_barrier = &together;
    block_warps = std::vector<Warp>(count / 32 + 1);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < count; ++thread)
      threads.emplace_back([=] {
        blockIdx = place(number, grid), threadIdx = place(thread, block);
        this_warp = thread / 32, this_lane = thread % 32;
        call(kernel, arguments, std::index_sequence_for<P...>());
        block_barrier->arrive_and_drop();
      });
    for (auto& thread : threads) thread.join();
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
