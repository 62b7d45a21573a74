// Powers, exponentials and logarithms of real numbers.
#include "cpu/elementwise/reduced_range.h"
#include "cpu/isa.h"

#ifdef RL_OVERLAY
#include "cpu/simd/math_avx512.h"
#endif

namespace rl::RL_ISA {

#ifdef RL_OVERLAY
namespace {
// Square roots from the estimate of 1 / sqrt(x), refined twice: half the time of the instruction, and the same bits,
// as the residual x - s^2 is exact. Below 2^-96 it is not: there, and for what has no root, the instruction serves.
RL_INLINE F refined_sqrt(F x) {
  const F half = all(0.5f), y = rsqrt_estimate(x);
  F s = x * y, h = y * half;
  const F error = simd::fnma(h, s, half);
  s = fmadd(s, error, s);
  h = fmadd(h, error, h);
  return fmadd(simd::fnma(s, s, x), h, s);
}
RL_INLINE VF::Mask not_refinable(F x) {  // not within 2^-96 ... the largest number, by its bits
  return VF::bits_outside(x, 0x0f800000, 0x7f800000);
}
void sqrt_flat(char* const* data, int64_t n, const LoopParams&) {
  auto* out = reinterpret_cast<float*>(data[0]);
  auto* in = reinterpret_cast<const float*>(data[1]);
  int64_t i = 0;
  // The instruction has a unit of its own: it takes every third register while the others are refined.
  for (; i + 48 <= n; i += 48) {
    const F x = VF::load(in + i), y = VF::load(in + i + 16), z = VF::load(in + i + 32);
    const F root = simd::sqrt(x);
    F s = refined_sqrt(y), t = refined_sqrt(z);
    if (not_refinable(y) | not_refinable(z)) [[unlikely]] {
      s = simd::sqrt(y);
      t = simd::sqrt(z);
    }
    VF::store(out + i, root);
    VF::store(out + i + 16, s);
    VF::store(out + i + 32, t);
  }
  for (; i < n; i += 16) {
    const VF::Mask lanes = VF::first(n - i);
    VF::store(out + i, simd::sqrt(VF::load(in + i, lanes)), lanes);
  }
}
void sqrt_loop(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params) {
  static constexpr uint8_t kSizes[] = {sizeof(float), sizeof(float)};
  if (n < 1) return;
  if (n == 1 || (strides[0] == 4 && strides[1] == 4)) return sqrt_flat(data, n, params);
  run_blocks(&sqrt_flat, kSizes, 2, data, strides, n, params);
}
}  // namespace
#endif

void put_math(LoopTable& t) {
  using enum Pointwise;
  constexpr auto kSqrt = [](auto x) { return sqrt_(x); };
  constexpr auto kRsqrt = [](auto x) { return 1 / sqrt_(x); };
  unary_floats<kSqrt>(t, Sqrt);
  unary_floats<kRsqrt>(t, Rsqrt);
#ifdef RL_OVERLAY
  t.at(Sqrt, DType::Float32) = &sqrt_loop;
  unary_half<kSqrt>(t, Sqrt);
  unary_half<kRsqrt>(t, Rsqrt);
#else  // for the overlay see piecewise_avx512.cpp
  reduced_range_floats<[](auto x) { return exp_in_range(x); }, [](auto x) { return exp_reduced(x); },
                       [](auto x) { return exp(x); }>(t, Exp);
  reduced_range_floats<[](auto x) { return log_in_range(x); }, [](auto x) { return log_reduced(x); },
                       [](auto x) { return log(x); }>(t, Log);
  reduced_range_floats<[](auto x) { return log_in_range(x); }, [](auto x) { return log2_reduced(x); },
                       [](auto x) { return log2(x); }>(t, Log2);
  reduced_range_floats<[](auto x) { return log_in_range(x); }, [](auto x) { return log10_reduced(x); },
                       [](auto x) { return log10(x); }>(t, Log10);
#endif
  unary_floats<[](auto x) { return exp2(x); }>(t, Exp2);
  unary_floats<[](auto x) { return expm1(x); }>(t, Expm1);
  unary_floats<[](auto x) { return log1p(x); }>(t, Log1p);
  unary_floats<[](auto x) { return sigmoid(x); }>(t, Sigmoid);
  unary_floats<[](auto x) { return tanh(x); }>(t, Tanh);
  unary_floats<[](auto x) { return sinh(x); }>(t, Sinh);
  unary_floats<[](auto x) { return cosh(x); }>(t, Cosh);
  unary_floats<[](auto x) { return asinh(x); }>(t, Asinh);
  unary_floats<[](auto x) { return acosh(x); }>(t, Acosh);
  unary_floats<[](auto x) { return atanh(x); }>(t, Atanh);
}

}  // namespace rl::RL_ISA
