// Complex numbers as pairs of reals, on the same memory.
#include "ops/ops.h"
#include "ops/registry.h"

namespace rl::ops {

static Tensor view_as_real(const Tensor& input);
static Tensor view_as_complex(const Tensor& input);

// view_as_real: a last dimension of size 2 for the two parts        dx = dy as complex numbers
struct ViewAsRealBackward : Node {
  static constexpr const char* kName = "ViewAsRealBackward0";
  Grads backward(const Grads& dy) { return {view_as_complex(contiguous(dy[0]))}; }
};
Tensor view_as_real(const Tensor& input) {
  CHECK(input.is_complex(), Runtime, "view_as_real is only supported for complex tensors");
  Ints sizes(input.sizes()), strides;
  for (int64_t s : input.strides()) strides.push_back(2 * s);
  sizes.push_back(2);
  strides.push_back(1);
  Tensor y = alias_as(input, to_real(input.dtype()), sizes, strides, 2 * input->offset);
  return record_view<ViewAsRealBackward>(y, input, [](auto&) {});
}

// view_as_complex: a last dimension of size 2 as one number        dx = dy as pairs
struct ViewAsComplexBackward : Node {
  static constexpr const char* kName = "ViewAsComplexBackward0";
  Grads backward(const Grads& dy) { return {view_as_real(dy[0])}; }
};
Tensor view_as_complex(const Tensor& input) {
  int64_t last = input.dim() - 1;
  CHECK(input.dtype() == DType::Float32 || input.dtype() == DType::Float64 || input.dtype() == DType::Float16, Runtime,
        "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: ", info(input.dtype()).legacy);
  CHECK(last >= 0, Runtime, "Input tensor must have one or more dimensions");
  CHECK(input.sizes()[last] == 2, Runtime, "Tensor must have a last dimension of size 2");
  CHECK(input.strides()[last] == 1, Runtime, "Tensor must have a last dimension with stride 1");
  CHECK(input->offset % 2 == 0, Runtime, "Tensor must have a storage_offset divisible by 2");
  Ints sizes(input.sizes()), strides;
  for (int64_t d = 0; d < last; ++d) {
    CHECK(input.strides()[d] % 2 == 0, Runtime, "Tensor must have a stride divisible by 2 for all but last dimension");
    strides.push_back(input.strides()[d] / 2);
  }
  sizes.pop_back();
  Tensor y = alias_as(input, to_complex(input.dtype()), sizes, strides, input->offset / 2);
  return record_view<ViewAsComplexBackward>(y, input, [](auto&) {});
}

static const Register registered([](Ops& ops) {
  ops.def("view_as_real", view_as_real, "input", kView, "A view of complex numbers as pairs of reals.");
  ops.def("view_as_complex", view_as_complex, "input", kView, "A view of pairs of reals as complex numbers.");
});

}  // namespace rl::ops
