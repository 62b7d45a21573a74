#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"

namespace rl::ops {

static Tensor bitwise_and(const Value& a, const Value& b) { return binary("bitwise_and", Pointwise::BitwiseAnd, a, b); }
static Tensor bitwise_or(const Value& a, const Value& b) { return binary("bitwise_or", Pointwise::BitwiseOr, a, b); }
static Tensor bitwise_xor(const Value& a, const Value& b) { return binary("bitwise_xor", Pointwise::BitwiseXor, a, b); }
static Tensor bitwise_not(const Tensor& x) { return unary("bitwise_not", Pointwise::BitwiseNot, x); }
static Tensor left_shift(const Value& a, const Value& b) {
  return binary("bitwise_left_shift", Pointwise::ShiftLeft, a, b);
}
static Tensor right_shift(const Value& a, const Value& b) {
  return binary("bitwise_right_shift", Pointwise::ShiftRight, a, b);
}
static Tensor gcd(const Tensor& a, const Tensor& b) { return binary("gcd", Pointwise::Gcd, a, b, {.cost = 32}); }
static Tensor lcm(const Tensor& a, const Tensor& b) { return binary("lcm", Pointwise::Lcm, a, b, {.cost = 32}); }
static Tensor rlshift(const Tensor& b, const Value& a) { return left_shift(a, b); }
static Tensor rrshift(const Tensor& b, const Value& a) { return right_shift(a, b); }

static const Register registered([](Ops& ops) {
  const uint32_t flags = kUnary | kNotDifferentiable;
  ops.def("bitwise_and", tensor_first<bitwise_and>, "input, other", flags, "input & other, bit by bit.");
  ops.def("bitwise_and", number_first<bitwise_and>, "input, other");
  ops.def("bitwise_or", tensor_first<bitwise_or>, "input, other", flags, "input | other, bit by bit.");
  ops.def("bitwise_or", number_first<bitwise_or>, "input, other");
  ops.def("bitwise_xor", tensor_first<bitwise_xor>, "input, other", flags, "input ^ other, bit by bit.");
  ops.def("bitwise_xor", number_first<bitwise_xor>, "input, other");
  ops.def("bitwise_not", bitwise_not, "input", flags | kExactOut, "~input, bit by bit.");
  ops.def("bitwise_left_shift", tensor_first<left_shift>, "input, other", flags,
          "input << other; what is shifted out is gone.");
  ops.def("bitwise_left_shift", number_first<left_shift>, "input, other");
  ops.def("bitwise_right_shift", tensor_first<right_shift>, "input, other", flags, "input >> other, keeping the sign.");
  ops.def("bitwise_right_shift", number_first<right_shift>, "input, other");
  ops.def("__rlshift_op__", rlshift, "input, other", kMethod | kNoFunction);
  ops.def("__rrshift_op__", rrshift, "input, other", kMethod | kNoFunction);
  ops.def("gcd", gcd, "input, other", flags, "The greatest common divisor.");
  ops.def("lcm", lcm, "input, other", flags, "The least common multiple.");
});

}  // namespace rl::ops
