// Tests on one element, bounds, mixtures of two and three operands.
#include <bit>
#include <cmath>
#include <limits>

#include "cpu/elementwise/pointwise.h"
#include "cpu/isa.h"
#include "cpu/simd/arith.h"
#include "cpu/simd/erf.h"
#include "cpu/simd/trig.h"

namespace rl::RL_ISA {
namespace {

using c64 = std::complex<float>;
using c128 = std::complex<double>;

// A NaN on either side wins; one choice each, so that the loop becomes few instructions.
template <class T> RL_INLINE T larger(T x, T y) { return (x < y) | (y != y) ? y : x; }
template <class T> RL_INLINE T smaller(T x, T y) { return (x > y) | (y != y) ? y : x; }
// One comparison a bound, so that the loop becomes vectors; NaN passes, and bounds are not NaN.
template <class T, class P> RL_INLINE T clamp(T x, const P& p) {
  const T low = T(p.s0), high = T(p.s1);
  x = x < low ? low : x;
  return x > high ? high : x;
}

template <class T> RL_INLINE T logaddexp(T x, T y) {
  const T top = x > y ? x : y, low = x > y ? y : x;
  const T sum = top + log1p(exp(low - top));
  return (abs_(x) == kInf<T>)&(x == y) ? x : sum;
}
template <class T> RL_INLINE T logaddexp2(T x, T y) {
  const T top = x > y ? x : y, low = x > y ? y : x;
  const T sum = top + log1p(exp2(low - top)) * T(1.44269504088896340736);
  return (abs_(x) == kInf<T>)&(x == y) ? x : sum;
}
// x = mantissa 2^exponent, from its bits; the smallest values are made larger first. What has no such parts is its own
// mantissa.
template <class T, class B> struct FrexpParts {
  T mantissa;
  B exponent;
};
template <class T> RL_INLINE auto frexp_parts(T x) {
  using B = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  constexpr int kDigits = std::numeric_limits<T>::digits - 1, kRaised = kDigits + 2;
  constexpr B kBias = std::numeric_limits<T>::max_exponent - 1, kField = 2 * kBias + 1;
  const bool tiny = abs_(x) < std::numeric_limits<T>::min();
  const T y = tiny ? x * static_cast<T>(B{1} << kRaised) : x;
  const B bits = std::bit_cast<B>(y), field = (bits >> kDigits) & kField;
  const bool none = (x == T(0)) | (field == kField);
  const T mantissa = std::bit_cast<T>((bits & ~(kField << kDigits)) | ((kBias - 1) << kDigits));
  const B exponent = field - (kBias - 1) - (tiny ? B{kRaised} : B{0});
  return FrexpParts<T, B>{none ? x : mantissa, none ? B{0} : exponent};
}

constexpr auto kClamp = [](auto x, const auto& p) { return clamp(x, p); };
constexpr auto kAddcmul = [](auto x, auto y, auto z, const auto& p) { return mul_add(mul_(p.s0, y), z, x); };

// What takes longer than loading it.
void put_functions(LoopTable& t) {
  using enum Pointwise;
  binary_floats<[](auto x, auto y) { return logaddexp(x, y); }, false>(t, Logaddexp);
  binary_floats<[](auto x, auto y) { return logaddexp2(x, y); }, false>(t, Logaddexp2);
  unary_floats<[](auto x) { return frexp_parts(x).mantissa; }>(t, FrexpMantissa);
  unary_floats<[](auto x) { return static_cast<decltype(x)>(frexp_parts(x).exponent); }>(t, FrexpExponent);
  unary_floats<[](auto x, const auto& p) {
    using T = decltype(x);
    const T y = x == kInf<T> ? T(p.d1) : (x == -kInf<T> ? T(p.d2) : x);
    return x != x ? T(p.d0) : y;
  }>(t, NanToNum);
}

#ifndef RL_OVERLAY
template <class T> RL_INLINE T xlogy(T x, T y) { return y != y ? y : (x == 0 ? T(0) : x * log(y)); }
template <class T> RL_INLINE T xlog1py(T x, T y) { return y != y ? y : (x == 0 ? T(0) : x * log1p(y)); }
template <class T> RL_INLINE T hypot(T x, T y) {
  const T a = abs_(x), b = abs_(y), top = a > b ? a : b, low = a > b ? b : a;
  const T q = low / top, h = top * sqrt_(fma(q, q, T(1)));
  const T finite = top == 0 ? T(0) : h;
  const T any = (x != x) | (y != y) ? kNan<T> : finite;
  return (a == kInf<T>) | (b == kInf<T>) ? kInf<T> : any;
}
template <class T> RL_INLINE T lerp(T x, T y, T w) {
  return abs_(w) < T(0.5) ? fma(w, y - x, x) : fma(w - T(1), y - x, y);
}
template <class T> RL_INLINE std::complex<T> lerp(std::complex<T> x, std::complex<T> y, std::complex<T> w) {
  const std::complex<T> d = y - x;
  return w.real() * w.real() + w.imag() * w.imag() < T(0.25) ? x + mul_(w, d) : y - mul_(d, std::complex<T>(1) - w);
}
// With one weight for all, which is the usual case, its half is chosen once.
template <class T> void lerp_by(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params, T w) {
  LoopParams with = params;
  if (abs_(w) < T(0.5)) {
    with.s0.set(w);
    return loop2<[](auto x, auto y, const auto& p) { return fma(p.s0, y - x, x); }, T>(data, strides, n, with);
  }
  with.s0.set(w - T(1));
  loop2<[](auto x, auto y, const auto& p) { return fma(p.s0, y - x, y); }, T>(data, strides, n, with);
}
template <class T> void lerp_loop(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  if (n < 1 || strides[3] != 0) {
    return loop3<[](auto x, auto y, auto w) { return lerp(x, y, w); }, T>(data, strides, n, params);
  }
  T w;
  __builtin_memcpy(&w, data[3], sizeof w);
  lerp_by(data, strides, n, params, w);
}
void lerp_by_loop(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  lerp_by(data, strides, n, params, params.s0.get<float>());
}
// The next number from x towards y: its bits count on by one, away from zero or towards it.
template <class T> RL_INLINE T next_after(T x, T y) {
  using Bits = bits_t<T>;
  const bool away = (x < y) == (x > 0);
  const T moved = from_bits<T>(to_bits(x) + (away ? Bits(1) : ~Bits(0)));
  const T least = with_sign(from_bits<T>(Bits(1)), y);
  const T next = x == 0 ? least : moved, other = x == y ? y : next;
  return (x != x) | (y != y) ? x + y : other;
}
// The next 16-bit float from x towards y. Magnitudes are ordered as their bits; those above kInfinity are NaN.
template <uint16_t kInfinity> uint16_t next_half(uint16_t x, uint16_t y) {
  const int ax = x & 0x7fff, ay = y & 0x7fff;
  if (ax > kInfinity || ay > kInfinity) return 0x7fff;
  const int vx = x & 0x8000 ? -ax : ax, vy = y & 0x8000 ? -ay : ay;
  if (vx == vy) return y;
  const int next = vx < vy ? vx + 1 : vx - 1;
  const bool negative = next < 0 || (next == 0 && vx < 0);
  return static_cast<uint16_t>(negative ? 0x8000 | -next : next);
}
template <class T> RL_INLINE T div_any(T x, T y) {
  if constexpr (is_complex_v<T>) {
    return div_(x, y);
  } else {
    return x / y;
  }
}

void put_tests(LoopTable& t) {
  using enum Pointwise;
  unary_floats<[](auto x) { return x != x; }>(t, IsNan);
  unary_floats<[](auto x) { return abs_(x) == kInf<decltype(x)>; }>(t, IsInf);
  unary_floats<[](auto x) { return abs_(x) < kInf<decltype(x)>; }>(t, IsFinite);
  unary_floats<[](auto x) { return x == kInf<decltype(x)>; }>(t, IsPosInf);
  unary_floats<[](auto x) { return x == -kInf<decltype(x)>; }>(t, IsNegInf);
  unary_floats<[](auto x) { return (to_bits(x) & FloatTraits<decltype(x)>::kSign) != 0; }>(t, Signbit);
  unary<[](auto x) { return x < 0; }, int8_t, int16_t, int32_t, int64_t>(t, Signbit);
  unary<[](auto) { return false; }, bool, uint8_t>(t, Signbit);
  constexpr auto kFalse = [](auto) { return false; };
  constexpr auto kTrue = [](auto) { return true; };
  t.at(IsNan, DType::UInt8) = &loop1<kFalse, uint8_t>;
  t.at(IsNan, DType::Int16) = &loop1<kFalse, uint16_t>;
  t.at(IsNan, DType::Int32) = &loop1<kFalse, uint32_t>;
  t.at(IsNan, DType::Int64) = &loop1<kFalse, uint64_t>;
  t.at(IsFinite, DType::UInt8) = &loop1<kTrue, uint8_t>;
  t.at(IsFinite, DType::Int16) = &loop1<kTrue, uint16_t>;
  t.at(IsFinite, DType::Int32) = &loop1<kTrue, uint32_t>;
  t.at(IsFinite, DType::Int64) = &loop1<kTrue, uint64_t>;
  for (Pointwise op : {IsNan, IsFinite}) {
    t.at(op, DType::Bool) = t.at(op, DType::Int8) = t.at(op, DType::UInt8);
    t.at(op, DType::UInt16) = t.at(op, DType::Int16);
    t.at(op, DType::UInt32) = t.at(op, DType::Int32);
    t.at(op, DType::UInt64) = t.at(op, DType::Int64);
  }
  for (int d = 0; d < kDTypes; ++d) {
    const DType type = static_cast<DType>(d);
    if (!is_integral(type, true)) continue;
    for (Pointwise op : {IsInf, IsPosInf, IsNegInf}) t.at(op, type) = t.at(IsNan, type);
  }
  unary_floats<[](auto x) { return x == 0; }>(t, LogicalNot);
  unary<[](auto x) { return x == decltype(x)(0); }, uint8_t, uint16_t, uint32_t, uint64_t, c64, c128>(t, LogicalNot);
  t.at(LogicalNot, DType::Bool) = t.at(LogicalNot, DType::Int8) = t.at(LogicalNot, DType::UInt8);
  t.at(LogicalNot, DType::Int16) = t.at(LogicalNot, DType::UInt16);
  t.at(LogicalNot, DType::Int32) = t.at(LogicalNot, DType::UInt32);
  t.at(LogicalNot, DType::Int64) = t.at(LogicalNot, DType::UInt64);
}

void put_bounds(LoopTable& t) {
  using enum Pointwise;
  constexpr auto kClampTensors = [](auto x, auto low, auto high) { return smaller(larger(x, low), high); };
  unary_floats<kClamp>(t, Clamp);
  unary<kClamp, uint8_t, int8_t, int16_t, int32_t, int64_t>(t, Clamp);
  ternary_floats<kClampTensors>(t, ClampTensors);
  ternary<kClampTensors, uint8_t, int8_t, int16_t, int32_t, int64_t>(t, ClampTensors);
  t.at(Clamp, DType::Bool) = t.at(Clamp, DType::UInt8);
  t.at(ClampTensors, DType::Bool) = t.at(ClampTensors, DType::UInt8);
  for (DType d : {DType::Bool, DType::UInt8, DType::Int8, DType::Int16, DType::Int32, DType::Int64}) {
    t.at(NanToNum, d) = t.at(Copy, d);
  }
}

#endif

}  // namespace

#ifdef RL_OVERLAY
void put_misc(LoopTable& t) {
  put_functions(t);
  unary_half<kClamp>(t, Pointwise::Clamp);
  put_half_loops<kAddcmul, 3>(t, Pointwise::Addcmul);
}
#else
void put_misc(LoopTable& t) {
  using enum Pointwise;
  put_functions(t);
  put_tests(t);
  put_bounds(t);
  binary_floats<[](auto x, auto y) { return xlogy(x, y); }, false>(t, Xlogy);
  binary_floats<[](auto x, auto y) { return xlog1py(x, y); }, false>(t, Xlog1py);
  binary_floats<[](auto x, auto y) { return hypot(x, y); }, false>(t, Hypot);
  binary_floats<[](auto x, auto y) { return with_sign(x, y); }>(t, Copysign);
  binary<[](auto x, auto y) { return next_after(x, y); }, float, double>(t, Nextafter);
  t.at(Nextafter, DType::Float16) = &loop2<[](auto x, auto y) { return next_half<0x7c00>(x, y); }, uint16_t, false>;
  t.at(Nextafter, DType::BFloat16) = &loop2<[](auto x, auto y) { return next_half<0x7f80>(x, y); }, uint16_t, false>;
  constexpr auto kHeaviside = [](auto x, auto y) {
    using T = decltype(x);
    return x == 0 ? y : T((x > 0) ? 1 : 0);
  };
  binary_floats<kHeaviside>(t, Heaviside);
  binary<kHeaviside, uint8_t, int8_t, int16_t, int32_t, int64_t>(t, Heaviside);
  t.at(Heaviside, DType::Bool) = &loop2<[](auto x, auto y) { return static_cast<uint8_t>(x | y); }, uint8_t>;

  constexpr auto kAddcdiv = [](auto x, auto y, auto z, const auto& p) { return x + div_any(mul_(p.s0, y), z); };
  ternary_floats<kAddcmul>(t, Addcmul);
  ternary<kAddcmul, uint8_t, uint16_t, uint32_t, uint64_t, c64, c128>(t, Addcmul);
  t.at(Addcmul, DType::Int8) = t.at(Addcmul, DType::UInt8);
  t.at(Addcmul, DType::Int16) = t.at(Addcmul, DType::UInt16);
  t.at(Addcmul, DType::Int32) = t.at(Addcmul, DType::UInt32);
  t.at(Addcmul, DType::Int64) = t.at(Addcmul, DType::UInt64);
  ternary_floats<kAddcdiv>(t, Addcdiv);
  ternary<kAddcdiv, c64, c128>(t, Addcdiv);
  t.at(Lerp, DType::Float32) = &lerp_loop<float>;
  t.at(Lerp, DType::Float64) = &lerp_loop<double>;
  put_half<&lerp_loop<float>, 3, true>(t, Lerp);
  put_half<&lerp_by_loop, 2, true>(t, LerpBy);
  ternary<[](auto x, auto y, auto w) { return lerp(x, y, w); }, c64, c128>(t, Lerp);
}
#endif

}  // namespace rl::RL_ISA
