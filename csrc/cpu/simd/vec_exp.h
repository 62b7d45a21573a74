// e^x and multiply-adds of vectors of vec.h.
#pragma once
#include "cpu/simd/exp.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {

// a * b + c, in one rounding where the machine can.
[[gnu::always_inline]] inline Vec<float> mul_add(Vec<float> a, Vec<float> b, Vec<float> c) {
  return simd::Vec<float, kVecBytes>::fma(a, b, c);
}
[[gnu::always_inline]] inline Vec<double> mul_add(Vec<double> a, Vec<double> b, Vec<double> c) {
  return simd::Vec<double, kVecBytes>::fma(a, b, c);
}
template <class T> [[gnu::always_inline]] inline Vec<T> fill_vec(T x) { return Vec<T>{} + x; }

}  // namespace rl::RL_ISA
