// Reductions in float64: of float64, and the norms of complex128.
#include "cpu/isa.h"
#include "cpu/reduce/real.h"

namespace rl::RL_ISA {

bool reduce_double(Reduce op, const View& out, const View& in, double p) {
  auto store = [&](const double* acc, int64_t n, char* to, int64_t stride) {
    if (out.dtype == DType::Float32) store_as<double, float>(acc, n, to, stride);
    else store_as<double, double>(acc, n, to, stride);
  };
  return reduce_real<double>(op, out, in, p, [&](Map map) { return double_source(in, map, p); }, store);
}

}  // namespace rl::RL_ISA
