// c^T = b^T @ a^T: the same GEMM with its operands exchanged.
#pragma once
#include <utility>

namespace rl::cpu {

// G is Gemm or HalfGemm, without packed operands or accumulators of its own. Always inlined: files for AVX-512 must not
// leave a copy behind that others are linked to.
template <class G> [[gnu::always_inline]] inline G transposed(G g) {
  std::swap(g.m, g.n);
  std::swap(g.a, g.b);
  std::swap(g.ars, g.bcs);
  std::swap(g.acs, g.brs);
  std::swap(g.crs, g.ccs);
  std::swap(g.drs, g.dcs);
  return g;
}

}  // namespace rl::cpu
