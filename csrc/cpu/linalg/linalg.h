// The linalg kernels by file; linalg.cpp gathers them into the table.
#pragma once
#include "backend/linalg.h"

namespace rl::cpu {

// solve.cpp
bool by_rows(DType dtype, int64_t m, int64_t n);
void lu_factor(const View& a, const View& pivots, const View& info, bool pivot);
void lu_solve(const View& lu, const View& pivots, const View& b, char trans);
void inverse(const View& a, const View& info);
void triangular_solve(const View& a, const View& b, bool left, bool upper, char trans, bool unit);
// symmetric.cpp
void cholesky(const View& a, const View& info, bool upper);
void cholesky_inverse(const View& a, const View& info, bool upper);
void cholesky_solve(const View& factor, const View& b, bool upper);
void ldl_factor(const View& a, const View& pivots, const View& info, bool hermitian);
void ldl_solve(const View& ld, const View& pivots, const View& b, bool hermitian);
void eigh(const View& a, const View& values, const View& info, bool upper, bool vectors);
// qr.cpp
bool is_tall(DType dtype, int64_t m, int64_t n);
void qr_tall(const View& a, const View* q, const View& r);
void geqrf(const View& a, const View& tau);
void orgqr(const View& a, const View& tau);
void ormqr(const View& a, const View& tau, const View& c, bool left, bool adjoint);
// lstsq.cpp
void lstsq(const View& a, const View& b, const View* rank, const View* s, const View& info, double rcond,
           LstsqDriver driver);
// svd.cpp
void svd(const View& a, const View* u, const View& s, const View* vh, const View& info, SvdDriver driver);
// eig.cpp
void eig(const View& a, const View& values, const View* vectors, const View& info);

}  // namespace rl::cpu
