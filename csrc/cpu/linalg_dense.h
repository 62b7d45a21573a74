// Triangular systems and decompositions of float and double matrices on our own products, for processors with AVX-512.
// Matrices are row by row; `ld` is the distance of their rows.
#pragma once
#include <cstdint>

#include "cpu/gemm.h"

namespace rl::cpu {

// A X = B for a triangle A (n, n) of any strides; B (n, k) becomes X. A unit triangle's diagonal is not read.
void solve_rows(bool upper, bool unit, int64_t n, int64_t k, const float* a, int64_t ars, int64_t acs, float* b,
                int64_t ld);
void solve_rows(bool upper, bool unit, int64_t n, int64_t k, const double* a, int64_t ars, int64_t acs, double* b,
                int64_t ld);
// A (m, n) = P L U, packed in place; pivots are LAPACK's, from 1. Returns the number of the first zero pivot, or 0.
int lu_rows(int64_t m, int64_t n, float* a, int64_t ld, int* pivots);
int lu_rows(int64_t m, int64_t n, double* a, int64_t ld, int* pivots);
// The lower half of A (n, n) = L L^T becomes L. Returns the number of the first leading minor that is not positive.
int cholesky_rows(int64_t n, float* a, int64_t ld);
int cholesky_rows(int64_t n, double* a, int64_t ld);

// Reflections, as LAPACK keeps them: v below the diagonal and tau. Matrices are column by column here, `ld` is the
// distance of columns. A (m, n) = Q R; the first n columns of a product of k <= n reflections; Q C or Q^T C.
void qr_columns(int64_t m, int64_t n, float* a, int64_t ld, float* tau);
void qr_columns(int64_t m, int64_t n, double* a, int64_t ld, double* tau);
void expand_columns(int64_t m, int64_t n, int64_t k, float* a, int64_t ld, const float* tau);
void expand_columns(int64_t m, int64_t n, int64_t k, double* a, int64_t ld, const double* tau);
void reflect_columns(bool adjoint, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* tau,
                     float* c, int64_t ldc);
void reflect_columns(bool adjoint, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* tau,
                     double* c, int64_t ldc);

// The exchanges of rows that pivots from 1 stand for, of k columns; `back`: the last one first.
template <class T> void exchange_rows(const int* pivots, int64_t count, T* b, int64_t ld, int64_t k, bool back) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t r = back ? count - 1 - i : i, with = pivots[r] - 1;
    if (with == r) continue;
    T *x = b + r * ld, *y = b + with * ld;
    for (int64_t j = 0; j < k; ++j) {
      const T t = x[j];
      x[j] = y[j], y[j] = t;
    }
  }
}
// to (rows, cols) = from, both of any strides, in squares that stay in the cache; turned by registers where one of them
// runs along rows and the other along columns.
void move_matrix(int64_t rows, int64_t cols, const float* from, int64_t frs, int64_t fcs, float* to, int64_t trs,
                 int64_t tcs);
void move_matrix(int64_t rows, int64_t cols, const double* from, int64_t frs, int64_t fcs, double* to, int64_t trs,
                 int64_t tcs);

}  // namespace rl::cpu
