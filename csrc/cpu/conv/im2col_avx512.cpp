// im2col of floats and its adjoint, sixteen pixels at a time.
//
// Note [Phases of a row]
// Output pixels of one row read, with one tap, every stride-th element of a row of the image. So that row is first
// split into its phases, one for each remainder by the stride, with zeros for the padding: then what any tap of the row
// of filters reads is a shifted piece of a phase, and moving it takes a load and a store.
#include <algorithm>
#include <vector>

#include "cpu/conv/avx512.h"
#include "cpu/loops/scratch.h"

#if defined(__x86_64__)
#include "cpu/conv/strided_load.h"
#include "cpu/gemm/microkernel_avx512.h"

namespace rl::avx512::conv {
namespace {

// Output pixels [p, p + count) of one row, and where they begin in the image.
struct Segment {
  int64_t p, count, d, h, w;  // d, h, w: what the first tap sees
  size_t ranges;              // the first of its kind
};

struct Phases {
  const ConvShape& s;
  int64_t stride = s.stride[2], reach = (s.kernel[2] - 1) * s.dilation[2] / stride;  // the largest shift
  int64_t count = std::min(stride, (s.kernel[2] - 1) * s.dilation[2] + 1);
  int64_t pitch = (s.out[2] + reach + 2 * W - 1) / W * W;
  Spaced spaced{std::min(stride, kMostSpace)};
  Scratch<float> memory{count * pitch};
  // What a segment sees of a row of the image: of the elements first + i * stride those with a <= i < b, i < n.
  // `there`: what the first register, and the last, take of the registers that they are picked from.
  struct Range {
    int64_t first, a, b, n;
    __mmask16 there[2][W];
  };
  std::vector<Range> ranges;  // `count` of them for each kind of segment

  struct Tap {
    int32_t phase, shift;
  };
  std::vector<Tap> taps;  // along the width

  explicit Phases(const ConvShape& shape) : s(shape) {
    for (int64_t kw = 0; kw < s.kernel[2]; ++kw) {
      const int64_t offset = kw * s.dilation[2];
      taps.push_back({.phase = static_cast<int32_t>(offset % stride), .shift = static_cast<int32_t>(offset / stride)});
    }
  }
  // Whether each phase of a segment fits a register: stored in parts it would be slow to read.
  bool in_registers(const Segment& q) const { return stride <= kMostSpace && q.count + reach <= W; }
  float* phase(int64_t f) const { return memory.get() + f * pitch; }
  float* seen_by(int64_t kw) const {
    const int64_t offset = kw * s.dilation[2];
    return phase(offset % stride) + offset / stride;
  }
  void describe(int64_t w, int64_t pixels) {
    for (int64_t f = 0; f < count; ++f) {
      Range& r = ranges.emplace_back();
      r.first = w + f;
      r.n = pixels + reach;
      r.a = r.first >= 0 ? 0 : std::min(r.n, (-r.first + stride - 1) / stride);
      r.b = r.first >= s.in[2] ? r.a : std::clamp((s.in[2] - 1 - r.first) / stride + 1, r.a, r.n);
      if (stride > kMostSpace) continue;
      const int64_t last = (r.n - 1) / W * W;
      spaced.masks(r.a, r.b, r.there[0]);
      spaced.masks(r.a - last, r.b - last, r.there[1]);
    }
  }

  void read(const float* row, const Range& r, float* to) const {
    const float* from = row + r.first;
    if (stride > kMostSpace) {
      std::fill(to, to + r.n, 0.0f);
      for (int64_t i = r.a; i < r.b; ++i) to[i] = from[i * stride];
      return;
    }
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    for (int64_t i = 0; i < r.n; i += W) {
      const bool whole = stride == 2 && r.a <= i && i + W < r.b;
      const float* x = from + i * stride;
      const Reg seen = whole          ? _mm512_permutex2var_ps(load(x), even, load(x + W))
                       : i == 0       ? spaced.read(x, r.there[0])
                       : i + W >= r.n ? spaced.read(x, r.there[1])
                                      : spaced.read(x, r.a - i, r.b - i);
      _mm512_mask_storeu_ps(to + i, lanes(r.n - i), seen);
    }
  }
  // The adjoint: adds a phase to the row.
  void add(const float* from, const Range& r, float* row) const {
    float* to = row + r.first;
    if (stride > 1) {
      for (int64_t i = r.a; i < r.b; ++i) to[i * stride] += from[i];
      return;
    }
    for (int64_t i = r.a; i < r.b; i += W) {
      const __mmask16 m = lanes(r.b - i);
      _mm512_mask_storeu_ps(to + i, m, _mm512_maskz_loadu_ps(m, to + i) + _mm512_maskz_loadu_ps(m, from + i));
    }
  }
};

void copy_segment(const float* from, int64_t n, float* to) {
  int64_t i = 0;
  for (; i + W <= n; i += W) store(to + i, load(from + i));
  if (i < n) _mm512_mask_storeu_ps(to + i, lanes(n - i), _mm512_maskz_loadu_ps(lanes(n - i), from + i));
}
void clear_segment(int64_t n, float* to) {
  for (int64_t i = 0; i < n; i += W) _mm512_mask_storeu_ps(to + i, lanes(n - i), _mm512_setzero_ps());
}
void add_segment(const float* from, int64_t n, float* to) {
  for (int64_t i = 0; i < n; i += W) {
    const __mmask16 m = lanes(n - i);
    _mm512_mask_storeu_ps(to + i, m, _mm512_maskz_loadu_ps(m, to + i) + _mm512_maskz_loadu_ps(m, from + i));
  }
}

// f(row of the columns, row of the image or -1, segment) for each row of taps, of each channel
template <class F>
void for_rows_of_taps(const ConvShape& s, int64_t channels, int64_t p0, int64_t p1, Phases& phases, const F& f) {
  std::vector<Segment> segments;
  for (int64_t p = p0; p < p1; p += segments.back().count) {
    const int64_t ow = p % s.out[2], row = p / s.out[2];
    Segment q{.p = p - p0,
              .count = std::min(s.out[2] - ow, p1 - p),
              .d = row / s.out[1] * s.stride[0] - s.padding[0],
              .h = row % s.out[1] * s.stride[1] - s.padding[1],
              .w = ow * s.stride[2] - s.padding[2],
              .ranges = phases.ranges.size()};
    if (!segments.empty() && segments.back().w == q.w && segments.back().count == q.count)
      q.ranges = segments.back().ranges;
    else phases.describe(q.w, q.count);
    segments.push_back(q);
  }
  const int64_t rows = s.kernel[0] * s.kernel[1];
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < rows; ++i)
      for (const Segment& q : segments) {
        const int64_t d = q.d + i / s.kernel[1] * s.dilation[0], h = q.h + i % s.kernel[1] * s.dilation[1];
        const bool seen = d >= 0 && d < s.in[0] && h >= 0 && h < s.in[1];
        f((c * rows + i) * s.kernel[2], seen ? c * s.in_plane() + (d * s.in[1] + h) * s.in[2] : -1, q);
      }
}

}  // namespace

void im2col(const ConvShape& s, const float* x, int64_t channels, int64_t p0, int64_t p1, float* columns, int64_t ld) {
  Phases phases(s);
  for_rows_of_taps(s, channels, p0, p1, phases, [&](int64_t tap, int64_t row, const Segment& q) {
    float* to = columns + tap * ld + q.p;
    if (row < 0) {
      for (int64_t kw = 0; kw < s.kernel[2]; ++kw) clear_segment(q.count, to + kw * ld);
    } else if (s.kernel[2] == 1) {
      phases.read(x + row, phases.ranges[q.ranges], to);
    } else if (s.stride[2] == 1 && q.w >= 0 && q.w + q.count + phases.reach <= s.in[2]) {
      for (int64_t kw = 0; kw < s.kernel[2]; ++kw)
        copy_segment(x + row + q.w + kw * s.dilation[2], q.count, to + kw * ld);
    } else if (phases.in_registers(q)) {
      const Phases::Range* ranges = phases.ranges.data() + q.ranges;
      Reg r[kMostSpace];
      for (int64_t f = 0; f < phases.count; ++f)
        r[f] = phases.spaced.read(x + row + ranges[f].first, ranges[f].there[0]);
      const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      for (int64_t kw = 0; kw < s.kernel[2]; ++kw) {
        const Phases::Tap& t = phases.taps[static_cast<size_t>(kw)];
        const __m512i from = _mm512_add_epi32(lane, _mm512_set1_epi32(t.shift));
        _mm512_mask_storeu_ps(to + kw * ld, lanes(q.count), _mm512_permutexvar_ps(from, r[t.phase]));
      }
    } else {
      for (int64_t f = 0; f < phases.count; ++f) phases.read(x + row, phases.ranges[q.ranges + f], phases.phase(f));
      for (int64_t kw = 0; kw < s.kernel[2]; ++kw) copy_segment(phases.seen_by(kw), q.count, to + kw * ld);
    }
  });
}

void col2im(const ConvShape& s, float* x, int64_t channels, int64_t p0, int64_t p1, const float* columns, int64_t ld) {
  Phases phases(s);
  for_rows_of_taps(s, channels, p0, p1, phases, [&](int64_t tap, int64_t row, const Segment& q) {
    if (row < 0) return;
    const float* from = columns + tap * ld + q.p;
    if (s.kernel[2] == 1) return phases.add(from, phases.ranges[q.ranges], x + row);
    for (int64_t f = 0; f < phases.count; ++f) clear_segment(q.count + phases.reach, phases.phase(f));
    for (int64_t kw = 0; kw < s.kernel[2]; ++kw) add_segment(from + kw * ld, q.count, phases.seen_by(kw));
    for (int64_t f = 0; f < phases.count; ++f) phases.add(phases.phase(f), phases.ranges[q.ranges + f], x + row);
  });
}

}  // namespace rl::avx512::conv
#else
namespace rl::avx512::conv {
void im2col(const ConvShape&, const float*, int64_t, int64_t, int64_t, float*, int64_t) {}
void col2im(const ConvShape&, float*, int64_t, int64_t, int64_t, const float*, int64_t) {}
}  // namespace rl::avx512::conv
#endif
