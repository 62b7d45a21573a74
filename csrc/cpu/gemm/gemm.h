// Our own GEMM of float and double matrices, for processors with AVX-512.
#pragma once
#include <cstdint>

namespace rl::cpu {

// c (m, n) = alpha * a (m, k) @ b (k, n) + beta * d. Strides are in elements; c's rows have unit stride (ccs = 1).
template <class T, class S = T> struct Gemm {
  int64_t m, n, k;
  const S* a;
  int64_t ars, acs;
  const S* b;
  int64_t brs, bcs;
  T* c;
  int64_t crs, ccs;
  T alpha, beta;
  const T* d;  // null for none; may be c itself with c's strides
  int64_t drs, dcs;
};

bool gemm_available();  // whether this processor has what the two below need
void gemm(const Gemm<float>& g);
void gemm(const Gemm<double>& g);

}  // namespace rl::cpu
