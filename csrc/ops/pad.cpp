#include "ops/ops.h"
#include "ops/registry.h"

namespace rl::ops {

// constant_pad_nd: x inside a frame of one value; negative sizes crop        dx = dy with the negated sizes
static Tensor constant_pad(const Tensor& input, const Ints& pad, const Scalar& value);
struct ConstantPadNdBackward : Node {
  static constexpr const char* kName = "ConstantPadNdBackward0";
  Ints pad;
  Grads backward(const Grads& dy) {
    Ints back(pad);
    for (int64_t& v : back) v = -v;
    return {constant_pad(dy[0], back, Scalar(0))};
  }
  FIELDS(pad)
};
static Tensor constant_pad(const Tensor& input, const Ints& pad, const Scalar& value) {
  CHECK(pad.size() % 2 == 0, Runtime, "Length of pad must be even but instead it equals ", pad.size());
  int64_t n = pad.size() / 2, ndim = input.dim();
  CHECK(n <= ndim, Runtime,
        "Length of pad should be no more than twice the number of dimensions of the input. Pad length is ", pad.size(),
        " while the input has ", ndim, " dimensions.");
  Ints sizes(input.sizes()), from(ndim, 0), to(ndim, 0), length(input.sizes());
  for (int64_t i = 0; i < n; ++i) {
    int64_t d = ndim - 1 - i, before = pad[2 * i], after = pad[2 * i + 1];
    sizes[d] = checked_add(checked_add(sizes[d], before), after);
    CHECK(sizes[d] >= 0, Runtime, "The input size ", input.sizes()[d], ", plus negative padding ", before, " and ",
          after, " resulted in a negative output size, which is invalid. Check dimension ", d, " of your input.");
    from[d] = std::max<int64_t>(-before, 0);
    to[d] = std::max<int64_t>(before, 0);
    length[d] = std::max<int64_t>(0, input.sizes()[d] - from[d] - std::max<int64_t>(-after, 0));
  }
  Tensor y = ordered(empty(sizes, input.dtype(), input.device()), channels_last(input));
  fill_raw(y, value);
  bool any = true;
  int64_t source = input->offset, target = y->offset;
  for (int64_t d = 0; d < ndim; ++d) {
    any = any && length[d] > 0;
    source += from[d] * input.strides()[d];
    target += to[d] * y.strides()[d];
  }
  if (any && !y.device().is_meta())
    copy_into(alias(y, length, y.strides(), target), alias(input, length, input.strides(), source));
  return record<ConstantPadNdBackward>(y, {input}, [&](auto& node) { node.pad = pad; });
}

static const Register registered([](Ops& ops) {
  ops.def("constant_pad_nd", constant_pad, "input, pad, value=0", 0,
          "The input inside a frame of one value; pairs of sizes start at the last dimension.");
});

}  // namespace rl::ops
