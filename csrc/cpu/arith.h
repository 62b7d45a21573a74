// Products and quotients as kernels want them: integers wrap around, and complex numbers follow the plain formulas
// (std::complex's own operators branch on NaN after each product).
#pragma once
#include <cmath>
#include <complex>
#include <type_traits>

#include "cpu/isa.h"
#include "cpu/simd_math.h"

namespace rl::RL_ISA {

template <class T> using wide_t = decltype(T{} + 0u);  // unsigned, of at least 32 bits
template <class T> RL_INLINE T mul_(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<wide_t<T>>(x) * static_cast<wide_t<T>>(y));
  } else {
    return x * y;
  }
}
template <class T> RL_INLINE std::complex<T> mul_(std::complex<T> x, std::complex<T> y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}
// x * y + z, of floats with one rounding where the machine has it.
template <class T> RL_INLINE T mul_add(T x, T y, T z) {
  if constexpr (std::is_floating_point_v<T>) return fma(x, y, z);
  else return static_cast<T>(z + mul_(x, y));
}
// Scaled by the larger part of y, so that |y|^2 neither over- nor underflows.
template <class T> RL_INLINE std::complex<T> div_(std::complex<T> x, std::complex<T> y) {
  const T a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
  const T ac = std::fabs(c), ad = std::fabs(d);
  if (ac >= ad) {
    if (ac == 0 && ad == 0) return {a / ac, b / ad};
    const T ratio = d / c, scale = T(1) / (c + d * ratio);
    return {(a + b * ratio) * scale, (b - a * ratio) * scale};
  }
  const T ratio = c / d, scale = T(1) / (d + c * ratio);
  return {(a * ratio + b) * scale, (b * ratio - a) * scale};
}

}  // namespace rl::RL_ISA
