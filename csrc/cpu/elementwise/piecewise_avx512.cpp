// Loops that the compiler cannot write: with 512-bit registers a permutation (vpermps) is a lookup table of sixteen
// values, so that a function is one short polynomial whose coefficients depend on the piece its argument lies in.
#include "cpu/elementwise/pointwise.h"
#include "cpu/elementwise/reduced_range.h"
#include "cpu/simd/math_avx512.h"

namespace rl::RL_ISA {
namespace {

// Minima and maxima hand a NaN on when it is their second argument.
RL_STEP F erf(F x) {
  const F a = _mm512_abs_ps(x), low = _mm512_min_ps(all(3.75f), a);
  const F magic = all(0x1.8p21f), u = _mm512_add_ps(low, magic);  // in quarters
  const F t = _mm512_sub_ps(_mm512_min_ps(all(4.0f), a), _mm512_sub_ps(u, magic));
  return with_sign(piece(tables::kErfFloat, _mm512_castps_si512(u), t), x);
}
RL_STEP D erf(D x) {
  const D a = _mm512_mul_pd(_mm512_abs_pd(x), all(8.0 / 3)), low = _mm512_min_pd(all(15.0), a);
  const D magic = all(0x1.8p52), u = _mm512_add_pd(low, magic);
  const D t = _mm512_sub_pd(_mm512_min_pd(all(16.0), a), _mm512_sub_pd(u, magic));
  return with_sign(piece(tables::kErfDouble, _mm512_castpd_si512(u), t), x);
}
RL_STEP F gelu(F x) {
  const F half = _mm512_mul_ps(x, all(0.5f));
  return fmadd(half, erf(_mm512_mul_ps(x, all(0.70710678118654752440f))), half);
}
// dy (cdf(x) + x pdf(x)) of the normal distribution, which is 1/2 and an odd function.
RL_STEP F gelu_grad(F dy, F x) {
  const F a = _mm512_mul_ps(_mm512_abs_ps(x), all(8.0f / 3)), low = _mm512_min_ps(all(15.0f), a);
  const F magic = all(0x1.8p23f), u = _mm512_add_ps(low, magic);
  const F t = _mm512_sub_ps(_mm512_min_ps(all(16.0f), a), _mm512_sub_ps(u, magic));
  const F odd = with_sign(piece(tables::kGeluGradFloat, _mm512_castps_si512(u), t), x);
  return _mm512_mul_ps(dy, _mm512_add_ps(odd, all(0.5f)));
}
RL_STEP F silu(F x) { return _mm512_mul_ps(x, sigmoid(x)); }
RL_STEP F silu_grad(F dy, F x) {
  const F s = sigmoid(x);
  return _mm512_mul_ps(_mm512_mul_ps(dy, s), fmadd(x, _mm512_sub_ps(all(1.0f), s), all(1.0f)));
}

// e^-x^2 times a function that changes slowly; what the square is rounded by is put right afterwards.
RL_STEP F erfc(F x) {
  const F a = _mm512_min_ps(all(11.0f), _mm512_abs_ps(x)), u = _mm512_add_ps(a, all(2.0f));
  const __m512i k = _mm512_srli_epi32(_mm512_castps_si512(u), 21);
  const F g = piece(tables::kErfcxFloat, k, _mm512_sub_ps(a, look_up(tables::kErfcxFloat[0], k)), 1);
  const F square = _mm512_mul_ps(a, a), lost = _mm512_fmsub_ps(a, a, square);
  F power;
  const F e = _mm512_mul_ps(exp_parts(_mm512_sub_ps(_mm512_setzero_ps(), square), power), g);
  // Results below the normal range are as many of the smallest one as their bits say: the processor takes long to
  // scale to them. Further out it is 0.
  const F exact = _mm512_fnmadd_ps(e, lost, e), small = _mm512_scalef_ps(exact, _mm512_add_ps(power, all(149.0f)));
  const __mmask16 some = _mm512_cmp_ps_mask(small, all(0x1p23f), _CMP_NLT_UQ);
  F tail = _mm512_mask_scalef_ps(_mm512_castsi512_ps(_mm512_cvtps_epi32(small)), some, exact, power);
  tail = _mm512_mask_mov_ps(tail, _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_EQ_OQ), all(1.0f));
  return _mm512_mask_sub_ps(tail, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), all(2.0f), tail);
}
RL_STEP D erfc(D x) {
  const D a = _mm512_min_pd(all(28.0), _mm512_abs_pd(x)), u = _mm512_add_pd(a, all(2.0));
  const __m512i k = _mm512_srli_epi64(_mm512_castpd_si512(u), 50);
  const D g = piece(tables::kErfcxDouble, k, _mm512_sub_pd(a, look_up(tables::kErfcxDouble[0], k)), 1);
  const D square = _mm512_mul_pd(a, a), lost = _mm512_fmsub_pd(a, a, square);
  D power;
  const D e = _mm512_mul_pd(exp_parts(_mm512_sub_pd(_mm512_setzero_pd(), square), power), g);
  const __mmask8 some = _mm512_cmp_pd_mask(a, all(27.24), _CMP_NGT_UQ);
  const D tail = _mm512_maskz_scalef_pd(some, _mm512_fnmadd_pd(e, lost, e), power);
  return _mm512_mask_sub_pd(tail, _mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_LT_OQ), all(2.0), tail);
}

// A number as 2^n m with 3/4 <= m < 3/2, and log m = table + rest.
RL_STEP D log_parts(D x, D& n, D& table) {
  const D m = _mm512_getmant_pd(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
  const __m512i k = _mm512_srli_epi64(_mm512_castpd_si512(m), 48);
  // m = 3/4 ... 3/2 against the 1 ... 2 of the exponent: one more where m lies below 1
  n = _mm512_getexp_pd(x);
  n = _mm512_mask_add_pd(n, _mm512_cmp_pd_mask(m, all(1.0), _CMP_LT_OQ), n, all(1.0));
  const D f = _mm512_fmsub_pd(m, look_up(tables::kLogScale, k), all(1.0));
  table = look_up(tables::kLogHigh, k);
  return fmadd(_mm512_mul_pd(f, f), poly(f, tables::kLogShort), f);
}
RL_STEP D log(D x) {
  using Traits = FloatTraits<double>;
  D n, table;
  const D rest = log_parts(x, n, table);
  return fmadd(n, all(Traits::kLn2Hi), _mm512_add_pd(table, fmadd(n, all(Traits::kLn2Lo), rest)));
}
RL_STEP D log2(D x) {
  D n, table;
  const D rest = log_parts(x, n, table);
  return fmadd(_mm512_add_pd(table, rest), all(1.44269504088896340736), n);
}
RL_STEP D log10(D x) {
  D n, table;
  const D rest = log_parts(x, n, table);
  constexpr double kHigh = 0x1.34413509p-2, kLow = 0.30102999566398119521L - static_cast<long double>(kHigh);
  return fmadd(n, all(kHigh),
               fmadd(_mm512_add_pd(table, rest), all(0.43429448190325182765), _mm512_mul_pd(n, all(kLow))));
}

// The same for floats. What the instructions make of 0, infinities, NaNs and negative values goes through to the end.
RL_STEP F log_parts(F x, F& n, F& table) {
  const F m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  const __m512i k = _mm512_srli_epi32(_mm512_castps_si512(m), 19);
  n = _mm512_getexp_ps(x);
  n = _mm512_mask_add_ps(n, _mm512_cmp_ps_mask(m, all(1.0f), _CMP_LT_OQ), n, all(1.0f));
  const F f = _mm512_fmsub_ps(m, look_up(tables::kLogScaleFloat, k), all(1.0f));
  table = look_up(tables::kLogHighFloat, k);
  F q = all(tables::kLogShortFloat[3]);
#pragma GCC unroll 4
  for (int i = 2; i >= 0; --i) q = fmadd(q, f, all(tables::kLogShortFloat[i]));
  return fmadd(_mm512_mul_ps(f, f), q, f);
}
RL_STEP F log(F x) {
  using Traits = FloatTraits<float>;
  F n, table;
  const F rest = log_parts(x, n, table);
  return fmadd(n, all(Traits::kLn2Hi), _mm512_add_ps(table, fmadd(n, all(Traits::kLn2Lo), rest)));
}
RL_STEP F log2(F x) {
  F n, table;
  const F rest = log_parts(x, n, table);
  return fmadd(_mm512_add_ps(table, rest), all(1.44269504088896340736f), n);
}
RL_STEP F log10(F x) {
  F n, table;
  const F rest = log_parts(x, n, table);
  constexpr float kHigh = 0x1.344p-2f, kLow = 0.30102999566398119521L - static_cast<long double>(kHigh);
  return fmadd(n, all(kHigh),
               fmadd(_mm512_add_ps(table, rest), all(0.43429448190325182765f), _mm512_mul_ps(n, all(kLow))));
}

// log(x / (1 - x)); outside [0, 1] the quotient is negative, and NaN comes of it.
RL_STEP F logit(F x) { return log(_mm512_div_ps(x, _mm512_sub_ps(all(1.0f), x))); }
RL_STEP D logit(D x) { return log(_mm512_div_pd(x, _mm512_sub_pd(all(1.0), x))); }

// erf(y) / y as a polynomial of w = -log(1 - y^2), around 2.5, up to 5; good to 6e-9.
constexpr double kErfinvNear[] = {1.501409360450329,       0.24664027905463662,    -0.004177392875203149,
                                  -0.001252726391773229,   0.00021834938623976644, -4.9724196894547514e-06,
                                  -3.4639852676333717e-06, 4.6813134805534123e-07, 2.3335967195708108e-08,
                                  -8.931925970244222e-09};
// a times a polynomial of x, whose first coefficient counts with more digits than a float has.
template <int N> RL_STEP F times_poly(F a, F x, const double (&c)[N]) {
  const float first = static_cast<float>(c[0]);
  F y = all(static_cast<float>(c[N - 1]));
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i)
    y = fmadd(y, x, all(i ? static_cast<float>(c[i]) : static_cast<float>(c[0] - first)));
  return fmadd(a, all(first), _mm512_mul_ps(a, y));
}
// The same with all digits of a double, around 3.125, up to 6.25.
constexpr double kErfinv[] = {
    0x1.a755e7c99ae86p+0,   0x1.ebd80d9b13e2bp-3,   -0x1.8b6c33114eae7p-8,  -0x1.84576948514e9p-11,
    0x1.879c2a20bb963p-13,  -0x1.d1d1f7b799e14p-17, -0x1.6e8a53d8b2f84p-20, 0x1.c6b4f5b4485bep-22,
    -0x1.f36ce9a1f1537p-26, -0x1.1a9e34ea80b32p-28, 0x1.20f50c65994a5p-30,  -0x1.dc58e86640cd4p-35,
    -0x1.c89af9a5a861dp-37, 0x1.72a472e24d62fp-39,  -0x1.6d16abb83554bp-44, -0x1.6d477ac908a6ep-45,
    0x1.da47a520e32a3p-48,  0x1.8fbd6d8bfb534p-56,  -0x1.299d9e862c5a3p-53, 0x1.9a782918c0eefp-57,
    0x1.457b7c7ee27bcp-60,  -0x1.8c612fe6d4cc6p-63, -0x1.1d97cd0a28444p-72};
// Near 1: Hastings's fraction and two steps of Halley's, each of which triples the digits.
RL_STEP D erfinv_far(D lack) {
  constexpr double kTop[] = {2.515517, 0.802853, 0.010328}, kBottom[] = {1.0, 1.432788, 0.189269, 0.001308};
  const D r = _mm512_sqrt_pd(_mm512_mul_pd(all(-2.0), log(_mm512_mul_pd(lack, all(0.5)))));
  D x = _mm512_sub_pd(r, _mm512_div_pd(poly(r, kTop), poly(r, kBottom)));
  x = _mm512_mul_pd(x, all(0.70710678118654752440));
  for (int step = 0; step < 2; ++step) {
    // e sqrt(pi) / 2 e^(x^2), scaled by 2^600: where x^2 is large, e is tiny.
    const D e = _mm512_sub_pd(lack, erfc(x));
    const D u = _mm512_mul_pd(_mm512_mul_pd(e, all(0.88622692545275801365 * 0x1p600)),
                              exp(fmadd(x, x, all(-600 * 0.69314718055994530942))));
    x = _mm512_sub_pd(x, _mm512_div_pd(u, fmadd(x, u, all(1.0))));
  }
  return x;
}
// erf's inverse at a in [0, 1), given what 1 lacks of it.
RL_STEP D erfinv_of(D a, D lack) {
  const D w = _mm512_sub_pd(_mm512_setzero_pd(), log(_mm512_mul_pd(lack, _mm512_add_pd(a, all(1.0)))));
  const D x = _mm512_mul_pd(a, poly(_mm512_sub_pd(w, all(3.125)), kErfinv));
  const __mmask8 far = _mm512_cmp_pd_mask(w, all(6.25), _CMP_GE_OQ);
  if (!far) return x;
  return _mm512_mask_mov_pd(x, far, erfinv_far(lack));
}
RL_STEP D erfinv(D y) {
  const D a = _mm512_abs_pd(y), inside = _mm512_min_pd(a, all(0x1.fffffffffffffp-1));
  const D x = erfinv_of(inside, _mm512_sub_pd(all(1.0), inside));
  const D edge = _mm512_mask_mov_pd(all(kNan<double>), _mm512_cmp_pd_mask(a, all(1.0), _CMP_EQ_OQ), all(kInf<double>));
  return with_sign(_mm512_mask_mov_pd(edge, _mm512_cmp_pd_mask(a, all(1.0), _CMP_LT_OQ), x), y);
}
// Of floats, in floats: what the logarithm is rounded by counts for little, and the polynomials are short. The last
// number before 1 stands for those beyond.
RL_STEP F erfinv_float(F y) {
  constexpr double kFar[] = {2.83297682,     1.00167406,    0.00943887047,  -0.0076224613,  0.00573950773,
                             -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257};
  const F a = _mm512_abs_ps(y), inside = _mm512_min_ps(a, all(0x1.fffffep-1f)), one = all(1.0f);
  const F w = _mm512_sub_ps(_mm512_setzero_ps(), log(_mm512_fnmadd_ps(inside, inside, one)));
  const __mmask16 far = _mm512_cmp_ps_mask(w, all(5.0f), _CMP_GE_OQ);
  F x = times_poly(inside, _mm512_sub_ps(w, all(2.5f)), kErfinvNear);
  if (far) x = _mm512_mask_mov_ps(x, far, times_poly(inside, _mm512_sub_ps(_mm512_sqrt_ps(w), all(3.0f)), kFar));
  const F edge = _mm512_mask_mov_ps(all(kNan<float>), _mm512_cmp_ps_mask(a, one, _CMP_EQ_OQ), all(kInf<float>));
  return with_sign(_mm512_mask_mov_ps(edge, _mm512_cmp_ps_mask(a, one, _CMP_LT_OQ), x), y);
}
// The quantile of the normal distribution.
RL_STEP D ndtri(D p) {
  const __mmask8 inside = _mm512_cmp_pd_mask(p, all(0.0), _CMP_GT_OQ) & _mm512_cmp_pd_mask(p, all(1.0), _CMP_LT_OQ);
  const D q = _mm512_mask_min_pd(all(0.25), inside, p, _mm512_sub_pd(all(1.0), p)), lack = _mm512_add_pd(q, q);
  const D x = _mm512_mul_pd(erfinv_of(_mm512_sub_pd(all(1.0), lack), lack), all(-1.41421356237309504880));
  const __mmask8 upper = _mm512_cmp_pd_mask(p, all(0.5), _CMP_GT_OQ);
  const D value = _mm512_mask_sub_pd(x, upper, _mm512_setzero_pd(), x);
  D edge = _mm512_mask_mov_pd(all(kNan<double>), _mm512_cmp_pd_mask(p, all(0.0), _CMP_EQ_OQ), all(-kInf<double>));
  edge = _mm512_mask_mov_pd(edge, _mm512_cmp_pd_mask(p, all(1.0), _CMP_EQ_OQ), all(kInf<double>));
  return _mm512_mask_mov_pd(edge, inside, value);
}
// A function of doubles for floats.
template <D (*kF)(D)> RL_STEP F by_doubles(F x) {
  const __m256 low = _mm256_castsi256_ps(_mm512_castsi512_si256(_mm512_castps_si512(x)));
  const __m256 high = _mm256_castsi256_ps(_mm512_extracti64x4_epi64(_mm512_castps_si512(x), 1));
  const __m256 a = _mm512_cvtpd_ps(kF(_mm512_cvtps_pd(low))), b = _mm512_cvtpd_ps(kF(_mm512_cvtps_pd(high)));
  return _mm512_castsi512_ps(
      _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_castps_si256(a)), _mm256_castps_si256(b), 1));
}

// As sqrt of float in exp_log.cpp, with one more refinement.
RL_STEP D sqrt(D x) {
  const D half = all(0.5), y = _mm512_rsqrt14_pd(x);
  D s = _mm512_mul_pd(x, y), h = _mm512_mul_pd(y, half);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const D error = _mm512_fnmadd_pd(h, s, half);
    s = fmadd(s, error, s);
    h = fmadd(h, error, h);
  }
  s = fmadd(_mm512_fnmadd_pd(s, s, x), h, s);
  const __mmask8 near =
      _mm512_cmp_pd_mask(x, all(0x1p-900), _CMP_GE_OQ) & _mm512_cmp_pd_mask(x, all(0x1p1000), _CMP_LE_OQ);
  return near == 0xff ? s : _mm512_sqrt_pd(x);
}

// The loop of a function of registers.
template <F (*kF)(F)> void piecewise_float(char* const* data, int64_t n, const LoopParams&) {
  auto* out = reinterpret_cast<float*>(data[0]);
  auto* in = reinterpret_cast<const float*>(data[1]);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) _mm512_storeu_ps(out + i, kF(_mm512_loadu_ps(in + i)));
  if (i == n) return;
  const auto lanes = static_cast<__mmask16>((1u << (n - i)) - 1);
  _mm512_mask_storeu_ps(out + i, lanes, kF(_mm512_mask_loadu_ps(all(1.0f), lanes, in + i)));
}
template <F (*kF)(F, F)> void piecewise_float2(char* const* data, int64_t n, const LoopParams&) {
  auto* out = reinterpret_cast<float*>(data[0]);
  auto *a = reinterpret_cast<const float*>(data[1]), *b = reinterpret_cast<const float*>(data[2]);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) _mm512_storeu_ps(out + i, kF(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i)));
  if (i == n) return;
  const auto lanes = static_cast<__mmask16>((1u << (n - i)) - 1);
  const F x = _mm512_maskz_loadu_ps(lanes, a + i), y = _mm512_maskz_loadu_ps(lanes, b + i);
  _mm512_mask_storeu_ps(out + i, lanes, kF(x, y));
}
template <D (*kF)(D)> void piecewise_double(char* const* data, int64_t n, const LoopParams&) {
  auto* out = reinterpret_cast<double*>(data[0]);
  auto* in = reinterpret_cast<const double*>(data[1]);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) _mm512_storeu_pd(out + i, kF(_mm512_loadu_pd(in + i)));
  if (i == n) return;
  const auto lanes = static_cast<__mmask8>((1u << (n - i)) - 1);
  _mm512_mask_storeu_pd(out + i, lanes, kF(_mm512_mask_loadu_pd(all(1.0), lanes, in + i)));
}
// The same for functions of normal positive values; blocks with others go to Slow.
template <D (*kF)(D), auto Slow> void piecewise_positive(char* const* data, int64_t n, const LoopParams& params) {
  constexpr int64_t kBlock = 256;
  auto* out = reinterpret_cast<double*>(data[0]);
  auto* in = reinterpret_cast<const double*>(data[1]);
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = n - first < kBlock ? n - first : kBlock;
    int far = 0;
    for (int64_t i = first; i < first + count; ++i) far |= !log_in_range(in[i]);
    if (far) {
      for (int64_t i = first; i < first + count; ++i) out[i] = Slow(in[i]);
      continue;
    }
    char* const at[] = {reinterpret_cast<char*>(out + first), reinterpret_cast<char*>(const_cast<double*>(in + first))};
    piecewise_double<kF>(at, count, params);
  }
}
// logit of what is brought within [d0, 1 - d0], unless d0 is negative.
void logit_float(char* const* data, int64_t n, const LoopParams& params) {
  const auto eps = static_cast<float>(params.d0);
  const F low = all(eps < 0 ? -kInf<float> : eps), high = all(eps < 0 ? kInf<float> : 1.0f - eps);
  auto* out = reinterpret_cast<float*>(data[0]);
  auto* in = reinterpret_cast<const float*>(data[1]);
  for (int64_t i = 0; i < n; i += 16) {
    const auto lanes = static_cast<__mmask16>(n - i < 16 ? (1u << (n - i)) - 1 : 0xffff);
    const F x = _mm512_mask_loadu_ps(all(0.5f), lanes, in + i);
    _mm512_mask_storeu_ps(out + i, lanes, logit(_mm512_min_ps(high, _mm512_max_ps(low, x))));
  }
}
// Blocks with values outside (0, 1), or hardly inside, go to the general logarithm.
void logit_double(char* const* data, int64_t n, const LoopParams& params) {
  constexpr int64_t kBlock = 256;
  const double eps = params.d0, low = eps < 0 ? -kInf<double> : eps, high = eps < 0 ? kInf<double> : 1.0 - eps;
  auto* out = reinterpret_cast<double*>(data[0]);
  auto* in = reinterpret_cast<const double*>(data[1]);
  alignas(64) double x[kBlock];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = n - first < kBlock ? n - first : kBlock;
    int far = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double above = in[first + i] < low ? low : in[first + i];
      x[i] = above > high ? high : above;
      far |= !((x[i] >= 1e-300) & (x[i] < 1.0));
    }
    if (far) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) out[first + i] = rl::RL_ISA::log(x[i] / (1.0 - x[i]));
      continue;
    }
    char* const at[] = {reinterpret_cast<char*>(out + first), reinterpret_cast<char*>(x)};
    piecewise_double<&logit>(at, count, params);
  }
}
template <F (*kF)(F)> void put_float(LoopTable& t, Pointwise op) {
  constexpr Loop kLoop = &reduced_range_loop<&piecewise_float<kF>, float>;
  t.at(op, DType::Float32) = kLoop;
  put_half<kLoop, 1, true>(t, op);
}
template <FlatLoop kFlat>
void reduced_range_loop2(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  static constexpr uint8_t kSizes[] = {4, 4, 4};
  if (n == 1 || (strides[0] == 4 && strides[1] == 4 && strides[2] == 4)) return kFlat(data, n, params);
  run_blocks(kFlat, kSizes, 3, data, strides, n, params);
}
template <F (*kF)(F, F)> void put_float2(LoopTable& t, Pointwise op) {
  constexpr Loop kLoop = &reduced_range_loop2<&piecewise_float2<kF>>;
  t.at(op, DType::Float32) = kLoop;
  put_half<kLoop, 2, true>(t, op);
}
template <FlatLoop kFlat> void put_double(LoopTable& t, Pointwise op) {
  t.at(op, DType::Float64) = &reduced_range_loop<kFlat, double>;
}

void put_piecewise(LoopTable& t) {
  using enum Pointwise;
  put_float<&erf>(t, Erf);
  put_float<&erfc>(t, Erfc);
  put_float<&gelu>(t, Gelu);
  put_float2<&gelu_grad>(t, GeluGrad);
  put_float<&silu>(t, Silu);
  put_float2<&silu_grad>(t, SiluGrad);
  put_float<&tanh>(t, Tanh);
  put_float<&exp>(t, Exp);
  put_float<&sigmoid>(t, Sigmoid);
  put_float<&log>(t, Log);
  t.at(Logit, DType::Float32) = &reduced_range_loop<&logit_float, float>;
  put_half<&reduced_range_loop<&logit_float, float>, 1, true>(t, Logit);
  put_double<&logit_double>(t, Logit);
  put_float<&log2>(t, Log2);
  put_float<&log10>(t, Log10);
  put_double<&piecewise_double<&erf>>(t, Erf);
  put_double<&piecewise_double<&erfc>>(t, Erfc);
  put_double<&piecewise_double<&exp>>(t, Exp);
  put_double<&piecewise_double<&sqrt>>(t, Sqrt);
  put_double<&piecewise_double<&erfinv>>(t, Erfinv);
  put_double<&piecewise_double<&ndtri>>(t, Ndtri);
  put_float<&erfinv_float>(t, Erfinv);
  put_float<&by_doubles<&ndtri>>(t, Ndtri);
  put_double<&piecewise_positive<&log, [](double x) { return rl::RL_ISA::log(x); }>>(t, Log);
  put_double<&piecewise_positive<&log2, [](double x) { return rl::RL_ISA::log2(x); }>>(t, Log2);
  put_double<&piecewise_positive<&log10, [](double x) { return rl::RL_ISA::log10(x); }>>(t, Log10);
}

}  // namespace

void put_loops(LoopTable& t) {
  put_arith(t);
  put_math(t);
  put_trig(t);
  put_misc(t);
  put_complex(t);
  put_special(t);
  put_gamma(t);
  put_activation(t);
  put_piecewise(t);
}

}  // namespace rl::RL_ISA
