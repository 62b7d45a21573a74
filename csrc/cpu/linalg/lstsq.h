// Least squares of one real matrix on our own GEMM.
#pragma once
#include <cstdint>

namespace rl::cpu {

// A (m, n) of any strides; y (max(m, n), k) column by column, of which the first m rows are B and the first n become X.
template <class T> struct LeastSquares {
  int64_t m, n, k;
  const T* a;
  int64_t rs, cs;
  T* y;
  int64_t ldy;
  double rcond;
  bool ranked;  // as gelsy, which tells the rank and finds the shortest of all solutions; else as gels
  int rank = 0, code = 0;
};
// Whether it was solved: the others are LAPACK's, and y is as it was. After gels the rows of y from n on have the
// length of what is left of B.
template <class T> bool solve_least_squares(LeastSquares<T>& p);

}  // namespace rl::cpu
