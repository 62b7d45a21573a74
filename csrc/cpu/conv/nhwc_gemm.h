// Convolutions of images with their channels last, seen from what is written.
//
// Note [Rows of channels]
// Where channels lie together, a tap reads rows of them: a dozen pixels of one output row are a dozen rows of the
// input, equally far apart, and meet the filters like the rows of any product. Taps side by side are one longer sum,
// because what they read lies side by side too. Taps that see nothing but padding are left out; where only some
// pixels of a dozen see a tap, the input is copied with zeros around.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "backend/conv.h"

namespace rl::avx512::conv {

// One dimension. Written is pixel start + q * out_step of a phase; its tap reads pixel q * in_step + offset.
struct RowAxis {
  struct Tap {
    int64_t kernel, offset;
  };
  struct Phase {
    int64_t start, count, first, last;  // first, last: its taps, in rising order of what they read
  };
  int64_t out_step = 1, in_step = 1, size = 0;  // size: of what is read
  std::vector<Phase> phases;
  std::vector<Tap> taps;

  static RowAxis forward(const ConvShape& s, int d) {
    RowAxis a;
    a.in_step = s.stride[d], a.size = s.in[d];
    for (int64_t k = 0; k < s.kernel[d]; ++k) a.taps.push_back({k, k * s.dilation[d] - s.padding[d]});
    a.phases.push_back({0, s.out[d], 0, s.kernel[d]});
    return a;
  }
  // For the gradient by the input: pixels that leave the same remainder by the stride share their taps.
  static RowAxis input(const ConvShape& s, int d) {
    RowAxis a;
    const int64_t stride = s.stride[d];
    a.out_step = stride, a.size = s.out[d];
    for (int64_t rest = 0; rest < std::min(stride, s.in[d]); ++rest) {
      const auto first = static_cast<int64_t>(a.taps.size());
      for (int64_t k = s.kernel[d] - 1; k >= 0; --k) {
        const int64_t at = rest + s.padding[d] - k * s.dilation[d];
        if (at % stride == 0) a.taps.push_back({k, at / stride});
      }
      a.phases.push_back({rest, (s.in[d] - rest + stride - 1) / stride, first, static_cast<int64_t>(a.taps.size())});
    }
    return a;
  }

  int64_t pixels() const {  // of the longest phase
    int64_t most = 0;
    for (const Phase& p : phases) most = std::max(most, p.count);
    return most;
  }
  // The taps of a phase that pixel q sees.
  void seen(const Phase& p, int64_t q, int64_t* first, int64_t* last) const {
    *first = p.first, *last = p.last;
    while (*first < *last && q * in_step + taps[*first].offset < 0) ++*first;
    while (*last > *first && q * in_step + taps[*last - 1].offset >= size) --*last;
  }
  // The lowest and one past the highest pixel that [q0, q1) read, be they there or not.
  void reach(int64_t q0, int64_t q1, int64_t* low, int64_t* high) const {
    int64_t a = INT64_MAX, b = INT64_MIN;
    for (const Tap& t : taps) a = std::min(a, t.offset), b = std::max(b, t.offset);
    *low = q0 * in_step + a, *high = (q1 - 1) * in_step + b + 1;
  }
};

}  // namespace rl::avx512::conv
