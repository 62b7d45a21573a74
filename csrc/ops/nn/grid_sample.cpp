#include <climits>

#include "autograd/engine.h"
#include "backend/backend.h"
#include "ops/elementwise/elementwise.h"
#include "ops/index/gather.h"
#include "ops/ops.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shape.h"
#include "schema/registry.h"

namespace rl::ops {

// A coordinate in pixels brought inside, where padding asks for it, and one of the grid in pixels; written with ops.
static Tensor keep_inside(Tensor at, int64_t size, const GridShape& s) {
  double n = static_cast<double>(size);
  if (s.padding == 2) {
    double low = s.align_corners ? 0 : -0.5, span = s.align_corners ? n - 1 : n;
    if (span == 0) return zeros_like(at);
    Tensor away = abs(sub(at, low)), flips = floor(div(detach(away), span)), rest = sub(away, mul(flips, span));
    at = add(where(eq(remainder(flips, 2), 0), rest, sub(span, rest)), low);
  }
  return s.padding ? clamp(at, Scalar(0), Scalar(n - 1)) : at;
}
static Tensor to_pixels(const Tensor& g, int64_t size, const GridShape& s) {
  double n = static_cast<double>(size);
  Tensor at = s.align_corners ? mul(add(g, 1), (n - 1) / 2) : mul(sub(mul(add(g, 1), n), 1), 0.5);
  return s.cubic ? at : keep_inside(at, size, s);
}

// Keys' weight (a = -0.75) of tap k of four, for a position at t in [0, 1) between the middle two.
static Tensor cubic_weight(const Tensor& t, int k) {
  constexpr double a = -0.75;
  Tensor x = k == 0 ? add(t, 1) : k == 1 ? t : k == 2 ? sub(1, t) : sub(2, t);
  if (k == 1 || k == 2) return add(mul(sub(mul(x, a + 2), a + 3), mul(x, x)), 1);
  return sub(mul(add(mul(sub(mul(x, a), 5 * a), x), 8 * a), x), 4 * a);
}

// grid_sample written with ops, for derivatives of its derivative.
static Tensor composed(const Tensor& x, const Tensor& grid, const GridShape& s) {
  const int64_t sizes[3] = {s.width, s.height, s.depth};
  const int taps = s.nearest ? 1 : s.cubic ? 4 : 2;
  Tensor corners[3][4], weights[3][4];
  for (int d = 0; d < s.dims; ++d) {
    Tensor at = to_pixels(select(grid, 2, d), sizes[d], s), still = detach(at);
    Tensor whole = floor(s.nearest ? add(still, 0.5) : still);
    if (s.nearest && s.dims == 3)  // of two equally near, the even one
      whole = where(logical_and(eq(sub(whole, still), 0.5), eq(remainder(whole, 2), 1)), sub(whole, 1), whole);
    for (int k = 0; k < taps; ++k) {
      Tensor position = s.cubic ? keep_inside(add(whole, k - 1), sizes[d], s) : k ? add(whole, 1) : whole;
      Tensor inside = logical_and(ge(position, 0), le(position, sizes[d] - 1));
      corners[d][k] = cast(keep_where(inside, position), DType::Int64);
      if (s.nearest) weights[d][k] = cast(inside, x.dtype());
      else if (s.cubic) weights[d][k] = keep_where(inside, cubic_weight(sub(at, whole), k));
      else weights[d][k] = keep_where(inside, k ? sub(at, whole) : sub(add(whole, 1), at));
    }
  }
  Tensor flat = reshape(x, {s.batch, s.channels, s.depth * s.height * s.width}), total;
  for (int corner = 0, count = taps * taps * (s.dims == 3 ? taps : 1); corner < count; ++corner) {
    Tensor weight, position;
    for (int d = s.dims - 1; d >= 0; --d) {
      const int k = d == 0 ? corner % taps : d == 1 ? corner / taps % taps : corner / taps / taps;
      position = position.defined() ? add(mul(position, sizes[d]), corners[d][k]) : corners[d][k];
      weight = weight.defined() ? mul(weight, weights[d][k]) : weights[d][k];
    }
    Tensor index = expand(unsqueeze(position, 1), {s.batch, s.channels, s.points});
    Tensor term = mul(gather(flat, 2, index), unsqueeze(weight, 1));
    total = total.defined() ? add(total, term) : term;
  }
  return total;
}

// grid_sample: y = the weighted sum of the four pixels around each position (or the nearest one)
//   dx: dy times the weights, put at the pixels; dgrid: dy times the derivatives of the weights and of the pixel
//   coordinates
struct GridSampleBackward : Node {
  static constexpr const char* kName = "GridSampler2DBackward0";
  Saved input, grid;
  GridShape shape{};
  Grads backward(const Grads& dy) {
    Tensor x = input.unpack(*this), g = grid.unpack(*this), dx, dgrid;
    if (grad_enabled()) return again(x, g, dy[0]);
    Tensor d = contiguous(dy[0]), xc = contiguous(x), gc = contiguous(g);
    View dx_view, dgrid_view;
    if (needs(0)) dx = empty(x.sizes(), x.dtype(), x.device());
    if (needs(1)) dgrid = empty(g.sizes(), x.dtype(), x.device());
    if (needs(0)) dx_view = dx.view();
    if (needs(1)) dgrid_view = dgrid.view();
    backend(d.device())
        .resample->grid_sample_grad(shape, needs(0) ? &dx_view : nullptr, needs(1) ? &dgrid_view : nullptr, d.view(),
                                    xc.view(), gc.view());
    return {dx, dgrid};
  }
  // Differentiates the composed form at stand-ins of the inputs.
  Grads again(Tensor x, Tensor g, const Tensor& dy) {
    Tensors wanted;
    Tensor* all[] = {&x, &g};
    for (int i = 0; i < 2; ++i)
      if (needs(i)) *all[i] = record_alias(alias(*all[i]), *all[i]), wanted.push_back(*all[i]);
    Tensor y = composed(x, g, shape);
    Grads dx(2);
    if (!y.requires_grad()) return dx;
    Tensors found = run_backward({.roots = Span<Tensor>(&y, 1),
                                  .gradients = Span<Tensor>(&dy, 1),
                                  .retain_graph = true,
                                  .create_graph = true,
                                  .inputs = wanted,
                                  .accumulate = false});
    for (int64_t i = 0, k = 0; i < 2; ++i)
      if (needs(i)) {
        dx[i] = found[k].defined() ? found[k] : zeros_like(*all[i]);
        ++k;
      }
    return dx;
  }
  FIELDS(input, grid)
};
static Tensor grid_sample(const Tensor& x, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners) {
  const int64_t dims = x.dim() - 2;
  bool right = (dims == 2 || (dims == 3 && mode != 2)) && grid.dim() == 3 && grid.sizes()[0] == x.sizes()[0] &&
               grid.sizes()[2] == dims && x.dtype() == grid.dtype() && x.device() == grid.device() &&
               (x.dtype() == DType::Float32 || x.dtype() == DType::Float64) && mode >= 0 && mode <= 2 && padding >= 0 &&
               padding <= 2;
  int64_t size = 1;
  for (int64_t d = 2; right && d < x.dim(); ++d) size = checked_mul(size, x.sizes()[d]);
  CHECK(right && size > 0 && size <= INT_MAX, Runtime,
        "grid_sample: expected images (N, C, H, W) and points (N, P, 2), or volumes (N, C, D, H, W) and points "
        "(N, P, 3), of one type, float or double, got ",
        to_text(x.sizes()), " and ", to_text(grid.sizes()));
  GridShape s{x.sizes()[0],
              x.sizes()[1],
              x.sizes()[dims],
              x.sizes()[dims + 1],
              grid.sizes()[1],
              mode == 1,
              static_cast<int>(padding),
              align_corners,
              mode == 2,
              static_cast<int>(dims),
              dims == 3 ? x.sizes()[2] : 1};
  Tensor y = empty(Ints{s.batch, s.channels, s.points}, x.dtype(), x.device());
  if (y.numel()) {
    NoGrad raw;
    backend(y.device()).resample->grid_sample(s, y.view(), contiguous(x).view(), contiguous(grid).view());
  }
  return record<GridSampleBackward>(y, {x, grid}, [&](auto& n) {
    n.input = save(x);
    n.grid = save(grid);
    n.shape = s;
  });
}

// The same at points (N, H, W, 2) or (N, D, H, W, 3): y is (N, C, H, W) or (N, C, D, H, W).
static Tensor grid_sample_points(const Tensor& x, const Tensor& grid, int64_t mode, int64_t padding,
                                 bool align_corners) {
  if (grid.dim() < 4 || grid.dim() != x.dim()) return grid_sample(x, grid, mode, padding, align_corners);
  IntSpan g = grid.sizes();
  const int64_t n = grid.dim();
  int64_t points = 1;
  for (int64_t d = 1; d < n - 1; ++d) points = checked_mul(points, g[d]);
  Tensor y = grid_sample(x, reshape(grid, {g[0], points, g[n - 1]}), mode, padding, align_corners);
  Ints sizes{y.sizes()[0], y.sizes()[1]};
  for (int64_t d = 1; d < n - 1; ++d) sizes.push_back(g[d]);
  return reshape(y, sizes);
}

// bag_sum: y[b] = the sum over bag b of factor[i] weight[indices[i]]
//   dweight = factor[i] dy[bag of i] added at indices[i], dfactor[i] = dy[bag of i] . weight[indices[i]]
struct BagSumBackward : Node {
  static constexpr const char* kName = "EmbeddingBagBackward0";
  Saved weight, indices, starts, factors;
  Grads backward(const Grads& dy) {
    Tensor w = weight.unpack(*this), at = indices.unpack(*this), begin = starts.unpack(*this);
    if (!grad_enabled() && !needs(1)) return {raw_grad(w, at, begin, dy[0]), Tensor()};
    Tensor sizes = sub(narrow(begin, 0, 1, dy[0].sizes()[0]), narrow(begin, 0, 0, dy[0].sizes()[0])), dw, df;
    Tensor bag = empty(Ints{at.numel()}, DType::Int64, at.device());
    if (bag.numel()) backend(bag.device()).index->repeat_indices(bag.view(), contiguous(sizes).view());
    Tensor rows = index_select(dy[0], 0, bag);
    if (needs(0)) {
      Tensor scaled = factors.defined() ? mul(rows, unsqueeze(factors.unpack(*this), 1)) : rows;
      dw = index_add(zeros(w.sizes(), w.dtype(), w.device()), 0, at, scaled);
    }
    if (needs(1)) df = sum(mul(rows, index_select(w, 0, at)), Ints{1});
    return {dw, df};
  }
  Tensor raw_grad(const Tensor& w, const Tensor& at, const Tensor& begin, const Tensor& dy) {
    Tensor dw = zeros(w.sizes(), w.dtype(), w.device());
    if (!dw.numel() || !at.numel()) return dw;
    Tensor d = contiguous(dy), i = contiguous(at), s = contiguous(begin), f;
    View f_view;
    if (factors.defined()) f = contiguous(factors.unpack(*this)), f_view = f.view();
    backend(dw.device()).resample->bag_put(dw.view(), d.view(), i.view(), s.view(), f.defined() ? &f_view : nullptr);
    return dw;
  }
  FIELDS(weight, indices, starts, factors)
};
static Tensor bag_sum(const Tensor& weight, const Tensor& indices, const Tensor& starts, const OptTensor& factors) {
  CHECK(weight.dim() == 2 && indices.dim() == 1 && starts.dim() == 1 && starts.numel() >= 1 &&
            indices.dtype() == DType::Int64 && starts.dtype() == DType::Int64 &&
            (weight.dtype() == DType::Float32 || weight.dtype() == DType::Float64) &&
            (!factors.defined() || (factors.dtype() == weight.dtype() && factors.sizes() == indices.sizes())),
        Runtime, "bag_sum: expected a table (V, D) of floats, int64 indices (L), int64 starts (B + 1) and factors (L)");
  Tensor y = empty(Ints{starts.numel() - 1, weight.sizes()[1]}, weight.dtype(), weight.device());
  {
    NoGrad raw;
    Tensor w = contiguous(weight), at = contiguous(indices), begin = contiguous(starts),
           f = factors.defined() ? contiguous(factors) : Tensor();
    // All indices belong to a bag, so that each has a gradient.
    if (starts.numel() > 1 && begin.has_values())
      CHECK(item(select(begin, 0, 0)).to_int() == 0 && item(select(begin, 0, -1)).to_int() == indices.numel(), Runtime,
            "bag_sum: expected starts from 0 to ", indices.numel());
    View f_view;
    if (f.defined()) f_view = f.view();
    backend(y.device()).resample->bag_sum(y.view(), w.view(), at.view(), begin.view(), f.defined() ? &f_view : nullptr);
  }
  return record<BagSumBackward>(y, {weight, factors}, [&](auto& n) {
    n.weight = save(weight);
    n.indices = save(indices);
    n.starts = save(starts);
    if (factors.defined()) n.factors = save(factors);
  });
}

static const Register registered([](Ops& ops) {
  ops.def("_nn.grid_sample", grid_sample_points, "input, grid, mode, padding_mode, align_corners", kNoOut,
          "(N, C, P): images (N, C, H, W) at points (N, P, 2), or more dimensions of them; mode is 0 bilinear or 1 "
          "nearest, padding 0 zeros, "
          "1 border or 2 reflection.");
  ops.def("_nn.bag_sum", bag_sum, "weight, indices, starts, factors=None", kNoOut,
          "Sums of rows of weight over bags of indices; bag b has those from starts[b] to starts[b + 1].");
});

}  // namespace rl::ops
