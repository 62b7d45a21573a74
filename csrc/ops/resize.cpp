// Resizing of one dimension by linear or cubic interpolation, or by filters; nn.functional.interpolate goes dimension
// by dimension.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/backend.h"
#include "ops/ops.h"
#include "ops/registry.h"

namespace rl::ops {
namespace {

// Where result j reads and how much of each element it takes. Places are computed in the type R, as PyTorch's are.
struct Resize {
  int64_t n_in = 0, n_out = 0;
  int taps = 2;                // 2: linear, 4: cubic; of a filter: as many as it can meet
  bool align_corners = false;  // whether the centres of the first and last elements coincide, else their outer edges
  double step = 1;             // how far one step of the result goes in the input
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
    const R turn = R(3.14159265358979323846) * x;
    return x < 3 ? sinc(turn) * sinc(turn / 3) : R(0);
  }
  double reach() const { return filter * std::max(step, 1.0); }
  // Weights of a filter that is stretched over the elements which a result stands for; they add up to 1.
  template <class R> void fill_filtered(std::vector<int64_t>& places, std::vector<double>& weights) const {
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
        places.push_back(std::min(first + k, n_in - 1));
      }
      for (const R w_k : w) weights.push_back(static_cast<double>(w_k / sum));
    }
  }

  template <class R> void fill(std::vector<int64_t>& places, std::vector<double>& weights) const {
    if (filter) return fill_filtered<R>(places, weights);
    for (int64_t j = 0; j < n_out; ++j) {
      const R i = static_cast<R>(j), s = static_cast<R>(step);
      R at = align_corners ? i * s : (i + R(0.5)) * s - R(0.5);
      if (taps == 2) {
        at = std::max(at, R(0));
        const R low = std::min(std::floor(at), static_cast<R>(n_in - 1));
        const R upper = std::clamp(at - low, R(0), R(1));
        const auto place = static_cast<int64_t>(low);
        places.push_back(place);
        places.push_back(std::min(place + 1, n_in - 1));
        weights.push_back(static_cast<double>(1 - upper));
        weights.push_back(static_cast<double>(upper));
        continue;
      }
      constexpr R kA = R(-0.75);
      const R whole = std::floor(at), t = at - whole;
      auto near = [](R x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
      auto far = [](R x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
      for (const R w : {far(t + 1), near(t), near(1 - t), far(2 - t)}) weights.push_back(static_cast<double>(w));
      for (int64_t k = -1; k <= 2; ++k)
        places.push_back(std::clamp<int64_t>(static_cast<int64_t>(whole) + k, 0, n_in - 1));
    }
  }
  // run(table) for a tensor whose dimension `dim` has n_in or n_out elements. last: channels are last in its memory.
  template <class Run> void with_table(const Tensor& t, int64_t dim, bool last, Run run) const {
    std::vector<int64_t> places;
    std::vector<double> weights;
    if (t.dtype() == DType::Float64 || t.dtype() == DType::UInt8) fill<double>(places, weights);
    else fill<float>(places, weights);
    ResizeTable s{1, n_in, n_out, 1, taps, places.data(), weights.data()};
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

// resize_dim: y[j] = sum over k of w[j, k] x[place[j, k]] along dim        dx: dy times the weights, put at the places
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
  if (!x.device().is_meta() && y.numel()) {
    Tensor from = contiguous(x, order_of(x, last));
    r.with_table(y, dim, last, [&](const ResizeTable& s) { g_cpu->resample->resize(s, y.view(), from.view()); });
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
  if (!dy.device().is_meta() && dx.numel()) {
    Tensor from = contiguous(dy, order_of(dy, last));
    r.with_table(dx, dim, last, [&](const ResizeTable& s) { g_cpu->resample->resize_grad(s, dx.view(), from.view()); });
  }
  return record<ResizeGradBackward>(dx, {dy}, [&](auto& n) {
    n.dim = dim;
    n.how = r;
  });
}
static Tensor resize_dim(const Tensor& x, int64_t dim, int64_t size, bool cubic, bool align_corners, double step,
                         int64_t filter) {
  CHECK(is_float(x.dtype()) || (filter && x.dtype() == DType::UInt8), NotImplemented,
        "resize_dim: there is no kernel for '", info(x.dtype()).legacy, "'");
  const int64_t d = wrap_dim(dim, x.dim());
  CHECK(x.dim() > 0 && x.sizes()[d] > 0 && size > 0, Runtime, "resize_dim: expected sizes above 0, got ",
        x.dim() ? x.sizes()[d] : 0, " and ", size);
  CHECK(std::isfinite(step) && std::fabs(step) * static_cast<double>(size) < 1e15, Runtime,
        "resize_dim: expected a finite step, got ", step);
  CHECK(filter >= 0 && filter <= 3 && (filter == 0 || step >= 0), Runtime, "resize_dim: there is no filter ", filter);
  Resize how{x.sizes()[d], size, cubic ? 4 : 2, align_corners, step, static_cast<int>(filter)};
  if (filter) {
    const double most = std::min(2 * std::ceil(how.reach()) + 1, static_cast<double>(how.n_in));
    CHECK(most < 1 << 30, Runtime, "resize_dim: the filter is too long");
    how.taps = static_cast<int>(most);
  }
  return resized(x, d, how);
}

static const Register registered([](Ops& ops) {
  ops.def(
      "_nn.resize_dim", resize_dim, "input, dim, size, cubic, align_corners, step, filter=0", kNoOut,
      "One dimension resized by linear or cubic interpolation, or by a filter (1 triangle, 2 cubic, 3 Lanczos's) that "
      "is stretched to the step; a step of the result is `step` elements long.");
});

}  // namespace rl::ops
