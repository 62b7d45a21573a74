#include "backend/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/pointwise.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shape.h"
#include "schema/registry.h"

namespace rl::ops {

static void check_ordered(const char* kernel, const Tensor& input) {
  CHECK(!input.is_complex() && static_cast<int>(input.dtype()) < kComputeDTypes, NotImplemented, "\"", kernel,
        "\" not implemented for '", info(input.dtype()).legacy, "'");
}
static void check_not_empty(const char* name, const Tensor& input, const Reduced& r, bool all) {
  if (input.numel()) return;
  CHECK(!all, Runtime, name,
        "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
        "argument.");
  for (int64_t d : r.dims)
    CHECK(input.dim() == 0 || input.sizes()[d] != 0, Index, name, "(): Expected reduction dim ", d,
          " to have non-zero size.");
}

// amax, amin: y = extremum of x        dx = dy shared equally by the elements that have it
struct AmaxBackward : Node {
  static constexpr const char* kName = "AmaxBackward0";
  static constexpr bool kStacks = true;
  Saved self, result;
  Ints dim, kept;
  bool finds_nan = true;  // amax and amin do not: an extremum that is NaN makes the gradients NaN
  Grads backward(const Grads& dy) {
    Tensor x = self.unpack(*this), y = result.unpack(*this);
    return {share(reshape(dy[0], led(dy[0], kept)), x, reshape(detach(y), kept), dim, finds_nan)};
  }
  static Tensor share(const Tensor& dy, const Tensor& x, const Tensor& top, const Ints& dims, bool finds_nan) {
    if (!finds_nan) {
      Tensor held = cast(binary("eq", Pointwise::Eq, detach(x), top, {.rule = Rule::Bool}), dy.dtype());
      return mul(held, div(dy, sum(held, dims, true)));
    }
    // NaN is equal to nothing, yet it may be the extremum.
    Tensor odd = binary("ne", Pointwise::Ne, top, top, {.rule = Rule::Bool});
    Tensor held = binary("eq", Pointwise::Eq, detach(x), top, {.rule = Rule::Bool});
    Tensor x_odd = binary("ne", Pointwise::Ne, detach(x), detach(x), {.rule = Rule::Bool});
    Tensor both = binary("logical_and", Pointwise::LogicalAnd, odd, x_odd, {.rule = Rule::Bool});
    held = cast(binary("logical_or", Pointwise::LogicalOr, held, both, {.rule = Rule::Bool}), dy.dtype());
    return mul(held, div(dy, sum(held, dims, true)));
  }
  FIELDS(self, result)
};
struct AminBackward : AmaxBackward {
  static constexpr const char* kName = "AminBackward0";
};
struct MaxAllBackward : AmaxBackward {
  static constexpr const char* kName = "MaxBackward1";
};
struct MinAllBackward : AmaxBackward {
  static constexpr const char* kName = "MinBackward1";
};
template <class N> static Tensor extremum_over(const char* name, const char* kernel, Reduce op, const Tensor& input,
                                               const Ints& dim, bool keepdim) {
  check_ordered(kernel, input);
  Reduced r = reduced(input, dim, keepdim);
  check_not_empty(name, input, r, dim.empty());
  Tensor y = reduce_raw(op, input, r, input.dtype());
  return record<N>(y, {input}, [&](auto& n) {
    n.self = save(input), n.result = save_output(n, y), n.dim = r.dims, n.kept = r.kept;
    n.finds_nan = !std::is_same_v<N, AmaxBackward> && !std::is_same_v<N, AminBackward>;
  });
}
Tensor amax(const Tensor& input, const Ints& dim, bool keepdim) {
  return extremum_over<AmaxBackward>("amax", "max_values_cpu", Reduce::Max, input, dim, keepdim);
}
Tensor amin(const Tensor& input, const Ints& dim, bool keepdim) {
  return extremum_over<AminBackward>("amin", "min_values_cpu", Reduce::Min, input, dim, keepdim);
}
static Tensor max_all(const Tensor& input) {
  return extremum_over<MaxAllBackward>("max", "max_all", Reduce::Max, input, {}, false);
}
static Tensor min_all(const Tensor& input) {
  return extremum_over<MinAllBackward>("min", "min_all", Reduce::Min, input, {}, false);
}

// Values picked along a dimension: y = x[index]        dx = dy at the indices it was picked from, 0 elsewhere
struct PickBackward : Node {
  Saved indices;
  Ints sizes;
  int64_t dim = 0;
  bool keepdim = false;
  Grads backward(const Grads& dy) {
    Tensor g = dy[0], at = indices.unpack(*this);
    int64_t d = dim + lead(g);
    if (lead(g)) at = expand(at, g.sizes());
    if (!keepdim && !sizes.empty()) g = unsqueeze(g, d), at = unsqueeze(at, d);
    return {scatter(zeros(led(dy[0], sizes), g.dtype(), g.device()), d, at, g)};
  }
  Grads stacked(const Grads& dy) { return sizes.empty() ? backward_by_rows(*this, dy) : backward(dy); }
  FIELDS(indices, dim, keepdim)
};
#define PICK(name, text)                       \
  struct name : PickBackward {                 \
    static constexpr const char* kName = text; \
  }
PICK(MaxDimBackward, "MaxBackward0");
PICK(MinDimBackward, "MinBackward0");
PICK(MedianDimBackward, "MedianBackward1");
PICK(NanmedianDimBackward, "NanmedianBackward1");
PICK(ModeBackward, "ModeBackward0");
PICK(KthvalueBackward, "KthvalueBackward0");
#undef PICK

template <class N>
static Pair record_pick(const Tensor& values, const Tensor& indices, const Tensor& input, int64_t dim, bool keepdim) {
  Tensor y = record<N>(values, {input}, [&](auto& n) {
    n.indices = save(indices), n.sizes = Ints(input.sizes()), n.dim = dim, n.keepdim = keepdim;
  });
  return {y, indices};
}
struct Row {
  int64_t dim;
  Reduced r;
};
static Row along(const char* name, const Tensor& input, int64_t dim, bool keepdim) {
  Row a{wrap_dim(dim, input.dim()), reduced(input, Ints{dim}, keepdim)};
  CHECK(input.dim() == 0 || input.sizes()[a.dim] != 0, Index, name, "(): Expected reduction dim ", a.dim,
        " to have non-zero size.");
  return a;
}

// max, min along a dimension, with the first place
template <class N>
static Pair extremum_along(const char* name, bool largest, const Tensor& input, int64_t dim, bool keepdim) {
  CHECK(!input.is_complex(), Runtime, name, "(): does not support complex input");
  check_ordered(name, input);
  Row a = along(name, input, dim, keepdim);
  Tensor values = empty(a.r.result, input.dtype(), input.device()),
         indices = empty(a.r.result, DType::Int64, input.device());
  View v = a.r.of(values);
  backend(input.device()).reduce->extremum(largest, &v, a.r.of(indices), input.view(), static_cast<int>(a.dim));
  return record_pick<N>(values, indices, input, a.dim, keepdim);
}
static Pair max_dim(const Tensor& input, int64_t dim, bool keepdim) {
  return extremum_along<MaxDimBackward>("max", true, input, dim, keepdim);
}
static Pair min_dim(const Tensor& input, int64_t dim, bool keepdim) {
  return extremum_along<MinDimBackward>("min", false, input, dim, keepdim);
}
static Tensor max_other(const Tensor& input, const Tensor& other) { return maximum(input, other); }
static Tensor min_other(const Tensor& input, const Tensor& other) { return minimum(input, other); }

// argmax, argmin: the first place of the extremum, of all elements or along a dimension
static Tensor index_of_extremum(const char* name, bool largest, const Tensor& input, std::optional<int64_t> dim,
                                bool keepdim) {
  CHECK(!input.is_complex(), Runtime, name, "(): does not support complex input");
  CHECK(input.dtype() != DType::Bool, Runtime, name, "(): does not support bool input");
  check_ordered(name, input);
  if (!dim) {
    CHECK(input.numel(), Index, name, "(): Expected reduction dim to be specified for input.numel() == 0.");
    NoGrad raw;
    Tensor flat = input.dim() == 1 ? input : reshape(input, {input.numel()});
    Tensor y = empty(keepdim ? IntSpan(Ints(input.dim(), 1)) : IntSpan(), DType::Int64, input.device());
    int64_t one[1] = {1};
    backend(input.device())
        .reduce->extremum(largest, nullptr, View{y.memory(), one, one, 1, DType::Int64}, flat.view(), 0);
    return y;
  }
  Row a = along(name, input, *dim, keepdim);
  Tensor y = empty(a.r.result, DType::Int64, input.device());
  backend(input.device()).reduce->extremum(largest, nullptr, a.r.of(y), input.view(), static_cast<int>(a.dim));
  return y;
}
Tensor argmax(const Tensor& input, std::optional<int64_t> dim, bool keepdim) {
  return index_of_extremum("argmax", true, input, dim, keepdim);
}
static Tensor argmin(const Tensor& input, std::optional<int64_t> dim, bool keepdim) {
  return index_of_extremum("argmin", false, input, dim, keepdim);
}

// aminmax: both extrema        dx = each dy shared equally by the elements that have the extremum
static Pair aminmax(const Tensor& input, std::optional<int64_t> dim, bool keepdim) {
  check_ordered("aminmax_cpu", input);
  if (!dim) {
    CHECK(input.numel(), Runtime,
          "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
    if (is_integral(input.dtype(), false) && input.is_contiguous()) {
      const Ints sizes(input.dim(), 1);
      Tensor low = empty(sizes, input.dtype(), input.device()), high = empty(sizes, input.dtype(), input.device());
      backend(low.device()).reduce->aminmax(low.view(), high.view(), input.view());
      if (keepdim) return {low, high};
      return {reshape(low, {}), reshape(high, {})};
    }
    return {amin(input, {}, keepdim), amax(input, {}, keepdim)};
  }
  Row a = along("aminmax", input, *dim, keepdim);
  return {amin(input, {a.dim}, keepdim), amax(input, {a.dim}, keepdim)};
}

// Order statistics along a dimension.
template <class N> static Pair select_along(const char* name, const char* kernel, Select what, int64_t k,
                                            const Tensor& input, int64_t dim, bool keepdim) {
  check_ordered(kernel, input);
  CHECK(input.dtype() != DType::Bool || what == Select::Mode, NotImplemented, "\"", kernel,
        "\" not implemented for 'Bool'");
  Row a = along(name, input, dim, keepdim);
  Tensor values = empty(a.r.result, input.dtype(), input.device()),
         indices = empty(a.r.result, DType::Int64, input.device());
  View v = a.r.of(values), i = a.r.of(indices);
  backend(input.device()).reduce->select(what, k, &v, &i, input.view(), static_cast<int>(a.dim));
  return record_pick<N>(values, indices, input, a.dim, keepdim);
}
static Pair median_dim(const Tensor& input, int64_t dim, bool keepdim) {
  return select_along<MedianDimBackward>("median", "median_cpu", Select::Median, 0, input, dim, keepdim);
}
static Pair nanmedian_dim(const Tensor& input, int64_t dim, bool keepdim) {
  return select_along<NanmedianDimBackward>("median", "median_cpu", Select::NanMedian, 0, input, dim, keepdim);
}
static Pair mode(const Tensor& input, int64_t dim, bool keepdim) {
  return select_along<ModeBackward>("mode", "mode_cpu", Select::Mode, 0, input, dim, keepdim);
}
static Pair kthvalue(const Tensor& input, int64_t k, int64_t dim, bool keepdim) {
  int64_t d = wrap_dim(dim, input.dim()), n = input.dim() ? input.sizes()[d] : 1;
  CHECK(n > 0, Index, "kthvalue(): Expected reduction dim ", d, " to have non-zero size.");
  CHECK(k >= 1 && k <= n, Runtime, "kthvalue(): selected number k out of range for dimension ", d);
  return select_along<KthvalueBackward>("kthvalue", "kthvalue_cpu", Select::Kth, k - 1, input, dim, keepdim);
}

// median, nanmedian of all elements: y = the middle value        dx = dy shared by the elements equal to it
struct MedianAllBackward : AmaxBackward {
  static constexpr const char* kName = "MedianBackward0";
};
static Tensor median_of_all(Select what, const Tensor& input) {
  check_ordered("median_cpu", input);
  CHECK(input.dtype() != DType::Bool, NotImplemented, "\"median_cpu\" not implemented for 'Bool'");
  Tensor y = empty({}, input.dtype(), input.device());
  {
    NoGrad raw;
    if (input.numel() == 0) {
      CHECK(input.is_float(), Runtime, "median() of an empty tensor of integers has no value");
      fill_raw(y, Scalar(std::numeric_limits<double>::quiet_NaN()));
    } else {
      Tensor flat = reshape(input, {input.numel()});
      int64_t one[1] = {1};
      View v{y.memory(), one, one, 1, y.dtype()};
      backend(input.device()).reduce->select(what, 0, &v, nullptr, flat.view(), 0);
    }
  }
  return record<MedianAllBackward>(
      y, {input}, [&](auto& n) { n.self = save(input), n.result = save_output(n, y), n.kept = Ints(input.dim(), 1); });
}
static Tensor median_all(const Tensor& input) { return median_of_all(Select::Median, input); }
static Tensor nanmedian_all(const Tensor& input) { return median_of_all(Select::NanMedian, input); }

static const Register registered([](Ops& ops) {
  const char *dims = "input, dim=(), keepdim=False", *one = "input, dim, keepdim=False",
             *last = "input, dim=-1, keepdim=False";
  const char *maybe = "input, dim=None, keepdim=False", *both = "values, indices";
  ops.def("amax", amax, dims, kMethod | kExactOut | kFreeOut, R"(
    Takes the maximum over the given dimensions, or of all elements.

    Gradient:
        Shared evenly by equal maxima; max() with a dimension gives it to one of them.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
        >>> x.amax()
        tensor(7.)
        >>> x.amax(dim=1)
        tensor([5., 7.]))");
  ops.def("amin", amin, dims, kMethod | kExactOut | kFreeOut, R"(
    Takes the minimum over the given dimensions, or of all elements.

    Gradient:
        Shared evenly by equal minima; min() with a dimension gives it to one of them.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
        >>> x.amin()
        tensor(1.)
        >>> x.amin(dim=(0, 1))
        tensor(1.))");
  ops.def("max", max_all, "input", kMethod | kExactOut, R"(
    Takes the maximum: of all elements, along a dimension with its index, or of two tensors.

    Args:
        other: makes it maximum(input, other).
        dim: the dimension to reduce.

    Returns:
        Tensor, or with dim a named tuple with the fields values and indices (the first of equal maxima).

    Gradient:
        Of all elements: shared evenly by equal maxima. With dim: to the element at the index.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
        >>> x.max()
        tensor(7.)
        >>> values, indices = x.max(dim=1)
        >>> values, indices
        (tensor([5., 7.]), tensor([1, 0]))
        >>> torch.max(x, torch.tensor(4.0))
        tensor([[4., 5.],
                [7., 4.]]))");
  ops.def("max", max_other, "input, other", kMethod);
  ops.def("max", max_dim, one, kMethod | kExactOut, "", both);
  ops.def("min", min_all, "input", kMethod | kExactOut, R"(
    Takes the minimum: of all elements, along a dimension with its index, or of two tensors.

    Args:
        other: makes it minimum(input, other).
        dim: the dimension to reduce.

    Returns:
        Tensor, or with dim a named tuple with the fields values and indices (the first of equal minima).

    Gradient:
        Of all elements: shared evenly by equal minima. With dim: to the element at the index.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
        >>> x.min()
        tensor(1.)
        >>> x.min(dim=1)
        torch.return_types.min(
        values=tensor([1., 2.]),
        indices=tensor([0, 1])))");
  ops.def("min", min_other, "input, other", kMethod);
  ops.def("min", min_dim, one, kMethod | kExactOut, "", both);
  ops.def("argmax", argmax, maybe, kMethod | kNotDifferentiable | kExactOut | kOverlapOk | kFreeOut, R"(
    Finds the index of the maximum, the first of several: in the flattened input, or along a dimension.

    Args:
        dim: the dimension to reduce; None looks at the flattened input.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
        >>> x.argmax()
        tensor(2)
        >>> x.argmax(dim=1)
        tensor([1, 0]))");
  ops.def("argmin", argmin, maybe, kMethod | kNotDifferentiable | kExactOut | kOverlapOk | kFreeOut, R"(
    Finds the index of the minimum, the first of several: in the flattened input, or along a dimension.

    Args:
        dim: the dimension to reduce; None looks at the flattened input.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
        >>> x.argmin()
        tensor(0)
        >>> x.argmin(dim=1)
        tensor([0, 1]))");
  ops.def("aminmax", aminmax, "input, *, dim=None, keepdim=False", kMethod | kExactOut, R"(
    Takes the minimum and the maximum in one pass, of all elements or along a dimension.

    Args:
        dim: the dimension to reduce; None reduces all.

    Returns:
        A named tuple with the fields min and max.

    Gradient:
        Shared evenly by equal extrema.

    Example:
        >>> torch.aminmax(torch.tensor([3.0, -1.0, 2.0]))
        torch.return_types.aminmax(
        min=tensor(-1.),
        max=tensor(3.)))",
          "min, max");
  ops.def("median", median_all, "input", kMethod | kExactOut, R"(
    Takes the median, of an even number of elements the lower one; NaN if there is one.

    Args:
        dim: the dimension to reduce; all elements if it is not given.

    Returns:
        Tensor, or with dim a named tuple with the fields values and indices.

    Gradient:
        Of all elements: shared evenly by those equal to the median. With dim: to the element at the index.

    Example:
        >>> torch.tensor([4.0, 1.0, 3.0, 2.0]).median()
        tensor(2.)
        >>> torch.tensor([[3.0, 1.0, 2.0]]).median(dim=1)
        torch.return_types.median(
        values=tensor([2.]),
        indices=tensor([2])))");
  ops.def("median", median_dim, one, kMethod | kExactOut, "", both);
  ops.def("nanmedian", nanmedian_all, "input", kMethod, R"(
    Takes the median of the elements that are not NaN, the lower one of an even number.

    Args:
        dim: the dimension to reduce; all elements if it is not given.

    Returns:
        Tensor, or with dim a named tuple with the fields values and indices.

    Example:
        >>> torch.nanmedian(torch.tensor([math.nan, 1.0, 5.0, 3.0]))
        tensor(3.))");
  ops.def("nanmedian", nanmedian_dim, one, kMethod, "", both);
  ops.def("mode", mode, last, kMethod | kExactOut, R"(
    Takes the most frequent value along a dimension, the smallest of several, and an index of it.

    Args:
        dim: the dimension to reduce.

    Gradient:
        To the element at the index.

    Example:
        >>> torch.mode(torch.tensor([2, 1, 2, 3])).values
        tensor(2))",
          both);
  ops.def("kthvalue", kthvalue, "input, k, dim=-1, keepdim=False", kMethod | kExactOut | kNoOverlap, R"(
    Takes the k-th smallest value along a dimension, and its index.

    Args:
        k: which one; 1 is the smallest.
        dim: the dimension to reduce.

    Gradient:
        To the element that was taken.

    Example:
        >>> torch.kthvalue(torch.tensor([4.0, 1.0, 3.0]), k=2)
        torch.return_types.kthvalue(
        values=tensor(3.),
        indices=tensor(2)))",
          both);
});

}  // namespace rl::ops
