#include <limits>

#include "backend/backend.h"
#include "ops/copy/cast.h"
#include "ops/elementwise/pointwise.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

namespace {

enum class How : uint8_t { Sum, Prod, Mean, Amax, Amin };

How how_of(const std::string& reduce, bool with_sum) {
  if (reduce == "sum" && with_sum) return How::Sum;
  if (reduce == "prod") return How::Prod;
  if (reduce == "mean") return How::Mean;
  if (reduce == "amax") return How::Amax;
  CHECK(reduce == "amin", Runtime, "reduce argument must be either ", with_sum ? "sum, " : "",
        "prod, mean, amax or amin, got ", reduce, ".");
  return How::Amin;
}

// The value that leaves the other one as it is.
Tensor identity(How how, DType dtype, Device device) {
  Tensor one = empty({}, dtype);
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* p = one.data<T>();
    if constexpr (is_complex_v<T> || std::is_same_v<T, complex32>) {
      write_element(p, Scalar(how == How::Prod ? 1 : 0), dtype);
    } else if constexpr (is_floating_v<T>) {
      double infinity = std::numeric_limits<double>::infinity();
      write_element(p,
                    Scalar(how == How::Prod   ? 1.
                           : how == How::Amax ? -infinity
                           : how == How::Amin ? infinity
                                              : 0.),
                    dtype);
    } else {
      using Limits = std::numeric_limits<T>;
      *p = how == How::Prod ? T(1) : how == How::Amax ? Limits::min() : how == How::Amin ? Limits::max() : T(0);
    }
  });
  return to_device(one, device);
}

Combine combine_of(How how) {
  return how == How::Prod   ? Combine::Prod
         : how == How::Amax ? Combine::Amax
         : how == How::Amin ? Combine::Amin
                            : Combine::Sum;
}

// How many values meet at each place, at least 1. Dimensions along which the index repeats itself are counted once.
Tensor counts(const Tensor& like, int64_t dim, const Tensor& index, bool include_self) {
  Ints sizes(like.sizes());
  Tensor at = index;
  for (int64_t k = 0; k < index.dim() && index.dim() == like.dim() && index.numel(); ++k)
    if (k != dim && index.strides()[k] == 0 && index.sizes()[k] == sizes[k]) at = narrow(at, k, 0, 1), sizes[k] = 1;
  Tensor n = full(sizes, Scalar(include_self ? 1 : 0), like.dtype(), like.device());
  n = scatter_add(n, dim, at, full(at.sizes(), Scalar(1), like.dtype(), like.device()));
  return masked_fill(n, binary("eq", Pointwise::Eq, n, Scalar(0), {.rule = Rule::Bool}), Scalar(1));
}

Tensor equal_as(const Tensor& a, const Tensor& b) {
  return cast(binary("eq", Pointwise::Eq, a, b, {.rule = Rule::Bool}), a.dtype());
}
Tensor either(const Tensor& mask, const Tensor& yes, const Tensor& no) {
  Tensor not_mask = unary("logical_not", Pointwise::LogicalNot, mask, {.rule = Rule::Bool});
  return add(masked_fill(yes, not_mask, Scalar(0)), masked_fill(no, mask, Scalar(0)));
}

Tensor reduce_into(const char* op, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, How how,
                   bool include_self, bool round_each = false);

}  // namespace

// The first derivative by src is right where several zeros meet, but its formula holds them constant.
struct ZerosMetBackward : Node {
  static constexpr const char* kName = "Error";
  Grads backward(const Grads&) {
    fail(
        ErrorKind::Runtime,
        "scatter_reduce(), index_reduce(): Double backward is unsupported for src when >1 zeros in src are scattered "
        "to the same position in self.\n  Keep src away from 0 (src + eps), or multiply with prod() over a dimension.");
  }
};

// scatter_reduce: y = x joined at index with the values of src by sum, prod, mean, amax or amin
//   sum:        dx = dy                       dsrc = dy at index
//   mean:       dx = dy / n                   dsrc = (dy / n) at index, n = how many met there
//   amax, amin: dx, dsrc = dy shared equally among those equal to the result
//   prod:       dx = dy * product of src there, dsrc = dy * product of the others, taken apart where one of them is 0
// and dx = 0 at index when x itself does not take part.
struct ScatterReduceBackward : Node {
  static constexpr const char* kName = "ScatterReduceBackward0";
  Saved self, index, src, result;
  int64_t dim = 0;
  How how = How::Sum;
  bool include_self = true;
  Grads backward(const Grads& g) {
    Tensor i = index.unpack(*this), dx, dsrc;
    const Tensor& dy = g[0];
    if (how == How::Sum) {
      dx = dy;
      if (needs(1)) dsrc = gather(dy, dim, i);
    } else if (how == How::Mean) {
      Tensor share = div(dy, counts(dy, dim, i, include_self));
      dx = share;
      if (needs(1)) dsrc = gather(share, dim, i);
    } else if (how == How::Prod) {
      product(dy, i, dx, dsrc);
    } else {
      Tensor x = self.unpack(*this), s = src.unpack(*this), y = result.unpack(*this);
      Tensor mine = equal_as(x, y), theirs = equal_as(s, gather(y, dim, i));
      if (!include_self) mine = scatter(mine, dim, i, Scalar(0));
      Tensor n = scatter_add(mine, dim, i, theirs);
      Tensor share =
          div(dy, masked_fill(n, binary("eq", Pointwise::Eq, n, Scalar(0), {.rule = Rule::Bool}), Scalar(1)));
      dx = include_self ? mul(share, mine) : dy;
      if (needs(1)) dsrc = mul(gather(share, dim, i), theirs);
    }
    if (needs(0) && !include_self) dx = scatter(dx, dim, i, Scalar(0));
    return {needs(0) ? dx : Tensor(), dsrc};
  }
  void product(const Tensor& dy, const Tensor& i, Tensor& dx, Tensor& dsrc) {
    Tensor x = self.unpack(*this), s = src.unpack(*this), y = result.unpack(*this);
    auto is_zero = [](const Tensor& t) { return binary("eq", Pointwise::Eq, t, Scalar(0), {.rule = Rule::Bool}); };
    if (needs(0)) {
      Tensor safe = masked_fill(x, is_zero(x), Scalar(1));
      dx = div(mul(dy, reduce_into("scatter_reduce", safe, dim, i, s, How::Prod, include_self)), safe);
    }
    if (!needs(1)) return;
    Tensor zero = is_zero(s);
    Tensor zeros_there =
        gather(scatter_add(zeros(x.sizes(), x.dtype(), x.device()), dim, i, cast(zero, x.dtype())), dim, i);
    Tensor only =
        binary("logical_and", Pointwise::LogicalAnd, zero,
               binary("eq", Pointwise::Eq, zeros_there, Scalar(1), {.rule = Rule::Bool}), {.rule = Rule::Bool});
    Tensor without = reduce_into("scatter_reduce", x, dim, i, masked_fill(s, only, Scalar(1)), How::Prod, include_self);
    dsrc = either(only, gather(mul(dy, without), dim, i),
                  div(gather(mul(dy, y), dim, i), masked_fill(s, zero, Scalar(1))));
    if (!dsrc.requires_grad() || !dsrc.has_values()) return;
    NoGrad counting;
    bool met = item(any(binary("gt", Pointwise::Gt, zeros_there, Scalar(1), {.rule = Rule::Bool}))).to_bool();
    NoGrad recording(true);
    if (met) dsrc = record<ZerosMetBackward>(alias(dsrc), {dsrc});
  }
  FIELDS(self, index, src, result, dim, include_self)
};

namespace {

Tensor reduce_into(const char* op, const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, How how,
                   bool include_self, bool round_each) {
  int64_t d = wrap_dim(dim, input.dim());
  CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32 || index.numel() == 0, Runtime, op,
        "(): Expected dtype int32/int64 for index, got ", info(index.dtype()).name);
  CHECK(src.dtype() == input.dtype(), Runtime, op, "(): Expected self.dtype to be equal to src.dtype, got ",
        info(input.dtype()).name, " and ", info(src.dtype()).name);
  CHECK(!input.is_complex() || how == How::Sum || how == How::Prod || how == How::Mean, NotImplemented, "\"", op,
        "\" not implemented for '", info(input.dtype()).legacy, "'");
  Ints wanted = lifted_sizes(index), sizes = lifted_sizes(input), given = lifted_sizes(src);
  CHECK(index.numel() == 0 || (wanted.size() == sizes.size() && wanted.size() == given.size()), Runtime, op,
        "(): Index tensor must have the same number of dimensions as self and src, got ", to_text(index.sizes()), ", ",
        to_text(input.sizes()), " and ", to_text(src.sizes()));
  for (int64_t k = 0; index.numel() && k < wanted.size(); ++k)
    CHECK((k == d || wanted[k] <= sizes[k]) && wanted[k] <= given[k], Runtime, "Expected index ",
          to_text(index.sizes()), " to be no larger than self ", to_text(input.sizes()), " apart from dimension ", d,
          " and to be no larger in size than src ", to_text(src.sizes()));
  bool recorded = will_record({input, src});
  Tensor y = writable(input, recorded);
  if (index.numel()) {
    NoGrad raw;
    Ints at = lifted_strides(index);
    if (!include_self)
      put_along(y, d, index, wanted, at, identity(how, y.dtype(), y.device()), Combine::Set, ErrorKind::Runtime, false);
    put_along(y, d, index, wanted, at, src, combine_of(how), ErrorKind::Runtime, false, round_each);
    if (how == How::Mean) {
      Tensor n = counts(y, d, index, include_self);
      Tensor mean = is_integral(y.dtype(), true) ? binary("floor_divide", Pointwise::FloorDiv, y, n) : div(y, n);
      copy_into(y, mean);
    }
  }
  return record<ScatterReduceBackward>(y, {input, src}, [&](auto& n) {
    n.index = save(index);
    n.dim = d;
    n.how = how;
    n.include_self = include_self;
    if (how == How::Sum || how == How::Mean) return;
    n.self = save(input);
    n.src = save(src);
    n.result = save_output(n, y);
  });
}

Tensor scatter_reduce(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                      const std::string& reduce, bool include_self) {
  return reduce_into("scatter_reduce", input, dim, index, src, how_of(reduce, true), include_self);
}

// index_reduce: scatter_reduce with one index for each slice. float16 and bfloat16 are rounded after every slice, as a
// loop of y[index[i]] *= source[i] does; scatter_reduce rounds once.
Tensor index_reduce(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source,
                    const std::string& reduce, bool include_self) {
  How how = how_of(reduce, false);
  int64_t d = wrap_dim(dim, input.dim());
  CHECK(index.dim() <= 1, Index, "index_reduce(): Index is supposed to be a vector, but got dim: ", index.dim());
  CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, Index,
        "index_reduce(): Expected dtype int32/int64 for index but got: ", info(index.dtype()).name);
  CHECK(input.dtype() == source.dtype(), Runtime, "index_reduce(): self (", info(input.dtype()).name, ") and source (",
        info(source.dtype()).name, ") must have the same scalar type");
  Ints sizes = lifted_sizes(input), given = lifted_sizes(source);
  CHECK(d == 0 || d < source.dim(), Index, "index_reduce(): Indexing dim ", d,
        " is out of bounds of the source tensor with dim ", source.dim());
  CHECK(index.numel() == (source.dim() ? source.sizes()[d] : 1), Index, "index_reduce(): Number of indices (",
        index.numel(), ") should be equal to self.size(dim)");
  bool fits = sizes.size() == given.size();
  for (int64_t k = 0; fits && k < sizes.size(); ++k) fits = k == d || sizes[k] == given[k];
  CHECK(fits, Runtime, "index_reduce(): source ", to_text(source.sizes()), " and self ", to_text(input.sizes()),
        " must have the same shape except in dimension ", d);
  check_indices(index, d, sizes[d], ErrorKind::Index);
  Tensor wide = alias(index, given, vector_strides(index, d, given.size()), index->offset);
  Tensor lifted = source.dim() ? source : view(source, {1});
  return reduce_into("index_reduce", input, d, wide, lifted, how, include_self, true);
}

}  // namespace

static const Register registered([](Ops& ops) {
  const uint32_t writes = kMethod | kInplace | kDirect;
  ops.def("scatter_reduce", scatter_reduce, "input, dim, index, src, reduce, *, include_self=True",
          writes | kExactOut | kNoOverlap, R"(
    Joins elements by index along a dimension: as scatter_add(), but also by other rules than the sum.

    Args:
        src: the values, at least as large as index.
        reduce: 'sum', 'prod', 'mean', 'amax' or 'amin'.
        include_self: whether the elements of input take part.

    Gradient:
        Of 'amax' and 'amin': shared evenly by equal elements.

    Example:
        >>> x, index = torch.zeros(2), torch.tensor([0, 0, 1])
        >>> x.scatter_reduce(0, index, torch.tensor([1.0, 3.0, 5.0]), "mean", include_self=False)
        tensor([2., 5.]))");
  ops.def("index_reduce", index_reduce, "input, dim, index, source, reduce, *, include_self=True",
          writes | kExactOut | kNoOverlap, R"(
    Joins the slices at given indices with those of source.

    Args:
        index: a vector of indices along dim, one for each slice of source.
        source: the slices.
        reduce: 'prod', 'mean', 'amax' or 'amin'.
        include_self: whether the slice of input takes part.

    Gradient:
        Of 'amax' and 'amin': shared evenly by equal elements.

    Raises:
        UserWarning: with the first call, that the function is in beta, as in PyTorch.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     torch.ones(2).index_reduce(0, torch.tensor([0, 0]), torch.tensor([3.0, 5.0]), "amax")
        tensor([5., 1.]))");
});

}  // namespace rl::ops
