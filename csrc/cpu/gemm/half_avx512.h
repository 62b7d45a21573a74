// GEMMs of float16 and bfloat16 matrices with AVX-512: sums are floats, each rounded once to the result.
#pragma once
#include <cstdint>

#include "base/half.h"
#include "cpu/features.h"

namespace rl::cpu {

// c (m, n) = alpha * a (m, k) @ b (k, n) + beta * d. Strides are in elements, and free.
template <class S> struct HalfGemm {
  int64_t m, n, k;
  const S* a;
  int64_t ars, acs;
  const S* b;
  int64_t brs, bcs;
  S* c;
  int64_t crs, ccs;
  float alpha, beta;
  const S* d;  // null for none; may be c itself with c's strides
  int64_t drs, dcs;
  const float* packed = nullptr;  // what pack_half_panels made of b, which is then not read
  float* sums = nullptr;          // accumulators to add to, instead of c: rows with stride `srs`, up(n, 32) or more
  int64_t srs = 0;
};

inline bool half_gemm_available() { return has_avx512(); }  // whether this processor has what those below need
void half_gemm(const HalfGemm<bfloat16>& g);
void half_gemm(const HalfGemm<float16>& g);
inline bool pairs_profitable(int64_t m, int64_t n, int64_t k) {  // floats cut to bfloat16 are multiplied faster
  return m >= 32 && n >= 32 && k >= 32 && has_bf16();
}

}  // namespace rl::cpu

namespace rl::avx512 {
void vector_gemm(const cpu::HalfGemm<bfloat16>& g);
void vector_gemm(const cpu::HalfGemm<float16>& g);
}  // namespace rl::avx512

// On bf16 pairs (vdpbf16ps).
namespace rl::bf16 {
void vector_gemm(const cpu::HalfGemm<bfloat16>& g);
void vector_gemm(const cpu::HalfGemm<float>& g);  // of floats cut to bfloat16
// b (k, n) packed once for many GEMMs, and the floats that it takes.
int64_t half_panels(int64_t n, int64_t k);
void pack_half_panels(int64_t n, int64_t k, const bfloat16* b, int64_t brs, int64_t bcs, float* to);
}  // namespace rl::bf16
