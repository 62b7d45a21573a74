// Rows of reduced-precision types to float and back, on the widest registers that the processor has.
#include "cpu/elementwise/pointwise.h"
#include "cpu/simd/vec.h"

#ifdef __F16C__
// GCC 12's own intrinsics start from undefined registers and warn of it.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#endif

namespace rl::RL_ISA {
namespace {

[[gnu::flatten]] void widen_bf16(const bfloat16* __restrict in, float* __restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]);
}
[[gnu::flatten]] void narrow_bf16(const float* __restrict in, bfloat16* __restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = bfloat16(in[i]);
}
RL_AVX512 [[gnu::flatten]] void widen_bf16_avx512(const bfloat16* __restrict in, float* __restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]);
}
RL_AVX512 [[gnu::flatten]] void narrow_bf16_avx512(const float* __restrict in, bfloat16* __restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = bfloat16(in[i]);
}
#ifdef RL_HAS_AVX512
RL_AVX512 int64_t widen_half_avx512(const float16* in, float* out, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i))));
  return i;
}
RL_AVX512 int64_t narrow_half_avx512(const float* in, float16* out, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm512_cvtps_ph(_mm512_loadu_ps(in + i), 0));
  return i;
}
#else
int64_t widen_half_avx512(const float16*, float*, int64_t) { return 0; }
int64_t narrow_half_avx512(const float*, float16*, int64_t) { return 0; }
#endif
bool wide() {
  static const bool yes = has_avx512();
  return yes;
}

}  // namespace

void widen(const bfloat16* in, float* out, int64_t n) {
  wide() ? widen_bf16_avx512(in, out, n) : widen_bf16(in, out, n);
}
void narrow(const float* in, bfloat16* out, int64_t n) {
  wide() ? narrow_bf16_avx512(in, out, n) : narrow_bf16(in, out, n);
}
void widen(const float16* in, float* out, int64_t n) {
  int64_t i = wide() ? widen_half_avx512(in, out, n) : 0;
  for (; i + kLanes<float> <= n; i += kLanes<float>) store_vec(out + i, load_vec(in + i));
  for (; i < n; ++i) out[i] = static_cast<float>(in[i]);
}
void narrow(const float* in, float16* out, int64_t n) {
  int64_t i = wide() ? narrow_half_avx512(in, out, n) : 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), 0));
#endif
  for (; i < n; ++i) out[i] = float16(in[i]);
}

}  // namespace rl::RL_ISA
