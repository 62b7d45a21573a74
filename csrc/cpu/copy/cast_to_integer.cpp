#include "cpu/simd/cast.h"

#ifdef RL_HAS_AVX512
#include "cpu/features.h"
// GCC 12's own intrinsics start from undefined registers and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#endif

namespace rl::RL_ISA {

#ifdef RL_HAS_AVX512
namespace {

// Truth of elements of kSize bytes: registers give bits, 64 of which become a register of bools. A float is 0 where
// nothing but its sign is set.
template <int kSize, bool kSigned> RL_AVX512 void truth_avx512(void* out, const void* in, int64_t n) {
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
Cast truth_of(DType from) {
  switch (from) {
    case DType::Float64: return &truth_avx512<8, true>;
    case DType::Float32: return &truth_avx512<4, true>;
    case DType::BFloat16: return &truth_avx512<2, true>;
    case DType::Int64:
    case DType::UInt64: return &truth_avx512<8, false>;
    case DType::Int32:
    case DType::UInt32: return &truth_avx512<4, false>;
    case DType::Int16:
    case DType::UInt16: return &truth_avx512<2, false>;
    default: return nullptr;
  }
}

}  // namespace
#endif

Cast cast_to_integer(DType to, DType from) {
#ifdef RL_HAS_AVX512
  if (to == DType::Bool && cpu::has_avx512())
    if (Cast truth = truth_of(from)) return truth;
#endif
  switch (to) {
    case DType::Bool: return cast_from<bool>(from);
    case DType::UInt8: return cast_from<uint8_t>(from);
    case DType::Int8: return cast_from<int8_t>(from);
    case DType::Int16: return cast_from<int16_t>(from);
    case DType::Int32: return cast_from<int32_t>(from);
    case DType::Int64: return cast_from<int64_t>(from);
    case DType::UInt16: return cast_from<uint16_t>(from);
    case DType::UInt32: return cast_from<uint32_t>(from);
    case DType::UInt64: return cast_from<uint64_t>(from);
    default: return nullptr;
  }
}

}  // namespace rl::RL_ISA
