// Powers, exponentials and logarithms of real numbers.
#include "cpu/isa.h"
#include "cpu/pointwise_guarded.h"

#if defined(__AVX2__) && !defined(__AVX512F__)
// GCC 12's own intrinsics start from undefined registers and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#endif

namespace rl::RL_ISA {

#if defined(__AVX2__) && !defined(__AVX512F__)
namespace {
// Square roots from the estimate of 1 / sqrt(x), refined twice: half the time of the instruction, and the same bits,
// as the residual x - s^2 is exact. Below 2^-96 it is not: there, and for what has no root, the instruction serves.
RL_WIDE void sqrt_flat(char* const* data, int64_t n, const LoopParams&) {
  auto* out = reinterpret_cast<float*>(data[0]);
  auto* in = reinterpret_cast<const float*>(data[1]);
  const __m512 half = _mm512_set1_ps(0.5f), least = _mm512_set1_ps(0x1p-96f), most = _mm512_set1_ps(__FLT_MAX__);
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 lanes = static_cast<__mmask16>(n - i >= 16 ? 0xffff : (1u << (n - i)) - 1);
    const __m512 x = _mm512_maskz_loadu_ps(lanes, in + i), y = _mm512_rsqrt14_ps(x);
    __m512 s = _mm512_mul_ps(x, y), h = _mm512_mul_ps(y, half);
    const __m512 error = _mm512_fnmadd_ps(h, s, half);
    s = _mm512_fmadd_ps(s, error, s);
    h = _mm512_fmadd_ps(h, error, h);
    s = _mm512_fmadd_ps(_mm512_fnmadd_ps(s, s, x), h, s);
    const __mmask16 near = _mm512_cmp_ps_mask(x, least, _CMP_GE_OQ) & _mm512_cmp_ps_mask(x, most, _CMP_LE_OQ);
    if ((near & lanes) != lanes) [[unlikely]]
      s = _mm512_sqrt_ps(x);
    _mm512_mask_storeu_ps(out + i, lanes, s);
  }
}
void sqrt_loop(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  static constexpr uint8_t kSizes[] = {sizeof(float), sizeof(float)};
  if (n < 1) return;
  if (n == 1 || (strides[0] == 4 && strides[1] == 4)) return sqrt_flat(data, n, params);
  run_blocks(&sqrt_flat, kSizes, 2, data, strides, n, params);
}
}  // namespace
#endif

void put_math(LoopTable& t) {
  using enum Pointwise;
  unary_wide<[](auto x) { return sqrt_(x); }>(t, Sqrt);
#if defined(__AVX2__) && !defined(__AVX512F__)
  if (has_wide()) t.at(Sqrt, DType::Float32) = &sqrt_loop;
#endif
  unary_wide<[](auto x) { return 1 / sqrt_(x); }>(t, Rsqrt);
  guarded_floats<[](auto x) { return exp_is_near(x); }, [](auto x) { return exp_near(x); },
                 [](auto x) { return exp(x); }>(t, Exp);
  unary_wide<[](auto x) { return exp2(x); }>(t, Exp2);
  unary_wide<[](auto x) { return expm1(x); }>(t, Expm1);
  guarded_floats<[](auto x) { return log_is_near(x); }, [](auto x) { return log_near(x); },
                 [](auto x) { return log(x); }>(t, Log);
  guarded_floats<[](auto x) { return log_is_near(x); }, [](auto x) { return log2_near(x); },
                 [](auto x) { return log2(x); }>(t, Log2);
  guarded_floats<[](auto x) { return log_is_near(x); }, [](auto x) { return log10_near(x); },
                 [](auto x) { return log10(x); }>(t, Log10);
  unary_wide<[](auto x) { return log1p(x); }>(t, Log1p);
  unary_wide<[](auto x) { return sigmoid(x); }>(t, Sigmoid);
  unary_wide<[](auto x) { return tanh(x); }>(t, Tanh);
  unary_wide<[](auto x) { return sinh(x); }>(t, Sinh);
  unary_wide<[](auto x) { return cosh(x); }>(t, Cosh);
  unary_wide<[](auto x) { return asinh(x); }>(t, Asinh);
  unary_wide<[](auto x) { return acosh(x); }>(t, Acosh);
  unary_wide<[](auto x) { return atanh(x); }>(t, Atanh);
}

}  // namespace rl::RL_ISA
