// What the threads of a warp do together, on the host: each hands its part to the others, in the layouts of
// NVIDIA's PTX ISA. It stands behind the text's own struct Fragment, in the place of what the text says in assembly.
#pragma once
#include <array>

template <class T> auto exchanged(const T& mine) {
  std::array<T, 32> all;
  Warp& warp = block_warps[this_warp];
  warp.slots[this_lane] = &mine;
  warp.together.wait();
  for (int lane = 0; lane < 32; ++lane) all[lane] = *static_cast<const T*>(warp.slots[lane]);
  warp.together.wait();
  return all;
}

template <class T> T __shfl_xor_sync(unsigned, T value, int distance) { return exchanged(value)[this_lane ^ distance]; }

template <class T, int n> Fragment<T, n> load_matrices(const void* row) {
  auto rows = exchanged(row);
  Fragment<T, n> to;
  for (int matrix = 0; matrix < n; ++matrix)
    std::memcpy(&to.at[matrix], static_cast<const char*>(rows[8 * matrix + this_lane / 4]) + this_lane % 4 * 4, 4);
  return to;
}

template <class T, int n> Fragment<T, n> load_transposed(const void* row) {
  auto rows = exchanged(row);
  Fragment<T, n> to;
  for (int matrix = 0; matrix < n; ++matrix)
    for (int half = 0; half < 2; ++half)
      std::memcpy(reinterpret_cast<char*>(&to.at[matrix]) + 2 * half,
                  static_cast<const char*>(rows[8 * matrix + this_lane % 4 * 2 + half]) + this_lane / 4 * 2, 2);
  return to;
}

inline float as_float(float x, int) {  // tf32
  std::uint32_t word;
  std::memcpy(&word, &x, 4);
  word &= 0xffffe000;
  std::memcpy(&x, &word, 4);
  return x;
}
template <class T> float as_float(const T& pair, int number) { return (float)(number ? pair.y : pair.x); }

template <class T> Fragment<float2, 2> multiply_add(const Fragment<T, 4>& a, const Fragment<T, 2>& b, Fragment<float2, 2> c) {
  constexpr int each = std::is_same_v<T, float> ? 1 : 2;
  auto left = exchanged(a);
  auto right = exchanged(b);
  for (int row = 0; row < 2; ++row)
    for (int column = 0; column < 2; ++column) {
      float& sum = column ? c.at[row].y : c.at[row].x;
      for (int k = 0; k < 8 * each; ++k) {
        const int part = k / (4 * each), lane = k % (4 * each) / each;  // which registers, whose
        sum += as_float(left[this_lane / 4 * 4 + lane].at[row + 2 * part], k % each) *
               as_float(right[(this_lane % 4 * 2 + column) * 4 + lane].at[part], k % each);
      }
    }
  return c;
}
