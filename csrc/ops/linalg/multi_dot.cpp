// The product of several matrices.
#include <cmath>
#include <vector>

#include "ops/linalg/matmul.h"
#include "ops/ops.h"
#include "ops/shape/view.h"
#include "schema/registry.h"

namespace rl::ops {

// multi_dot: y = A1 A2 ... An, associated so that it takes the fewest operations        recorded as products
static Tensor in_best_order(const Tensors& matrices) {
  const int64_t n = static_cast<int64_t>(matrices.size());
  auto size = [&](int64_t i) {
    return static_cast<double>(i < n ? matrices[i].sizes()[0] : matrices[n - 1].sizes()[1]);
  };
  if (n == 2) return mm(matrices[0], matrices[1]);
  if (n == 3) {
    const double left = size(0) * size(2) * (size(1) + size(3)), right = size(1) * size(3) * (size(0) + size(2));
    return left <= right ? mm(mm(matrices[0], matrices[1]), matrices[2])
                         : mm(matrices[0], mm(matrices[1], matrices[2]));
  }
  // cost[i * n + j]: operations for matrices i..j; cut: after which of them these are cut
  std::vector<double> cost(static_cast<size_t>(n * n), 0.0);
  std::vector<int64_t> cut(static_cast<size_t>(n * n), 0);
  for (int64_t length = 2; length <= n; ++length)
    for (int64_t i = 0; i + length <= n; ++i) {
      const int64_t j = i + length - 1;
      double least = INFINITY;
      for (int64_t k = i; k < j; ++k) {
        const double here = cost[i * n + k] + cost[(k + 1) * n + j] + size(i) * size(k + 1) * size(j + 1);
        if (here < least) least = here, cut[i * n + j] = k;
      }
      cost[i * n + j] = least;
    }
  auto multiply = [&](auto& self, int64_t i, int64_t j) -> Tensor {
    if (i == j) return matrices[i];
    const int64_t k = cut[i * n + j];
    return mm(self(self, i, k), self(self, k + 1, j));
  };
  return multiply(multiply, 0, n - 1);
}
static Tensor multi_dot(const Tensors& tensors) {
  const int64_t n = static_cast<int64_t>(tensors.size());
  CHECK(n >= 2, Runtime, "multi_dot(): expected at least 2 tensors but got ", n);
  for (int64_t i = 0; i < n; ++i) {
    const bool end = i == 0 || i == n - 1;
    const int64_t dim = tensors[i].dim();
    CHECK(dim == 2 || (end && dim == 1), Runtime, "multi_dot(): ",
          i == 0 ? "the first tensor"
          : end  ? "the last tensor"
                 : text("tensor ", i),
          " must be ", end ? "1D or 2D" : "2D", " but got ", dim, "D");
    CHECK(tensors[i].dtype() == tensors[0].dtype(), Runtime,
          "multi_dot(): all tensors must have be the same dtype but tensor 0 is ", info(tensors[0].dtype()).name,
          " and tensor ", i, " ", info(tensors[i].dtype()).name);
  }
  Tensors matrices = tensors;
  const bool row = tensors[0].dim() == 1, column = tensors[n - 1].dim() == 1;
  if (row) matrices[0] = unsqueeze(tensors[0], 0);
  if (column) matrices[n - 1] = unsqueeze(tensors[n - 1], 1);
  for (int64_t i = 0; i + 1 < n; ++i)
    CHECK(matrices[i].sizes()[1] == matrices[i + 1].sizes()[0], Runtime, "multi_dot(): tensors ", i, " and ", i + 1,
          " with shapes ", matrices[i].sizes(), " and ", matrices[i + 1].sizes(), " cannot be multiplied");
  Tensor y = in_best_order(matrices);
  if (column) y = squeeze(y, 1);
  return row ? squeeze(y, 0) : y;
}

static const Register registered([](Ops& ops) {
  ops.def("linalg.multi_dot", multi_dot, "tensors", kCastLow | kExactOut | kFreeOut, R"(
    Multiplies several matrices in the order that takes the fewest operations.

    Args:
        tensors: two matrices or more; the first and the last may be vectors.

    Example:
        >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 2)])
        tensor([[12., 12.],
                [12., 12.]]))");
});

}  // namespace rl::ops
