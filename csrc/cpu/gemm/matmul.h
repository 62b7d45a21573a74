// The matmuls of one dtype, each compiled in its own file.
#pragma once
#include "backend/matmul.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

// params is null for a plain GEMM
using MatmulFn = void (*)(const View& out, const View& a, const View& b, const MatmulParams* params);
using DotFn = void (*)(const View& out, const View& a, const View& b, bool conjugate);

struct DTypeMatmul {
  MatmulFn matmul;
  DotFn dot;
};

DTypeMatmul blas_matmul(DType dtype);
DTypeMatmul half_matmul(DType dtype);
DTypeMatmul int_matmul(DType dtype);

}  // namespace rl::RL_ISA
