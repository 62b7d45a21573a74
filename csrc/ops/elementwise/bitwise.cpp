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
  ops.def("bitwise_and", tensor_first<bitwise_and>, "input, other", flags, R"(
    Combines integers or bools bit by bit: input & other.

    Example:
        >>> torch.bitwise_and(torch.tensor([12, 10]), 6)
        tensor([4, 2])
        >>> torch.tensor([True, True]) & torch.tensor([True, False])
        tensor([ True, False]))",
          kBitwiseAnd);
  ops.def("bitwise_and", number_first<bitwise_and>, "input, other");
  ops.def("bitwise_or", tensor_first<bitwise_or>, "input, other", flags, R"(
    Combines integers or bools bit by bit: input | other.

    Example:
        >>> torch.bitwise_or(torch.tensor([12, 10]), 1)
        tensor([13, 11]))",
          kBitwiseOr);
  ops.def("bitwise_or", number_first<bitwise_or>, "input, other");
  ops.def("bitwise_xor", tensor_first<bitwise_xor>, "input, other", flags, R"(
    Combines integers or bools bit by bit: input ^ other.

    Example:
        >>> torch.bitwise_xor(torch.tensor([12, 10]), 6)
        tensor([10, 12]))",
          kBitwiseXor);
  ops.def("bitwise_xor", number_first<bitwise_xor>, "input, other");
  ops.def("bitwise_not", bitwise_not, "input", flags | kExactOut, R"(
    Inverts every bit of integers, ~x = -x - 1; of bools it is the logical not.

    Example:
        >>> torch.bitwise_not(torch.tensor([0, 5]))
        tensor([-1, -6])
        >>> ~torch.tensor([True, False])
        tensor([False,  True]))",
          kBitwiseNot);
  ops.def("bitwise_left_shift", tensor_first<left_shift>, "input, other", flags, R"(
    Shifts the bits of integers to the left: input << other. What leaves the type is lost.

    Args:
        other: by how many bits.

    Example:
        >>> torch.bitwise_left_shift(torch.tensor([1, 3]), torch.tensor([4, 1]))
        tensor([16,  6]))",
          kShiftLeft);
  ops.def("bitwise_left_shift", number_first<left_shift>, "input, other");
  ops.def("bitwise_right_shift", tensor_first<right_shift>, "input, other", flags, R"(
    Shifts the bits of integers to the right: input >> other. The sign is kept.

    Args:
        other: by how many bits.

    Example:
        >>> torch.bitwise_right_shift(torch.tensor([16, -16]), 2)
        tensor([ 4, -4]))",
          kShiftRight);
  ops.def("bitwise_right_shift", number_first<right_shift>, "input, other");
  ops.def("__rlshift_op__", rlshift, "input, other", kMethod | kNoFunction);
  ops.def("__rrshift_op__", rrshift, "input, other", kMethod | kNoFunction);
  ops.def("gcd", gcd, "input, other", flags, R"(
    Computes the greatest common divisor of integers, which is not negative; gcd(0, 0) is 0.

    Example:
        >>> torch.gcd(torch.tensor([12, -9, 0]), torch.tensor([18, 6, 5]))
        tensor([6, 3, 5]))",
          kGcd);
  ops.def("lcm", lcm, "input, other", flags, R"(
    Computes the least common multiple of integers, which is not negative.

    Example:
        >>> torch.lcm(torch.tensor([4, 6]), torch.tensor([10]))
        tensor([20, 30]))",
          kLcm);
});

}  // namespace rl::ops
