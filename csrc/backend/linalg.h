// Decompositions and solvers of dense linear algebra, for float32, float64, complex64 and complex128.
//
// Matrices are views (..., rows, cols) of any strides; leading dimensions are a batch and agree in size among the
// arguments of a call. "In-out" matrices are overwritten by the result; views with unit row stride (column-major
// order) are worked on in place, others through scratch memory. `info` views are int32 of the batch's shape: 0 for
// success, as LAPACK's info otherwise. Pivots are int32 and count from 1, as LAPACK's.
#pragma once
#include <cstdint>

#include "backend/view.h"

namespace rl {

enum class SvdDriver : uint8_t { DivideAndConquer, QrIteration };
enum class LstsqDriver : uint8_t { Gels, Gelsy, Gelsd, Gelss };

struct LinalgKernels {
  // Whether lu_factor works on such matrices row by row, and wants them so.
  bool (*by_rows)(DType dtype, int64_t m, int64_t n);
  // a (m, n) in-out becomes L and U packed; pivots (min(m, n)). Without pivoting the pivots are 1, 2, ...
  void (*lu_factor)(const View& a, const View& pivots, const View& info, bool pivot);
  // b (n, k) in-out becomes x of op(a) x = b, op by `trans`: 'N', 'T' or 'C'.
  void (*lu_solve)(const View& lu, const View& pivots, const View& b, char trans);
  // a (n, n) in-out becomes its inverse.
  void (*inverse)(const View& a, const View& info);
  // a (n, n) in-out becomes its triangular factor, the other triangle zero.
  void (*cholesky)(const View& a, const View& info, bool upper);
  // a, a triangular factor, in-out becomes the inverse of the matrix it factors.
  void (*cholesky_inverse)(const View& a, const View& info, bool upper);
  void (*cholesky_solve)(const View& factor, const View& b, bool upper);
  // op(a) x = b (left) or x op(a) = b; b in-out. Singular matrices give inf and NaN, not an error.
  void (*triangular_solve)(const View& a, const View& b, bool left, bool upper, char trans, bool unit);
  // Whether matrices are tall enough for a QR of their own: a (m, n) = q (m, n) r (n, n); q may be null.
  bool (*is_tall)(DType dtype, int64_t m, int64_t n);
  void (*qr_tall)(const View& a, const View* q, const View& r);
  // a (m, n) in-out becomes R above the diagonal and Householder vectors below; tau (min(m, n)).
  void (*geqrf)(const View& a, const View& tau);
  // a (m, n), holding k = tau's size vectors, in-out becomes the first n columns of Q; n <= m.
  void (*orgqr)(const View& a, const View& tau);
  // c in-out becomes op(Q) c (left) or c op(Q); a (m or n, k) holds the vectors.
  void (*ormqr)(const View& a, const View& tau, const View& c, bool left, bool adjoint);
  // a (m, n) = u diag(s) vh; u (m, m or k), vh (n or k, n), both null for values alone; s real. a is not changed.
  void (*svd)(const View& a, const View* u, const View& s, const View* vh, const View& info, SvdDriver driver);
  // a (n, n) in-out becomes the eigenvectors (or rubbish without vectors); values real, ascending.
  void (*eigh)(const View& a, const View& values, const View& info, bool upper, bool vectors);
  // values (n) and vectors (n, n; may be null) are complex. a is not changed.
  void (*eig)(const View& a, const View& values, const View* vectors, const View& info);
  // Least squares min |a x - b|: a (m, n) is not changed; b (max(m, n), k) in-out holds x in its first n rows.
  // rank (int64, batch's shape) and s (real, min(m, n)) are written by the drivers that know them; else null.
  void (*lstsq)(const View& a, const View& b, const View* rank, const View* s, const View& info, double rcond,
                LstsqDriver driver);
  // a (n, n), its lower triangle, in-out becomes L and D of Bunch and Kaufman; pivots (n).
  void (*ldl_factor)(const View& a, const View& pivots, const View& info, bool hermitian);
  void (*ldl_solve)(const View& ld, const View& pivots, const View& b, bool hermitian);
};

namespace cpu {
extern const LinalgKernels linalg_kernels;
}

}  // namespace rl
