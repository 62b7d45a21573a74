// GEMMs of float, double and complex.
#include "cpu/isa.h"
//
#include "cpu/gemm/dot.h"
#include "cpu/gemm/matmul.h"

namespace rl::RL_ISA {
namespace {

template <class T> void run(const View& out, const View& a, const View& b, const MatmulParams* params) {
  blas::single_threaded();
  if (params) matmul_as<T>(out, a, b, params->alpha.get<T>(), params->beta.get<T>(), params->addend);
  else matmul_as<T>(out, a, b, T(1), T(0), nullptr);
}

template <class T> void run_dot(const View& out, const View& a, const View& b, bool conjugate) {
  blas::single_threaded();
  dot<T>(out, a, b, conjugate && is_complex_v<T>);
}

}  // namespace

DTypeMatmul blas_matmul(DType dtype) {
  switch (dtype) {
    case DType::Float32: return {run<float>, run_dot<float>};
    case DType::Float64: return {run<double>, run_dot<double>};
    case DType::Complex64: return {run<blas::cfloat>, run_dot<blas::cfloat>};
    case DType::Complex128: return {run<blas::cdouble>, run_dot<blas::cdouble>};
    default: return {nullptr, nullptr};
  }
}

}  // namespace rl::RL_ISA
