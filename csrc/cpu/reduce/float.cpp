// Reductions in float32: of float32, of float16 and bfloat16, and the norms of complex64.
#include "cpu/isa.h"
#include "cpu/reduce/real.h"

namespace rl::RL_ISA {

bool reduce_float(Reduce op, const View& out, const View& in, double p) {
  auto store = [&](const float* acc, int64_t n, char* to, int64_t stride) {
    switch (out.dtype) {
      case DType::Float16: return store_as<float, float16>(acc, n, to, stride);
      case DType::BFloat16: return store_as<float, bfloat16>(acc, n, to, stride);
      case DType::Float64: return store_as<float, double>(acc, n, to, stride);
      default: return store_as<float, float>(acc, n, to, stride);
    }
  };
  return reduce_real<float>(op, out, in, p, [&](Map map) { return float_source(in, map, p); }, store);
}

}  // namespace rl::RL_ISA
