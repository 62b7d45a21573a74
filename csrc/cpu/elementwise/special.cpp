// Special functions, computed in double for float as well. See also gamma.cpp.
#include <cmath>

#include "cpu/elementwise/reduced_range.h"
#include "cpu/elementwise/special_bessel.h"
#include "cpu/elementwise/special_erf.h"
#include "cpu/elementwise/special_gamma.h"
#include "cpu/isa.h"
#include "cpu/simd/trig.h"

namespace rl::RL_ISA {
namespace {

// Functions without branches, which loops make vectors of: twice as many floats as doubles, whose waits overlap.
template <double (*F)(double)> void vectors1(LoopTable& t, Pointwise op) {
  unary_floats<[](auto x) { return static_cast<decltype(x)>(F(static_cast<double>(x))); }>(t, op);
}
template <class T> RL_INLINE T sinc(T x) {
  const T p = x * T(kPi), y = rl::RL_ISA::sin(p) / p;
  return x == 0 ? T(1) : y;
}
template <class T> T sinc_far(T x) {
  const T p = x * T(kPi);
  return std::sin(p) / p;
}
#ifndef RL_OVERLAY  // which has its own in piecewise_avx512.cpp, but for airy_ai
template <class T> RL_INLINE T logit(T x, T eps) {
  const T low = x < eps ? eps : x, c = low > T(1) - eps ? T(1) - eps : low;
  const T z = eps < 0 ? x : c;
  return log(z / (T(1) - z));
}
template <double (*F)(double)> void function1(LoopTable& t, Pointwise op) {
  put_doubles<&loop1<[](double x) { return F(x); }, double>, 1>(t, op);
}
// A vector loop for float and the reduced-precision types, the exact function for double.
template <auto F> void float_function(LoopTable& t, Pointwise op) {
  t.at(op, DType::Float32) = &loop1<F, float>;
  put_half<&loop1<F, float>, 1, true>(t, op);
}
void put_inverses(LoopTable& t) {
  using enum Pointwise;
  unary<[](auto x) { return special::erfinv(x); }, double>(t, Erfinv);
  float_function<[](auto x) { return special::erfinv_float(x); }>(t, Erfinv);
  unary_floats<[](auto x, const auto& p) { return logit(x, p.d0); }>(t, Logit);
  function1<special::airy_ai>(t, AiryAi);
  function1<special::ndtri>(t, Ndtri);
}
#endif

}  // namespace

void put_special(LoopTable& t) {
  using enum Pointwise;
#ifndef RL_OVERLAY
  put_inverses(t);
#endif
  patched_floats<[](auto x, auto) { return abs_(x) < kTrigLimit<decltype(x)> / 4; }, [](auto x) { return sinc(x); },
                 [](auto x) { return sinc_far(x); }>(t, Sinc);
  reduced_range_floats<[](auto x) { return (x > 0) & (x < kInf<decltype(x)>); },
                       [](auto x) { return static_cast<decltype(x)>(special::trigamma_above(static_cast<double>(x))); },
                       [](auto x) { return special::trigamma(x); }>(t, Trigamma);
  constexpr auto kI0 = [](auto x) { return static_cast<decltype(x)>(special::i0<decltype(x)>(x)); };
  constexpr auto kI1 = [](auto x) { return static_cast<decltype(x)>(special::i1<decltype(x)>(x)); };
  unary_floats<kI0>(t, I0);
  unary_floats<[](auto x) { return static_cast<decltype(x)>(special::i0e<decltype(x)>(x)); }>(t, I0e);
  unary_floats<kI1>(t, I1);
  unary_floats<[](auto x) { return static_cast<decltype(x)>(special::i1e<decltype(x)>(x)); }>(t, I1e);
  unary_floats<kI0>(t, ModifiedBesselI0);
  unary_floats<kI1>(t, ModifiedBesselI1);
#ifndef RL_OVERLAY  // seldom called, and longer than all the others
  vectors1<special::k0>(t, ModifiedBesselK0);
  vectors1<special::k1>(t, ModifiedBesselK1);
  vectors1<special::k0e>(t, ScaledModifiedBesselK0);
  vectors1<special::k1e>(t, ScaledModifiedBesselK1);
#endif
  vectors1<special::log_ndtr>(t, LogNdtr);
  vectors1<special::erfcx>(t, Erfcx);
  unary_floats<[](auto x) { return special::entr(x); }>(t, Entr);
}

}  // namespace rl::RL_ISA
