// The products of one dtype, each compiled in its own file.
#pragma once
#include "backend/matmul.h"
#include "cpu/isa.h"

namespace rl::RL_ISA {

// params is null for a plain product
using ProductFn = void (*)(const View& out, const View& a, const View& b, const MatmulParams* params);
using DotFn = void (*)(const View& out, const View& a, const View& b, bool conjugate);

struct DTypeProducts {
  ProductFn product;
  DotFn dot;
};

DTypeProducts blas_products(DType dtype);
DTypeProducts half_products(DType dtype);
DTypeProducts int_products(DType dtype);

}  // namespace rl::RL_ISA
