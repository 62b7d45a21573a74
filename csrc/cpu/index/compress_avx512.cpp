#include "cpu/index/compress_avx512.h"

#include <immintrin.h>

#include "cpu/isa.h"

namespace rl::RL_ISA {

int64_t true_positions(const char* bools, int64_t n, int32_t base, int32_t* at) {
  const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += 64) {
    const uint64_t inside = n - i < 64 ? (uint64_t{1} << (n - i)) - 1 : ~uint64_t{0};
    const __m512i b = _mm512_maskz_loadu_epi8(inside, bools + i);
    uint64_t set = _mm512_test_epi8_mask(b, b);
    for (int64_t j = i; set; j += 16, set >>= 16) {
      const auto some = static_cast<__mmask16>(set);
      const __m512i position = _mm512_add_epi32(first, _mm512_set1_epi32(static_cast<int32_t>(base + j)));
      _mm512_storeu_si512(at + count, _mm512_maskz_compress_epi32(some, position));
      count += __builtin_popcount(some);
    }
  }
  return count;
}

template <class U> int64_t keep_band(const int64_t* offsets, const char* values, int64_t n, int64_t low, int64_t span,
                                     int64_t* kept, void* kept_values) {
  const __m512i least = _mm512_set1_epi64(low), width = _mm512_set1_epi64(span);
  const U* from = reinterpret_cast<const U*>(values);
  U* to = static_cast<U*>(kept_values);
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += 8) {
    const __m512i at = _mm512_loadu_si512(offsets + i);
    const __mmask8 inside = _mm512_cmplt_epu64_mask(_mm512_sub_epi64(at, least), width);
    _mm512_storeu_si512(kept + count, _mm512_maskz_compress_epi64(inside, at));
    if constexpr (sizeof(U) == 4) {
      const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + count), _mm256_maskz_compress_epi32(inside, v));
    } else {
      _mm512_storeu_si512(to + count, _mm512_maskz_compress_epi64(inside, _mm512_loadu_si512(from + i)));
    }
    count += __builtin_popcount(inside);
  }
  return count;
}
template int64_t keep_band<uint32_t>(const int64_t*, const char*, int64_t, int64_t, int64_t, int64_t*, void*);
template int64_t keep_band<uint64_t>(const int64_t*, const char*, int64_t, int64_t, int64_t, int64_t*, void*);

}  // namespace rl::RL_ISA
