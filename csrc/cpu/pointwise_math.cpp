// Powers, exponentials and logarithms of real numbers.
#include "cpu/isa.h"

#include "cpu/pointwise.h"

namespace rl::RL_ISA {

void put_math(LoopTable& t) {
  using enum Pointwise;
  unary_floats<[](auto x) { return sqrt_(x); }>(t, Sqrt);
  unary_floats<[](auto x) { return 1 / sqrt_(x); }>(t, Rsqrt);
  unary_floats<[](auto x) { return exp(x); }>(t, Exp);
  unary_floats<[](auto x) { return exp2(x); }>(t, Exp2);
  unary_floats<[](auto x) { return expm1(x); }>(t, Expm1);
  unary_floats<[](auto x) { return log(x); }>(t, Log);
  unary_floats<[](auto x) { return log2(x); }>(t, Log2);
  unary_floats<[](auto x) { return log10(x); }>(t, Log10);
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
