// Special functions. They are computed in double for float as well; few are short enough for SIMD to matter.
#include <cmath>

#include "cpu/isa.h"
#include "cpu/pointwise_guarded.h"
#include "cpu/simd_trig.h"
#include "cpu/special_bessel.h"
#include "cpu/special_erf.h"
#include "cpu/special_gamma.h"
#include "cpu/special_polynomials.h"

namespace rl::RL_ISA {
namespace {

// A loop for double, and the other types through it.
template <Loop kDouble, int kInputs> void put_doubles(LoopTable& t, Pointwise op) {
  t.at(op, DType::Float64) = kDouble;
  t.at(op, DType::Float32) = &loop_as_double<kDouble, kInputs>;
  put_half<&loop_as_double<kDouble, kInputs>, kInputs, true>(t, op);
}
template <double (*F)(double)> void function1(LoopTable& t, Pointwise op) {
  put_doubles<&loop1<[](double x) { return F(x); }, double>, 1>(t, op);
}
// Functions without branches, which loops make vectors of: twice as many floats as doubles, whose waits overlap.
template <double (*F)(double)> void vectors1(LoopTable& t, Pointwise op) {
  unary_wide<[](auto x) { return static_cast<decltype(x)>(F(static_cast<double>(x))); }>(t, op);
}
template <double (*F)(double, double)> void function2(LoopTable& t, Pointwise op) {
  put_doubles<&loop2<[](double x, double y) { return F(x, y); }, double, false>, 2>(t, op);
}
// A vector loop for float and the half types, the exact function for double.
template <auto F> void float_function(LoopTable& t, Pointwise op) {
  t.at(op, DType::Float32) = &loop1<F, float>;
  put_half<&loop1<F, float>, 1, true>(t, op);
#ifdef RL_HAS_WIDE
  if (!has_wide()) return;
  t.at(op, DType::Float32) = &loop1<F, float, true>;
  put_half<&loop1<F, float, true>, 1, true>(t, op);
#endif
}
double igamma(double a, double x) { return special::igamma(a, x, false); }
double igammac(double a, double x) { return special::igamma(a, x, true); }
double shifted_t(double x, double n) { return special::chebyshev_t(2 * x - 1, n); }
double shifted_u(double x, double n) { return special::chebyshev_u(2 * x - 1, n); }
double shifted_v(double x, double n) { return special::chebyshev_v(2 * x - 1, n); }
double shifted_w(double x, double n) { return special::chebyshev_w(2 * x - 1, n); }
double j0(double x) { return ::j0(x); }
double j1(double x) { return ::j1(x); }

template <class T> RL_INLINE T sinc(T x) {
  const T p = x * T(kPi);
  return x == 0 ? T(1) : std::sin(p) / p;
}
template <class T> RL_INLINE T logit(T x, T eps) {
  const T low = x < eps ? eps : x, c = low > T(1) - eps ? T(1) - eps : low;
  const T z = eps < 0 ? x : c;
  return log(z / (T(1) - z));
}
// The degree up to which there is a value depends on the type.
template <double (*F)(double, double, int64_t)> void put_hermite(LoopTable& t, Pointwise op) {
  put_doubles<&loop2<[](double x, double n) { return F(x, n, 128); }, double, false>, 2>(t, op);
  t.at(op, DType::Float64) = &loop2<[](double x, double n) { return F(x, n, 512); }, double, false>;
}

}  // namespace

void put_special(LoopTable& t) {
  using enum Pointwise;
  unary_floats<[](auto x) { return sinc(x); }>(t, Sinc);
  unary_wide<[](auto x, const auto& p) { return logit(x, p.d0); }>(t, Logit);
  unary<[](auto x) { return special::erfinv(x); }, double>(t, Erfinv);
  float_function<[](auto x) { return special::erfinv_float(x); }>(t, Erfinv);
  unary<[](auto x) { return special::lgamma(x); }, double>(t, Lgamma);
  constexpr auto kAbove = [](float x) { return x >= 0.5f; };
  constexpr auto kGammaAbove = [](float x) { return special::lgamma_above(x); };
  // Large enough for the compiler to leave it a call in a loop that should be vectors.
  constexpr auto kGamma = [](float x) __attribute__((always_inline)) { return special::lgamma_float(x); };
  t.at(Lgamma, DType::Float32) = &guarded_loop<&guarded_flat<kAbove, kGammaAbove, kGamma, float>, float>;
  put_half<&guarded_loop<&guarded_flat<kAbove, kGammaAbove, kGamma, float>, float>, 1, true>(t, Lgamma);
#ifdef RL_HAS_WIDE
  if (has_wide()) {
    t.at(Lgamma, DType::Float32) = &guarded_loop<&guarded_flat_wide<kAbove, kGammaAbove, kGamma, float>, float>;
    put_half<&guarded_loop<&guarded_flat_wide<kAbove, kGammaAbove, kGamma, float>, float>, 1, true>(t, Lgamma);
  }
#endif
  guarded_floats<[](auto x) { return (x > 0) & (x < kInf<decltype(x)>); },
                 [](auto x) { return static_cast<decltype(x)>(special::digamma_above(static_cast<double>(x))); },
                 [](auto x) { return static_cast<decltype(x)>(special::digamma(static_cast<double>(x))); }>(t, Digamma);
  guarded_floats<[](auto x) { return (x > 0) & (x < kInf<decltype(x)>); },
                 [](auto x) { return static_cast<decltype(x)>(special::trigamma_above(static_cast<double>(x))); },
                 [](auto x) { return special::trigamma(x); }>(t, Trigamma);
  put_doubles<&loop1<[](double x, const auto& p) { return special::polygamma(p.i0, x); }, double>, 1>(t, Polygamma);
  constexpr auto kI0 = [](auto x) { return static_cast<decltype(x)>(special::i0<decltype(x)>(x)); };
  constexpr auto kI1 = [](auto x) { return static_cast<decltype(x)>(special::i1<decltype(x)>(x)); };
  unary_wide<kI0>(t, I0);
  unary_wide<[](auto x) { return static_cast<decltype(x)>(special::i0e<decltype(x)>(x)); }>(t, I0e);
  unary_wide<kI1>(t, I1);
  unary_wide<[](auto x) { return static_cast<decltype(x)>(special::i1e<decltype(x)>(x)); }>(t, I1e);
  unary_wide<kI0>(t, ModifiedBesselI0);
  unary_wide<kI1>(t, ModifiedBesselI1);
  vectors1<special::k0>(t, ModifiedBesselK0);
  vectors1<special::k1>(t, ModifiedBesselK1);
  vectors1<special::k0e>(t, ScaledModifiedBesselK0);
  vectors1<special::k1e>(t, ScaledModifiedBesselK1);
  function1<j0>(t, BesselJ0);
  function1<j1>(t, BesselJ1);
  function1<special::y0>(t, BesselY0);
  function1<special::y1>(t, BesselY1);
  function1<special::spherical_j0>(t, SphericalBesselJ0);
  function1<special::airy_ai>(t, AiryAi);
  function1<special::ndtri>(t, Ndtri);
  function1<special::log_ndtr>(t, LogNdtr);
  function1<special::erfcx>(t, Erfcx);
  unary_wide<[](auto x) { return special::entr(x); }>(t, Entr);
  function2<special::zeta>(t, Zeta);
  function2<igamma>(t, Igamma);
  function2<igammac>(t, Igammac);
  function2<special::chebyshev_t>(t, ChebyshevT);
  function2<special::chebyshev_u>(t, ChebyshevU);
  function2<special::chebyshev_v>(t, ChebyshevV);
  function2<special::chebyshev_w>(t, ChebyshevW);
  function2<shifted_t>(t, ShiftedChebyshevT);
  function2<shifted_u>(t, ShiftedChebyshevU);
  function2<shifted_v>(t, ShiftedChebyshevV);
  function2<shifted_w>(t, ShiftedChebyshevW);
  function2<special::laguerre_l>(t, LaguerreL);
  function2<special::legendre_p>(t, LegendreP);
  put_hermite<special::hermite_h>(t, HermiteH);
  put_hermite<special::hermite_he>(t, HermiteHe);
}

}  // namespace rl::RL_ISA
