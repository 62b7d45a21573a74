#include "backend/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/pointwise.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shape.h"
#include "ops/warn_once.h"
#include "schema/registry.h"
#include "tensor/promote.h"

namespace rl::ops {

static void check_ordered(const char* name, const Tensor& input) {
  CHECK(!input.is_complex(), Runtime, name, ": complex numbers have no order");
  CHECK(static_cast<int>(input.dtype()) < kComputeDTypes, NotImplemented, "\"", name, "\" not implemented for '",
        info(input.dtype()).legacy, "'");
}

// sort: y = x in order along a dimension        dx = dy back at the indices the elements came from
struct SortBackward : Node {
  static constexpr const char* kName = "SortBackward0";
  Saved indices;
  Ints sizes;
  int64_t dim = 0;
  Grads backward(const Grads& dy) {
    Tensor like = zeros(led(dy[0], sizes), dy[0].dtype(), dy[0].device());
    return {scatter(like, dim + lead(dy[0]), repeated(*this, indices.unpack(*this), dy[0]), dy[0])};
  }
  Grads stacked(const Grads& dy) { return sizes.empty() ? backward_by_rows(*this, dy) : backward(dy); }
  FIELDS(indices, dim)
};
struct TopkBackward : SortBackward {
  static constexpr const char* kName = "TopkBackward0";
};
Pair sort(const Tensor& input, int64_t dim, bool descending, bool) {
  check_ordered("sort", input);
  dim = wrap_dim(dim, input.dim());
  Tensor values = empty_like(input), indices = empty_like(input, DType::Int64);
  View v = values.view(), i = indices.view();
  backend(input.device()).sort->sort(&v, &i, input.view(), static_cast<int>(dim), descending);
  Tensor y = record<SortBackward>(
      values, {input}, [&](auto& n) { n.indices = save(indices), n.sizes = Ints(input.sizes()), n.dim = dim; });
  return {y, indices};
}
static Pair sort_stable(const Tensor& input, std::optional<bool> stable, int64_t dim, bool descending) {
  return sort(input, dim, descending, stable.value_or(false));
}
static Pair sort_plain(const Tensor& input, int64_t dim, bool descending) { return sort(input, dim, descending); }

static Tensor argsort(const Tensor& input, int64_t dim, bool descending) {
  check_ordered("sort", input);
  dim = wrap_dim(dim, input.dim());
  Tensor indices = empty_like(input, DType::Int64);
  View i = indices.view();
  backend(input.device()).sort->sort(nullptr, &i, input.view(), static_cast<int>(dim), descending);
  return indices;
}
static Tensor argsort_stable(const Tensor& input, bool, int64_t dim, bool descending) {
  return argsort(input, dim, descending);
}
static Tensor msort(const Tensor& input) { return std::get<0>(sort(input, 0)); }

// topk: the k largest or smallest along a dimension        dx = dy back at their indices
Pair topk(const Tensor& input, int64_t k, int64_t dim, bool largest, bool sorted) {
  CHECK(!input.is_complex(), Runtime, "topk(): complex numbers have no order");
  CHECK(static_cast<int>(input.dtype()) < kComputeDTypes && input.dtype() != DType::Bool, NotImplemented,
        "\"topk_cpu\" not implemented for '", info(input.dtype()).legacy, "'");
  dim = wrap_dim(dim, input.dim());
  CHECK(k >= 0 && k <= (input.dim() ? input.sizes()[dim] : 1), Runtime, "selected index k out of range");
  Ints sizes(input.sizes());
  if (input.dim()) sizes[dim] = k;
  Tensor values = empty(sizes, input.dtype(), input.device()), indices = empty(sizes, DType::Int64, input.device());
  if (values.numel())
    backend(input.device())
        .sort->topk(values.view(), indices.view(), input.view(), k, static_cast<int>(dim), largest, sorted);
  Tensor y = record<TopkBackward>(
      values, {input}, [&](auto& n) { n.indices = save(indices), n.sizes = Ints(input.sizes()), n.dim = dim; });
  return {y, indices};
}

// _unique: distinct elements, the way back to them, and how often each stands. unique and unique_consecutive are
// written in Python with it.
static std::tuple<Tensor, Tensor, Tensor> unique_flat(const Tensor& input, bool inverse, bool counts,
                                                      bool consecutive) {
  CHECK(!input.is_complex() && static_cast<int>(input.dtype()) < kComputeDTypes, NotImplemented,
        "\"unique\" not implemented for '", info(input.dtype()).legacy, "'");
  CHECK(input.has_values(), NotImplemented,
        "unique: how many elements are distinct depends on values, which a meta tensor has not");
  NoGrad raw;
  const Ints none{0};
  int64_t n = input.numel();
  Tensor x = contiguous(input), values = empty({n}, input.dtype(), x.device()), back, number;
  back = empty(inverse ? input.sizes() : IntSpan(none), DType::Int64, x.device());
  number = empty({counts ? n : 0}, DType::Int64, x.device());
  View in = {x.memory(), &n, values.strides().data(), 1, x.dtype()}, b = back.view(), c = number.view();
  int64_t groups = n ? backend(values.device())
                           .sort->unique(values.view(), inverse ? &b : nullptr, counts ? &c : nullptr, in, consecutive)
                     : 0;
  auto shortened = [&](const Tensor& t) { return t.numel() == groups ? t : clone(narrow(t, 0, 0, groups)); };
  return {shortened(values), back, counts ? shortened(number) : number};
}
static std::tuple<Tensor, Tensor, Tensor> unique_rows(const Tensor& input, bool inverse, bool counts,
                                                      bool consecutive) {
  CHECK(!input.is_complex() && static_cast<int>(input.dtype()) < kComputeDTypes, NotImplemented,
        "\"unique_dim\" not implemented for '", info(input.dtype()).legacy, "'");
  CHECK(input.has_values(), NotImplemented,
        "unique_dim: how many slices are distinct depends on values, which a meta tensor has not");
  NoGrad raw;
  int64_t n = input.size(0);
  Tensor x = contiguous(input), first = empty({n}, DType::Int64, x.device());
  Tensor back = empty({inverse ? n : 0}, DType::Int64, x.device()),
         number = empty({counts ? n : 0}, DType::Int64, x.device());
  View b = back.view(), c = number.view();
  int64_t groups =
      n ? backend(first.device())
              .sort->unique_rows(first.view(), inverse ? &b : nullptr, counts ? &c : nullptr, x.view(), consecutive)
        : 0;
  auto shortened = [&](const Tensor& t) { return t.numel() == groups ? t : clone(narrow(t, 0, 0, groups)); };
  return {shortened(first), back, counts ? shortened(number) : number};
}

static void warn_copied(const char* which) {
  warn_once(text("torch.searchsorted(): ", which,
                 " tensor is non-contiguous, this will lower the performance due to extra data copy when converting it "
                 "to a contiguous one; pass what .contiguous() gives."));
}

// searchsorted: where values go in sorted rows
static Tensor searchsorted(const Tensor& sorted_sequence, const Value& input, bool out_int32, bool right,
                           const std::optional<std::string>& side, const OptTensor& sorter) {
  const Tensor& s = sorted_sequence;
  CHECK(s.dim() > 0, Runtime,
        "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  CHECK(!side || *side == "left" || *side == "right", Runtime,
        "torch.searchsorted(): side can only be 'left' or 'right' but got ", side.value_or(""));
  CHECK(!side || *side == "right" || !right, Runtime,
        "torch.searchsorted(): side and right can't be set to opposites, got side of ", side.value_or(""),
        " while right was True");
  CHECK(input.is_tensor() || s.dim() == 1, Runtime,
        "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but "
        "we got boundaries tensor dim(",
        s.dim(), ")");
  NoGrad raw;
  Tensor v = input.is_tensor() ? input.tensor : full({}, input.number, input.number.dtype(DType::Float64), s.device());
  CHECK(v.device() == s.device(), Runtime,
        "torch.searchsorted(): boundaries and input value tensors should have same device type, but got boundaries "
        "tensor "
        "device type ",
        to_text(s.device()), " and input value tensor device type ", to_text(v.device()));
  if (s.dim() > 1) {
    bool same = v.dim() == s.dim();
    for (int64_t i = 0; same && i + 1 < s.dim(); ++i) same = v.sizes()[i] == s.sizes()[i];
    CHECK(same, Runtime,
          "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
          "tensor and input value "
          "tensor must match, but we got boundaries tensor ",
          to_text(s.sizes()), " and input value tensor ", to_text(v.sizes()));
  }
  if (sorter.defined()) {
    CHECK(sorter.sizes() == s.sizes(), Runtime,
          "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
          to_text(s.sizes()), "and got sorter tensor ", to_text(sorter.sizes()));
    CHECK(sorter.dtype() == DType::Int64, Runtime,
          "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype ", info(sorter.dtype()).legacy);
  }
  CHECK(!out_int32 || s.sizes()[s.dim() - 1] < INT32_MAX, Runtime,
        "torch.searchsorted(): the size of boundaries' last dimension should be less than ", int64_t(INT32_MAX),
        ", but we got ", s.sizes()[s.dim() - 1]);
  CHECK(!s.is_complex() && !v.is_complex(), Runtime, "torch.searchsorted(): complex numbers have no order");
  if (!v.is_contiguous()) warn_copied("input value");
  if (!s.is_contiguous()) warn_copied("boundary");
  if (sorter.defined() && !sorter.is_contiguous()) warn_copied("sorter");
  DType common = promote_types(s.dtype(), v.dtype());
  if (s.dtype() != v.dtype() && v.dim() == 0 && !input.is_tensor())
    common = s.is_float() || !rl::is_float(v.dtype()) ? s.dtype() : v.dtype();
  Tensor rows = contiguous(cast(s, common)), values = contiguous(cast(v, common)),
         order = sorter.defined() ? contiguous(sorter) : Tensor();
  Tensor y = empty(v.sizes(), out_int32 ? DType::Int32 : DType::Int64, v.device());
  if (y.numel()) {
    View o = order.defined() ? order.view() : View{};
    backend(y.device())
        .sort->searchsorted(y.view(), rows.view(), values.view(), order.defined() ? &o : nullptr,
                            right || (side && *side == "right"));
  }
  return y;
}
static Tensor bucketize(const Value& input, const Tensor& boundaries, bool out_int32, bool right) {
  CHECK(boundaries.dim() == 1, Runtime, "bucketize(): boundaries tensor must be 1 dimension, but got dim(",
        boundaries.dim(), ")");
  return searchsorted(boundaries, input, out_int32, right, std::nullopt, OptTensor());
}

// histc: how many elements fall into each of `bins` equal parts of [min, max]; the elements' own range if both are 0
static Tensor histc(const Tensor& input, int64_t bins, const Scalar& min, const Scalar& max) {
  CHECK(min.to_double() <= max.to_double(), Runtime, "torch.histc: max must be larger than min");
  CHECK(input.is_float(), NotImplemented, "\"histogram_cpu\" not implemented for '", info(input.dtype()).legacy, "'");
  CHECK(bins > 0, Runtime, "torch.histc(): bins must be > 0");
  NoGrad raw;
  double low = min.to_double(), high = max.to_double();
  Tensor x = contiguous(reshape(input, {input.numel()}));
  if (low == high && x.numel()) {
    low = item(amin(x)).to_double(), high = item(amax(x)).to_double();
  }
  if (low == high) low -= 1, high += 1;
  CHECK(std::isfinite(low) && std::isfinite(high), Runtime, "torch.histc: range of [", low, ", ", high,
        "] is not finite");
  CHECK(low < high, Runtime, "torch.histc: max must be larger than min");
  Tensor y = zeros({bins}, input.dtype(), input.device());
  backend(y.device()).reduce->histogram(y.view(), x.view(), nullptr, low, high);
  return y;
}

// bincount: y_k = how often k stands in x, or the sum of w_i with x_i = k        dw_i = dy at x_i
struct BincountBackward : Node {
  static constexpr const char* kName = "BincountBackward0";
  static constexpr bool kStacks = true;
  Saved self;
  Grads backward(const Grads& dy) { return {index_select(dy[0], lead(dy[0]), self.unpack(*this))}; }
  FIELDS(self)
};
static Tensor bincount(const Tensor& input, const OptTensor& weights, int64_t minlength) {
  CHECK(is_integral(input.dtype()), NotImplemented, "\"bincount_cpu\" not implemented for '",
        info(input.dtype()).legacy, "'");
  CHECK(minlength >= 0, Runtime, "minlength should be >= 0");
  if (input.dim() == 1 && input.numel() == 0) return zeros({minlength}, DType::Int64, input.device());
  CHECK(input.dim() == 1, Runtime, "bincount only supports 1-d non-negative integral inputs.");
  CHECK(item(amin(input)).to_int() >= 0, Runtime, "bincount only supports 1-d non-negative integral inputs.");
  CHECK(!weights.defined() || weights.dim() == 1, Runtime, "weights should be 1-d and have the same length as input");
  CHECK(!weights.defined() || weights.sizes() == input.sizes(), Runtime,
        "weights should be 1-d and have the same length as input");
  int64_t bins = std::max(checked_add(item(amax(input)).to_int(), 1), minlength);
  Tensor x = cast(input, DType::Int64);
  if (!weights.defined()) {
    Tensor y = zeros({bins}, DType::Int64, x.device());
    backend(y.device()).reduce->bincount(y.view(), x.view(), nullptr);
    return y;
  }
  Tensor w = cast(weights, DType::Float64), y = zeros({bins}, DType::Float64, x.device());
  View view = w.view();
  backend(y.device()).reduce->bincount(y.view(), x.view(), &view);
  y = record<BincountBackward>(y, {w}, [&](auto& n) { n.self = save(x); });
  return weights.dtype() == DType::Float32 ? cast(y, DType::Float32) : y;
}

static Tensor no_derivative(const Tensor& result, const std::string& name, const Tensor& input) {
  return record_not_differentiable(name.c_str(), result, {input});
}

// A named tuple for ops written in Python: torch.return_types.<name> with these fields.
static NewObject named_tuple(const std::string& name, const std::string& fields, Object items) {
  CHECK(PyTuple_Check(items.p), Type, "_named_tuple: expected a tuple");
  SmallVector<PyObject*, 4> list;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.p); ++i) list.push_back(Py_NewRef(PyTuple_GET_ITEM(items.p, i)));
  return {detail::named_tuple((name + ":" + fields).c_str(), list.data(), static_cast<int>(list.size()))};
}

static const Register registered([](Ops& ops) {
  const char* both = "values, indices";
  ops.def("sort", sort_plain, "input, dim=-1, descending=False", kMethod | kExactOut, R"(
    Sorts along a dimension, and tells where each element came from.

    Args:
        descending: whether the largest comes first.
        stable: whether equal elements keep their order.

    Returns:
        A named tuple: values, sorted, and indices, with values = input.gather(dim, indices).

    Gradient:
        Each dy to the element that it came from.

    Example:
        >>> torch.sort(torch.tensor([30.0, 10.0, 20.0]))
        torch.return_types.sort(
        values=tensor([10., 20., 30.]),
        indices=tensor([1, 2, 0]))
        >>> torch.tensor([30, 10, 20]).sort(descending=True).values
        tensor([30, 20, 10]))",
          both);
  ops.def("sort", sort_stable, "input, *, stable, dim=-1, descending=False", kMethod | kExactOut, "", both);
  ops.def("argsort", argsort, "input, dim=-1, descending=False", kMethod | kNotDifferentiable | kNoOut, R"(
    Finds the indices that sort along a dimension.

    Args:
        descending: whether the largest comes first.
        stable: whether equal elements keep their order.

    Example:
        >>> torch.argsort(torch.tensor([30, 10, 20]))
        tensor([1, 2, 0]))");
  ops.def("argsort", argsort_stable, "input, *, stable, dim=-1, descending=False",
          kMethod | kNotDifferentiable | kNoOut);
  ops.def("msort", msort, "input", kMethod, R"(
    Sorts along the first dimension, in ascending order.

    Example:
        >>> torch.msort(torch.tensor([[3, 1], [2, 4]]))
        tensor([[2, 1],
                [3, 4]]))");
  ops.def("topk", topk, "input, k, dim=-1, largest=True, sorted=True", kMethod | kExactOut, R"(
    Takes the k largest (or smallest) elements along a dimension, and their indices.

    Args:
        k: how many.
        largest: whether the largest are taken, instead of the smallest.
        sorted: whether they come in order.

    Gradient:
        Each dy to the element that was taken.

    Example:
        >>> torch.topk(torch.tensor([1.0, 5.0, 3.0, 4.0]), k=2)
        torch.return_types.topk(
        values=tensor([5., 4.]),
        indices=tensor([1, 3])))",
          both);
  ops.def("_unique_flat", unique_flat, "input, inverse, counts, consecutive", kNoOut | kNotDifferentiable);
  ops.def("_unique_rows", unique_rows, "input, inverse, counts, consecutive", kNoOut | kNotDifferentiable);
  ops.def("_no_derivative", no_derivative, "result, name, input", kNoOut | kAnyDevice | kAnyType,
          "For ops in Python: the result, whose backward says that the op has no derivative.");
  ops.def("_named_tuple", named_tuple, "name, fields, items", kNoOut | kNotDifferentiable);
  ops.def("searchsorted", searchsorted,
          "sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None",
          kNotDifferentiable | kExactOut | kFreeOut, R"(
    Finds where values belong in sorted rows: the index before which each one keeps the order.

    Args:
        sorted_sequence: rows in ascending order along the last dimension, or one vector for all.
        input: the values, with the same dimensions but the last; or a number.
        out_int32: whether the result is int32 instead of int64.
        right: whether to go behind equal elements instead of before them.
        side: 'left' or 'right', another way to say right.
        sorter: the indices that sort sorted_sequence, if it is not sorted itself.

    Example:
        >>> torch.searchsorted(torch.tensor([1, 3, 5, 7]), torch.tensor([3, 6]))
        tensor([1, 3])
        >>> torch.searchsorted(torch.tensor([1, 3, 5, 7]), torch.tensor([3, 6]), right=True)
        tensor([2, 3]))");
  ops.def("bucketize", bucketize, "input, boundaries, *, out_int32=False, right=False", kNotDifferentiable, R"(
    Finds the bucket of each element: the i with boundaries[i - 1] < x <= boundaries[i].

    Args:
        input: the values.
        boundaries: a sorted vector.
        out_int32: whether the result is int32 instead of int64.
        right: whether a value equal to a boundary falls into the bucket behind it.

    Example:
        >>> torch.bucketize(torch.tensor([0.5, 1.0, 9.0]), torch.tensor([1.0, 3.0]))
        tensor([0, 0, 2]))");
  ops.def("histc", histc, "input, bins=100, min=0, max=0",
          kMethod | kNotDifferentiable | kExactOut | kFreeOut | kOverlapOk, R"(
    Counts the elements in equal parts of the range [min, max]; those outside are left out.

    Args:
        bins: the number of parts.
        min: the lower end.
        max: the upper end; if it equals min, the range is that of the elements.

    Example:
        >>> torch.histc(torch.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
        tensor([0., 2., 1., 0.]))");
  ops.def("bincount", bincount, "input, weights=None, minlength=0", kMethod | kNoOut, R"(
    Counts how often each integer occurs in a vector of non-negative integers.

    Args:
        weights: what each element counts; None counts 1.
        minlength: the least length of the result, which is otherwise the largest element + 1.

    Example:
        >>> torch.bincount(torch.tensor([0, 2, 2, 5]))
        tensor([1, 0, 2, 0, 0, 1])
        >>> torch.bincount(torch.tensor([0, 2, 2]), weights=torch.tensor([0.5, 1.0, 1.0]))
        tensor([0.5000, 0.0000, 2.0000]))");
});

}  // namespace rl::ops
