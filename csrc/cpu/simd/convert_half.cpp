// Rows of reduced-precision types to float and back. With an RL_OVERLAY.
#include "cpu/features.h"
#include "cpu/simd/vec.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace rl::RL_ISA {

#ifdef RL_OVERLAY

[[gnu::flatten]] void widen(const bfloat16* in, float* out, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]);
}
[[gnu::flatten]] void narrow(const float* in, bfloat16* out, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = bfloat16(in[i]);
}
void widen(const float16* in, float* out, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i))));
  for (; i < n; ++i) out[i] = static_cast<float>(in[i]);
}
void narrow(const float* in, float16* out, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm512_cvtps_ph(_mm512_loadu_ps(in + i), 0));
  for (; i < n; ++i) out[i] = float16(in[i]);
}

#else

[[gnu::flatten]] void widen(const bfloat16* in, float* out, int64_t n) {
  if (has_avx512()) return avx512::widen(in, out, n);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]);
}
[[gnu::flatten]] void narrow(const float* in, bfloat16* out, int64_t n) {
  if (has_avx512()) return avx512::narrow(in, out, n);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = bfloat16(in[i]);
}
void widen(const float16* in, float* out, int64_t n) {
  if (has_avx512()) return avx512::widen(in, out, n);
  int64_t i = 0;
  for (; i + kLanes<float> <= n; i += kLanes<float>) store_vec(out + i, load_vec(in + i));
  for (; i < n; ++i) out[i] = static_cast<float>(in[i]);
}
void narrow(const float* in, float16* out, int64_t n) {
  if (has_avx512()) return avx512::narrow(in, out, n);
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), 0));
#endif
  for (; i < n; ++i) out[i] = float16(in[i]);
}

#endif

}  // namespace rl::RL_ISA
