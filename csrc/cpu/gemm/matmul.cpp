#include "cpu/gemm/matmul.h"

#include "base/check.h"

namespace rl::RL_ISA {
namespace {

DTypeProducts products(DType dtype) {
  if (DTypeProducts p = blas_products(dtype); p.product) return p;
  if (DTypeProducts p = half_products(dtype); p.product) return p;
  DTypeProducts p = int_products(dtype);
  CHECK(p.product, NotImplemented, "matmul: there is no product for '", info(dtype).legacy, "'");
  return p;
}

void matmul(const View& out, const View& a, const View& b) { products(out.dtype).product(out, a, b, nullptr); }
void addmm(const View& out, const View& a, const View& b, const MatmulParams& params) {
  products(out.dtype).product(out, a, b, &params);
}
void dot(const View& out, const View& a, const View& b, bool conjugate) { products(a.dtype).dot(out, a, b, conjugate); }

}  // namespace

extern const MatmulKernels matmul_kernels;
const MatmulKernels matmul_kernels = {matmul, addmm, dot};

}  // namespace rl::RL_ISA
