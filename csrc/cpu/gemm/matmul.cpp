#include "cpu/gemm/matmul.h"

#include "base/check.h"

namespace rl::RL_ISA {
namespace {

DTypeMatmul matmul_for(DType dtype) {
  if (DTypeMatmul p = blas_matmul(dtype); p.matmul) return p;
  if (DTypeMatmul p = half_matmul(dtype); p.matmul) return p;
  DTypeMatmul p = int_matmul(dtype);
  CHECK(p.matmul, NotImplemented, "matmul: there is no product for '", info(dtype).legacy, "'");
  return p;
}

void matmul(const View& out, const View& a, const View& b) { matmul_for(out.dtype).matmul(out, a, b, nullptr); }
void addmm(const View& out, const View& a, const View& b, const MatmulParams& params) {
  matmul_for(out.dtype).matmul(out, a, b, &params);
}
void dot(const View& out, const View& a, const View& b, bool conjugate) {
  matmul_for(a.dtype).dot(out, a, b, conjugate);
}

}  // namespace

extern const MatmulKernels matmul_kernels;
const MatmulKernels matmul_kernels = {matmul, addmm, dot};

}  // namespace rl::RL_ISA
