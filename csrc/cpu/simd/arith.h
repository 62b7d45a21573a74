// Products and quotients as kernels want them: integers wrap around, and complex numbers follow the plain formulas
// (std::complex's own operators branch on NaN after each product).
#pragma once
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "cpu/isa.h"
#include "cpu/simd/math.h"

namespace rl::RL_ISA {

template <class T> using promoted_t = decltype(T{} + 0u);  // unsigned, of at least 32 bits
template <class T> RL_INLINE T mul_(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<promoted_t<T>>(x) * static_cast<promoted_t<T>>(y));
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
// Scaled by the larger part of y, so that |y|^2 neither over- nor underflows. Without jumps: which part is larger is
// nothing that a processor could foresee.
template <class T> RL_INLINE std::complex<T> div_(std::complex<T> x, std::complex<T> y) {
  const T a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
  const bool first = std::fabs(c) >= std::fabs(d), zero = (c == 0) & (d == 0);
  const T larger = first ? c : d, ratio = (first ? d : c) / larger;
  const T scale = T(1) / (larger + (first ? d : c) * ratio);
  const T re = (first ? a + b * ratio : a * ratio + b) * scale, im = (first ? b - a * ratio : b * ratio - a) * scale;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  return {zero ? a * kInfinity : re, zero ? b * kInfinity : im};
}

}  // namespace rl::RL_ISA
