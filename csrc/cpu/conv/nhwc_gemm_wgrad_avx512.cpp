// The gradient by the filters of pictures with their channels last: for each tap a product of what it sees, turned,
// with dy (Note [Rows of channels]).
#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "cpu/conv/avx512.h"
#include "cpu/loops/scratch.h"

#if defined(__x86_64__)
#include "cpu/avx512_begin.h"

namespace rl::cpu::conv512 {
namespace {

constexpr int64_t kPlaces = 192;   // summed in one go
constexpr int64_t kChannels = 96;  // of the input in a piece of work, at most
constexpr int64_t kPanels = 4;     // of dy's channels in a piece, at most
constexpr int64_t kPieces = 8;     // of work that are enough

// A piece takes some rows of output places at a time: what their taps of one row of filters see is copied to planes,
// one for each remainder by the stride, so that each tap is a shift; the places that a shift takes too many meet zeros
// in the copy of dy.
template <class T> struct RowWeight {
  using V = Vec<T>;
  static constexpr int W = V::W;
  static constexpr int64_t kPanel = 2 * W;
  const ConvShape& s;
  const T *dy, *x;
  int64_t in = s.in_channels / s.groups, out = s.out_channels / s.groups;
  int64_t panels = (out + kPanel - 1) / kPanel, parts = (in + kChannels - 1) / kChannels,
          part = (in + parts - 1) / parts;
  int64_t stride = s.stride[2], phases = std::min(stride, (s.kernel[2] - 1) * s.dilation[2] + 1);
  int64_t reach = (s.kernel[2] - 1) * s.dilation[2] / stride;                   // the largest shift
  int64_t cols = s.out[2] <= 2 * kPlaces + reach ? s.out[2] : kPlaces + reach;  // of places taken together
  int64_t pitch = cols + reach;
  int64_t rows = std::max<int64_t>(1, kPlaces / pitch);

  int64_t panel_width(int64_t panel) const { return out - panel * kPanel > W ? kPanel : W; }

  // Places [ow, end) of a row of dy, of all images' rows, to `to` (pitch, width), zeros behind them.
  void take_side(int64_t row, int64_t ow, int64_t end, int64_t channel, int64_t width, int64_t count, T* to) const {
    const T* from = dy + (row * s.out[2] + ow) * s.out_channels + channel;
    const auto m0 = first_lanes<T>(count), m1 = first_lanes<T>(count - W);
    for (int64_t i = ow; i < end; ++i, from += s.out_channels, to += width) {
      V::store(to, V::load(from, m0));
      if (width > W) V::store(to + W, V::load(from + W, m1));
    }
    std::fill(to, to + (pitch - (end - ow)) * width, T(0));
  }
  // What they see of row (id, ih), from place ow on: a plane for each remainder, `plane` apart, of tiles of channels,
  // `step` apart; `before`: the places of the rows before this one.
  void take_seen(int64_t n, int64_t id, int64_t ih, int64_t ow, int64_t channel, int64_t count, int64_t tile, T* to,
                 int64_t step, int64_t plane, int64_t before) const {
    const bool there = id >= 0 && id < s.in[0] && ih >= 0 && ih < s.in[1];
    const T* row = x + (((n * s.in[0] + id) * s.in[1] + ih) * s.in[2]) * s.in_channels + channel;
    for (int64_t f = 0; f < phases; ++f, to += plane) {
      // Place i of the plane is i * stride + first of the row.
      const int64_t first = ow * stride + f - s.padding[2];
      const int64_t a = !there ? pitch : first >= 0 ? 0 : std::min(pitch, (-first + stride - 1) / stride);
      const int64_t b = !there || first >= s.in[2] ? a : std::clamp((s.in[2] - 1 - first) / stride + 1, a, pitch);
      for (int64_t c = 0; c < count; c += tile) {
        const int64_t some = std::min(tile, count - c);
        T* at = to + c / tile * step + before * some;
        std::fill(at, at + a * some, T(0));
        const auto m0 = first_lanes<T>(some), m1 = first_lanes<T>(some - W);
        for (int64_t i = a; i < b; ++i) {
          const T* from = row + (i * stride + first) * s.in_channels + c;
          V::store(at + i * some, V::load(from, m0), m0);
          if (kBlockRows > W) V::store(at + i * some + W, V::load(from + W, m1), m1);
        }
        std::fill(at + b * some, at + pitch * some, T(0));
      }
    }
  }

  // One row of taps, panels [p0, p1) of dy's channels, channels from c0 on of x's; images [n0, n1).
  void sum(int64_t g, int64_t p0, int64_t p1, int64_t kd, int64_t kh, int64_t c0, int64_t n0, int64_t n1, T* dw) const {
    const int64_t count = std::min(part, in - c0), tiles = (count + kBlockRows - 1) / kBlockRows;
    const int64_t tile = (count + tiles - 1) / tiles, step = (rows + 1) * pitch * tile, plane = step * tiles;
    const int64_t results = s.kernel[2] * count * kPanel;  // of one panel
    Scratch<T> side(rows * pitch * kPanel), seen(phases * plane), sums(results * (p1 - p0));
    std::fill(sums.get(), sums.get() + results * (p1 - p0), T(0));
    const int64_t deep = s.out[0], high = s.out[1];
    for (int64_t row = n0 * deep * high, stop = n1 * deep * high; row < stop; row += rows)
      for (int64_t ow = 0; ow < s.out[2]; ow += cols) {
        const int64_t held = std::min(rows, stop - row), end = std::min(s.out[2], ow + cols);
        const int64_t places = (held - 1) * pitch + end - ow;
        for (int64_t r = 0; r < held; ++r) {
          const int64_t oh = (row + r) % high, od = (row + r) / high % deep, n = (row + r) / high / deep;
          take_seen(n, od * s.stride[0] - s.padding[0] + kd * s.dilation[0],
                    oh * s.stride[1] - s.padding[1] + kh * s.dilation[1], ow, g * in + c0, count, tile, seen.get(),
                    step, plane, r * pitch);
        }
        for (int64_t p = p0; p < p1; ++p) {
          const int64_t width = panel_width(p);
          for (int64_t r = 0; r < held; ++r)
            take_side(row + r, ow, end, g * out + p * kPanel, width, out - p * kPanel, side.get() + r * pitch * width);
          const BlockFn<T>* blocks = width > W ? blocks_of<T, 2>(false, false) : blocks_of<T, 1>(false, false);
          for (int64_t c = 0; c < count; c += tile)
            for (int64_t kw = 0; kw < s.kernel[2]; ++kw) {
              const int64_t at = kw * s.dilation[2], some = std::min(tile, count - c);
              blocks[some](places, seen.get() + at % stride * plane + c / tile * step + at / stride * some, some,
                           side.get(), width, sums.get() + (p - p0) * results + (kw * count + c) * width, width, T(1),
                           true, nullptr, first_lanes<T>(W));
            }
        }
      }
    const int64_t taps = s.taps(), tap = (kd * s.kernel[1] + kh) * s.kernel[2];
    for (int64_t p = p0; p < p1; ++p) {
      const int64_t width = panel_width(p);
      for (int64_t o = 0; o < std::min(width, out - p * kPanel); ++o) {
        T* to = dw + ((g * out + p * kPanel + o) * in + c0) * taps + tap;
        const T* from = sums.get() + (p - p0) * results + o;
        for (int64_t c = 0; c < count; ++c)
          for (int64_t kw = 0; kw < s.kernel[2]; ++kw) to[c * taps + kw] = from[(kw * count + c) * width];
      }
    }
  }

  void run(T* dw) const {
    const int64_t kernels = s.kernel[0] * s.kernel[1], alone = s.groups * kernels * parts;
    // What is seen is copied for several panels, if there are pieces enough.
    const int64_t most = (panels + kPanels - 1) / kPanels;
    const int64_t shares = std::clamp((kPieces + alone - 1) / alone, most, panels), pieces = alone * shares;
    const int64_t runs = std::clamp<int64_t>((kPieces + pieces - 1) / pieces, 1, s.batch);
    const int64_t size = s.out_channels * in * s.taps();
    Scratch<T> more((runs - 1) * size);
    const double work = static_cast<double>(s.batch * s.out_plane()) * static_cast<double>(s.kernel[2] * part * out) /
                        static_cast<double>(runs * shares);
    const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(1e6 / (work + 1)));
    parallel_for(0, runs * pieces, grain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t run = i / pieces, c = i % parts * part, k = i / parts % kernels, p = i / parts / kernels % shares,
                      g = i % pieces / parts / kernels / shares;
        sum(g, panels * p / shares, panels * (p + 1) / shares, k / s.kernel[1], k % s.kernel[1], c,
            s.batch * run / runs, s.batch * (run + 1) / runs, run ? more.get() + (run - 1) * size : dw);
      }
    });
    if (runs > 1)
      parallel_for(0, size, 16384, [&](int64_t first, int64_t last) {
        for (int64_t r = 0; r < runs - 1; ++r)
          for (int64_t i = first; i < last; ++i) dw[i] += more[r * size + i];
      });
  }
};

}  // namespace

bool nhwc_gemm_wgrad_applicable(const ConvShape& s) { return nhwc_gemm_applicable(s) && s.stride[2] <= 16; }
bool nhwc_gemm_wgrad_profitable(const ConvShape& s, int lanes) {
  const int64_t in = s.in_channels / s.groups, out = s.out_channels / s.groups;
  // Places that a shift takes too many are work for nothing. For floats there is another way (direct_wgrad).
  const int64_t reach = (s.kernel[2] - 1) * s.dilation[2] / s.stride[2];
  if (reach > (lanes == Vec<float>::W ? s.out[2] * 3 / 20 : s.out[2] / 2)) return false;
  return (out + lanes - 1) / lanes * lanes < out * 3 / 2 && in >= 6;
}
template <class T> void nhwc_gemm_wgrad(const ConvShape& s, T* dw, const T* dy, const T* x) {
  RowWeight<T>{s, dy, x}.run(dw);
}
template void nhwc_gemm_wgrad(const ConvShape&, float*, const float*, const float*);
template void nhwc_gemm_wgrad(const ConvShape&, double*, const double*, const double*);

}  // namespace rl::cpu::conv512
#include "cpu/avx512_end.h"
#else
namespace rl::cpu::conv512 {
bool nhwc_gemm_wgrad_applicable(const ConvShape&) { return false; }
bool nhwc_gemm_wgrad_profitable(const ConvShape&, int) { return false; }
template <class T> void nhwc_gemm_wgrad(const ConvShape&, T*, const T*, const T*) {}
template void nhwc_gemm_wgrad(const ConvShape&, float*, const float*, const float*);
template void nhwc_gemm_wgrad(const ConvShape&, double*, const double*, const double*);
}  // namespace rl::cpu::conv512
#endif
