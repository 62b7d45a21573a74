// Activations of neural networks and their gradients.
#include "cpu/pointwise.h"

namespace rl::RL_ISA {

void put_activation(LoopTable& t) {
  using enum Pointwise;
  constexpr auto kRelu = [](auto x) { return x < 0 ? decltype(x)(0) : x; };  // a NaN stays
  unary_floats<kRelu>(t, Relu);
  unary<kRelu, int8_t, int16_t, int32_t, int64_t>(t, Relu);
  t.at(Relu, DType::UInt8) = t.at(Copy, DType::UInt8);
}

}  // namespace rl::RL_ISA
