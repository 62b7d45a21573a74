// Powers, exponentials and logarithms of real numbers.
#include "cpu/isa.h"
#include "cpu/pointwise_guarded.h"

namespace rl::RL_ISA {

void put_math(LoopTable& t) {
  using enum Pointwise;
  unary_wide<[](auto x) { return sqrt_(x); }>(t, Sqrt);
  unary_wide<[](auto x) { return 1 / sqrt_(x); }>(t, Rsqrt);
  guarded_floats<[](auto x) { return exp_is_near(x); }, [](auto x) { return exp_near(x); },
                 [](auto x) { return exp(x); }>(t, Exp);
  unary_wide<[](auto x) { return exp2(x); }>(t, Exp2);
  unary_wide<[](auto x) { return expm1(x); }>(t, Expm1);
  guarded_floats<[](auto x) { return log_is_near(x); }, [](auto x) { return log_near(x); },
                 [](auto x) { return log(x); }>(t, Log);
  unary_wide<[](auto x) { return log2(x); }>(t, Log2);
  unary_wide<[](auto x) { return log10(x); }>(t, Log10);
  unary_wide<[](auto x) { return log1p(x); }>(t, Log1p);
  unary_wide<[](auto x) { return sigmoid(x); }>(t, Sigmoid);
  unary_wide<[](auto x) { return tanh(x); }>(t, Tanh);
  unary_wide<[](auto x) { return sinh(x); }>(t, Sinh);
  unary_wide<[](auto x) { return cosh(x); }>(t, Cosh);
  unary_wide<[](auto x) { return asinh(x); }>(t, Asinh);
  unary_wide<[](auto x) { return acosh(x); }>(t, Acosh);
  unary_wide<[](auto x) { return atanh(x); }>(t, Atanh);
}

}  // namespace rl::RL_ISA
