// Reductions of float32 and float64.
#include "cpu/isa.h"

#include "cpu/reduce_real.h"

namespace rl::RL_ISA {

bool reduce_float(Reduce op, const View& out, const View& in, double p) {
  return in.dtype == DType::Float32 ? reduce_real<float>(op, out, in, p) : reduce_real<double>(op, out, in, p);
}

}  // namespace rl::RL_ISA
