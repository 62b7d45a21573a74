// OpenBLAS's GEMMs in row-major order, overloaded by type. Its own threads are off: the tiles of a large
// GEMM are handed to our pool, so that one pool serves everything and results do not depend on its size.
#pragma once
#include <cblas.h>

#include <complex>
#include <cstdint>

namespace rl::blas {

using cfloat = std::complex<float>;
using cdouble = std::complex<double>;

// Turns OpenBLAS's own threads off; costs one load after the first call.
void single_threaded();

inline CBLAS_TRANSPOSE flag(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

// c (m, n) = alpha * op(a) (m, k) @ op(b) (k, n) + beta * c
#define RL_GEMM(T, name, scalar)                                                                                     \
  inline void gemm(bool ta, bool tb, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, T beta, \
                   T* c, int ldc) {                                                                                  \
    name(CblasRowMajor, flag(ta), flag(tb), m, n, k, scalar alpha, a, lda, b, ldb, scalar beta, c, ldc);             \
  }
RL_GEMM(float, scipy_cblas_sgemm, )
RL_GEMM(double, scipy_cblas_dgemm, )
RL_GEMM(cfloat, scipy_cblas_cgemm, &)
RL_GEMM(cdouble, scipy_cblas_zgemm, &)
#undef RL_GEMM

// y (rows of op(a)) = alpha * op(a) @ x + beta * y, where a is stored as (rows, cols)
#define RL_GEMV(T, name, scalar)                                                                                  \
  inline void gemv(bool ta, int rows, int cols, T alpha, const T* a, int lda, const T* x, int incx, T beta, T* y, \
                   int incy) {                                                                                    \
    name(CblasRowMajor, flag(ta), rows, cols, scalar alpha, a, lda, x, incx, scalar beta, y, incy);               \
  }
RL_GEMV(float, scipy_cblas_sgemv, )
RL_GEMV(double, scipy_cblas_dgemv, )
RL_GEMV(cfloat, scipy_cblas_cgemv, &)
RL_GEMV(cdouble, scipy_cblas_zgemv, &)
#undef RL_GEMV

inline float dot(int n, const float* x, int incx, const float* y, int incy) {
  return scipy_cblas_sdot(n, x, incx, y, incy);
}
inline double dot(int n, const double* x, int incx, const double* y, int incy) {
  return scipy_cblas_ddot(n, x, incx, y, incy);
}
inline cfloat dot(int n, const cfloat* x, int incx, const cfloat* y, int incy) {
  cfloat r;
  scipy_cblas_cdotu_sub(n, x, incx, y, incy, &r);
  return r;
}
inline cdouble dot(int n, const cdouble* x, int incx, const cdouble* y, int incy) {
  cdouble r;
  scipy_cblas_zdotu_sub(n, x, incx, y, incy, &r);
  return r;
}

template <class T> inline constexpr bool has =
    __is_same(T, float) || __is_same(T, double) || __is_same(T, cfloat) || __is_same(T, cdouble);

}  // namespace rl::blas
