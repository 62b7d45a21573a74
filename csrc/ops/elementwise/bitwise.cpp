#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"

namespace rl::ops {

static constexpr Kernel kBitwiseAnd{.op = Pointwise::BitwiseAnd, .operands = 2};
static Tensor bitwise_and(const Value& a, const Value& b) { return binary("bitwise_and", kBitwiseAnd, a, b); }
static constexpr Kernel kBitwiseOr{.op = Pointwise::BitwiseOr, .operands = 2};
static Tensor bitwise_or(const Value& a, const Value& b) { return binary("bitwise_or", kBitwiseOr, a, b); }
static constexpr Kernel kBitwiseXor{.op = Pointwise::BitwiseXor, .operands = 2};
static Tensor bitwise_xor(const Value& a, const Value& b) { return binary("bitwise_xor", kBitwiseXor, a, b); }
static constexpr Kernel kBitwiseNot{.op = Pointwise::BitwiseNot};
static Tensor bitwise_not(const Tensor& x) { return unary("bitwise_not", kBitwiseNot, x); }
static constexpr Kernel kShiftLeft{.op = Pointwise::ShiftLeft, .operands = 2};
static Tensor left_shift(const Value& a, const Value& b) { return binary("bitwise_left_shift", kShiftLeft, a, b); }
static constexpr Kernel kShiftRight{.op = Pointwise::ShiftRight, .operands = 2};
static Tensor right_shift(const Value& a, const Value& b) { return binary("bitwise_right_shift", kShiftRight, a, b); }
static constexpr Kernel kGcd{.op = Pointwise::Gcd, .operands = 2, .cost = 32};
static Tensor gcd(const Tensor& a, const Tensor& b) { return binary("gcd", kGcd, a, b); }
static constexpr Kernel kLcm{.op = Pointwise::Lcm, .operands = 2, .cost = 32};
static Tensor lcm(const Tensor& a, const Tensor& b) { return binary("lcm", kLcm, a, b); }
static Tensor rlshift(const Tensor& b, const Value& a) { return left_shift(a, b); }
static Tensor rrshift(const Tensor& b, const Value& a) { return right_shift(a, b); }

static const Register registered([](Ops& ops) {
  const uint32_t flags = kUnary | kNotDifferentiable;
  ops.def("bitwise_and", tensor_first<bitwise_and>, "input, other", flags, "input & other, bit by bit.", kBitwiseAnd);
  ops.def("bitwise_and", number_first<bitwise_and>, "input, other");
  ops.def("bitwise_or", tensor_first<bitwise_or>, "input, other", flags, "input | other, bit by bit.", kBitwiseOr);
  ops.def("bitwise_or", number_first<bitwise_or>, "input, other");
  ops.def("bitwise_xor", tensor_first<bitwise_xor>, "input, other", flags, "input ^ other, bit by bit.", kBitwiseXor);
  ops.def("bitwise_xor", number_first<bitwise_xor>, "input, other");
  ops.def("bitwise_not", bitwise_not, "input", flags | kExactOut, "~input, bit by bit.", kBitwiseNot);
  ops.def("bitwise_left_shift", tensor_first<left_shift>, "input, other", flags,
          "input << other; what is shifted out is gone.", kShiftLeft);
  ops.def("bitwise_left_shift", number_first<left_shift>, "input, other");
  ops.def("bitwise_right_shift", tensor_first<right_shift>, "input, other", flags, "input >> other, keeping the sign.",
          kShiftRight);
  ops.def("bitwise_right_shift", number_first<right_shift>, "input, other");
  ops.def("__rlshift_op__", rlshift, "input, other", kMethod | kNoFunction);
  ops.def("__rrshift_op__", rrshift, "input, other", kMethod | kNoFunction);
  ops.def("gcd", gcd, "input, other", flags, "The greatest common divisor.", kGcd);
  ops.def("lcm", lcm, "input, other", flags, "The least common multiple.", kLcm);
});

}  // namespace rl::ops
