#include "cpu/gemm/half_blocked.h"
#include "cpu/gemm/pairs.h"

namespace rl::RL_ISA {

void vector_gemm(const HalfGemm<bfloat16>& g) { run<Pairs<bfloat16>>(g); }
void vector_gemm(const HalfGemm<float>& g) { blocked<Pairs<float>>(g); }

int64_t half_panels(int64_t n, int64_t k) { return (n + kPanel - 1) / kPanel * kPanel * ((k + 1) / 2); }
void pack_half_panels(int64_t n, int64_t k, const bfloat16* b, int64_t brs, int64_t bcs, float* to) {
  for (int64_t j = 0; j < n; j += kPanel)
    pack_panels<Pairs<bfloat16>, true>(b + j * bcs, bcs, brs, k, std::min(kPanel, n - j), kPanel,
                                       to + j * ((k + 1) / 2));
}

}  // namespace rl::RL_ISA
