// bfloat16 on the host: kernels convert it, and compute in float.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

struct __nv_bfloat16 {
  std::uint16_t bits;
  __nv_bfloat16() = default;
  explicit __nv_bfloat16(float value) {
    std::uint32_t word;
    std::memcpy(&word, &value, 4);
    bits = value != value ? 0x7fc0 : (word + 0x7fff + ((word >> 16) & 1)) >> 16;
  }
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, float>>>
  explicit __nv_bfloat16(T value) : __nv_bfloat16(to_odd(value)) {}
  explicit operator float() const {
    std::uint32_t word = std::uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &word, 4);
    return value;
  }

 private:
  static float to_odd(long double value) {  // rounded so that rounding again is rounding once
    float near = (float)value;
    if (near != near || std::isinf(value) || near == value) return near;
    std::uint32_t word;
    std::memcpy(&word, &near, 4);
    if (std::fabs((long double)near) > std::fabs(value)) --word;
    word |= 1;
    std::memcpy(&near, &word, 4);
    return near;
  }
};
struct alignas(4) __nv_bfloat162 { __nv_bfloat16 x, y; };
