// as_strided, and the gradient of every view by its strides.
#include <algorithm>
#include <optional>

#include "autograd/meta.h"
#include "backend/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/ops.h"
#include "ops/shape/view.h"
#include "schema/registry.h"

namespace rl {

namespace ops {
Tensor view_as_real(const Tensor& x);     // ops/elementwise/complex.cpp
Tensor view_as_complex(const Tensor& x);  // ops/elementwise/complex.cpp
Tensor copy_(const Tensor& self, const Value& value, bool non_blocking);
}  // namespace ops

void AsStridedBackward::describe(const TensorObject* base, const TensorObject* of) {
  view = ViewGeometry(base, of);
  size = Ints(IntSpan(of->sizes, of->ndim));
  stride = Ints(IntSpan(of->strides(), of->ndim));
  storage_offset = of->offset;
}
Grads AsStridedBackward::backward(const Grads& dy) {
  Tensor given = view.conj ? ops::conj(dy[0]) : dy[0];
  if (view.neg) given = ops::neg(given);
  if (view.elements == ViewElements::ComplexOfReal) given = ops::view_as_real(given);
  Tensor dx = given.numel() && checked_numel(view.base_sizes)
                  ? ops::embed(given, view.base_sizes, view.base_strides, view.sizes, view.strides, view.distance)
                  : ops::zeros(led(dy[0], view.base_sizes), given.dtype(), given.device());  // a constant
  return {view.elements == ViewElements::RealOfComplex ? ops::view_as_complex(dx) : dx};
}

namespace ops {

// as_strided: any sizes and strides over the input's storage        dx = dy summed into the elements it was read from
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
static bool distinct_elements(IntSpan sizes, IntSpan strides) {
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

// flat[offsets of the view] += values, where flat is zero before.
//
// Where elements share memory, every q-th of a dimension whose step is too short to pass the smaller ones are far
// enough apart: the values go there in q rounds whose offsets differ.
static void add_at(const Tensor& flat, IntSpan sizes, IntSpan strides, int64_t at, const Tensor& values) {
  if (values.numel() == 0) return;
  if (distinct_elements(sizes, strides)) return copy_into(alias(flat, sizes, strides, at), values);
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
  for (int64_t round = 0; round < total; ++round) {
    int64_t rest = round, to = at, source = values->offset;
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

struct Strided {
  Ints sizes, strides;
};
// A base and a view of it, repeated: one after the other in memory, along a new first dimension.
static void add_rows(int64_t rows, Strided& base, Strided& view, int64_t distance) {
  int64_t step = spanning(base.sizes, base.strides, view.sizes, view.strides, distance).size;
  step = checked_add(step, step % 2);  // rows of complex numbers seen as pairs begin with a whole pair
  for (Strided* s : {&base, &view}) {
    s->sizes.insert(0, rows);
    s->strides.insert(0, step);
  }
}

// How many elements of the input lie in each place of the buffer, at least 1.
static Tensor sharers(const Buffer& b, IntSpan base_sizes, IntSpan base_strides, const Tensor& like) {
  NoGrad raw;
  Tensor count = zeros({b.size}, like.dtype(), like.device());
  add_at(count, base_sizes, base_strides, b.base_at, full(base_sizes, Scalar(1), like.dtype(), like.device()));
  return add(count, eq(count, Scalar(0)), Scalar(1));
}

// The adjoint of as_strided, itself linear: its gradient is as_strided again.
struct EmbedBackward : Node {
  static constexpr const char* kName = "AsStridedBackward0Backward";
  static constexpr bool kStacks = true;
  Ints base_sizes, base_strides, sizes, strides;
  int64_t distance = 0;
  Grads backward(const Grads& dy) {
    Strided base{base_sizes, base_strides}, view{sizes, strides};
    if (lead(dy[0])) add_rows(dy[0].sizes()[0], base, view, distance);
    Buffer b = spanning(base.sizes, base.strides, view.sizes, view.strides, distance);
    Tensor flat;
    if (distinct_elements(base.sizes, base.strides)) {
      flat = zeros({b.size}, dy[0].dtype(), dy[0].device());
      copy_(as_strided(flat, base.sizes, base.strides, b.base_at), dy[0], false);
    } else {
      flat = embed(dy[0], Ints{b.size}, Ints{1}, base.sizes, base.strides, b.base_at);
      flat = div(flat, sharers(b, base.sizes, base.strides, flat));
    }
    return {as_strided(flat, view.sizes, view.strides, b.view_at)};
  }
};
Tensor embed(const Tensor& dy, IntSpan base_sizes, IntSpan base_strides, IntSpan sizes, IntSpan strides,
             int64_t distance) {
  if (dy.dim() > sizes.size()) {
    Strided base{Ints(base_sizes), Ints(base_strides)}, view{Ints(sizes), Ints(strides)};
    add_rows(dy.sizes()[0], base, view, distance);
    return embed(dy, base.sizes, base.strides, view.sizes, view.strides, distance);
  }
  Buffer b = spanning(base_sizes, base_strides, sizes, strides, distance);
  Tensor flat = zeros({b.size}, dy.dtype(), dy.device());
  add_at(flat, sizes, strides, b.view_at, dy);
  if (!distinct_elements(base_sizes, base_strides)) {
    // Several elements of the input share a place: each gets its part of what arrived there.
    NoGrad raw;
    flat = div(flat, sharers(b, base_sizes, base_strides, flat));
  }
  Tensor whole = alias(flat, base_sizes, base_strides, b.base_at);
  if (b.size != checked_extent(base_sizes, base_strides) || !distinct_elements(base_sizes, base_strides)) {
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

// Forms that Python calls.
static Tensor as_strided_op(const Tensor& input, const Ints& size, const Ints& stride, std::optional<int64_t> offset) {
  return as_strided(input, size, stride, offset);
}

static const Register registered([](Ops& ops) {
  ops.def("as_strided", as_strided_op, "input, size, stride, storage_offset=None", kMethod | kView, R"(
    Shows the storage with any sizes and strides.

    Args:
        size: the sizes of the view.
        stride: the strides, in elements; several indices may mean one element.
        storage_offset: where in the storage it begins; None takes that of input.

    Gradient:
        Elements that the view has several times get the sum.

    Example:
        >>> x = torch.arange(5)
        >>> torch.as_strided(x, (3, 3), (1, 1))
        tensor([[0, 1, 2],
                [1, 2, 3],
                [2, 3, 4]]))");
});

}  // namespace ops
}  // namespace rl
