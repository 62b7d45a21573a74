// What the AVX-512 loops of softmax are made of: registers of the type they are computed in.
#pragma once
#include "base/dtype.h"
#include "cpu/simd/math_avx512.h"

namespace rl::RL_ISA {
namespace {

template <class T> inline constexpr T kNone = -__builtin_inff();
template <class T> inline constexpr int64_t kRegisterLanes = 64 / sizeof(T);
using Mask = __mmask16;  // of doubles the lower half

template <class T> using Registers = simd::Vec<compute_t<T>, 64>;

template <class T> RL_STEP Mask lanes(int64_t left) { return Registers<T>::first(left); }
// Lanes that are not read are -inf, of numbers of half size 0.
template <class T> RL_STEP auto load(const T* x) { return Registers<T>::load(x); }
template <class T> RL_STEP auto load(const T* x, Mask some) {
  using V = Registers<T>;
  const auto m = static_cast<typename V::Mask>(some);
  if constexpr (is_half_v<T>) return V::load(x, m);
  else return V::load(x, m, V::all(kNone<T>));
}
template <class T> RL_STEP void store(T* y, typename Registers<T>::Reg v) { Registers<T>::store(y, v); }
template <class T> RL_STEP void store(T* y, typename Registers<T>::Reg v, Mask some) {
  Registers<T>::store(y, v, static_cast<typename Registers<T>::Mask>(some));
}

// e^x of x <= 0. Of floats, what would not be a normal number is 0. NaN stays.
RL_STEP F exp_below_one(F x) {
  F power;
  const F e = exp_parts(x, power);
  return simd::scale(simd::not_less(x, all(-87.33f)), e, power);
}
RL_STEP D exp_below_one(D x) {
  D power;
  const D e = exp_parts(x, power);
  return simd::scale(some_exp(x), e, power);
}

}  // namespace
}  // namespace rl::RL_ISA
