// Our own GEMM of float and double matrices, for processors with AVX-512.
#pragma once
#include <cstdint>

#include "cpu/features.h"

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

inline bool gemm_available() { return has_avx512(); }  // whether this processor has what the two below need
// On AMX tiles or bf16 pairs, where set_float32_matmul_precision allows it; else as below.
void gemm(const Gemm<float>& g);
void gemm(const Gemm<double>& g);

}  // namespace rl::cpu

namespace rl::avx512 {
void vector_gemm(const cpu::Gemm<float>& g);
void vector_gemm(const cpu::Gemm<double>& g);
}  // namespace rl::avx512
