// Resizing of one dimension by the nearest elements; nn.functional.interpolate goes dimension by dimension.
#include <algorithm>
#include <cmath>

#include "ops/nn/resize.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

// How many times each element is there in the result, if all are there alike: by powers of two, which floats hold.
static int64_t times_each(int64_t n_in, int64_t n_out, double step) {
  int exponent = 0;
  const bool power = n_out < int64_t(1) << 24 && std::frexp(step, &exponent) == 0.5;
  return power && step < 1 && static_cast<double>(n_out) * step == static_cast<double>(n_in) ? n_out / n_in : 0;
}

// nearest_dim: y[j] = x[floor(j * step)] along dim, or at (j + 1/2) * step, computed as floats like PyTorch's indices
static Tensor nearest_dim(const Tensor& x, int64_t dim, int64_t size, double step, bool exact) {
  const int64_t d = wrap_dim(dim, x.dim());
  CHECK(x.dim() > 0 && x.sizes()[d] > 0 && size > 0, Runtime, "nearest_dim: expected sizes above 0, got ",
        to_text(x.sizes()), " and ", size);
  const int64_t n_in = x.sizes()[d];
  if (const int64_t times = x.is_contiguous() ? times_each(n_in, size, step) : 0; times > 1) {
    Ints wide(x.sizes()), result(x.sizes());
    wide.insert(d + 1, times);
    result[d] = size;
    return reshape(contiguous(expand(unsqueeze(x, d + 1), wide)), result);
  }
  constexpr int64_t kLarge = 2048;  // elements, from which on the table pays
  if (is_float(x.dtype()) && step > 0 && x.numel() >= kLarge) return nearest_by_table(x, d, size, step, exact);
  const Tensor indices = empty({size}, DType::Int64);
  auto* at = indices.data<int64_t>();
  const auto by = static_cast<float>(step);
  for (int64_t j = 0; j < size; ++j) {
    const float source = (static_cast<float>(j) + (exact ? 0.5f : 0.0f)) * by;
    at[j] = source < static_cast<float>(n_in) ? std::min(static_cast<int64_t>(source), n_in - 1) : n_in - 1;
  }
  return index_select(x, d, to_device(indices, x.device()));
}

static const Register registered([](Ops& ops) {
  ops.def("_nn.nearest_dim", nearest_dim, "input, dim, size, step, exact", kNoOut,
          "One dimension resized by the nearest elements; a step of the result is `step` elements long.");
});

}  // namespace rl::ops
