#include "ops/view.h"

#include <algorithm>
#include <optional>

#include "autograd/meta.h"
#include "backend/backend.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/registry.h"
#include "tensor/cut.h"

namespace rl {

namespace ops {
Tensor view_as_real(const Tensor& x);     // ops/complex.cpp
Tensor view_as_complex(const Tensor& x);  // ops/complex.cpp
Tensor copy_(const Tensor& self, const Value& value, bool non_blocking);
}  // namespace ops

void AsStridedBackward::describe(const TensorObject* base, const TensorObject* of) {
  view = ViewGeometry(base, of);
  size = Ints(IntSpan(of->sizes, of->ndim));
  stride = Ints(IntSpan(of->strides(), of->ndim));
  storage_offset = of->offset;
}
Grads AsStridedBackward::backward(const Grads& dy) {
  Tensor given = view.elements == ViewElements::ComplexOfReal ? ops::view_as_real(dy[0]) : dy[0];
  Tensor dx = given.numel()
                  ? ops::embed(given, view.base_sizes, view.base_strides, view.sizes, view.strides, view.distance)
                  : ops::zeros(view.base_sizes, given.dtype(), given.device());  // a constant
  return {view.elements == ViewElements::RealOfComplex ? ops::view_as_complex(dx) : dx};
}

namespace ops {

// as_strided: any sizes and strides over the input's storage        dx = dy summed into the places it was read from
Tensor as_strided(const Tensor& input, IntSpan size, IntSpan stride, std::optional<int64_t> storage_offset) {
  CHECK(size.size() == stride.size(), Runtime, "mismatch in length of strides and shape");
  for (int64_t s : stride)
    CHECK(s >= 0, Runtime,
          "as_strided: Negative strides are not supported at the moment, got strides: ", to_text(stride));
  int64_t offset = storage_offset.value_or(input->offset);
  CHECK(offset >= 0, Runtime, "Tensor: invalid storage offset ", offset);
  int64_t end = checked_numel(size) == 0 ? 0 : checked_add(checked_extent(size, stride), offset);
  CHECK(checked_mul(end, input.item_size()) <= input.storage()->bytes, Runtime, "setStorage: sizes ", to_text(size),
        ", strides ", to_text(stride), ", storage offset ", offset, ", and itemsize ", input.item_size(),
        " requiring a storage size of ", end * input.item_size(), " are out of bounds for storage of size ",
        input.storage()->bytes);
  Tensor y = alias(input, size, stride, offset);
  return record_view<AsStridedBackward>(y, input, [&](auto& n) { n.describe(input.get(), y.get()); });
}

// as_strided may read memory outside the sizes of its input. The gradient is collected in a buffer that spans both,
// laid out as the storage is; what lies outside the input belongs to nobody and is dropped.
struct Buffer {
  int64_t size, base_at, view_at;
};
static Buffer spanning(IntSpan base_sizes, IntSpan base_strides, IntSpan sizes, IntSpan strides, int64_t distance) {
  int64_t low = std::min<int64_t>(0, distance);
  int64_t high =
      std::max(checked_extent(base_sizes, base_strides), checked_add(distance, checked_extent(sizes, strides)));
  return {high - low, -low, distance - low};
}

// Whether no two elements share a place: sorted by stride, each step passes the reach of the smaller ones.
static bool distinct_places(IntSpan sizes, IntSpan strides) {
  Ints order;
  for (int64_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t reach = 0;
  for (int64_t i : order) {
    if (strides[i] <= reach) return false;
    reach += (sizes[i] - 1) * strides[i];
  }
  return true;
}

// flat[places of the view] += values, where flat is zero before.
//
// Where elements share places, every q-th of a dimension whose step is too short to pass the smaller ones are far
// enough apart: the values go there in q turns of places that differ.
static void add_at(const Tensor& flat, IntSpan sizes, IntSpan strides, int64_t at, const Tensor& values) {
  if (values.numel() == 0) return;
  if (distinct_places(sizes, strides)) return copy_into(alias(flat, sizes, strides, at), values);
  Ints order, turns(sizes.size(), 1);
  for (int64_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t reach = 0, total = 1;
  for (int64_t i : order) {
    if (strides[i] <= reach) turns[i] = strides[i] ? std::min(sizes[i], reach / strides[i] + 1) : sizes[i];
    total = checked_mul(total, turns[i]);
    reach += ((sizes[i] + turns[i] - 1) / turns[i] - 1) * turns[i] * strides[i];
  }
  Ints part(sizes), step(strides), from(values.strides());
  for (int64_t i = 0; i < sizes.size(); ++i) step[i] *= turns[i], from[i] *= turns[i];
  for (int64_t turn = 0; turn < total; ++turn) {
    int64_t rest = turn, to = at, source = values->offset;
    for (int64_t i = 0; i < sizes.size(); ++i) {
      int64_t first = rest % turns[i];
      rest /= turns[i];
      part[i] = (sizes[i] - first + turns[i] - 1) / turns[i];
      to += first * strides[i];
      source += first * values.strides()[i];
    }
    add_into(alias(flat, part, step, to), alias(values, part, from, source));
  }
}

// How many elements of the input lie in each place of the buffer, at least 1.
static Tensor sharers(const Buffer& b, IntSpan base_sizes, IntSpan base_strides, DType dtype) {
  NoGrad raw;
  Tensor count = zeros({b.size}, dtype);
  add_at(count, base_sizes, base_strides, b.base_at, full(base_sizes, Scalar(1), dtype));
  return add(count, eq(count, Scalar(0)), Scalar(1));
}

// The adjoint of as_strided, itself linear: its gradient is as_strided again.
struct EmbedBackward : Node {
  static constexpr const char* kName = "AsStridedBackward0Backward";
  Ints base_sizes, base_strides, sizes, strides;
  int64_t distance = 0;
  Grads backward(const Grads& dy) {
    Buffer b = spanning(base_sizes, base_strides, sizes, strides, distance);
    Tensor flat;
    if (distinct_places(base_sizes, base_strides)) {
      flat = zeros({b.size}, dy[0].dtype(), dy[0].device());
      copy_(as_strided(flat, base_sizes, base_strides, b.base_at), dy[0], false);
    } else {
      flat = embed(dy[0], Ints{b.size}, Ints{1}, base_sizes, base_strides, b.base_at);
      flat = div(flat, sharers(b, base_sizes, base_strides, flat.dtype()));
    }
    return {as_strided(flat, sizes, strides, b.view_at)};
  }
};
Tensor embed(const Tensor& dy, IntSpan base_sizes, IntSpan base_strides, IntSpan sizes, IntSpan strides,
             int64_t distance) {
  Buffer b = spanning(base_sizes, base_strides, sizes, strides, distance);
  Tensor flat = zeros({b.size}, dy.dtype(), dy.device());
  if (!dy.device().is_meta()) {
    add_at(flat, sizes, strides, b.view_at, dy);
    if (!distinct_places(base_sizes, base_strides)) {
      // Several elements of the input share a place: each gets its part of what arrived there.
      NoGrad raw;
      flat = div(flat, sharers(b, base_sizes, base_strides, dy.dtype()));
    }
  }
  Tensor whole = alias(flat, base_sizes, base_strides, b.base_at);
  if (b.size != checked_extent(base_sizes, base_strides) || !distinct_places(base_sizes, base_strides)) {
    Tensor own = empty(base_sizes, dy.dtype(), dy.device());
    copy_into(own, whole);
    whole = own;
  }
  return record<EmbedBackward>(whole, {dy}, [&](auto& n) {
    n.base_sizes = Ints(base_sizes);
    n.base_strides = Ints(base_strides);
    n.sizes = Ints(sizes);
    n.strides = Ints(strides);
    n.distance = distance;
  });
}

// One -1 among the sizes stands for what is left.
static Ints infer_size(IntSpan size, int64_t numel) {
  Ints out(size);
  int64_t known = 1, unknown = -1;
  for (int64_t i = 0; i < size.size(); ++i) {
    if (size[i] == -1) {
      CHECK(unknown < 0, Runtime, "only one dimension can be inferred");
      unknown = i;
    } else {
      CHECK(size[i] >= 0, Runtime, "invalid shape dimension ", size[i], " at index ", i, " of shape ", to_text(size));
      known = checked_mul(known, size[i]);
    }
  }
  if (unknown >= 0) {
    CHECK(known != 0, Runtime, "cannot reshape tensor of ", numel, " elements into shape ", to_text(size),
          " because the unspecified dimension size -1 can be any value and is ambiguous");
    CHECK(numel % known == 0, Runtime, "shape '", to_text(size), "' is invalid for input of size ", numel);
    out[unknown] = numel / known;
  } else {
    CHECK(known == numel, Runtime, "shape '", to_text(size), "' is invalid for input of size ", numel);
  }
  return out;
}

// Whether also the strides of dimensions of size 1, which say nothing, are those of rows.
static bool in_order(const Tensor& t) {
  int64_t expected = 1;
  for (int64_t i = t.dim() - 1; i >= 0; --i) {
    if (t.strides()[i] != expected) return false;
    expected *= t.sizes()[i];
  }
  return true;
}

// Strides of the same memory under other sizes; nothing if there are none.
static std::optional<Ints> view_strides(const Tensor& t, IntSpan sizes) {
  if (t.numel() == 1) return Ints(sizes.size(), t.dim() ? t.strides()[t.dim() - 1] : 1);
  if (t.numel() == 0 || (t.is_contiguous() && in_order(t))) return contiguous_strides(sizes);
  Ints strides(sizes.size());
  int64_t at = sizes.size() - 1;
  int64_t run = 1, covered = 1, base = t.strides()[t.dim() - 1];
  for (int64_t i = t.dim() - 1; i >= 0; --i) {
    run *= t.sizes()[i];
    bool ends = i == 0 || (t.sizes()[i - 1] != 1 && t.strides()[i - 1] != run * base);
    if (!ends) continue;
    while (at >= 0 && (covered < run || sizes[at] == 1)) {
      strides[at] = covered * base;
      covered *= sizes[at];
      --at;
    }
    if (covered != run) return std::nullopt;
    if (i > 0) {
      base = t.strides()[i - 1];
      run = covered = 1;
    }
  }
  if (at != -1) return std::nullopt;
  return strides;
}

// view: other sizes over the same elements        dx = dy in x's sizes
struct ViewBackward : Node {
  static constexpr const char* kName = "ViewBackward0";
  Ints self_sym_sizes;
  Grads backward(const Grads& dy) { return {reshape(dy[0], self_sym_sizes)}; }
  FIELDS(self_sym_sizes)
};
Tensor view(const Tensor& input, IntSpan size) {
  Ints sizes = infer_size(size, input.numel());
  std::optional<Ints> strides = view_strides(input, sizes);
  if (!strides) {
    std::string how = text("\n  its sizes are ", to_text(input.sizes()), ", its strides ", to_text(input.strides()));
    if (input->grad_fn && input->grad_fn->site)
      how += text(": an order of memory made by ", input->grad_fn->type->name, " at ", input->grad_fn->site.describe());
    else if (input->cut && input->cut->kind == CutKind::Strided && input->cut->site)
      how += text(": an order of memory made by ", input->cut->op, "() at ", input->cut->site.describe());
    how += "\n  reshape() copies where it must; contiguous().view() always does.";
    fail(ErrorKind::Runtime,
         "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
         "contiguous "
         "subspaces). Use .reshape(...) instead.",
         how);
  }
  Tensor y = alias(input, sizes, *strides, input->offset);
  return record_view<ViewBackward>(y, input, [&](auto& n) { n.self_sym_sizes = Ints(input.sizes()); });
}

// view(dtype): the same bytes read as another type; no derivative
static Tensor view_dtype(const Tensor& input, DType dtype) {
  int64_t from = input.item_size(), to = itemsize(dtype);
  Ints sizes(input.sizes()), strides(input.strides());
  int64_t offset = input->offset;
  if (from != to) {
    CHECK(input.dim() > 0, Runtime, "self.dim() cannot be 0 to view ", info(input.dtype()).legacy, " as ",
          info(dtype).legacy, " (different element sizes)");
    CHECK(input.strides()[input.dim() - 1] == 1 || input.sizes()[input.dim() - 1] <= 1, Runtime,
          "self.stride(-1) must be 1 to view ", info(input.dtype()).legacy, " as ", info(dtype).legacy,
          " (different element sizes), but got ", input.strides()[input.dim() - 1]);
    auto rescale = [&](int64_t v, const char* what) {
      CHECK(v * from % to == 0, Runtime, what, " must be divisible by ", to / std::max<int64_t>(from, 1), " to view ",
            info(input.dtype()).legacy, " as ", info(dtype).legacy, " (different element sizes), but got ", v);
      return v * from / to;
    };
    int64_t last = input.dim() - 1;
    sizes[last] = rescale(sizes[last], "self.size(-1)");
    for (int64_t i = 0; i < last; ++i) strides[i] = rescale(strides[i], "self.stride()");
    offset = rescale(offset, "self.storage_offset()");
  }
  Tensor y = alias_as(input, dtype, sizes, strides, offset);
  // Not a view to autograd, so it belongs to the mode that it is made in; only normal tensors count their writes.
  y->inference = t_grad_mode.inference;
  if (input->inference != y->inference) {
    Version* own = new_version(0);
    set_version(y.get(), own);
    own->refs = 1;  // only y holds it
  }
  return y;
}

// reshape: a view where the memory allows, else a copy
struct UnsafeViewBackward : ViewBackward {
  static constexpr const char* kName = "UnsafeViewBackward0";
};
Tensor reshape(const Tensor& input, IntSpan shape) {
  Ints sizes = infer_size(shape, input.numel());
  if (view_strides(input, sizes)) return view(input, sizes);
  // Nobody else holds the copy: the result is no view of it.
  Tensor copy = clone(input, MemoryFormat::Contiguous);
  Tensor y = alias(copy, sizes, contiguous_strides(sizes), copy->offset);
  return record<UnsafeViewBackward>(y, {copy}, [&](auto& n) { n.self_sym_sizes = Ints(copy.sizes()); });
}

// permute: dimensions in another order        dx = dy with the inverse order
struct PermuteBackward : Node {
  static constexpr const char* kName = "PermuteBackward0";
  Ints dims;
  Grads backward(const Grads& dy) {
    Ints inverse(dims.size());
    for (int64_t i = 0; i < dims.size(); ++i) inverse[dims[i]] = i;
    return {permute(dy[0], inverse)};
  }
  FIELDS(dims)
};
Tensor permute(const Tensor& input, IntSpan dims) {
  CHECK(dims.size() == input.dim(), Runtime,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
        "ordering of dimensions i.e. input.dim() = ",
        input.dim(), " is not equal to len(dims) = ", dims.size());
  Ints order(dims.size()), sizes(dims.size()), strides(dims.size());
  uint64_t seen = 0;
  for (int64_t i = 0; i < dims.size(); ++i) {
    int64_t d = wrap_dim(dims[i], input.dim());
    CHECK(!(seen >> d & 1), Runtime, "permute(): duplicate dims are not allowed.");
    seen |= uint64_t{1} << d;
    order[i] = d;
    sizes[i] = input.sizes()[d];
    strides[i] = input.strides()[d];
  }
  Tensor y = alias(input, sizes, strides, input->offset);
  return record_view<PermuteBackward>(y, input, [&](auto& n) { n.dims = order; });
}

// transpose: two dimensions exchanged        dx = the same of dy
struct TransposeBackward : Node {
  static constexpr const char* kName = "TransposeBackward0";
  int64_t dim0 = 0, dim1 = 0;
  Grads backward(const Grads& dy) { return {transpose(dy[0], dim0, dim1)}; }
  FIELDS(dim0, dim1)
};
Tensor transpose(const Tensor& input, int64_t dim0, int64_t dim1) {
  int64_t a = wrap_dim(dim0, input.dim()), b = wrap_dim(dim1, input.dim());
  Ints sizes(input.sizes()), strides(input.strides());
  if (input.dim() > 0) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  Tensor y = alias(input, sizes, strides, input->offset);
  return record_view<TransposeBackward>(y, input, [&](auto& n) { n.dim0 = a, n.dim1 = b; });
}
struct TBackward : Node {
  static constexpr const char* kName = "TBackward0";
  Grads backward(const Grads& dy) { return {t(dy[0])}; }
};
Tensor t(const Tensor& input) {
  CHECK(input.dim() <= 2, Runtime, "t() expects a tensor with <= 2 dimensions, but self is ", input.dim(), "D");
  Ints sizes(input.sizes()), strides(input.strides());
  std::reverse(sizes.begin(), sizes.end());
  std::reverse(strides.begin(), strides.end());
  Tensor y = alias(input, sizes, strides, input->offset);
  return record_view<TBackward>(y, input, [](auto&) {});
}

// expand: size-1 dimensions repeated without copying        dx = dy summed over them (by the engine)
struct ExpandBackward : Node {
  static constexpr const char* kName = "ExpandBackward0";
  Ints self_sym_sizes;
  Grads backward(const Grads& dy) { return {sum_to(dy[0], self_sym_sizes)}; }
  FIELDS(self_sym_sizes)
};
Tensor expand(const Tensor& input, IntSpan size) {
  CHECK(size.size() >= input.dim(), Runtime, "expand(", info(input.dtype()).legacy, "Tensor{", to_text(input.sizes()),
        "}, size=", to_text(size), "): the number of sizes provided (", size.size(),
        ") must be greater or equal to the number of dimensions in the tensor (", input.dim(), ")");
  int64_t shift = size.size() - input.dim();
  Ints sizes(size.size()), strides(size.size());
  for (int64_t i = 0; i < size.size(); ++i) {
    if (i < shift) {
      CHECK(size[i] >= 0, Runtime, "The expanded size of the tensor (", size[i],
            ") isn't allowed in a leading, non-existing dimension ", i);
      sizes[i] = size[i];
      continue;
    }
    int64_t have = input.sizes()[i - shift];
    CHECK(size[i] == -1 || size[i] == have || (have == 1 && size[i] >= 0), Runtime, "The expanded size of the tensor (",
          size[i], ") must match the existing size (", have, ") at non-singleton dimension ", i,
          ".  Target sizes: ", to_text(size), ".  Tensor sizes: ", to_text(input.sizes()));
    sizes[i] = size[i] == -1 ? have : size[i];
    strides[i] = have == 1 && sizes[i] != 1 ? 0 : input.strides()[i - shift];
  }
  for (int64_t i = input.dim() ? shift - 1 : -1; i >= 0; --i)  // a new dimension of size 1 is no repetition
    strides[i] = sizes[i] != 1 ? 0 : i + 1 < sizes.size() ? sizes[i + 1] * strides[i + 1] : 1;
  Tensor y = alias(input, sizes, strides, input->offset);
  return record_view<ExpandBackward>(y, input, [&](auto& n) { n.self_sym_sizes = Ints(input.sizes()); });
}

// select: one index of a dimension, which disappears        dx = zeros with dy there
struct SelectBackward : Node {
  static constexpr const char* kName = "SelectBackward0";
  Ints self_sym_sizes;
  int64_t dim = 0, index = 0;
  Grads backward(const Grads& dy) {
    Ints strides = contiguous_strides(self_sym_sizes), sizes = self_sym_sizes, rest = strides;
    sizes.erase(dim);
    rest.erase(dim);
    return {embed(dy[0], self_sym_sizes, strides, sizes, rest, index * strides[dim])};
  }
  FIELDS(dim, index, self_sym_sizes)
};
Tensor select(const Tensor& input, int64_t dim, int64_t index) {
  CHECK(input.dim() > 0, Index, "select() cannot be applied to a 0-dim tensor.");
  int64_t d = wrap_dim(dim, input.dim()), n = input.sizes()[d];
  CHECK(index >= -n && index < n, Index, "select(): index ", index, " out of range for tensor of size ",
        to_text(input.sizes()), " at dimension ", d);
  int64_t i = index < 0 ? index + n : index;
  Ints sizes(input.sizes()), strides(input.strides());
  int64_t offset = input->offset + i * strides[d];
  sizes.erase(d);
  strides.erase(d);
  Tensor y = alias(input, sizes, strides, offset);
  return record_view<SelectBackward>(y, input, [&](auto& node) {
    node.self_sym_sizes = Ints(input.sizes());
    node.dim = d;
    node.index = i;
  });
}

// slice: every step-th index of a dimension from start to end        dx = zeros with dy there
struct SliceBackward : Node {
  static constexpr const char* kName = "SliceBackward0";
  Ints self_sym_sizes;
  int64_t dim = 0, start = 0, end = 0, step = 1;
  Grads backward(const Grads& dy) {
    Ints strides = contiguous_strides(self_sym_sizes), part = strides;
    part[dim] *= step;
    return {embed(dy[0], self_sym_sizes, strides, dy[0].sizes(), part, start * strides[dim])};
  }
  FIELDS(dim, start, end, step, self_sym_sizes)
};
Tensor slice(const Tensor& input, int64_t dim, int64_t start, int64_t end, int64_t step) {
  CHECK(input.dim() > 0, Runtime, "slice() cannot be applied to a 0-dim tensor.");
  CHECK(step > 0, Value, "step must be greater than zero");
  int64_t d = wrap_dim(dim, input.dim()), n = input.sizes()[d];
  auto clip = [n](int64_t v) { return std::clamp<int64_t>(v < 0 ? (v < -n ? 0 : v + n) : v, 0, n); };
  int64_t from = clip(start), to = std::max(clip(end), from);
  Ints sizes(input.sizes()), strides(input.strides());
  sizes[d] = to > from ? (to - from - 1) / step + 1 : 0;
  int64_t offset = input->offset + (sizes[d] ? from * strides[d] : from * strides[d]);
  int64_t stretched;
  if (__builtin_mul_overflow(strides[d], step, &stretched)) stretched = strides[d];  // then only one element is left
  strides[d] = stretched;
  Tensor y = alias(input, sizes, strides, offset);
  return record_view<SliceBackward>(y, input, [&](auto& node) {
    node.self_sym_sizes = Ints(input.sizes());
    node.dim = d;
    node.start = from;
    node.end = to;
    node.step = step;
  });
}
Tensor narrow(const Tensor& input, int64_t dim, int64_t start, int64_t length) {
  CHECK(input.dim() > 0, Runtime, "narrow() cannot be applied to a 0-dim tensor.");
  CHECK(length >= 0, Runtime, "narrow(): length must be non-negative.");
  int64_t d = wrap_dim(dim, input.dim()), n = input.sizes()[d];
  CHECK(start >= -n && start <= n, Index, "start out of range (expected to be in range of [", -n, ", ", n,
        "], but got ", start, ")");
  if (start < 0) start += n;
  CHECK(start <= n - length, Runtime, "start (", start, ") + length (", length, ") exceeds dimension size (", n, ").");
  return slice(input, d, start, start + length, 1);
}

// squeeze, unsqueeze: size-1 dimensions removed or added        dx = dy in x's sizes
struct SqueezeBackward : Node {
  static constexpr const char* kName = "SqueezeBackward1";
  Ints self_sym_sizes;
  Grads backward(const Grads& dy) { return {reshape(dy[0], self_sym_sizes)}; }
  FIELDS(self_sym_sizes)
};
static Tensor squeeze_where(const Tensor& input, uint64_t dims) {
  Ints sizes, strides;
  for (int64_t i = 0; i < input.dim(); ++i)
    if (!(dims >> i & 1) || input.sizes()[i] != 1) {
      sizes.push_back(input.sizes()[i]);
      strides.push_back(input.strides()[i]);
    }
  Tensor y = alias(input, sizes, strides, input->offset);
  return record_view<SqueezeBackward>(y, input, [&](auto& n) { n.self_sym_sizes = Ints(input.sizes()); });
}
Tensor squeeze(const Tensor& input, int64_t dim) {
  return squeeze_where(input, uint64_t{1} << wrap_dim(dim, input.dim()));
}
static Tensor squeeze_all(const Tensor& input) { return squeeze_where(input, ~uint64_t{0}); }
static Tensor squeeze_dims(const Tensor& input, const Ints& dim) {
  uint64_t mask = 0;
  for (int64_t d : dim) {
    uint64_t bit = uint64_t{1} << wrap_dim(d, input.dim());
    CHECK(!(mask & bit), Runtime, "dim ", wrap_dim(d, input.dim()), " appears multiple times in the list of dims");
    mask |= bit;
  }
  return squeeze_where(input, mask);
}

struct UnsqueezeBackward : Node {
  static constexpr const char* kName = "UnsqueezeBackward0";
  int64_t dim = 0;
  Grads backward(const Grads& dy) { return {squeeze(dy[0], dim)}; }
  FIELDS(dim)
};
Tensor unsqueeze(const Tensor& input, int64_t dim) {
  int64_t d = wrap_dim(dim, input.dim() + 1);
  Ints sizes(input.sizes()), strides(input.strides());
  int64_t stride = d < input.dim() ? sizes[d] * strides[d] : 1;
  sizes.insert(d, 1);
  strides.insert(d, stride);
  Tensor y = alias(input, sizes, strides, input->offset);
  return record_view<UnsqueezeBackward>(y, input, [&](auto& n) { n.dim = d; });
}

Tensor flatten(const Tensor& input, int64_t start_dim, int64_t end_dim) {
  int64_t a = wrap_dim(start_dim, input.dim()), b = wrap_dim(end_dim, input.dim());
  CHECK(a <= b, Runtime, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (input.dim() == 0) return reshape(input, {1});
  if (a == b) return input;
  Ints sizes;
  int64_t joined = 1;
  for (int64_t i = a; i <= b; ++i) joined *= input.sizes()[i];
  for (int64_t i = 0; i < input.dim(); ++i) {
    if (i < a || i > b) sizes.push_back(input.sizes()[i]);
    else if (i == a) sizes.push_back(joined);
  }
  return reshape(input, sizes);
}

// detach: the same memory and version counter, no history
Tensor detach(const Tensor& input) { return alias(input); }

struct AliasBackward : Node {
  static constexpr const char* kName = "AliasBackward0";
  Grads backward(const Grads& dy) { return {dy[0]}; }
};
Tensor record_alias(Tensor y, const Tensor& input) {
  return record_view<AliasBackward>(std::move(y), input, [](auto&) {});
}
static Tensor alias_op(const Tensor& input) { return record_alias(alias(input), input); }

// sum_to: dimensions that were broadcast, summed        dx = dy expanded
struct SumToBackward : Node {
  static constexpr const char* kName = "SumToSizeBackward0";
  Ints self_sym_sizes;
  Grads backward(const Grads& dy) { return {expand(dy[0], self_sym_sizes)}; }
};
Tensor sum_to(const Tensor& input, IntSpan sizes) {
  if (input.sizes() == sizes) return input;
  int64_t shift = input.dim() - sizes.size();
  CHECK(shift >= 0, Runtime, "size {", to_text(sizes), "} is not expandable to size {", to_text(input.sizes()), "}.");
  Ints kept(input.dim(), 1);
  for (int64_t i = 0; i < sizes.size(); ++i) {
    CHECK(sizes[i] == 1 || sizes[i] == input.sizes()[shift + i], Runtime, "size {", to_text(sizes),
          "} is not expandable to size {", to_text(input.sizes()), "}.");
    kept[shift + i] = sizes[i];
  }
  Tensor y = empty(kept, input.dtype(), input.device());
  if (!input.device().is_meta()) g_cpu->reduce->reduce(Reduce::Sum, y.view(), input.view(), 0);
  set_geometry(y.get(), sizes, contiguous_strides(sizes), 0);
  return record<SumToBackward>(y, {input}, [&](auto& n) { n.self_sym_sizes = Ints(input.sizes()); });
}

// Forms that Python calls.
static Tensor as_strided_op(const Tensor& input, const Ints& size, const Ints& stride, std::optional<int64_t> offset) {
  return as_strided(input, size, stride, offset);
}
static Tensor view_op(const Tensor& input, const Ints& size) { return view(input, size); }
static Tensor reshape_op(const Tensor& input, const Ints& shape) { return reshape(input, shape); }
static Tensor permute_op(const Tensor& input, const Ints& dims) { return permute(input, dims); }
static Tensor expand_op(const Tensor& input, const Ints& size, bool) { return expand(input, size); }
static Tensor sum_to_op(const Tensor& input, const Ints& size) {
  // Integers are summed in int64, as by sum.
  bool sums = size.empty() || !(input.sizes() == IntSpan(size));
  return sum_to(sums && is_integral(input.dtype(), true) ? cast(input, DType::Int64) : input, size);
}

static const Register registered([](Ops& ops) {
  ops.def("as_strided", as_strided_op, "input, size, stride, storage_offset=None", kMethod | kView,
          "A view with any sizes and strides over the storage.");
  ops.def("view", view_op, "input, size...", kMethod | kNoFunction | kView,
          "The same elements in other sizes, without copying; one size may be -1.");
  ops.def("view", view_dtype, "input, dtype", kMethod | kNoFunction | kView);
  ops.def("reshape", reshape_op, "input, shape...", kMethod | kView,
          "The same elements in other sizes: a view if possible, else a copy.");
  ops.def("permute", permute_op, "input, dims...", kMethod | kView, "A view with the dimensions in another order.");
  ops.def("transpose", transpose, "input, dim0, dim1", kMethod | kView, "A view with two dimensions exchanged.");
  ops.def("t", t, "input", kMethod | kView, "A matrix transposed, as a view.");
  ops.def("expand", expand_op, "input, size..., *, implicit=False", kMethod | kNoFunction | kView,
          "A view with size-1 dimensions repeated.");
  ops.def("select", select, "input, dim, index", kMethod | kView, "A view of one index of a dimension.");
  ops.def("narrow", narrow, "input, dim, start, length", kMethod | kView, "A view of a range of a dimension.");
  ops.def("squeeze", squeeze_all, "input", kMethod | kView, "A view without dimensions of size 1.");
  ops.def("squeeze", squeeze, "input, dim", kMethod | kView);
  ops.def("squeeze", squeeze_dims, "input, dim", kMethod | kView);
  ops.def("unsqueeze", unsqueeze, "input, dim", kMethod | kView, "A view with a new dimension of size 1.");
  ops.def("flatten", flatten, "input, start_dim=0, end_dim=-1", kMethod | kView, "Several dimensions joined to one.");
  ops.def("detach", detach, "input", kMethod | kView | kNotDifferentiable, "The same memory outside the graph.");
  ops.def("alias", alias_op, "input", kView, "The same memory, with the identity as its history.");
  ops.def("sum_to_size", sum_to_op, "input, size...", kMethod | kNoFunction | kNoOut,
          "Sums over dimensions until the tensor has these sizes.");
});

}  // namespace ops
}  // namespace rl
