// float16 and bfloat16 as storage types: they convert to and from float, rounding to nearest even.
#pragma once
#include <bit>
#include <cstdint>

namespace rl {

struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  bfloat16(float f) {
    uint32_t u = std::bit_cast<uint32_t>(f);
    bits = (u & 0x7fffffffu) > 0x7f800000u ? static_cast<uint16_t>(0x7fc0)
                                           : static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

struct float16 {
  uint16_t bits;
  float16() = default;
  float16(float f) {
#ifdef __F16C__
    bits = static_cast<uint16_t>(__builtin_ia32_vcvtps2ph((float __attribute__((vector_size(16)))){f, 0, 0, 0}, 0)[0]);
#else
    uint32_t u = std::bit_cast<uint32_t>(f), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    if (a >= 0x7f800000u) {  // inf, nan
      bits = static_cast<uint16_t>(sign | 0x7c00u | (a > 0x7f800000u ? 0x200u | ((a >> 13) & 0x3ffu) : 0));
    } else if (a >= 0x477ff000u) {  // rounds past 65504
      bits = static_cast<uint16_t>(sign | 0x7c00u);
    } else if (a < 0x38800000u) {  // subnormal in half: let the FPU round at 2^-24
      float shifted = std::bit_cast<float>(a) + 0.5f;
      bits = static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
    } else {
      uint32_t rounded = a + 0xfffu + ((a >> 13) & 1) - 0x38000000u;
      bits = static_cast<uint16_t>(sign | (rounded >> 13));
    }
#endif
  }
  operator float() const {
#ifdef __F16C__
    return __builtin_ia32_vcvtph2ps((short __attribute__((vector_size(16)))){static_cast<short>(bits)})[0];
#else
    uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, e = (bits >> 10) & 31u, m = bits & 0x3ffu;
    if (e == 31) return std::bit_cast<float>(sign | 0x7f800000u | (m << 13));
    if (e == 0) {
      float v = static_cast<float>(m) * 0x1p-24f;
      return sign ? -v : v;
    }
    return std::bit_cast<float>(sign | ((e + 112) << 23) | (m << 13));
#endif
  }
};

}  // namespace rl
