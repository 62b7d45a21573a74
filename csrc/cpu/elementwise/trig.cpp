// Trigonometry, the error function and the roundings of real numbers.
#include "cpu/simd/trig.h"

#include <cmath>

#include "cpu/elementwise/reduced_range.h"
#include "cpu/isa.h"
#include "cpu/simd/erf.h"

namespace rl::RL_ISA {
namespace {

#ifndef RL_OVERLAY  // whose error functions are in piecewise_avx512.cpp; roundings wait for memory
// Rounds half to even at a number of decimals, which may be negative.
template <class T> RL_INLINE T round_decimals(T x, T scale, bool up) {
  const T y = rint_(up ? x * scale : x / scale);
  return up ? y / scale : y * scale;
}
template <class T> void round_loop(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  if (params.i0 == 0) return loop1<[](auto x) { return rint_(x); }, T>(data, strides, n, params);
  LoopParams scaled = params;
  scaled.d0 = std::pow(10.0, std::fabs(static_cast<double>(params.i0)));
  loop1<[](auto x, const auto& p) { return round_decimals(x, decltype(x)(p.d0), (p.i0 > 0)); }, T>(data, strides, n,
                                                                                                   scaled);
}
void put_round(LoopTable& t) {
  t.at(Pointwise::Round, DType::Float32) = &round_loop<float>;
  t.at(Pointwise::Round, DType::Float64) = &round_loop<double>;
  put_half<&round_loop<float>, 1, true>(t, Pointwise::Round);
  for (DType d : {DType::UInt8, DType::Int8, DType::Int16, DType::Int32, DType::Int64}) {
    for (Pointwise op : {Pointwise::Round, Pointwise::Ceil, Pointwise::Floor, Pointwise::Trunc}) {
      t.at(op, d) = t.at(Pointwise::Copy, d);
    }
  }
}
void put_erf_and_roundings(LoopTable& t) {
  using enum Pointwise;
  unary_floats<[](auto x) { return erf(x); }>(t, Erf);
  unary<[](auto x) { return erfc(x); }, float>(t, Erfc);
  unary<[](auto x) { return std::erfc(x); }, double>(t, Erfc);
  put_half<&loop1<[](auto x) { return erfc(x); }, float>, 1, true>(t, Erfc);

  unary_floats<[](auto x) { return floor_(x); }>(t, Floor);
  unary_floats<[](auto x) { return std::ceil(x); }>(t, Ceil);
  unary_floats<[](auto x) { return std::trunc(x); }>(t, Trunc);
  unary_floats<[](auto x) { return x - std::trunc(x); }>(t, Frac);
  put_round(t);
}
#endif

}  // namespace

void put_trig(LoopTable& t) {
  using enum Pointwise;
  constexpr auto kNear = [](auto x) { return abs_(x) <= kTrigLimit<decltype(x)>; };
  reduced_range_floats<kNear, [](auto x) { return sin(x); }, [](auto x) { return std::sin(x); }>(t, Sin);
  reduced_range_floats<kNear, [](auto x) { return cos(x); }, [](auto x) { return std::cos(x); }>(t, Cos);
  reduced_range_floats<kNear, [](auto x) { return tan(x); }, [](auto x) { return std::tan(x); }>(t, Tan);
  unary_floats<[](auto x) { return asin(x); }>(t, Asin);
  unary_floats<[](auto x) { return acos(x); }>(t, Acos);
  unary_floats<[](auto x) { return atan(x); }>(t, Atan);
  binary_floats<[](auto y, auto x) { return atan2(y, x); }, false>(t, Atan2);
#ifndef RL_OVERLAY
  put_erf_and_roundings(t);
#endif
}

}  // namespace rl::RL_ISA
