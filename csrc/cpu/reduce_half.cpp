// Reductions of float16 and bfloat16, accumulated in float32.
#include "cpu/isa.h"

#include "cpu/reduce_real.h"

namespace rl::RL_ISA {

bool reduce_half(Reduce op, const View& out, const View& in, double p) {
  return in.dtype == DType::Float16 ? reduce_real<float16>(op, out, in, p) : reduce_real<bfloat16>(op, out, in, p);
}

}  // namespace rl::RL_ISA
