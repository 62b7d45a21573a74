// Products of float16 and bfloat16 matrices with AVX-512: sums are floats, each rounded once to the result.
#pragma once
#include <cstdint>

#include "base/half.h"

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
};

bool half_gemm_available();  // whether this processor has what those below need
void half_gemm(const HalfGemm<bfloat16>& g);
void half_gemm(const HalfGemm<float16>& g);

bool pairs_pay(int64_t m, int64_t n, int64_t k);  // whether floats cut to bfloat16 are multiplied faster
void pairs_gemm(const HalfGemm<float>& g);

}  // namespace rl::cpu
