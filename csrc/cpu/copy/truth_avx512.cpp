#include "cpu/copy/truth_avx512.h"

#include <immintrin.h>

#include "cpu/isa.h"

namespace rl::RL_ISA {
namespace {

// Truth of elements of kSize bytes: registers give bits, 64 of which become a register of bools. A float is 0 where
// nothing but its sign is set.
template <int kSize, bool kSigned> void truth(void* out, const void* in, int64_t n) {
  const auto* p = static_cast<const char*>(in);
  auto* o = static_cast<char*>(out);
  const __m512i one = _mm512_set1_epi8(1);
  constexpr uint64_t kBits = kSize == 8 ? INT64_MAX : kSize == 4 ? 0x7fffffff7fffffff : 0x7fff7fff7fff7fff;
  const __m512i some = _mm512_set1_epi64(static_cast<int64_t>(kSigned ? kBits : ~uint64_t{0}));
  constexpr int kEach = 64 / kSize;
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    uint64_t set = 0;
#pragma GCC unroll 8
    for (int j = 0; j < kSize; ++j) {
      const __m512i x = _mm512_loadu_si512(p + (i + j * kEach) * kSize);
      uint64_t bits;
      if constexpr (kSize == 8) bits = _mm512_test_epi64_mask(x, some);
      else if constexpr (kSize == 4) bits = _mm512_test_epi32_mask(x, some);
      else bits = _mm512_test_epi16_mask(x, some);
      set |= bits << (j * kEach);
    }
    _mm512_storeu_si512(o + i, _mm512_maskz_mov_epi8(set, one));
  }
  for (; i < n; ++i) {
    uint64_t x = 0;
    __builtin_memcpy(&x, p + i * kSize, kSize);
    o[i] = (x & (kSigned ? kBits : ~uint64_t{0})) != 0;
  }
}

}  // namespace

void (*truth_of(DType from))(void* out, const void* in, int64_t n) {
  switch (from) {
    case DType::Float64: return &truth<8, true>;
    case DType::Float32: return &truth<4, true>;
    case DType::BFloat16: return &truth<2, true>;
    case DType::Int64:
    case DType::UInt64: return &truth<8, false>;
    case DType::Int32:
    case DType::UInt32: return &truth<4, false>;
    case DType::Int16:
    case DType::UInt16: return &truth<2, false>;
    default: return nullptr;
  }
}

}  // namespace rl::RL_ISA
