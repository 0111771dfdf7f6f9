// bfloat16 on the host: kernels convert it, and compute in float.
#pragma once
#include <cstdint>
#include <cstring>

struct __nv_bfloat16 {
  std::uint16_t bits;
  __nv_bfloat16() = default;
  explicit __nv_bfloat16(float value) {
    std::uint32_t word;
    std::memcpy(&word, &value, 4);
    bits = value != value ? 0x7fc0 : (word + 0x7fff + ((word >> 16) & 1)) >> 16;
  }
  explicit operator float() const {
    std::uint32_t word = std::uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &word, 4);
    return value;
  }
};
struct alignas(4) __nv_bfloat162 { __nv_bfloat16 x, y; };
