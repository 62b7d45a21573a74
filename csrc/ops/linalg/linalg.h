// Linear algebra: what decompositions and solvers share, and those that gradients are written with.
#pragma once
#include <optional>
#include <string>
#include <tuple>

#include "autograd/record.h"
#include "ops/shape/shape.h"

namespace rl::ops {

// Batches of matrices; errors name the op.
void check_matrix(const char* name, const Tensor& a, const char* argument = "A");  // at least two dimensions
void check_square(const char* name, const Tensor& a, const char* argument = "A");  // and square
void check_linalg_type(const char* name, const Tensor& a);                         // float or complex, not half
void check_same_type(const char* name, const Tensor& a, const Tensor& b);
// Throws a LinAlgError for the first info that is not 0.
void check_info(const char* name, const Tensor& info);

// The batch's sizes: all but the last `inner`.
inline IntSpan batch_of(const Tensor& a, int64_t inner = 2) { return {a.sizes().data(), a.dim() - inner}; }
Ints with(IntSpan batch, std::initializer_list<int64_t> more);
inline int64_t rows(const Tensor& a) { return a.sizes()[a.dim() - 2]; }
inline int64_t cols(const Tensor& a) { return a.sizes()[a.dim() - 1]; }
// Matrices in LAPACK's order, uninitialised or as a copy of a (broadcast to `batch` where given).
Tensor column_major(IntSpan sizes, DType dtype, Device device);
Tensor column_copy(const Tensor& a, IntSpan batch);
inline Tensor column_copy(const Tensor& a) { return column_copy(a, batch_of(a)); }
// A copy of a in the order that lu_factor works in, for an LU that stays inside.
Tensor lu_copy(const Tensor& a);
// a seen with a larger batch, without history
Tensor broadcast_batch(const Tensor& a, IntSpan batch, int64_t inner = 2);

// Constants, and differentiable parts of matrices.
Tensor identity(int64_t rows, int64_t cols, DType dtype, Device device);
inline Tensor diagonal_of(const Tensor& a) { return diagonal(a, 0, -2, -1); }
Tensor scale_columns(const Tensor& a, const Tensor& d);  // a @ diag(d)
Tensor scale_rows(const Tensor& a, const Tensor& d);     // diag(d) @ a
Tensor real_of(const Tensor& a);                         // the real part, differentiable; a itself if real
Tensor as_complex(const Tensor& a);

Tensor inv(const Tensor& a);
Tensor solve(const Tensor& a, const Tensor& b);  // a x = b
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unitriangular);
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a, bool full_matrices, std::optional<std::string> driver);
std::tuple<Tensor, Tensor> eigh(const Tensor& a, const std::string& uplo);
std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& lu, const Tensor& pivots, bool unpack_data,
                                             bool unpack_pivots);
Tensor pinv(const Tensor& a);

}  // namespace rl::ops
