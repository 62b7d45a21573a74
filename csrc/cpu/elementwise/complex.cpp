// Functions of complex numbers, on the branches of C's standard library.
#include <cmath>

#include "cpu/elementwise/pointwise.h"
#include "cpu/isa.h"
#include "cpu/simd/arith.h"
#include "cpu/simd/trig.h"

namespace rl::RL_ISA {
namespace {

template <class T> using C = std::complex<T>;

// |z| without branches: floats are squared in double, where nothing over- or underflows; doubles are scaled.
RL_INLINE float magnitude(C<float> z) {
  const double x = static_cast<double>(z.real()), y = static_cast<double>(z.imag());
  const float r = static_cast<float>(sqrt_(x * x + y * y));
  return (abs_(z.real()) == kInf<float>) | (abs_(z.imag()) == kInf<float>) ? kInf<float> : r;
}
RL_INLINE double magnitude(C<double> z) {
  const double a = abs_(z.real()), b = abs_(z.imag()), top = a > b ? a : b, low = a > b ? b : a;
  const double q = low / top, h = top * sqrt_(fma(q, q, 1.0));
  const double finite = top == 0 ? 0.0 : h, any = (a != a) | (b != b) ? kNan<double> : finite;
  return (a == kInf<double>) | (b == kInf<double>) ? kInf<double> : any;
}
template <class T> RL_INLINE C<T> sgn(C<T> z) {
  const T r = magnitude(z), re = z.real() / r, im = z.imag() / r;
  return C<T>(r == 0 ? T(0) : re, r == 0 ? T(0) : im);
}
constexpr auto kAbs = [](auto z) { return magnitude(z); };
constexpr auto kAngle = [](auto z) { return atan2(z.imag(), z.real()); };
constexpr auto kSgn = [](auto z) { return sgn(z); };

#ifndef RL_OVERLAY
template <class T> C<T> sigmoid(C<T> z) { return div_(C<T>(1), C<T>(1) + std::exp(-z)); }
// e^z - 1 = expm1(x) cos y - 2 sin^2(y/2) + i e^x sin y
template <class T> C<T> expm1(C<T> z) {
  const T half = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half, std::exp(z.real()) * std::sin(z.imag())};
}
// log|1 + z| = log1p(2x + x^2 + y^2) / 2 where z is small
template <class T> C<T> log1p(C<T> z) {
  const T x = z.real(), y = z.imag(), theta = std::atan2(y, x + 1), r = std::hypot(x + 1, y);
  return {r < T(0.5) || r > T(2) ? std::log(r) : std::log1p(x * (2 + x) + y * y) / 2, theta};
}
template <class T> C<T> sinc(C<T> z) {
  if (z == C<T>(0)) return C<T>(1);
  const C<T> p = z * T(kPi);
  return div_(std::sin(p), p);
}
template <class T> C<T> power(C<T> x, C<T> y) {
  if (y == C<T>(0)) return C<T>(1);
  if (y == C<T>(2)) return mul_(x, x);
  return std::pow(x, y);
}
template <class T> C<T> logaddexp(C<T> x, C<T> y) {
  if (x.real() < y.real()) std::swap(x, y);
  if (std::isinf(x.real()) && x.real() == y.real())  // whose difference is no number
    return x.real() < 0 ? x : std::log(std::exp(x) + std::exp(y));
  return x + log1p(std::exp(y - x));
}
template <class T> bool has_inf(C<T> z) { return std::isinf(z.real()) || std::isinf(z.imag()); }

void put_elementary(LoopTable& t) {
  using enum Pointwise;
  unary_complex<[](auto z) { return std::sqrt(z); }>(t, Sqrt);
  unary_complex<[](auto z) { return div_(decltype(z)(1), std::sqrt(z)); }>(t, Rsqrt);
  unary_complex<[](auto z) { return std::exp(z); }>(t, Exp);
  unary_complex<[](auto z) { return std::exp(z * typename decltype(z)::value_type(0.69314718055994530942)); }>(t, Exp2);
  unary_complex<[](auto z) { return expm1(z); }>(t, Expm1);
  unary_complex<[](auto z) { return std::log(z); }>(t, Log);
  unary_complex<[](auto z) { return std::log(z) * typename decltype(z)::value_type(1.44269504088896340736); }>(t, Log2);
  unary_complex<[](auto z) { return std::log10(z); }>(t, Log10);
  unary_complex<[](auto z) { return log1p(z); }>(t, Log1p);
  unary_complex<[](auto z) { return sigmoid(z); }>(t, Sigmoid);
  unary_complex<[](auto z) { return mul_(z, sigmoid(z)); }>(t, Silu);
  unary_complex<[](auto z) { return sinc(z); }>(t, Sinc);
}
void put_circular(LoopTable& t) {
  using enum Pointwise;
  unary_complex<[](auto z) { return std::sin(z); }>(t, Sin);
  unary_complex<[](auto z) { return std::cos(z); }>(t, Cos);
  unary_complex<[](auto z) { return std::tan(z); }>(t, Tan);
  unary_complex<[](auto z) { return std::asin(z); }>(t, Asin);
  unary_complex<[](auto z) { return std::acos(z); }>(t, Acos);
  unary_complex<[](auto z) { return std::atan(z); }>(t, Atan);
  unary_complex<[](auto z) { return std::sinh(z); }>(t, Sinh);
  unary_complex<[](auto z) { return std::cosh(z); }>(t, Cosh);
  unary_complex<[](auto z) { return std::tanh(z); }>(t, Tanh);
  unary_complex<[](auto z) { return std::asinh(z); }>(t, Asinh);
  unary_complex<[](auto z) { return std::acosh(z); }>(t, Acosh);
  unary_complex<[](auto z) { return std::atanh(z); }>(t, Atanh);
}
void put_parts(LoopTable& t) {
  using enum Pointwise;
  unary_complex<kAbs>(t, Abs);
  unary_complex<kAngle>(t, Angle);
  unary_complex<kSgn>(t, Sgn);
  unary_complex<[](auto z) { return decltype(z)(z.real(), -z.imag()); }>(t, Conj);
  unary_complex<[](auto z) { return z.real() != z.real() || z.imag() != z.imag(); }>(t, IsNan);
  unary_complex<[](auto z) { return has_inf(z); }>(t, IsInf);
  unary_complex<[](auto z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }>(t, IsFinite);
  unary_complex<[](auto z) { return z == decltype(z)(0); }>(t, LogicalNot);
  unary_floats<[](auto x) {
    using T = decltype(x);
    return x != x ? x : (x < 0 ? T(kPi) : T(0));
  }>(t, Angle);
  constexpr auto kPair = [](auto re, auto im) { return std::complex(re, im); };
  binary<kPair, float, double>(t, MakeComplex);
  t.at(MakeComplex, DType::Float16) = &loop2<[](auto re, auto im) { return re | uint32_t(im) << 16; }, uint16_t>;
  binary<[](auto r, auto a) { return std::complex(r * std::cos(a), r * std::sin(a)); }, float, double>(t, MakePolar);
}
#endif

}  // namespace

#ifdef RL_OVERLAY
void put_complex(LoopTable& t) {
  unary<kAbs, C<float>, C<double>>(t, Pointwise::Abs);
  unary<kAngle, C<float>, C<double>>(t, Pointwise::Angle);
  unary<kSgn, C<float>, C<double>>(t, Pointwise::Sgn);
}
#else
void put_complex(LoopTable& t) {
  using enum Pointwise;
  put_elementary(t);
  put_circular(t);
  put_parts(t);
  binary_complex<[](auto x, auto y) { return power(x, y); }>(t, Pow);
  binary_complex<[](auto x, auto y) { return logaddexp(x, y); }>(t, Logaddexp);
  binary_complex<[](auto dy, auto z) {
    const auto s = sigmoid(z);
    return mul_(dy, std::conj(mul_(s, decltype(z)(1) + mul_(z, decltype(z)(1) - s))));
  }>(t, SiluGrad);
  binary_complex<[](auto dy, auto y) { return mul_(dy, std::conj(mul_(decltype(y)(1) - y, y))); }>(t, SigmoidGrad);
  binary_complex<[](auto dy, auto y) { return mul_(dy, std::conj(decltype(y)(1) - mul_(y, y))); }>(t, TanhGrad);
}
#endif

}  // namespace rl::RL_ISA
