// Elementwise kernels: one inner loop per operation and type, run over any strides by one driver.
#pragma once
#include <cstdint>

#include "backend/view.h"
#include "base/small_vector.h"

namespace rl {

// The vocabulary of elementwise work. Operands are (out, in...), all of the loop's type unless noted.
enum class Pointwise : uint16_t {
  // out = f(x)
  Copy,
  Neg,
  Abs /* complex -> real */,
  Sign,
  Sgn,
  Reciprocal,
  Square,
  Sqrt,
  Rsqrt,
  Exp,
  Exp2,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Asinh,
  Acosh,
  Atanh,
  Sigmoid,
  Logit /* d0 = eps, < 0 for none */,
  Erf,
  Erfc,
  Erfinv,
  Lgamma,
  Digamma,
  Trigamma,
  Polygamma /* i0 = n >= 2 */,
  I0,
  I0e,
  I1,
  I1e,
  Sinc,
  Ndtri,
  LogNdtr,
  Erfcx,
  Entr,
  BesselJ0,
  BesselJ1,
  BesselY0,
  BesselY1,
  ModifiedBesselI0,
  ModifiedBesselI1,
  ModifiedBesselK0,
  ModifiedBesselK1,
  ScaledModifiedBesselK0,
  ScaledModifiedBesselK1,
  SphericalBesselJ0,
  AiryAi,
  Ceil,
  Floor,
  Round /* half to even; i0 = decimals */,
  Trunc,
  Frac,
  Conj,
  Angle /* complex -> real */,
  BitwiseNot,
  FrexpMantissa,
  FrexpExponent /* as a number of the same type */,
  NanToNum /* d0 nan, d1 +inf, d2 -inf */,
  Clamp /* s0 = min, s1 = max, both always given */,
  // out(bool) = f(x)
  LogicalNot,
  IsNan,
  IsInf,
  IsFinite,
  IsPosInf,
  IsNegInf,
  Signbit,
  // activations; the *Grad rows are out = f(dy, saved)
  Relu,
  LeakyRelu /* d0 negative_slope */,
  Elu /* d0 alpha, d1 scale, d2 input scale */,
  Gelu,
  GeluTanh,
  Silu,
  Mish,
  Softplus /* d0 beta, d1 threshold */,
  LogSigmoid,
  Hardtanh /* d0 min, d1 max */,
  Hardsigmoid,
  Hardswish,
  Hardshrink /* d0 lambda */,
  Softshrink /* d0 lambda */,
  Threshold /* d0 threshold, d1 value */,
  ReluGrad /* dy, y */,
  LeakyReluGrad /* dy, x; d0 */,
  EluGrad /* dy, x; d0..d2 */,
  EluResultGrad /* dy, y; d0..d2 */,
  GeluGrad /* dy, x */,
  GeluTanhGrad /* dy, x */,
  SiluGrad /* dy, x */,
  MishGrad /* dy, x */,
  SoftplusGrad /* dy, x; d0 d1 */,
  LogSigmoidGrad /* dy, x */,
  SigmoidGrad /* dy, y */,
  TanhGrad /* dy, y */,
  HardtanhGrad /* dy, x; d0 d1 */,
  HardsigmoidGrad /* dy, x */,
  HardswishGrad /* dy, x */,
  HardshrinkGrad /* dy, x; d0: zero where |x| <= d0 */,
  ThresholdGrad /* dy, x; d0 */,
  // out = f(x, y)
  Add /* x + s0 * y */,
  Sub /* x - s0 * y */,
  LerpBy /* x + s0 * (y - x), of fp16 or bf16: s0 is not rounded to them */,
  Mul,
  Div,
  FloorDiv,
  TruncDiv,
  Remainder,
  Fmod,
  Pow,
  Maximum,
  Minimum,
  Fmax,
  Fmin,
  Atan2,
  Hypot,
  Copysign,
  Nextafter,
  Logaddexp,
  Logaddexp2,
  Heaviside,
  Prelu /* x, weight below 0 */,
  SquaredDifference,
  LogitsLoss /* x, t -> (1 - t) x - log sigmoid(x) */,
  Huber /* x, y -> d1 * d^2 / 2 of d = x - y, linear with derivative d0 d1 from |d| = d0 on */,
  Xlogy,
  Xlog1py,
  Zeta,
  Igamma,
  Igammac,
  Gcd,
  Lcm,
  BitwiseAnd,
  BitwiseOr,
  BitwiseXor,
  ShiftLeft,
  ShiftRight,
  ChebyshevT,
  ChebyshevU,
  ChebyshevV,
  ChebyshevW,
  HermiteH,
  HermiteHe,
  LaguerreL,
  LegendreP,
  ShiftedChebyshevT,
  ShiftedChebyshevU,
  ShiftedChebyshevV,
  ShiftedChebyshevW /* y = degree */,
  MakeComplex,
  MakePolar /* real, real -> complex; the loop's type is the real one */,
  // out(bool) = f(x, y)
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  LogicalAnd,
  LogicalOr,
  LogicalXor,
  // out = f(x, y, z)
  Where /* cond(bool), x, y */,
  Addcmul /* x + s0 * y * z */,
  Addcdiv /* x + s0 * y / z */,
  Lerp /* x + z * (y - x) */,
  ClampTensors /* x, min, max */,
  BCEWithLogits /* x, t, w -> (1 - t) x - (1 + (w - 1) t) log sigmoid(x) */,
  LogitsLossGrad /* dy, x, t */,
  HuberGrad /* dy, x, y; d0, d1 */,
  Count,
};

// A number in the loop's own type: read it with get<T>().
struct LoopScalar {
  alignas(16) char bytes[16] = {};
  template <class T> T get() const {
    T v;
    __builtin_memcpy(&v, bytes, sizeof v);
    return v;
  }
  template <class T> void set(T v) { __builtin_memcpy(bytes, &v, sizeof v); }
};

struct LoopParams {
  double d0 = 0, d1 = 0, d2 = 0;
  int64_t i0 = 0;
  LoopScalar s0, s1;  // in compute_t<T> of the loop's type T
};

// One run of n elements. data[0] is the result, data[1..] the inputs; strides are in bytes.
using Loop = void (*)(char* const* data, const int64_t* strides, int64_t n, const LoopParams& params);

inline constexpr int kMaxOperands = 6;

// A step of a program: a loop over values, indexed: the operands (results first), then the registers.
struct ProgramStep {
  Loop loop;
  LoopParams params;
  int count;      // of values
  int values[4];  // the first is what the loop writes
};

struct PointwiseKernels {
  // The loop of `op` for inputs of `dtype`; null when the type has none.
  Loop (*loop)(Pointwise op, DType dtype);
  // Runs a loop over all elements. operands[0] is the result; all have the same sizes (broadcast dimensions
  // have stride 0). `cost` is the work of one element in units of an addition, and sets the grain.
  void (*run)(Loop loop, const View* operands, int count, const LoopParams& params, int cost);
  // Runs steps over all elements, some of them at a time: what goes from step to step in registers stays in cache.
  // All operands have the same sizes, and the results are row-major. register_bytes: of one element of each register.
  void (*run_program)(Span<ProgramStep> steps, Span<View> operands, Span<int> register_bytes, int cost);
};

}  // namespace rl
