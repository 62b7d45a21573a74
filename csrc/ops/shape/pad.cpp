#include <algorithm>
#include <utility>

#include "backend/backend.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {

// constant_pad_nd: x inside a frame of one value; negative sizes crop        dx = dy with the negated sizes
Tensor constant_pad(const Tensor& input, const Ints& pad, const Scalar& value);
struct ConstantPadNdBackward : Node {
  static constexpr const char* kName = "ConstantPadNdBackward0";
  static constexpr bool kStacks = true;
  Ints pad;
  Grads backward(const Grads& dy) {
    Ints back(pad);
    for (int64_t& v : back) v = -v;
    return {constant_pad(dy[0], back, Scalar(0))};
  }
  FIELDS(pad)
};
Tensor constant_pad(const Tensor& input, const Ints& pad, const Scalar& value) {
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
  Tensor y = empty_ordered(sizes, input.dtype(), input.device(), channels_last(input));
  if (std::any_of(pad.begin(), pad.end(), [](int64_t p) { return p > 0; })) fill_raw(y, value);
  bool any = true;
  int64_t source = input->offset, target = y->offset;
  for (int64_t d = 0; d < ndim; ++d) {
    any = any && length[d] > 0;
    source += from[d] * input.strides()[d];
    target += to[d] * y.strides()[d];
  }
  if (any) copy_into(alias(y, length, y.strides(), target), alias(input, length, input.strides(), source));
  return record<ConstantPadNdBackward>(y, {input}, [&](auto& node) { node.pad = pad; });
}

// extend: x inside a frame of its own values: mirrored without the edge, the edge repeated, or from the other side.
// dx = dy with the frame added to where it came from, which is a linear op whose derivative is extend again.
enum class Frame : int64_t { Reflect, Replicate, Circular };

namespace {

// The frame along one dimension of a tensor that has `before` + length + `after` there: positions [to, to + count) are
// those from `from` on, `step` apart.
struct Edge {
  int64_t to, from, count, step;
};
std::pair<Edge, Edge> edges(Frame frame, int64_t before, int64_t length, int64_t after) {
  int64_t end = before + length;
  switch (frame) {
    case Frame::Reflect: return {{0, 2 * before, before, -1}, {end, end - 2, after, -1}};
    case Frame::Replicate: return {{0, before, before, 0}, {end, end - 1, after, 0}};
    default: return {{0, length, before, 1}, {end, before, after, 1}};
  }
}
Tensor part(const Tensor& t, int64_t dim, int64_t first, int64_t count, int64_t step = 1) {
  Ints sizes(t.sizes()), strides(t.strides());
  int64_t offset = t->offset + first * strides[dim];
  sizes[dim] = count;
  strides[dim] *= step;
  return alias(t, sizes, strides, offset);
}
constexpr const char* kFrameNames[] = {"reflect", "replicate", "circular"};

void check_frame(Frame frame, int64_t length, int64_t before, int64_t after, IntSpan sizes) {
  CHECK(frame != Frame::Reflect || (before < length && after < length), Runtime,
        "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (", before,
        ", ", after, ") at a dimension of size ", length, " of input ", to_text(sizes));
  CHECK(frame != Frame::Circular || (before <= length && after <= length), Runtime,
        "Padding value causes wrapping around more than once.");
  CHECK(length > 0 || (before <= 0 && after <= 0), Runtime, "Expected a non-empty dimension to pad by ",
        kFrameNames[static_cast<int64_t>(frame)], ", got input of shape ", to_text(sizes));
  int64_t size = checked_add(checked_add(length, before), after);
  CHECK(size > 0 || (frame != Frame::Circular && size == 0 && length == 0), Runtime, "input of shape ", to_text(sizes),
        " is too small: a dimension of size ", length, " padded by (", before, ", ", after,
        ") is empty. Calculated output size is too small");
}
// For each place of the framed dimension, the place it copies. What negative sizes crop does not come round again.
Tensor positions_of(Frame frame, int64_t length, int64_t before, int64_t after) {
  int64_t n = length + before + after, start = frame == Frame::Circular ? std::max<int64_t>(-before, 0) : 0;
  int64_t kept = length + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
  Tensor positions = empty(Ints{n}, DType::Int64);
  int64_t* p = positions.data<int64_t>();
  for (int64_t k = 0; k < n; ++k) {
    int64_t i = k - before;
    if (frame == Frame::Replicate) {
      i = std::clamp<int64_t>(i, 0, length - 1);
    } else if (frame == Frame::Circular) {
      i = k - std::max<int64_t>(before, 0);
      i = start + (i < 0 ? i + kept : i >= kept ? i - kept : i);
    } else {
      i = i < 0 ? -i : i;
      i = i >= length ? 2 * (length - 1) - i : i;
    }
    p[k] = i;
  }
  return positions;
}

}  // namespace

static Tensor extend(const Tensor& input, const Ints& pad, int64_t frame);
static Tensor extend_grad(const Tensor& dy, const Ints& pad, int64_t frame);
struct ExtendBackward : Node {
  static constexpr const char* kName = "PadBackward0";
  static constexpr bool kStacks = true;
  Ints pad;
  int64_t frame = 0;
  Grads backward(const Grads& dy) { return {extend_grad(dy[0], pad, frame)}; }
  FIELDS(pad, frame)
};
struct ExtendGradBackward : Node {
  static constexpr const char* kName = "PadBackward0Backward";
  static constexpr bool kStacks = true;
  Ints pad;
  int64_t frame = 0;
  Grads backward(const Grads& dy) { return {extend(dy[0], pad, frame)}; }
  FIELDS(pad, frame)
};
static Tensor extend(const Tensor& input, const Ints& pad, int64_t frame) {
  int64_t ndim = input.dim(), n = pad.size() / 2;
  CHECK(pad.size() % 2 == 0 && n >= 1 && n <= ndim && frame >= 0 && frame <= 2, Runtime,
        "extend: expected pairs of sizes for some of ", ndim, " dimensions, got ", to_text(pad));
  Frame kind = static_cast<Frame>(frame);
  bool crops = false;
  Ints sizes(input.sizes());
  SmallVector<Tensor, 4> positions(n);
  const int64_t* lists[kMaxDims] = {};
  for (int64_t i = 0; i < n; ++i) {
    int64_t d = ndim - 1 - i, before = pad[2 * i], after = pad[2 * i + 1];
    check_frame(kind, sizes[d], before, after, input.sizes());
    crops |= before < 0 || after < 0;
    if (before || after) {
      positions[i] = positions_of(kind, sizes[d], before, after);
      lists[d] = positions[i].data<int64_t>();
    }
    sizes[d] += before + after;
  }
  if (crops) {
    Tensor y = input;
    for (int64_t i = 0; i < n; ++i)
      if (positions[i].defined()) y = index_select(y, ndim - 1 - i, to_device(positions[i], y.device()));
    return y;
  }
  // Channels last: the frame stands around whole pixels.
  const bool last = n <= ndim - 2 && kind != Frame::Circular && channels_last(input);
  Tensor y = empty_ordered(sizes, input.dtype(), input.device(), last);
  if (last && y.numel()) {
    NoGrad raw;
    const int64_t* pixels[kMaxDims] = {lists[0]};
    for (int64_t d = 2; d < ndim; ++d) pixels[d - 1] = lists[d];
    Tensor to = movedim(y, Ints{1}, Ints{ndim - 1}), from = contiguous(movedim(input, Ints{1}, Ints{ndim - 1}));
    const int64_t channels = sizes[1], width = sizes[ndim - 1];
    Tensor numbers;
    // Pixels of a few channels, or few of them in the frame: a line of pixels is one run of its values.
    if (channels < 16 || 4 * (pad[0] + pad[1]) <= width) {
      to = flatten(to, ndim - 2, ndim - 1), from = flatten(from, ndim - 2, ndim - 1);
      if (const int64_t* positions = lists[ndim - 1]) {
        numbers = empty(Ints{width * channels}, DType::Int64);
        int64_t* p = numbers.data<int64_t>();
        for (int64_t i = 0; i < width; ++i)
          for (int64_t c = 0; c < channels; ++c) p[i * channels + c] = positions[i] * channels + c;
        pixels[ndim - 2] = p;
      }
      backend(to.device())
          .copy->spread(to.view(), from.view(), pixels, pad[0] * channels, input.sizes()[ndim - 1] * channels);
    } else {
      backend(to.device()).copy->spread(to.view(), from.view(), pixels, 0, channels);
    }
  } else if (y.numel()) {
    NoGrad raw;
    backend(y.device()).copy->spread(y.view(), contiguous(input).view(), lists, pad[0], input.sizes()[ndim - 1]);
  }
  return record<ExtendBackward>(y, {input}, [&](auto& node) { node.pad = pad, node.frame = frame; });
}
static Tensor extend_grad(const Tensor& dy, const Ints& pad, int64_t frame) {
  int64_t ndim = dy.dim(), n = pad.size() / 2;
  Tensor dx = dy;
  {
    NoGrad raw;
    // The first framed dimension first; after each, its frame is gone.
    for (int64_t i = n - 1; i >= 0; --i) {
      int64_t d = ndim - 1 - i, before = pad[2 * i], after = pad[2 * i + 1], length = dx.sizes()[d] - before - after;
      if (before + after == 0) continue;
      Tensor kept = clone(part(dx, d, before, length), MemoryFormat::Contiguous);
      auto [left, right] = edges(static_cast<Frame>(frame), before, length, after);
      for (const Edge& e : {left, right}) {
        if (e.count == 0) continue;
        // `from` counts from the start of the frame; mirrored values are read backwards.
        if (e.step == 0) {
          add_into(part(kept, d, e.from - before, 1), sum(part(dx, d, e.to, e.count), Ints{d}, true));
        } else if (e.step > 0) {
          add_into(part(kept, d, e.from - before, e.count), part(dx, d, e.to, e.count));
        } else {
          add_into(part(kept, d, e.from - e.count + 1 - before, e.count), part(dx, d, e.to + e.count - 1, e.count, -1));
        }
      }
      dx = kept;
    }
    if (dx.is(dy)) dx = clone(dy);
  }
  return record<ExtendGradBackward>(dx, {dy}, [&](auto& node) { node.pad = pad, node.frame = frame; });
}

static const Register registered([](Ops& ops) {
  ops.def("constant_pad_nd", constant_pad, "input, pad, value=0", 0, R"(
    Puts a border of one value around the last dimensions; negative sizes cut.

    Args:
        pad: (before, after) of the last dimension, then of the one in front of it, and so on, in one list.
        value: the value.

    Example:
        >>> torch.constant_pad_nd(torch.tensor([1, 2]), (1, 2), value=9)
        tensor([9, 1, 2, 9, 9]))");
  ops.def("_nn.extend", extend, "input, pad, frame", kNoOut | kCastFull,
          "The input inside a frame of its own values; frame is 0 reflect or 1 replicate.");
  ops.def("_nn.wrap", extend, "input, pad, frame=2", kNoOut, "The input between copies of itself.");
});

}  // namespace rl::ops
