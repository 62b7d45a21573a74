// Dilated 3x3 filters by Winograd's way.
//
// Note [Parts of a dilated image]
// With dilation d, pixels that leave the same remainders by d meet each other alone: they are a image of their own,
// on which the filter is not dilated. So the image is dealt out into d * d smaller ones, which are one batch, and the
// results are put back. Where sizes are no multiples of d, parts have zeros at their end, and results nobody wants.
#include "cpu/conv/algorithms.h"
#include "cpu/conv/avx512.h"
#include "cpu/conv/tuning.h"
#include "cpu/isa.h"
#include "cpu/loops/bytes.h"

namespace rl::RL_ISA {
namespace {

namespace conv512 = rl::avx512::conv;

struct Parts {
  const ConvShape& s;
  ConvShape each = s;
  int64_t count;

  explicit Parts(const ConvShape& shape) : s(shape), count(shape.dilation[1] * shape.dilation[2]) {
    each.batch = s.batch * count, each.workspace = nullptr;
    for (int d = 1; d < 3; ++d) {
      each.in[d] = (s.in[d] + s.dilation[d] - 1) / s.dilation[d];
      each.out[d] = (s.out[d] + s.dilation[d] - 1) / s.dilation[d];
      each.padding[d] = s.padding[d] / s.dilation[d], each.dilation[d] = 1;
    }
  }
  int64_t x_size() const { return each.batch * each.in_channels * each.in_plane(); }
  int64_t y_size() const { return each.batch * each.out_channels * each.out_plane(); }

  // f(row of a image, row of its first part, step to the next part, pixels of a part's row that there are not) for
  // all rows of the parts; the image's row is null where it has none.
  template <class F> void rows(int64_t channels, const int64_t* size, const int64_t* part, const F& f) const {
    const int64_t down = s.dilation[1], across = s.dilation[2], area = part[1] * part[2];
    parallel_for(0, s.batch * channels, std::max<int64_t>(1, 16384 / (size[1] * size[2])),
                 [&](int64_t first, int64_t last) {
                   for (int64_t i = first; i < last; ++i) {
                     const int64_t n = i / channels, c = i % channels;
                     for (int64_t row = 0; row < part[1] * down; ++row)
                       f(row < size[1] ? (i * size[1] + row) * size[2] : -1,
                         ((n * down + row % down) * across * channels + c) * area + row / down * part[2]);
                   }
                 });
  }
  // How many pixels the part that begins at column r has in a row of n.
  static int64_t pixels(int64_t n, int64_t r, int64_t step) { return n > r ? (n - r + step - 1) / step : 0; }

  void deal(int64_t channels, const int64_t* size, const int64_t* part, const float* from, float* to) const {
    const int64_t across = s.dilation[2], next = channels * part[1] * part[2];
    rows(channels, size, part, [&](int64_t row, int64_t at) {
      for (int64_t r = 0; r < across; ++r, at += next) {
        const int64_t n = row < 0 ? 0 : pixels(size[2], r, across);
        if (n)
          gather_items<float>(reinterpret_cast<char*>(to + at), reinterpret_cast<const char*>(from + row + r),
                              across * static_cast<int64_t>(sizeof(float)), n);
        std::fill(to + at + n, to + at + part[2], 0.0f);
      }
    });
  }
  void collect(int64_t channels, const int64_t* size, const int64_t* part, const float* from, float* to) const {
    const int64_t across = s.dilation[2], next = channels * part[1] * part[2];
    rows(channels, size, part, [&](int64_t row, int64_t at) {
      for (int64_t r = 0; row >= 0 && r < across; ++r, at += next)
        for (int64_t j = 0, n = pixels(size[2], r, across); j < n; ++j) to[row + r + j * across] = from[at + j];
    });
  }
  void deal_x(const float* x, float* to) const { deal(s.in_channels, s.in, each.in, x, to); }
  void deal_y(const float* y, float* to) const { deal(s.out_channels, s.out, each.out, y, to); }
  void collect_x(const float* from, float* x) const { collect(s.in_channels, s.in, each.in, from, x); }
  void collect_y(const float* from, float* y) const { collect(s.out_channels, s.out, each.out, from, y); }
};

// The convolution that gives dx: of dy by the flipped filters.
ConvShape flipped_shape(const ConvShape& s) {
  ConvShape r = s;
  std::swap(r.in_channels, r.out_channels);
  for (int d = 1; d < 3; ++d) std::swap(r.in[d], r.out[d]), r.padding[d] = s.kernel[d] - 1 - s.padding[d];
  return r;
}
// Which of the two kernels computes the parts.
bool runs_avx512(const ConvShape& s) {
  return conv512::winograd_applicable(s) &&
         (conv512::winograd_profitable(s) || !winograd_applicable(s) || !winograd_profitable(s));
}
int64_t winograd_bytes(const ConvShape& s) {
  return runs_avx512(s) ? conv512::winograd_workspace(s) : winograd_workspace(s);
}
bool run_winograd(const ConvShape& s, float* y, const float* x, const float* w, const float* bias, bool flipped) {
  return runs_avx512(s) ? conv512::winograd(s, y, x, w, bias, flipped) : winograd(s, y, x, w, bias, flipped);
}

// Memory for the parts of x and y, and behind them for Winograd's way.
struct Buffers {
  Scratch<float> own;
  float *x, *y;
  Buffers(Parts& parts, const ConvShape& s) {
    if (!s.workspace) own.reset(parts.x_size() + parts.y_size());
    x = s.workspace ? static_cast<float*>(s.workspace) : own.get(), y = x + parts.x_size();
    if (s.workspace) parts.each.workspace = y + (parts.y_size() + 15) / 16 * 16;
  }
};

}  // namespace

bool dilated_applicable(const ConvShape& s, ConvPass pass) {
  if (s.groups != 1 || s.batch == 0 || s.kernel[1] != 3 || s.kernel[2] != 3 || s.dilation[1] * s.dilation[2] == 1)
    return false;
  for (int d = 1; d < 3; ++d)
    if (s.stride[d] != 1 || s.padding[d] % s.dilation[d] != 0 || s.padding[d] > 2 * s.dilation[d] || s.out[d] == 0)
      return false;
  const ConvShape each = Parts(s).each;
  if (pass == ConvPass::Weight) return conv512::winograd_applicable(each);
  const ConvShape r = pass == ConvPass::Input ? flipped_shape(each) : each;
  return conv512::winograd_applicable(r) || winograd_applicable(r);
}

bool dilated_profitable(const ConvShape& s, ConvPass pass) {
  double wanted = 1;  // of what Winograd's tiles give
  for (int d = 1; d < 3; ++d) {
    const int64_t given = pass == ConvPass::Input ? s.in[d] : s.out[d],
                  tiles = (given + 4 * s.dilation[d] - 1) / (4 * s.dilation[d]);
    wanted *= static_cast<double>(given) / static_cast<double>(tiles * 4 * s.dilation[d]);
  }
  if (wanted < tuning::kDilatedUsefulOutputs) return false;
  const ConvShape each = Parts(s).each;
  if (pass == ConvPass::Weight) return conv512::winograd_profitable(each);
  const ConvShape r = pass == ConvPass::Input ? flipped_shape(each) : each;
  return (conv512::winograd_applicable(r) && conv512::winograd_profitable(r)) ||
         (winograd_applicable(r) && winograd_profitable(r));
}

int64_t dilated_workspace(const ConvShape& s, ConvPass pass) {
  const Parts parts(s);
  const int64_t copies = (parts.x_size() + parts.y_size() + 32) * static_cast<int64_t>(sizeof(float));
  if (pass == ConvPass::Weight) return copies + conv512::winograd_wgrad_workspace(parts.each);
  return copies + winograd_bytes(pass == ConvPass::Input ? flipped_shape(parts.each) : parts.each);
}

bool dilated_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias) {
  Parts parts(s);
  const Buffers buffers(parts, s);
  parts.deal_x(x, buffers.x);
  if (!run_winograd(parts.each, buffers.y, buffers.x, w, bias, false)) return false;
  parts.collect_y(buffers.y, y);
  return true;
}

bool dilated_dgrad(const ConvShape& s, float* dx, const float* dy, const float* w, const float* bias) {
  Parts parts(s);
  const Buffers buffers(parts, s);
  parts.deal_y(dy, buffers.y);
  if (!run_winograd(flipped_shape(parts.each), buffers.x, buffers.y, w, bias, true)) return false;
  parts.collect_x(buffers.x, dx);
  return true;
}

bool dilated_wgrad(const ConvShape& s, float* dw, const float* dy, const float* x) {
  Parts parts(s);
  const Buffers buffers(parts, s);
  parts.deal_x(x, buffers.x), parts.deal_y(dy, buffers.y);
  return conv512::winograd_wgrad(parts.each, dw, buffers.y, buffers.x);
}

}  // namespace rl::RL_ISA
