// Advanced indexing: several index tensors, broadcast together, in any of the dimensions.
#include "backend/backend.h"
#include "ops/copy/cast.h"
#include "ops/elementwise/pointwise.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

namespace {

// Masks become the coordinates of their ones: a mask of k dimensions stands for k index tensors.
IndexList without_masks(const Tensor& input, const IndexList& indices) {
  IndexList out;
  for (const Tensor& t : indices) {
    if (!t.defined() || (t.dtype() != DType::Bool && t.dtype() != DType::UInt8)) {
      CHECK(!t.defined() || t.dtype() == DType::Int64 || t.dtype() == DType::Int32, Index,
            "tensors used as indices must be long, int, byte or bool tensors, got ", info(t.dtype()).name);
      out.push_back(t);
      continue;
    }
    if (t.dtype() == DType::UInt8 &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                     1) < 0)
      python_error();
    for (int64_t k = 0; k < t.dim(); ++k) {
      int64_t at = out.size() + k;
      CHECK(at < input.dim() && t.sizes()[k] == input.sizes()[at], Index, "The shape of the mask ", to_text(t.sizes()),
            " at index ", k, " does not match the shape of the indexed tensor ", to_text(input.sizes()), " at index ",
            at);
    }
    NoGrad raw;
    Tensor indices = nonzero(t);
    for (int64_t k = 0; k < t.dim(); ++k) out.push_back(select(indices, 1, k));
  }
  CHECK(out.size() <= input.dim(), Index, "too many indices for tensor of dimension ", input.dim(), " (got ",
        out.size(), ")");
  return out;
}

// Everything the kernel needs: the indexed tensor and the indices seen with the sizes of the result.
struct Plan {
  Ints sizes;            // of the result: kept dimensions with the joint index shape in their middle or in front
  Ints strides;          // of the indexed tensor in that order, 0 for the index dimensions
  int64_t index_at = 0;  // where the joint index shape begins in the result
  Ints joint;            // the joint index shape
  SmallVector<Ints, 4> index_strides;
  SmallVector<View, 4> views;
  Ints indexed_sizes, indexed_strides;
  SmallVector<int, 4> dims;
  IndexList kept;

  Plan(const Tensor& input, const IndexList& indices) {
    bool any = false, adjacent = true;
    int64_t first = -1, last = -1;
    for (int64_t d = 0; d < indices.size(); ++d) {
      const Tensor& t = indices[d];
      if (!t.defined()) continue;
      CHECK(t.device() == input.device() || t.on_host(), Runtime,
            "indices should be either on the same device as the indexed tensor (", to_text(input.device()), ")");
      adjacent &= last < 0 || last == d - 1;
      if (first < 0) first = d;
      last = d;
      joint = any ? joined(t) : Ints(t.sizes());
      any = true;
    }
    CHECK(any, Index, "index: at least one of the indices must be a tensor");
    index_at = adjacent ? first : 0;
    for (int64_t d = 0; d < index_at; ++d) keep(input, d);
    for (int64_t s : joint) sizes.push_back(s), strides.push_back(0);
    for (int64_t d = index_at; d < input.dim(); ++d)
      if (d >= indices.size() || !indices[d].defined()) keep(input, d);
    for (int64_t d = 0; d < indices.size(); ++d) {
      const Tensor& t = indices[d];
      if (!t.defined()) continue;
      Ints over = broadcast_strides(t, joint), all(sizes.size(), 0);
      for (int64_t k = 0; k < over.size(); ++k) all[index_at + k] = over[k];
      index_strides.push_back(all);
      indexed_sizes.push_back(input.sizes()[d]);
      indexed_strides.push_back(input.strides()[d]);
      dims.push_back(static_cast<int>(d));
      kept.push_back(t);
    }
    for (int64_t k = 0; k < kept.size(); ++k)
      views.push_back({kept[k].memory(), sizes.data(), index_strides[k].data(), static_cast<int32_t>(sizes.size()),
                       kept[k].dtype()});
    checked_numel(sizes);
    // Without elements to read the kernel would not look at the indices.
    for (int64_t k = 0; k < kept.size(); ++k)
      CHECK(indexed_sizes[k] > 0 || checked_numel(joint) == 0, Index,
            "index is out of bounds for dimension with size 0", " (dimension ", dims[k], ")");
  }
  Plan(const Plan&) = delete;
  Ints result_layout(const Tensor& input) const {
    bool ordered = input.is_contiguous();
    for (const Tensor& t : kept) ordered = ordered && t.is_contiguous();
    if (ordered) return contiguous_strides(sizes);
    SmallVector<IntSpan, 4> operands;
    operands.push_back(strides);
    for (const Ints& s : index_strides) operands.push_back(s);
    return result_strides(sizes, operands.data(), static_cast<int>(operands.size()));
  }
  View of(const Tensor& x) const {
    return {x.memory(), sizes.data(), strides.data(), static_cast<int32_t>(sizes.size()), x.dtype()};
  }
  IndexSpec spec() const {
    return {views.data(),
            static_cast<int>(views.size()),
            indexed_sizes.data(),
            indexed_strides.data(),
            dims.data(),
            ErrorKind::Index,
            true};
  }

 private:
  void keep(const Tensor& x, int64_t d) { sizes.push_back(x.sizes()[d]), strides.push_back(x.strides()[d]); }
  Ints joined(const Tensor& t) const {
    int64_t n = std::max(joint.size(), t.dim());
    Ints out(n);
    for (int64_t i = 1; i <= n; ++i) {
      int64_t a = i <= joint.size() ? joint[joint.size() - i] : 1, b = i <= t.dim() ? t.sizes()[t.dim() - i] : 1;
      CHECK(a == b || a == 1 || b == 1, Index,
            "shape mismatch: indexing tensors could not be broadcast together with shapes ", to_text(joint), ", ",
            to_text(t.sizes()));
      out[n - i] = a == 1 ? b : a;
    }
    return out;
  }
};

SmallVector<Saved, 2> save_all(const IndexList& indices) {
  SmallVector<Saved, 2> saved;
  for (const Tensor& t : indices) saved.push_back(t.defined() ? save(t) : Saved());
  return saved;
}
IndexList unpack_all(Node& node, const SmallVector<Saved, 2>& saved) {
  IndexList out;
  for (const Saved& s : saved) out.push_back(s.defined() ? s.unpack(node) : Tensor());
  return out;
}

// The same indices in each row of a stacked dy.
IndexList behind(const Node& node, const Tensor& dy, const IndexList& indices) {
  if (!node.lead(dy)) return indices;
  int64_t first = -1, last = -1, count = 0, rank = 0;
  for (int64_t i = 0; i < indices.size(); ++i) {
    if (!indices[i].defined()) continue;
    if (first < 0) first = i;
    last = i, ++count, rank = std::max(rank, indices[i].dim());
  }
  Tensor rows;  // left out: all of them
  if (last - first + 1 != count) {
    // Indices that stand apart have their dimensions in front, and there the rows must be.
    Ints sizes(rank + 1, 1);
    sizes[0] = dy.sizes()[0];
    rows = empty(sizes, DType::Int64, dy.device());
    if (rows.numel()) backend(dy.device()).copy->range(reshape(rows, {sizes[0]}).view(), 0, 1, 0, 1);
  }
  IndexList all;
  all.push_back(rows);
  for (const Tensor& t : indices) all.push_back(t);
  return all;
}

bool any_defined(const IndexList& indices) {
  for (const Tensor& t : indices)
    if (t.defined()) return true;
  return false;
}

}  // namespace

// index: y = x[i, :, j, ...]        dx = zeros with dy added at those indices
struct IndexBackward : Node {
  static constexpr const char* kName = "IndexBackward0";
  static constexpr bool kStacks = true;
  SmallVector<Saved, 2> indices;
  Ints self_sym_sizes;
  Grads backward(const Grads& dy) {
    Tensor like = zeros(led(dy[0], self_sym_sizes), dy[0].dtype(), dy[0].device());
    IndexList at = unpack_all(*this, indices);
    if (at.size() == 1 && at[0].dtype() == DType::Bool && at[0].sizes() == like.sizes())
      return {masked_scatter(like, at[0], dy[0])};
    IndexList indices = behind(*this, dy[0], at);
    return {written_to(like, [&] { return index_put(like, indices, dy[0], true); })};
  }
  FIELDS(indices, self_sym_sizes)
};
// x[mask]: the elements, or the slices, where a mask of the leading dimensions is true.
static Tensor index_mask(const Tensor& input, const Tensor& mask) {
  NoGrad raw;
  if (mask.dim() == input.dim()) return masked_select(input, mask);
  Tensor at = reshape(nonzero(reshape(mask, {mask.numel()})), {-1});
  return index_select(flatten(input, 0, mask.dim() - 1), 0, at);
}
static bool leads_with_mask(const Tensor& input, const IndexList& indices) {
  if (indices.size() != 1 || !indices[0].defined() || indices[0].dtype() != DType::Bool) return false;
  const Tensor& mask = indices[0];
  bool fits = mask.dim() > 0 && mask.dim() <= input.dim() && input.has_values() && input.numel();
  for (int64_t d = 0; fits && d < mask.dim(); ++d) fits = mask.sizes()[d] == input.sizes()[d];
  return fits;
}
Tensor index(const Tensor& input, const IndexList& given) {
  Tensor y;
  if (leads_with_mask(input, given)) {
    y = index_mask(input, given[0]);
  } else {
    IndexList indices = without_masks(input, given);
    if (!any_defined(indices)) return record_alias(alias(input), input);
    Plan plan(input, indices);
    y = empty_strided(plan.sizes, plan.result_layout(input), input.dtype(), input.device());
    if (y.numel()) backend(y.device()).index->get(y.view(), plan.of(input), plan.spec());
  }
  return record<IndexBackward>(y, {input}, [&](auto& n) {
    n.indices = save_all(given);
    n.self_sym_sizes = Ints(input.sizes());
  });
}

// index_put: y = x with values at those indices        dx = dy with zeros there (dy if they are added), dvalues = dy
// there
struct IndexPutBackward : Node {
  static constexpr const char* kName = "IndexPutBackward0";
  static constexpr bool kStacks = true;
  SmallVector<Saved, 2> indices;
  bool accumulate = false;
  Grads backward(const Grads& dy) {
    IndexList at = behind(*this, dy[0], unpack_all(*this, indices));
    Tensor dx;
    if (needs(0)) dx = accumulate ? dy[0] : index_put(dy[0], at, zeros({}, dy[0].dtype(), dy[0].device()), false);
    return {dx, needs(1) ? index(dy[0], at) : Tensor()};
  }
  FIELDS(indices, accumulate)
};
// One value under one mask fills it, whatever the value's type.
static bool fills_mask(const IndexList& indices, const Tensor& values, bool accumulate) {
  const Tensor* mask = nullptr;
  for (const Tensor& t : indices) {
    if (!t.defined()) continue;
    if (mask || t.dtype() != DType::Bool) return false;
    mask = &t;
  }
  return mask && values.numel() == 1 && !accumulate;
}
// The same where the mask has the size of the tensor: the indices need not be known.
static Tensor fill_under(const Tensor& input, const Tensor& mask, const Tensor& value) {
  Tensor y = writable(input, will_record({input, value})), own = mask;
  if (mask.storage() == y.storage()) {
    NoGrad raw;
    own = clone(mask);
  }
  if (y.numel()) backend(y.device()).index->masked_fill(y.view(), own.view(), to_host(value).data());
  return record<IndexPutBackward>(y, {input, value}, [&](auto& n) { n.indices.push_back(save(own)); });
}
Tensor index_put(const Tensor& input, const IndexList& given, const Tensor& values, bool accumulate) {
  if ((input.dtype() != values.dtype() || values.dim() > 0) && fills_mask(given, values, accumulate))
    return index_put(input, given, cast(reshape(values, Ints{}), input.dtype()), accumulate);
  const bool same_type = input.dtype() == values.dtype();
  if (same_type && given.size() == 1 && values.dim() == 0 && input.dim() > 0 && given[0].defined() &&
      given[0].sizes() == input.sizes() && input.has_values() && same_device(given[0].device(), input.device()) &&
      fills_mask(given, values, accumulate))
    return fill_under(input, given[0], values);
  IndexList indices = without_masks(input, given);
  CHECK(any_defined(indices), Runtime, "index_put: at least one of the indices must be a tensor");
  auto check_fit = [&](const Plan& plan) {
    bool fits = values.dim() <= plan.sizes.size();
    for (int64_t i = 1; fits && i <= values.dim(); ++i) {
      int64_t have = values.sizes()[values.dim() - i];
      fits = have == 1 || have == plan.sizes[plan.sizes.size() - i];
    }
    CHECK(fits, Runtime, "shape mismatch: value tensor of shape ", to_text(values.sizes()),
          " cannot be broadcast to indexing result of shape ", to_text(plan.sizes));
  };
  if (!same_type) {
    check_fit(Plan(input, indices));
    fail(ErrorKind::Runtime, "Index put requires the source and destination dtypes match, got ",
         info(input.dtype()).legacy, " for the destination and ", info(values.dtype()).legacy, " for the source.");
  }
  Tensor y = writable(input, will_record({input, values}));
  auto write = [&](const auto& self, const Tensor& to, const Tensor& from) -> void {
    Plan plan(to, indices);
    check_fit(plan);
    if (checked_numel(plan.sizes) == 0) return;
    const IndexKernels& kernels = *backend(to.device()).index;
    Ints strides = broadcast_strides(from, plan.sizes);
    View dense{from.memory(), plan.sizes.data(), strides.data(), static_cast<int32_t>(plan.sizes.size()), from.dtype()};
    if (accumulate && is_half(to.dtype())) {  // sums of float16 and bfloat16 are taken in float
      if (kernels.add_half_rows(plan.of(to), dense, plan.spec())) return;
      Tensor wide = cast(to, DType::Float32);
      self(self, wide, cast(from, DType::Float32));
      copy_into(to, wide);
      return;
    }
    kernels.put(plan.of(to), dense, plan.spec(), accumulate ? Combine::Sum : Combine::Set);
  };
  {
    NoGrad raw;
    for (Tensor& t : indices)
      if (t.defined() && t.storage() == y.storage()) t = clone(t);
    Tensor from = values.storage() == y.storage() ? clone(values) : values;
    write(write, y, from);
  }
  return record<IndexPutBackward>(y, {input, values}, [&](auto& n) {
    n.indices = save_all(indices);
    n.accumulate = accumulate;
  });
}

namespace {

void check_take_index(const char* op, const Tensor& index) {
  CHECK(index.dtype() == DType::Int64, Runtime, op, "(): Expected a long tensor for index, but got ",
        info(index.dtype()).legacy);
}

}  // namespace

// take: y = x at index, x seen as one row of elements        dx = zeros with dy added there
struct TakeBackward : Node {
  static constexpr const char* kName = "TakeBackward0";
  Saved index;
  Ints self_sizes;
  Grads backward(const Grads& dy) {
    return {put(zeros(self_sizes, dy[0].dtype(), dy[0].device()), index.unpack(*this), dy[0], true)};
  }
  FIELDS(index)
};
Tensor take(const Tensor& input, const Tensor& index) {
  check_take_index("take", index);
  CHECK(input.numel() != 0 || index.numel() == 0, Index, "take(): tried to take from an empty tensor");
  Tensor y = empty(index.sizes(), input.dtype(), input.device());
  if (y.numel()) {
    NoGrad raw;
    Tensor flat = contiguous(input);
    Ints nowhere(index.dim(), 0);
    View in{flat.memory(), index.sizes().data(), nowhere.data(), static_cast<int32_t>(index.dim()), flat.dtype()},
        at = index.view();
    int64_t size = flat.numel(), one = 1;
    int dim = 0;
    backend(y.device()).index->get(y.view(), in, {&at, 1, &size, &one, &dim, ErrorKind::Index, true});
  }
  return record<TakeBackward>(y, {input}, [&](auto& n) {
    n.index = save(index);
    n.self_sizes = Ints(input.sizes());
  });
}

// put: y = x with source at index, x seen as one row        dx = dy with zeros there (dy if added), dsource = dy there
struct PutBackward : Node {
  static constexpr const char* kName = "PutBackward0";
  Saved index, source;  // only the source's sizes are needed; torch keeps it, and refuses writes to it
  bool accumulate = false;
  Grads backward(const Grads& dy) {
    Tensor i = index.unpack(*this), dx;
    if (needs(0)) dx = accumulate ? dy[0] : put(dy[0], i, zeros(i.sizes(), dy[0].dtype(), dy[0].device()), false);
    return {dx, needs(1) ? reshape(take(dy[0], i), source.unpack(*this).sizes()) : Tensor()};
  }
  FIELDS(index, source, accumulate)
};
// Asked by put alone: PyTorch's does not say which of several values for one place stays.
static int g_strict = 0;  // 1: warns, 2: refuses
static void set_strict(int64_t level) { g_strict = static_cast<int>(level); }
static void alert_put() {
  const char* kText =
      "put_ does not have a deterministic implementation, but you set "
      "'torch.use_deterministic_algorithms(True)'";
  CHECK(g_strict < 2, Runtime, kText,
        ". You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's "
        "acceptable for your application.");
  if (PyErr_WarnEx(PyExc_UserWarning, kText, 1) < 0) python_error();
}
static Tensor put_op(const Tensor& input, const Tensor& index, const Tensor& source, bool accumulate) {
  if (g_strict && !accumulate) alert_put();
  return put(input, index, source, accumulate);
}
Tensor put(const Tensor& input, const Tensor& index, const Tensor& source, bool accumulate) {
  check_take_index("put_", index);
  CHECK(input.dtype() == source.dtype(), Runtime,
        "put_(): self and source expected to have the same dtype, but got self.dtype = ", info(input.dtype()).legacy,
        " and source.dtype = ", info(source.dtype()).legacy);
  CHECK(index.numel() == source.numel(), Runtime,
        "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
        source.numel(), ", index.numel() = ", index.numel());
  CHECK(input.numel() != 0 || index.numel() == 0, Index, "put_(): tried to put elements into an empty tensor");
  Tensor y = writable(input, will_record({input, source}));
  if (index.numel()) {
    NoGrad raw;
    Tensor from = source.storage() == y.storage() ? clone(source) : source;
    from = reshape(from, index.sizes());
    bool half = accumulate && is_half(y.dtype());
    Tensor flat = half ? contiguous(cast(y, DType::Float32)) : contiguous(y);
    if (half) from = cast(from, DType::Float32);
    Tensor at_tensor = index.storage() == y.storage() ? clone(index) : index;
    Ints nowhere(index.dim(), 0);
    View out{flat.memory(), index.sizes().data(), nowhere.data(), static_cast<int32_t>(index.dim()), flat.dtype()};
    View at = at_tensor.view();
    int64_t size = flat.numel(), one = 1;
    int dim = 0;
    backend(flat.device())
        .index->put(out, from.view(), {&at, 1, &size, &one, &dim, ErrorKind::Index, true},
                    accumulate ? Combine::Sum : Combine::Set);
    if (!flat.is(y)) copy_into(y, flat);
  }
  return record<PutBackward>(y, {input, source}, [&](auto& n) {
    n.index = save(index);
    if (n.needs(1)) n.source = save(source);
    n.accumulate = accumulate;
  });
}

// Forms that Python calls: a list of tensors or None.
static IndexList index_list(const char* op, const Object& indices) {
  CHECK(PyTuple_Check(indices.p) || PyList_Check(indices.p), Type, op,
        "(): argument 'indices' must be tuple of Tensors, not ", Py_TYPE(indices.p)->tp_name);
  IndexList out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(indices.p); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(indices.p, i);
    CHECK(item == Py_None || is_tensor(item), Type, op,
          "(): argument 'indices' must be tuple of Tensors, but found element of type ", Py_TYPE(item)->tp_name,
          " at pos ", static_cast<int64_t>(i));
    out.push_back(item == Py_None ? Tensor() : Tensor::borrow(item));
  }
  return out;
}
static Tensor index_op(const Tensor& input, const Object& indices) {
  return index(input, index_list("index", indices));
}
static Tensor index_put_op(const Tensor& input, const Object& indices, const Tensor& values, bool accumulate) {
  return index_put(input, index_list("index_put", indices), values, accumulate);
}

static const Register registered([](Ops& ops) {
  const uint32_t writes = kMethod | kInplace | kDirect | kKeepsInput;
  ops.def("_index", index_op, "input, indices", 0 | kAnyType,
          "The elements at broadcast index tensors; None stands for a whole dimension.");
  ops.def("index_put", index_put_op, "input, indices, values, accumulate=False",
          writes | kOverlapOk | kNoOverlap | kAnyType, R"(
    Writes values at index tensors, as x[indices] = values does, in a copy.

    Args:
        indices: a tuple of index tensors, one for each dimension from the first on; they broadcast.
        values: what is written; broadcast to the indices' shape.
        accumulate: whether to add instead.

    Example:
        >>> x = torch.zeros(2, 2)
        >>> x.index_put((torch.tensor([0, 0]), torch.tensor([1, 1])), torch.tensor(5.0), accumulate=True)
        tensor([[ 0., 10.],
                [ 0.,  0.]]))");
  ops.def("take", take, "input, index", kMethod | kNoOverlap | kExactOut | kAnyType, R"(
    Takes elements at indices of the flattened tensor.

    Args:
        index: indices into the flattened tensor; the shape of the result.

    Example:
        >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 3]))
        tensor([1, 4]))");
  ops.def("_set_deterministic", set_strict, "level", kNoOut);
  ops.def("put", put_op, "input, index, source, accumulate=False", writes | kNoOut | kNoOverlap, R"(
    Writes source at indices of the flattened tensor, in a copy.

    Args:
        index: indices into the flattened tensor.
        source: what is written, as many elements as index.
        accumulate: whether to add instead.

    Example:
        >>> torch.zeros(2, 2).put(torch.tensor([0, 3]), torch.tensor([1.0, 2.0]))
        tensor([[1., 0.],
                [0., 2.]]))");
});

}  // namespace rl::ops
