// Loops that the compiler cannot write: with 512-bit registers a permutation (vpermps) is a lookup table of sixteen
// values, so that a function is one short polynomial whose coefficients depend on the piece its argument lies in.
#include "cpu/elementwise/pointwise.h"
#include "cpu/elementwise/reduced_range.h"
#include "cpu/simd/math_avx512.h"

namespace rl::RL_ISA {
namespace {

// Minima and maxima hand a NaN on when it is their second argument.
RL_STEP F erf(F x) {
  const F a = simd::abs(x), low = simd::min(all(3.75f), a);
  const F magic = all(0x1.8p21f), u = low + magic;  // in quarters
  const F t = simd::min(all(4.0f), a) - (u - magic);
  return with_sign(piece(tables::kErfFloat, index_of(u), t), x);
}
RL_STEP D erf(D x) {
  const D a = simd::abs(x) * all(8.0 / 3), low = simd::min(all(15.0), a);
  const D magic = all(0x1.8p52), u = low + magic;
  const D t = simd::min(all(16.0), a) - (u - magic);
  return with_sign(piece(tables::kErfDouble, index_of(u), t), x);
}
RL_STEP F gelu(F x) {
  const F half = x * all(0.5f);
  return fmadd(half, erf(x * all(0.70710678118654752440f)), half);
}
// dy (cdf(x) + x pdf(x)) of the normal distribution, which is 1/2 and an odd function.
RL_STEP F gelu_grad(F dy, F x) {
  const F a = simd::abs(x) * all(8.0f / 3), low = simd::min(all(15.0f), a);
  const F magic = all(0x1.8p23f), u = low + magic;
  const F t = simd::min(all(16.0f), a) - (u - magic);
  const F odd = with_sign(piece(tables::kGeluGradFloat, index_of(u), t), x);
  return dy * (odd + all(0.5f));
}
RL_STEP F silu(F x) { return x * sigmoid(x); }
RL_STEP F silu_grad(F dy, F x) {
  const F s = sigmoid(x);
  return dy * s * fmadd(x, all(1.0f) - s, all(1.0f));
}

// e^-x^2 times a function that changes slowly; what the square is rounded by is put right afterwards.
RL_STEP F erfc(F x) {
  const F a = simd::min(all(11.0f), simd::abs(x)), u = a + all(2.0f);
  const Index k = index_above<21>(u);
  const F g = piece(tables::kErfcxFloat, k, a - look_up(tables::kErfcxFloat[0], k), 1);
  const F square = a * a, lost = simd::fms(a, a, square);
  F power;
  const F e = exp_parts(F{} - square, power) * g;
  // Results below the normal range are as many of the smallest one as their bits say: the processor takes long to
  // scale to them. Further out it is 0.
  const F exact = simd::fnma(e, lost, e), small = scaled(exact, power + all(149.0f));
  const auto some = simd::not_less(small, all(0x1p23f));
  F tail = scaled(some, exact, power, of_bits(small));
  tail = simd::select(simd::equal(a, F{}), all(1.0f), tail);
  return simd::select(simd::less(x, F{}), all(2.0f) - tail, tail);
}
RL_STEP D erfc(D x) {
  const D a = simd::min(all(28.0), simd::abs(x)), u = a + all(2.0);
  const Index k = index_above<50>(u);
  const D g = piece(tables::kErfcxDouble, k, a - look_up(tables::kErfcxDouble[0], k), 1);
  const D square = a * a, lost = simd::fms(a, a, square);
  D power;
  const D e = exp_parts(D{} - square, power) * g;
  const auto some = simd::not_less(all(27.24), a);
  const D tail = simd::scale(some, simd::fnma(e, lost, e), power);
  return simd::select(simd::less(x, D{}), all(2.0) - tail, tail);
}

// A number as 2^n m with 3/4 <= m < 3/2, and log m = table + rest.
RL_STEP D log_parts(D x, D& n, D& table) {
  const D m = mantissa_of(x);
  const Index k = index_above<48>(m);
  // m = 3/4 ... 3/2 against the 1 ... 2 of the exponent: one more where m lies below 1
  n = exponent_of(x);
  n = simd::select(simd::less(m, all(1.0)), n + all(1.0), n);
  const D f = simd::fms(m, look_up(tables::kLogScale, k), all(1.0));
  table = look_up(tables::kLogHigh, k);
  return fmadd(f * f, poly(f, tables::kLogShort), f);
}
RL_STEP D log(D x) {
  using Traits = FloatTraits<double>;
  D n, table;
  const D rest = log_parts(x, n, table);
  return fmadd(n, all(Traits::kLn2Hi), table + fmadd(n, all(Traits::kLn2Lo), rest));
}
RL_STEP D log2(D x) {
  D n, table;
  const D rest = log_parts(x, n, table);
  return fmadd(table + rest, all(1.44269504088896340736), n);
}
RL_STEP D log10(D x) {
  D n, table;
  const D rest = log_parts(x, n, table);
  constexpr double kHigh = 0x1.34413509p-2, kLow = 0.30102999566398119521L - static_cast<long double>(kHigh);
  return fmadd(n, all(kHigh), fmadd(table + rest, all(0.43429448190325182765), n * all(kLow)));
}

// The same for floats. What the instructions make of 0, infinities, NaNs and negative values goes through to the end.
RL_STEP F log_parts(F x, F& n, F& table) {
  const F m = mantissa_of(x);
  const Index k = index_above<19>(m);
  n = exponent_of(x);
  n = simd::select(simd::less(m, all(1.0f)), n + all(1.0f), n);
  const F f = simd::fms(m, look_up(tables::kLogScaleFloat, k), all(1.0f));
  table = look_up(tables::kLogHighFloat, k);
  F q = all(tables::kLogShortFloat[3]);
#pragma GCC unroll 4
  for (int i = 2; i >= 0; --i) q = fmadd(q, f, all(tables::kLogShortFloat[i]));
  return fmadd(f * f, q, f);
}
RL_STEP F log(F x) {
  using Traits = FloatTraits<float>;
  F n, table;
  const F rest = log_parts(x, n, table);
  return fmadd(n, all(Traits::kLn2Hi), table + fmadd(n, all(Traits::kLn2Lo), rest));
}
RL_STEP F log2(F x) {
  F n, table;
  const F rest = log_parts(x, n, table);
  return fmadd(table + rest, all(1.44269504088896340736f), n);
}
RL_STEP F log10(F x) {
  F n, table;
  const F rest = log_parts(x, n, table);
  constexpr float kHigh = 0x1.344p-2f, kLow = 0.30102999566398119521L - static_cast<long double>(kHigh);
  return fmadd(n, all(kHigh), fmadd(table + rest, all(0.43429448190325182765f), n * all(kLow)));
}

// log(x / (1 - x)); outside [0, 1] the quotient is negative, and NaN comes of it.
RL_STEP F logit(F x) { return log(x / (all(1.0f) - x)); }
RL_STEP D logit(D x) { return log(x / (all(1.0) - x)); }

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
  return fmadd(a, all(first), a * y);
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
  const D r = simd::sqrt(all(-2.0) * log(lack * all(0.5)));
  D x = r - poly(r, kTop) / poly(r, kBottom);
  x = x * all(0.70710678118654752440);
  for (int step = 0; step < 2; ++step) {
    // e sqrt(pi) / 2 e^(x^2), scaled by 2^600: where x^2 is large, e is tiny.
    const D e = lack - erfc(x);
    const D u = e * all(0.88622692545275801365 * 0x1p600) * exp(fmadd(x, x, all(-600 * 0.69314718055994530942)));
    x = x - u / fmadd(x, u, all(1.0));
  }
  return x;
}
// erf's inverse at a in [0, 1), given what 1 lacks of it.
RL_STEP D erfinv_of(D a, D lack) {
  const D w = D{} - log(lack * (a + all(1.0)));
  const D x = a * poly(w - all(3.125), kErfinv);
  const auto far = simd::at_most(all(6.25), w);
  if (!far) return x;
  return simd::select(far, erfinv_far(lack), x);
}
RL_STEP D erfinv(D y) {
  const D a = simd::abs(y), inside = simd::min(a, all(0x1.fffffffffffffp-1));
  const D x = erfinv_of(inside, all(1.0) - inside);
  const D edge = simd::select(simd::equal(a, all(1.0)), all(kInf<double>), all(kNan<double>));
  return with_sign(simd::select(simd::less(a, all(1.0)), x, edge), y);
}
// Of floats, in floats: what the logarithm is rounded by counts for little, and the polynomials are short. The last
// number before 1 stands for those beyond.
RL_STEP F erfinv_float(F y) {
  constexpr double kFar[] = {2.83297682,     1.00167406,    0.00943887047,  -0.0076224613,  0.00573950773,
                             -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257};
  const F a = simd::abs(y), inside = simd::min(a, all(0x1.fffffep-1f)), one = all(1.0f);
  const F w = F{} - log(simd::fnma(inside, inside, one));
  const auto far = simd::at_most(all(5.0f), w);
  F x = times_poly(inside, w - all(2.5f), kErfinvNear);
  if (far) x = simd::select(far, times_poly(inside, simd::sqrt(w) - all(3.0f), kFar), x);
  const F edge = simd::select(simd::equal(a, one), all(kInf<float>), all(kNan<float>));
  return with_sign(simd::select(simd::less(a, one), x, edge), y);
}
// The quantile of the normal distribution.
RL_STEP D ndtri(D p) {
  const auto inside = simd::less(all(0.0), p) & simd::less(p, all(1.0));
  const D q = simd::select(inside, simd::min(p, all(1.0) - p), all(0.25)), lack = q + q;
  const D x = erfinv_of(all(1.0) - lack, lack) * all(-1.41421356237309504880);
  const auto upper = simd::less(all(0.5), p);
  const D value = simd::select(upper, D{} - x, x);
  D edge = simd::select(simd::equal(p, all(0.0)), all(-kInf<double>), all(kNan<double>));
  edge = simd::select(simd::equal(p, all(1.0)), all(kInf<double>), edge);
  return simd::select(inside, value, edge);
}
// As sqrt of float in exp_log.cpp, with one more refinement.
RL_STEP D sqrt(D x) {
  const D half = all(0.5), y = rsqrt_estimate(x);
  D s = x * y, h = y * half;
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const D error = simd::fnma(h, s, half);
    s = fmadd(s, error, s);
    h = fmadd(h, error, h);
  }
  s = fmadd(simd::fnma(s, s, x), h, s);
  const auto near = simd::at_most(all(0x1p-900), x) & simd::at_most(x, all(0x1p1000));
  return near == 0xff ? s : simd::sqrt(x);
}

// The loop of a function of registers.
template <F (*kF)(F)> void piecewise_float(char* const* data, int64_t n, const LoopParams&) {
  auto* out = reinterpret_cast<float*>(data[0]);
  auto* in = reinterpret_cast<const float*>(data[1]);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) VF::store(out + i, kF(VF::load(in + i)));
  if (i == n) return;
  const auto lanes = VF::first_few(n - i);
  VF::store(out + i, kF(VF::load(in + i, lanes, all(1.0f))), lanes);
}
template <F (*kF)(F, F)> void piecewise_float2(char* const* data, int64_t n, const LoopParams&) {
  auto* out = reinterpret_cast<float*>(data[0]);
  auto *a = reinterpret_cast<const float*>(data[1]), *b = reinterpret_cast<const float*>(data[2]);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) VF::store(out + i, kF(VF::load(a + i), VF::load(b + i)));
  if (i == n) return;
  const auto lanes = VF::first_few(n - i);
  const F x = VF::load(a + i, lanes), y = VF::load(b + i, lanes);
  VF::store(out + i, kF(x, y), lanes);
}
template <D (*kF)(D)> void piecewise_double(char* const* data, int64_t n, const LoopParams&) {
  auto* out = reinterpret_cast<double*>(data[0]);
  auto* in = reinterpret_cast<const double*>(data[1]);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) VD::store(out + i, kF(VD::load(in + i)));
  if (i == n) return;
  const auto lanes = VD::first_few(n - i);
  VD::store(out + i, kF(VD::load(in + i, lanes, all(1.0))), lanes);
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
    const auto lanes = VF::first(n - i);
    const F x = VF::load(in + i, lanes, all(0.5f));
    VF::store(out + i, logit(simd::min(high, simd::max(low, x))), lanes);
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
