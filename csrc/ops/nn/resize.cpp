// Resizing of one dimension by nearest neighbours, linear or cubic interpolation, or by filters;
// nn.functional.interpolate goes dimension by dimension.
#include "ops/nn/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/backend.h"
#include "base/parallel.h"
#include "ops/ops.h"
#include "schema/registry.h"

namespace rl::ops {
namespace {

// Where result j reads and how much of each element it takes. Indices are computed in the type R, as PyTorch's are.
struct Resize {
  int64_t n_in = 0, n_out = 0;
  int taps = 2;                // 1: nearest, 2: linear, 4: cubic; of a filter: as many as it can meet
  bool align_corners = false;  // whether the centres of the first and last elements coincide, else their outer edges
  double step = 1;             // how far one step of the result goes in the input
  bool exact = false;          // of nearest neighbours
  int filter = 0;              // 1: triangle, 2: cubic, 3: Lanczos's; as many elements wide to either side

  // The filter at x >= 0.
  template <class R> R filtered(R x) const {
    if (filter == 1) return std::max(R(1) - x, R(0));
    if (filter == 2) {
      constexpr R kA = R(-0.5);
      if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
      return x < 2 ? ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA : R(0);
    }
    auto sinc = [](R y) { return y == 0 ? R(1) : std::sin(y) / y; };
    const R pi_x = R(3.14159265358979323846) * x;
    return x < 3 ? sinc(pi_x) * sinc(pi_x / 3) : R(0);
  }
  double reach() const { return filter * std::max(step, 1.0); }
  // Weights of a filter that is stretched over the elements which a result stands for; they add up to 1.
  template <class R> void fill_filtered(int64_t* indices, double* weights) const {
    const R support = static_cast<R>(reach()), inverse = step >= 1 ? R(1) / static_cast<R>(step) : R(1);
    std::vector<R> w(static_cast<size_t>(taps));
    for (int64_t j = 0; j < n_out; ++j) {
      const R centre = (static_cast<R>(j) + R(0.5)) * static_cast<R>(step);
      const auto first = static_cast<int64_t>(std::max(centre - support + R(0.5), R(0)));
      const auto end = static_cast<int64_t>(std::min(centre + support + R(0.5), static_cast<R>(n_in)));
      R sum = 0;
      for (int k = 0; k < taps; ++k) {
        const bool inside = first + k < end;
        const R w_k = inside ? filtered(std::fabs((static_cast<R>(first + k) - centre + R(0.5)) * inverse)) : R(0);
        w[static_cast<size_t>(k)] = w_k;
        sum += w_k;
        *indices++ = std::min(first + k, n_in - 1);
      }
      for (const R w_k : w) *weights++ = static_cast<double>(w_k / sum);
    }
  }

  template <class R> void fill(int64_t* indices, double* weights) const {
    if (filter) return fill_filtered<R>(indices, weights);
    parallel_for(0, n_out, 4096, [&](int64_t first, int64_t last) {
      if (taps == 1) fill_nearest(first, last, indices + first, weights + first);
      else if (taps == 2) fill_linear<R>(first, last, indices + 2 * first, weights + 2 * first);
      else fill_cubic<R>(first, last, indices + 4 * first, weights + 4 * first);
    });
  }
  // The element under the beginning of a result, or under its centre where `exact`; found in floats whatever the type.
  void fill_nearest(int64_t first, int64_t last, int64_t* index, double* weight) const {
    const float shift = exact ? 0.5F : 0.0F, s = static_cast<float>(step);
    for (int64_t j = first; j < last; ++j, ++index, ++weight) {
      *index = std::min(static_cast<int64_t>((static_cast<float>(j) + shift) * s), n_in - 1);
      *weight = 1;
    }
  }
  template <class R> R at(int64_t j) const {
    const R i = static_cast<R>(j), s = static_cast<R>(step);
    return align_corners ? i * s : (i + R(0.5)) * s - R(0.5);
  }
  template <class R> void fill_linear(int64_t first, int64_t last, int64_t* index, double* weight) const {
    for (int64_t j = first; j < last; ++j, index += 2, weight += 2) {
      const R x = std::max(at<R>(j), R(0));  // so that a cast rounds down
      const auto low = std::min(static_cast<int64_t>(x), n_in - 1);
      const R upper = std::clamp(x - static_cast<R>(low), R(0), R(1));
      index[0] = low, index[1] = std::min(low + 1, n_in - 1);
      weight[0] = static_cast<double>(1 - upper), weight[1] = static_cast<double>(upper);
    }
  }
  template <class R> void fill_cubic(int64_t first, int64_t last, int64_t* index, double* weight) const {
    constexpr R kA = R(-0.75);
    auto near = [](R x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
    auto far = [](R x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
    for (int64_t j = first; j < last; ++j) {
      const R x = at<R>(j), whole = std::floor(x), t = x - whole;
      for (const R w : {far(t + 1), near(t), near(1 - t), far(2 - t)}) *weight++ = static_cast<double>(w);
      for (int64_t k = -1; k <= 2; ++k) *index++ = std::clamp<int64_t>(static_cast<int64_t>(whole) + k, 0, n_in - 1);
    }
  }
  // run(table) for a tensor whose dimension `dim` has n_in or n_out elements. last: channels are last in its memory.
  template <class Run> void with_table(const Tensor& t, int64_t dim, bool last, Run run) const {
    // Tensors, whose memory is kept: fresh pages for a long row's table take longer than filling it.
    const int64_t n = checked_mul(n_out, taps);
    Tensor indices = empty({n}, DType::Int64), weights = empty({n}, DType::Float64);
    auto* index = indices.view().as<int64_t>();
    auto* weight = weights.view().as<double>();
    if (t.dtype() == DType::Float64 || t.dtype() == DType::UInt8) fill<double>(index, weight);
    else fill<float>(index, weight);
    ResizeTable s{1, n_in, n_out, 1, taps, index, weight};
    for (int64_t d = 0; d < t.dim(); ++d)
      (d < dim && !(last && d == 1) ? s.outer : s.inner) *= d == dim ? 1 : t.sizes()[d];
    run(s);
  }
};

}  // namespace

static Tensor resize_grad(const Tensor& dy, int64_t dim, const Resize& r);
static MemoryFormat order_of(const Tensor& t, bool last) {
  return !last ? MemoryFormat::Contiguous : t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

// resize_dim: y[j] = sum over k of w[j, k] x[index[j, k]] along dim        dx: dy times the weights, added at the
// indices
struct ResizeBackward : Node {
  static constexpr const char* kName = "ResizeDimBackward0";
  static constexpr bool kStacks = true;
  int64_t dim = 0;
  Resize how;
  Grads backward(const Grads& dy) { return {resize_grad(dy[0], dim + lead(dy[0]), how)}; }
  FIELDS(dim)
};
static Tensor resized(const Tensor& x, int64_t dim, const Resize& r) {
  Ints sizes(x.sizes());
  sizes[dim] = r.n_out;
  const bool last = dim >= 2 && channels_last(x);
  Tensor y = empty_ordered(sizes, x.dtype(), x.device(), last);
  if (y.numel()) {
    Tensor from = contiguous(x, order_of(x, last));
    r.with_table(y, dim, last,
                 [&](const ResizeTable& s) { backend(y.device()).resample->resize(s, y.view(), from.view()); });
  }
  return record<ResizeBackward>(y, {x}, [&](auto& n) {
    n.dim = dim;
    n.how = r;
  });
}
// its adjoint        d(dy) = the gradient resized
struct ResizeGradBackward : Node {
  static constexpr const char* kName = "ResizeDimBackwardBackward0";
  static constexpr bool kStacks = true;
  int64_t dim = 0;
  Resize how;
  Grads backward(const Grads& dy) { return {resized(dy[0], dim + lead(dy[0]), how)}; }
  FIELDS(dim)
};
static Tensor resize_grad(const Tensor& dy, int64_t dim, const Resize& r) {
  Ints sizes(dy.sizes());
  sizes[dim] = r.n_in;
  const bool last = dim >= 2 && channels_last(dy);
  Tensor dx = empty_ordered(sizes, dy.dtype(), dy.device(), last);
  if (dx.numel()) {
    Tensor from = contiguous(dy, order_of(dy, last));
    r.with_table(dx, dim, last,
                 [&](const ResizeTable& s) { backend(dx.device()).resample->resize_grad(s, dx.view(), from.view()); });
  }
  return record<ResizeGradBackward>(dx, {dy}, [&](auto& n) {
    n.dim = dim;
    n.how = r;
  });
}
static void check_resize(const Tensor& x, int64_t d, int64_t size, double step) {
  CHECK(x.dim() > 0 && x.sizes()[d] > 0 && size > 0, Runtime, "resize_dim: expected sizes above 0, got ",
        x.dim() ? x.sizes()[d] : 0, " and ", size);
  CHECK(std::isfinite(step) && std::fabs(step) * static_cast<double>(size) < 1e15, Runtime,
        "resize_dim: expected a finite step, got ", step);
}
static Tensor resize_dim(const Tensor& x, int64_t dim, int64_t size, bool cubic, bool align_corners, double step,
                         int64_t filter) {
  CHECK(is_float(x.dtype()) || (filter && x.dtype() == DType::UInt8), NotImplemented,
        "resize_dim: there is no kernel for '", info(x.dtype()).legacy, "'");
  const int64_t d = wrap_dim(dim, x.dim());
  check_resize(x, d, size, step);
  CHECK(filter >= 0 && filter <= 3 && (filter == 0 || step >= 0), Runtime, "resize_dim: there is no filter ", filter);
  Resize how{.n_in = x.sizes()[d],
             .n_out = size,
             .taps = cubic ? 4 : 2,
             .align_corners = align_corners,
             .step = step,
             .filter = static_cast<int>(filter)};
  if (filter) {
    const double most = std::min(2 * std::ceil(how.reach()) + 1, static_cast<double>(how.n_in));
    CHECK(most < 1 << 30, Runtime, "resize_dim: the filter is too long");
    how.taps = static_cast<int>(most);
  }
  return resized(x, d, how);
}

Tensor nearest_by_table(const Tensor& x, int64_t dim, int64_t size, double step, bool exact) {
  check_resize(x, dim, size, step);
  return resized(x, dim, {.n_in = x.sizes()[dim], .n_out = size, .taps = 1, .step = step, .exact = exact});
}

static const Register registered([](Ops& ops) {
  ops.def(
      "_nn.resize_dim", resize_dim, "input, dim, size, cubic, align_corners, step, filter=0", kNoOut,
      "One dimension resized by linear or cubic interpolation, or by a filter (1 triangle, 2 cubic, 3 Lanczos's) that "
      "is stretched to the step; a step of the result is `step` elements long.");
});

}  // namespace rl::ops
