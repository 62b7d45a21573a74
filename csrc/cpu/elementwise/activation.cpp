// Activations of neural networks and their gradients. Comparisons are written so that a NaN stays a NaN.
#include "cpu/elementwise/pointwise.h"
#include "cpu/isa.h"
#include "cpu/simd/erf.h"

namespace rl::RL_ISA {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752440, kInvSqrt2Pi = 0.39894228040143267794;
constexpr double kSqrt2OverPi = 0.79788456080286535588, kGeluCubic = 0.044715;

template <class T> RL_INLINE T clamp(T x, T low, T high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}
template <class T> RL_INLINE T gelu(T x) { return T(0.5) * x * (T(1) + erf(x * T(kSqrtHalf))); }
template <class T> RL_INLINE T gelu_derivative(T x) {
  const T cdf = T(0.5) * (T(1) + erf(x * T(kSqrtHalf)));
  constexpr T kLeast = sizeof(T) == 4 ? T(-85) : T(-700);  // below, the density is none, however large x is
  const T q = T(-0.5) * x * x, density = T(kInvSqrt2Pi) * exp_inside(q < kLeast ? kLeast : q);
  return cdf + (q < kLeast ? T(0) : x * density);
}
template <class T> RL_INLINE T gelu_tanh(T x) {
  return T(0.5) * x * (T(1) + tanh(T(kSqrt2OverPi) * (x + T(kGeluCubic) * x * x * x)));
}
template <class T> RL_INLINE T gelu_tanh_derivative(T x) {
  const T t = tanh(T(kSqrt2OverPi) * (x + T(kGeluCubic) * x * x * x));
  const T inner = T(kSqrt2OverPi) * (T(1) + T(3 * kGeluCubic) * x * x);
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner;
}
// tanh(log(1 + e^x)) = w / (w + 2) with w = e^x (e^x + 2); it is 1 long before e^2x overflows.
template <class T> RL_INLINE T tanh_softplus(T x) {
  const T e = exp(x > T(20) ? T(20) : x), w = e * (e + T(2));
  return x > T(20) ? T(1) : w / (w + T(2));
}
template <class T> RL_INLINE T log_sigmoid(T x) { return (x < 0 ? x : T(0)) - log1p(exp(-abs_(x))); }

void put_smooth(LoopTable& t) {
  using enum Pointwise;
  unary_floats<[](auto x, const auto& p) { return (x > 0) ? x * p.d1 : expm1(x * p.d2) * (p.d0 * p.d1); }>(t, Elu);
  binary_floats<[](auto dy, auto x, const auto& p) {
    using T = decltype(x);
    const T below = T(p.d2 * p.d0 * p.d1) * exp(x * T(p.d2)), derivative = x <= 0 ? below : T(p.d1);
    return dy * derivative;
  },
                false>(t, EluGrad);
  unary_floats<[](auto x) { return gelu(x); }>(t, Gelu);
  unary_floats<[](auto x) { return gelu_tanh(x); }>(t, GeluTanh);
  binary_floats<[](auto dy, auto x) { return dy * gelu_derivative(x); }, false>(t, GeluGrad);
  binary_floats<[](auto dy, auto x) { return dy * gelu_tanh_derivative(x); }, false>(t, GeluTanhGrad);
  unary_floats<[](auto x) { return x / (1 + exp(-x)); }>(t, Silu);
  binary_floats<[](auto dy, auto x) {
    const auto s = sigmoid(x);
    return dy * s * (1 + x * (1 - s));
  },
                false>(t, SiluGrad);
  unary_floats<[](auto x) { return x * tanh_softplus(x); }>(t, Mish);
  binary_floats<[](auto dy, auto x) {
    const auto s = sigmoid(x), u = tanh_softplus(x);
    return dy * (u + x * s * (1 - u * u));
  },
                false>(t, MishGrad);
  unary_floats<[](auto x, const auto& p) {
    const auto z = x * p.d0;
    return (z > p.d1) ? x : log1p(exp(z)) / p.d0;
  }>(t, Softplus);
  binary_floats<[](auto dy, auto x, const auto& p) {
    const auto z = x * p.d0;
    return (z > p.d1) ? dy : dy * sigmoid(z);
  },
                false>(t, SoftplusGrad);
  unary_floats<[](auto x) { return log_sigmoid(x); }>(t, LogSigmoid);
  binary_floats<[](auto dy, auto x) {
    const auto z = exp(-abs_(x));
    return dy * ((x < 0 ? 1 : z) / (1 + z));
  },
                false>(t, LogSigmoidGrad);
  binary_floats<[](auto x, auto y) { return (1 - y) * x - log_sigmoid(x); }, false>(t, LogitsLoss);
}

#ifndef RL_OVERLAY  // these wait for memory
// fp16 and bf16 are compared by their bits: those of negative values lie between -0 and -infinity, kLeast; beyond them
// are NaNs.
template <uint16_t kLeast> RL_INLINE uint16_t half_relu(uint16_t x) {
  return x > 0x8000 && x <= kLeast ? uint16_t{0} : x;
}
template <uint16_t kLeast> RL_INLINE uint16_t half_relu_grad(uint16_t dy, uint16_t y) {
  return y == 0 || (y >= 0x8000 && y <= kLeast) ? uint16_t{0} : dy;
}

void put_piecewise(LoopTable& t) {
  using enum Pointwise;
  constexpr auto kRelu = [](auto x) { return x < 0 ? decltype(x)(0) : x; };
  unary_floats<kRelu>(t, Relu);
  unary<kRelu, int8_t, int16_t, int32_t, int64_t>(t, Relu);
  t.at(Relu, DType::BFloat16) = &loop1<half_relu<0xff80>, uint16_t>;
  t.at(Relu, DType::Float16) = &loop1<half_relu<0xfc00>, uint16_t>;
  t.at(Relu, DType::UInt8) = t.at(Copy, DType::UInt8);
  constexpr auto kReluGrad = [](auto dy, auto y) { return y <= 0 ? decltype(y)(0) : dy; };
  binary_floats<kReluGrad>(t, ReluGrad);
  t.at(ReluGrad, DType::BFloat16) = &loop2<half_relu_grad<0xff80>, uint16_t, true>;
  t.at(ReluGrad, DType::Float16) = &loop2<half_relu_grad<0xfc00>, uint16_t, true>;

  unary_floats<[](auto x, const auto& p) { return x < 0 ? x * p.d0 : x; }>(t, LeakyRelu);
  binary_floats<[](auto dy, auto x, const auto& p) { return (x > 0) ? dy : dy * p.d0; }>(t, LeakyReluGrad);

  binary_floats<[](auto x, auto derivative) {
    const auto below = x * derivative;
    return (x > 0) ? x : below;
  }>(t, Prelu);

  constexpr auto kHardtanh = [](auto x, const auto& p) {
    using T = decltype(x);
    return clamp(x, static_cast<T>(p.d0), static_cast<T>(p.d1));
  };
  unary_floats<kHardtanh>(t, Hardtanh);
  unary<kHardtanh, uint8_t, int8_t, int16_t, int32_t, int64_t>(t, Hardtanh);
  binary_floats<[](auto dy, auto x, const auto& p) { return (x <= p.d0) | (x >= p.d1) ? decltype(x)(0) : dy; }>(
      t, HardtanhGrad);

  // The bounds 0 and 6 come from p.d0 = 0: the compiler makes one instruction of a bound that it does not know, and
  // many of one that it does.
  unary_floats<[](auto x, const auto& p) {
    using T = decltype(x);
    return clamp(x + 3, T(p.d0), T(p.d0 + 6)) * T(1.0 / 6);
  }>(t, Hardsigmoid);
  binary_floats<[](auto dy, auto x) { return (x > -3) & (x < 3) ? dy * decltype(x)(1.0 / 6) : decltype(x)(0); }>(
      t, HardsigmoidGrad);
  unary_floats<[](auto x, const auto& p) {
    using T = decltype(x);
    return x * clamp(x + 3, T(p.d0), T(p.d0 + 6)) * T(1.0 / 6);
  }>(t, Hardswish);
  binary_floats<[](auto dy, auto x) {
    using T = decltype(x);
    const T derivative = x * T(1.0 / 3) + T(0.5), inside = x < 3 ? dy * derivative : dy;
    return x <= -3 ? T(0) : inside;
  }>(t, HardswishGrad);

  unary_floats<[](auto x, const auto& p) { return abs_(x) <= p.d0 ? decltype(x)(0) : x; }>(t, Hardshrink);
  binary_floats<[](auto dy, auto x, const auto& p) { return abs_(x) <= p.d0 ? decltype(x)(0) : dy; }>(t,
                                                                                                      HardshrinkGrad);
  unary_floats<[](auto x, const auto& p) {
    using T = decltype(x);
    return abs_(x) <= p.d0 ? T(0) : x - with_sign(T(p.d0), x);
  }>(t, Softshrink);

  constexpr auto kThreshold = [](auto x, const auto& p) {
    using T = decltype(x);
    return x <= static_cast<T>(p.d0) ? static_cast<T>(p.d1) : x;
  };
  constexpr auto kThresholdGrad = [](auto dy, auto x, const auto& p) {
    using T = decltype(x);
    return x <= static_cast<T>(p.d0) ? T(0) : dy;
  };
  unary_floats<kThreshold>(t, Threshold);
  unary<kThreshold, uint8_t, int8_t, int16_t, int32_t, int64_t>(t, Threshold);
  binary_floats<kThresholdGrad>(t, ThresholdGrad);
}

void put_result_grads(LoopTable& t) {
  using enum Pointwise;
  binary_floats<[](auto dy, auto y, const auto& p) { return y <= 0 ? dy * p.d2 * (y + p.d0 * p.d1) : dy * p.d1; }>(
      t, EluResultGrad);
  binary_floats<[](auto dy, auto y) { return dy * (1 - y) * y; }>(t, SigmoidGrad);
  binary_floats<[](auto dy, auto y) { return dy * fma(-y, y, decltype(y)(1)); }>(t, TanhGrad);
}

void put_losses(LoopTable& t) {
  using enum Pointwise;
  binary_floats<[](auto x, auto y, const auto& p) {
    const auto d = x - y, near = clamp(d, -p.d0, p.d0);
    return near * (d - near * decltype(x)(0.5)) * p.d1;
  }>(t, Huber);
  ternary_floats<[](auto dy, auto x, auto y, const auto& p) { return dy * (clamp(x - y, -p.d0, p.d0) * p.d1); }>(
      t, HuberGrad);
  ternary_floats<[](auto x, auto y, auto w) { return (1 - y) * x - (1 + (w - 1) * y) * log_sigmoid(x); }>(
      t, BCEWithLogits);
  ternary_floats<[](auto dy, auto x, auto y) { return dy * (sigmoid(x) - y); }>(t, LogitsLossGrad);
  binary_floats<[](auto x, auto y) { return (x - y) * (x - y); }>(t, SquaredDifference);
}
#endif

}  // namespace

void put_activation(LoopTable& t) {
  put_smooth(t);
#ifndef RL_OVERLAY
  put_piecewise(t);
  put_result_grads(t);
  put_losses(t);
#endif
}

}  // namespace rl::RL_ISA
