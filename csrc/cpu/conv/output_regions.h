// How the pixels of a result are cut into regions, each worked on as a whole.
#pragma once
#include "cpu/conv/stride_phases.h"

namespace rl::avx512::conv {
namespace {

inline bool single_pixels(const ConvShape& s) {
  for (int d = 0; d < 3; ++d)
    if (s.kernel[d] != 1 || s.stride[d] != 1 || s.padding[d] != 0) return false;
  return true;
}

// A convolution by single pixels sees its planes as one row.
inline ConvShape flattened(const ConvShape& s) {
  ConvShape r = s;
  if (!single_pixels(s)) return r;
  r.in[2] = r.out[2] = s.in_plane();
  r.in[0] = r.in[1] = r.out[0] = r.out[1] = 1;
  return r;
}

struct OutputRegions {
  int64_t low[3], high[3];  // of the pixels
  int64_t batch = 0, count = 0;
  // Either several whole planes, or rectangles of one.
  int64_t planes = 1, rows = 0, cols = 0, down = 1, across = 1;
  bool by_depth = false;  // whole planes of a region should be at one depth, where taps see the padding alike

  int64_t deep() const { return high[0] - low[0]; }
  int64_t most_pixels() const { return planes * rows * cols; }

  // A region should have about `least` to `most` pixels; each is worked on once for each of the groups.
  void plan(StridePhases& phases, int64_t images, int64_t groups, int64_t channels, int64_t least, int64_t most) {
    batch = images;
    int64_t high_ = high[1] - low[1], wide = high[2] - low[2], total = batch * deep() * high_ * wide;
    by_depth = by_depth && batch * high_ * wide >= 64;
    auto even = [](int64_t size, int64_t part) {  // as even parts of at most about this size
      int64_t n = (size + part - 1) / part;
      return (size + n - 1) / n;
    };
    for (int64_t target = std::clamp<int64_t>(total * std::min<int64_t>(groups, 64) / 16, least, most);; target /= 2) {
      planes = 1, rows = high_, cols = wide;
      if (high_ * wide <= target) {
        int64_t all = batch * deep(), n = (all * high_ * wide + target - 1) / target;
        if (n > 1 && n < 8) n += n % 2;  // few regions should be of equal work for two threads
        planes = (all + n - 1) / n;
        if (by_depth) planes = even(batch, std::min(planes, batch));
      } else if (wide <= target) {
        rows = even(high_, std::max<int64_t>(1, (target + wide / 2) / wide));
      } else {
        rows = std::min<int64_t>(high_, target >= 192 ? 4 : 1);
        cols = std::min(wide, (even(wide, std::max<int64_t>(48, target / rows)) + 15) / 16 * 16);
      }
      phases.lay_out(rows, cols, low[2], cols == wide, planes);
      // The phases should stay in the second-level cache.
      if (phases.plain || phases.size(channels) <= (1 << 18) * 3 / 2 || target <= 48) break;
    }
    down = (high_ + rows - 1) / rows, across = (wide + cols - 1) / cols;
    count = planes == 1 ? batch * deep() * down * across
            : by_depth  ? (batch + planes - 1) / planes * deep()
                        : (batch * deep() + planes - 1) / planes;
  }

  void halos(int64_t region, std::vector<HaloTile>& out) const {
    out.clear();
    if (planes > 1 && by_depth) {
      const int64_t n = region / deep() * planes, depth = low[0] + region % deep();
      for (int64_t i = n; i < std::min(batch, n + planes); ++i) out.push_back({i, depth, low[1], rows, low[2], cols});
      return;
    }
    if (planes > 1) {
      for (int64_t p = region * planes; p < std::min(batch * deep(), (region + 1) * planes); ++p)
        out.push_back({p / deep(), low[0] + p % deep(), low[1], rows, low[2], cols});
      return;
    }
    int64_t p = region / across / down, row = low[1] + region / across % down * rows,
            col = low[2] + region % across * cols;
    out.push_back(
        {p / deep(), low[0] + p % deep(), row, std::min(rows, high[1] - row), col, std::min(cols, high[2] - col)});
  }
};

}  // namespace
}  // namespace rl::avx512::conv
