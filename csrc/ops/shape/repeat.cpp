// Elements more than once: repetitions and windows.
#include "backend/backend.h"
#include "ops/copy/cast.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "ops/shape/shape.h"
#include "schema/registry.h"

namespace rl::ops {

// repeat: the tensor laid side by side `repeats` times in each dimension, a copy
Tensor repeat(const Tensor& input, IntSpan repeats) {
  CHECK(repeats.size() >= input.dim(), Runtime,
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor, got ",
        repeats.size(), " and ", input.dim());
  // (s0, s1) -> (1, s0, 1, s1) -> (r0, s0, r1, s1) -> (r0 s0, r1 s1)
  Ints folded, wide, sizes;
  int64_t shift = repeats.size() - input.dim();
  for (int64_t i = 0; i < repeats.size(); ++i) {
    CHECK(repeats[i] >= 0, Runtime, "Trying to create tensor with negative dimension ", repeats[i], ": ",
          to_text(repeats));
    int64_t s = i < shift ? 1 : input.sizes()[i - shift];
    folded.push_back(1), folded.push_back(s);
    wide.push_back(repeats[i]), wide.push_back(s);
    sizes.push_back(checked_mul(repeats[i], s));
  }
  return view(clone(expand(reshape(input, folded), wide), MemoryFormat::Contiguous), sizes);
}
static Tensor repeat_op(const Tensor& input, const Ints& repeats) { return repeat(input, repeats); }
static Tensor tile(const Tensor& input, const Ints& dims) {
  Ints all = dims;
  while (all.size() < input.dim()) all.insert(0, 1);
  return repeat(input, all);
}

namespace {

void check_repeats(const Tensor& repeats) {
  CHECK(repeats.dtype() == DType::Int64 || repeats.dtype() == DType::Int32, NotImplemented,
        "\"repeat_interleave_cpu\" not implemented for '", info(repeats.dtype()).legacy,
        "': repeats has to be a Long or Int tensor");
  CHECK(repeats.has_values(), NotImplemented,
        "repeat_interleave: the size depends on the values of repeats, which a meta tensor has not");
}

int64_t sum_of(const Tensor& given) {
  const Tensor repeats = to_host(given);
  int64_t sum = 0;
  for (int64_t i = 0; i < repeats.numel(); ++i) {
    int64_t at = i * (repeats.dim() ? repeats.strides()[0] : 1);
    int64_t n = repeats.dtype() == DType::Int64 ? repeats.data<int64_t>()[at] : repeats.data<int32_t>()[at];
    CHECK(n >= 0, Runtime, "repeats can not be negative, got ", n);
    sum = checked_add(sum, n);
  }
  return sum;
}

}  // namespace

// repeat_interleave: each slice repeated where it stands
static Tensor repeat_indices(const Tensor& repeats, std::optional<int64_t> output_size) {
  CHECK(repeats.dim() == 1, Runtime, "repeat_interleave only accept 1D vector as repeat");
  check_repeats(repeats);
  int64_t total = output_size ? *output_size : sum_of(repeats);
  CHECK(total >= 0, Runtime, "repeat_interleave: output_size can not be negative, got ", total);
  Tensor y = empty({total}, DType::Int64, repeats.device());
  backend(y.device()).index->repeat_indices(y.view(), repeats.view());
  return y.dtype() == repeats.dtype() ? y : cast(y, repeats.dtype());
}
static Tensor repeat_interleave_tensor(const Tensor& input, const Tensor& repeats, std::optional<int64_t> dim,
                                       std::optional<int64_t> output_size) {
  Tensor x = dim ? input : flatten(input);
  if (!dim && x.dim() == 0) x = reshape(x, {1});
  int64_t d = wrap_dim(dim.value_or(0), x.dim()), n = x.dim() ? x.sizes()[d] : 1;
  check_repeats(repeats);
  CHECK(repeats.dim() == 0 || (repeats.dim() == 1 && (repeats.numel() == 1 || repeats.numel() == n)), Runtime,
        repeats.dim() > 1 ? "repeats must be 0-dim or 1-dim tensor"
                          : "repeats must have the same size as input along dim",
        ", got ", to_text(repeats.sizes()), " for ", n, " slices");
  if (x.dim() == 0) x = reshape(x, {1});
  Tensor each = repeats.numel() == 1 && n != 1 ? expand(reshape(repeats, {1}), {n}) : reshape(repeats, {n});
  return index_select(x, d, repeat_indices(each, output_size));
}
static Tensor repeat_interleave(const Tensor& input, int64_t repeats, std::optional<int64_t> dim,
                                std::optional<int64_t> output_size) {
  CHECK(repeats >= 0, Runtime, "repeats must be non-negative, got ", repeats);
  Tensor x = dim ? input : flatten(input);
  if (x.dim() == 0) x = reshape(x, {1});
  int64_t d = wrap_dim(dim.value_or(0), x.dim());
  Ints wide(x.sizes()), sizes(x.sizes());
  wide.insert(d + 1, repeats);
  sizes[d] = checked_mul(sizes[d], repeats);
  CHECK(!output_size || *output_size == sizes[d], Runtime, "repeat_interleave: Invalid output_size, expected ",
        sizes[d], " but got ", output_size.value_or(0));
  return view(clone(expand(unsqueeze(x, d + 1), wide), MemoryFormat::Contiguous), sizes);
}

// unfold: windows of `size` elements every `step`, as a new last dimension of a view        dx = dy summed where it was
// read
struct UnfoldBackward : Node {
  static constexpr const char* kName = "UnfoldBackward0";
  static constexpr bool kStacks = true;
  Ints self_sym_sizes;
  int64_t dimension = 0, size = 0, step = 1;
  Grads backward(const Grads& dy) {
    Ints base = contiguous_strides(self_sym_sizes), strides = base;
    if (strides.empty()) {
      strides.push_back(1);
    } else {
      strides.push_back(base[dimension]);
      strides[dimension] = base[dimension] * step;
    }
    return {embed(dy[0], self_sym_sizes, base, results[0].sizes, strides, 0)};
  }
  FIELDS(dimension, size, step, self_sym_sizes)
};
Tensor unfold(const Tensor& input, int64_t dimension, int64_t size, int64_t step) {
  int64_t d = wrap_dim(dimension, input.dim()), n = input.dim() ? input.sizes()[d] : 1;
  CHECK(size >= 0, Runtime, "size is ", size, " but must be >= 0");
  CHECK(size <= n, Runtime, "maximum size for tensor at dimension ", d, " is ", n, " but size is ", size);
  CHECK(step > 0, Runtime, "step is ", step, " but must be > 0");
  Ints sizes(input.sizes()), strides(input.strides());
  if (input.dim() == 0) {
    sizes.push_back(size), strides.push_back(1);
  } else {
    sizes.push_back(size), strides.push_back(strides[d]);
    sizes[d] = (n - size) / step + 1;
    int64_t stretched;
    strides[d] =
        __builtin_mul_overflow(strides[d], step, &stretched) ? strides[d] : stretched;  // one window is left then
  }
  Tensor y = alias(input, sizes, strides, input->offset);
  return record_view<UnfoldBackward>(y, input, [&](auto& node) {
    node.self_sym_sizes = Ints(input.sizes());
    node.dimension = d;
    node.size = size;
    node.step = step;
  });
}

static const Register registered([](Ops& ops) {
  ops.def("repeat", repeat_op, "input, repeats...", kMethod | kNoFunction | kNoOut | kAnyType, R"(
    Copies the tensor side by side along each dimension.

    Args:
        repeats: how often along each dimension; more numbers than dimensions add dimensions in front.

    Gradient:
        Summed over the copies.

    Example:
        >>> torch.tensor([1, 2]).repeat(2)
        tensor([1, 2, 1, 2])
        >>> torch.tensor([1, 2]).repeat(2, 1)
        tensor([[1, 2],
                [1, 2]]))");
  ops.def("tile", tile, "input, dims...", kMethod | kNoOut | kAnyType, R"(
    Repeats the whole tensor along dimensions, as NumPy does.

    Args:
        dims: how often along each dimension; too few of them stand for the last dimensions.

    Example:
        >>> torch.tile(torch.tensor([1, 2]), (2,))
        tensor([1, 2, 1, 2])
        >>> torch.tile(torch.tensor([[1, 2], [3, 4]]), (2, 1))
        tensor([[1, 2],
                [3, 4],
                [1, 2],
                [3, 4]]))");
  ops.def("repeat_interleave", repeat_indices, "repeats, *, output_size=None", kNoOut | kAnyType, R"(
    Repeats each slice where it stands; tile() repeats the whole.

    Args:
        repeats: how often: a number, or one for each slice. Alone, it gives the indices to repeat.
        dim: the dimension; None takes the flattened tensor.
        output_size: the size of the result along dim, if it is known.

    Example:
        >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
        tensor([1, 1, 2, 2])
        >>> torch.repeat_interleave(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 2]), dim=0)
        tensor([[1, 2],
                [3, 4],
                [3, 4]]))");
  ops.def("repeat_interleave", repeat_interleave, "input, repeats, dim=None, *, output_size=None",
          kMethod | kNoOut | kAnyType);
  ops.def("repeat_interleave", repeat_interleave_tensor, "input, repeats, dim=None, *, output_size=None",
          kMethod | kNoOut | kAnyType);
  ops.def("unfold", unfold, "input, dimension, size, step", kMethod | kNoFunction | kView, R"(
    Shows windows of a dimension, whose elements are a new last dimension.

    Args:
        dimension: the dimension.
        size: the length of a window.
        step: the step from one window to the next.

    Gradient:
        Elements of several windows get the sum.

    Example:
        >>> torch.arange(5).unfold(0, 3, 1)
        tensor([[0, 1, 2],
                [1, 2, 3],
                [2, 3, 4]]))");
});

}  // namespace rl::ops
