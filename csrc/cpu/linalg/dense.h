// Triangular systems and decompositions of float and double matrices on our own GEMM, for processors with AVX-512.
// Matrices are row by row; `ld` is the distance of their rows.
#pragma once
#include <cstdint>
#include <cstring>

#include "cpu/gemm/gemm.h"

namespace rl::cpu {

// The distance of rows, or columns, of n elements that begin on cache lines, which two threads then never share, and
// not all in the same set of the first cache.
template <class T> int64_t padded_ld(int64_t n) {
  const int64_t cache_line = 64 / static_cast<int64_t>(sizeof(T)), ld = (n + cache_line - 1) / cache_line * cache_line;
  return ld * static_cast<int64_t>(sizeof(T)) % 1024 == 0 ? ld + cache_line : ld;
}

// The exchanges of rows that pivots from 1 stand for, of k columns; `back`: the last one first.
template <class T> void exchange_rows(const int* pivots, int64_t count, T* b, int64_t ld, int64_t k, bool back) {
  constexpr int64_t kPart = 64;
  T part[kPart];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t r = back ? count - 1 - i : i, with = pivots[r] - 1;
    if (with == r) continue;
    for (int64_t j = 0; j < k; j += kPart) {
      T *x = b + r * ld + j, *y = b + with * ld + j;
      const size_t bytes = static_cast<size_t>(k - j < kPart ? k - j : kPart) * sizeof(T);
      std::memcpy(part, x, bytes), std::memcpy(x, y, bytes), std::memcpy(y, part, bytes);
    }
  }
}

}  // namespace rl::cpu

namespace rl::avx512 {

// The largest size of n elements; NaN if one of them is.
template <class T> T largest_of(int64_t n, const T* x);
// A X = B for a triangular matrix A (n, n) of any strides; B (n, k) becomes X. A unit triangular matrix's diagonal is
// not read.
template <class T>
void solve_rows(bool upper, bool unit, int64_t n, int64_t k, const T* a, int64_t ars, int64_t acs, T* b, int64_t ld);
// A (m, n) = P L U, packed in place; pivots are LAPACK's, from 1. Returns the number of the first zero pivot, or 0.
template <class T> int lu_rows(int64_t m, int64_t n, T* a, int64_t ld, int* pivots);
// y (n, n) = A^-1 of such an LU without zero pivots.
template <class T> void inverse_rows(int64_t n, const T* lu, int64_t ld, const int* pivots, T* y, int64_t ldy);
// The upper half of A (n, n) = U^T U becomes U; the lower one is overwritten. Returns the number of the first leading
// minor that is not positive, or 0.
template <class T> int cholesky_rows(int64_t n, T* a, int64_t ld);

// Reflections, as LAPACK keeps them: v below the diagonal and tau. Matrices are column by column here, `ld` is the
// distance of columns. The first k columns of A (m, n), k <= m, become R, and the others Q^T A, of A's first k = Q R;
// the first n columns of a product of k <= n reflections; Q C or Q^T C.
template <class T> void qr_columns(int64_t m, int64_t n, int64_t k, T* a, int64_t ld, T* tau);
template <class T> void expand_columns(int64_t m, int64_t n, int64_t k, T* a, int64_t ld, const T* tau);
template <class T> void reflect_columns(bool adjoint, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
                                        const T* tau, T* c, int64_t ldc);

// c (k, k) becomes the first k rows of Q (c above zeros), for k reflections of m elements.
template <class T> void reflect_top(int64_t m, int64_t k, const T* a, int64_t lda, const T* tau, T* c, int64_t ldc);
// The signs that reflections of whole columns would give the rows of R, from the first n rows of another Q: elimination
// finds in them, and overwrites them with, what each reflection would have met on the diagonal.
template <class T> void reflection_signs(int64_t n, T* q, int64_t ld, T* signs);
// Whether the condition of an upper triangular matrix is certain to be less than 1 / rcond.
template <class T> bool well_conditioned(int64_t n, const T* r, int64_t ld, double rcond);
// A with its columns in `order`, counted from 1, = Q R: the diagonal of R descends.
template <class T> void pivoted_qr_columns(int64_t m, int64_t n, T* a, int64_t ld, T* tau, int* order);
// The lower half of a symmetric matrix becomes reflections Q, each from the row below the diagonal on, with
// Q^T A Q = the tridiagonal matrix (e, d, e). Here and below, ld is padded_ld's, and what is between n and it zero.
template <class T> void tridiagonal_columns(int64_t n, T* a, int64_t ld, T* d, T* e, T* tau);
// Eigenvalues, ascending, in place of d, and eigenvectors z (n, n), of the tridiagonal matrix (e, d, e). Returns
// LAPACK's code, 0 for success; e is overwritten.
template <class T> int divide_columns(int64_t n, T* d, T* e, T* z, int64_t ldz);
// A (m, n), m >= n, becomes reflections Q, and u (n, n) P, each from the row below the diagonal on, with Q^T A P = the
// diagonals d and, above it, e.
template <class T>
void bidiagonal_columns(int64_t m, int64_t n, T* a, int64_t ld, T* d, T* e, T* tauq, T* taup, T* u, int64_t ldu);
// to (rows, cols) = from, both of any strides, in squares that stay in the cache; transposed by registers where one of
// them runs along rows and the other along columns.
template <class T>
void move_matrix(int64_t rows, int64_t cols, const T* from, int64_t frs, int64_t fcs, T* to, int64_t trs, int64_t tcs);

}  // namespace rl::avx512

namespace rl::cpu {
using avx512::bidiagonal_columns;
using avx512::cholesky_rows;
using avx512::divide_columns;
using avx512::expand_columns;
using avx512::inverse_rows;
using avx512::largest_of;
using avx512::lu_rows;
using avx512::move_matrix;
using avx512::pivoted_qr_columns;
using avx512::qr_columns;
using avx512::reflect_columns;
using avx512::reflect_top;
using avx512::reflection_signs;
using avx512::solve_rows;
using avx512::tridiagonal_columns;
using avx512::well_conditioned;
}  // namespace rl::cpu
