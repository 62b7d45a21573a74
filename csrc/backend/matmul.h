// Products of matrices and vectors.
#pragma once
#include <cstdint>

#include "backend/pointwise.h"
#include "backend/view.h"

namespace rl {

// The scalars and addend (epilogue) of a GEMM: out = alpha * (a @ b) + beta * addend.
// The scalars are in compute_t<T> of the result's type T.
struct MatmulParams {
  LoopScalar alpha, beta;
  // Broadcast to the result's shape by strides of 0 (a bias row is {0, 1}); may be the result itself. Null for none.
  const View* addend = nullptr;
};

// The precision of float GEMMs: full float, or at least 16 or 8 bits of each operand where that is faster.
enum class FloatPrecision { Highest, High, Medium };
inline FloatPrecision g_float_precision = FloatPrecision::Highest;

struct MatmulKernels {
  // out = a @ b for views of two or more dimensions: (..., m, n) = (..., m, k) @ (..., k, n), all of one dtype.
  // Leading dimensions are a batch and agree in size; any of them may have stride 0 in a and b. All strides are
  // served, transposed matrices without a copy. out shares no memory with a and b.
  void (*matmul)(const View& out, const View& a, const View& b);
  // The same with scalars and an addend.
  void (*addmm)(const View& out, const View& a, const View& b, const MatmulParams& params);
  // out (0-d) = sum of a[i] * b[i]; conjugate takes conj(a[i]).
  void (*dot)(const View& out, const View& a, const View& b, bool conjugate);
};

// 1 in compute_t of `dtype`.
LoopScalar unit_scalar(DType dtype);

}  // namespace rl
