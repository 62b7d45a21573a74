// Which instructions a GEMM of our own runs on.
#include "backend/matmul.h"
#include "cpu/gemm/amx.h"
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/half_avx512.h"

namespace rl::cpu {

void gemm(const Gemm<float>& g) {
  if (g_float_precision == FloatPrecision::Highest) return avx512::vector_gemm(g);
  if (amx_profitable(g.m, g.n, g.k)) return amx::tile_gemm(g, g_float_precision == FloatPrecision::High ? 2 : 1);
  // Three GEMMs of pairs for the sixteen bits of "high" would take longer than one of floats.
  if (g_float_precision == FloatPrecision::High || !pairs_profitable(g.m, g.n, g.k)) return avx512::vector_gemm(g);
  bf16::vector_gemm(HalfGemm<float>{.m = g.m,
                                    .n = g.n,
                                    .k = g.k,
                                    .a = g.a,
                                    .ars = g.ars,
                                    .acs = g.acs,
                                    .b = g.b,
                                    .brs = g.brs,
                                    .bcs = g.bcs,
                                    .c = g.c,
                                    .crs = g.crs,
                                    .ccs = g.ccs,
                                    .alpha = g.alpha,
                                    .beta = g.beta,
                                    .d = g.d,
                                    .drs = g.drs,
                                    .dcs = g.dcs});
}
void gemm(const Gemm<double>& g) { avx512::vector_gemm(g); }
void half_gemm(const HalfGemm<bfloat16>& g) { has_bf16() ? bf16::vector_gemm(g) : avx512::vector_gemm(g); }
void half_gemm(const HalfGemm<float16>& g) { avx512::vector_gemm(g); }

}  // namespace rl::cpu
