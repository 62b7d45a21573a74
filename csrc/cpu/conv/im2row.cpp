// Convolutions by filters that are nearly as large as the image.
//
// Note [Windows as rows]
// Such filters meet few pixels: seen from a pixel of the image nearly all taps see padding, and a row of results is
// a lane or two. What is long are the rows of a filter. So windows are the rows of a matrix (pixels, channels * taps),
// moved a row of the filter at a time, and products with the filters as they lie give the result and both gradients.
#include "cpu/conv/algorithms.h"
#include "cpu/conv/tuning.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

// A filter as wide as the image sees whole rows, which follow each other: the two last dimensions are one.
ConvShape merged(ConvShape s) {
  for (int round = 0; round < 2; ++round) {
    if (s.kernel[2] != s.in[2] || s.padding[2] != 0 || (s.dilation[2] != 1 && s.kernel[2] > 1) ||
        (s.dilation[1] != 1 && s.kernel[1] > 1))
      break;
    const int64_t width = s.in[2];
    s.in[2] = s.in[1] * width, s.kernel[2] = s.kernel[1] * width, s.out[2] = s.out[1];
    s.stride[2] = s.stride[1] * width, s.padding[2] = s.padding[1] * width, s.dilation[2] = 1;
    s.in[1] = s.in[0], s.kernel[1] = s.kernel[0], s.out[1] = s.out[0];
    s.stride[1] = s.stride[0], s.padding[1] = s.padding[0], s.dilation[1] = s.dilation[0];
    s.in[0] = s.kernel[0] = s.out[0] = s.stride[0] = s.dilation[0] = 1, s.padding[0] = 0;
  }
  return s;
}

template <class T> void add_row(const T* __restrict from, int64_t count, T* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

// Inline, because rows are often short.
template <class T> void copy_row(const T* from, int64_t count, T* to) {
  constexpr int64_t kStep = kLanes<T>;
  if (count < kStep) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i + kStep < count; i += kStep) store_vec(to + i, load_vec(from + i));
  store_vec(to + count - kStep, load_vec(from + count - kStep));
}

template <class T> struct Windows {
  const ConvShape s;
  int64_t cg = s.in_channels / s.groups, og = s.out_channels / s.groups;  // channels of one group
  int64_t taps = s.taps(), rows = cg * taps, in_plane = s.in_plane(), plane = s.out_plane();
  // A piece has several small images, or some pixels of one.
  int64_t images = 1, tile = 1, blocks = 1, tiles = 1;

  explicit Windows(const ConvShape& shape) : s(merged(shape)) {}

  // `width`: numbers of a row of the matrix; `shares`: pieces along other dimensions.
  void cut(int64_t width, int64_t shares) {
    const int64_t fit = std::max<int64_t>(16, static_cast<int64_t>((512 << 10) / sizeof(T)) / width);
    const int64_t most = std::min(fit, std::max<int64_t>(16, s.batch * plane * shares / 8));
    images = std::clamp<int64_t>(most / plane, 1, s.batch), blocks = (s.batch + images - 1) / images;
    tiles = images > 1 ? 1 : (plane + most - 1) / most, tile = (plane + tiles - 1) / tiles;
    tiles = (plane + tile - 1) / tile;
  }
  // The images and pixels of a piece.
  struct Piece {
    int64_t n0, n1, p0, p1;
    int64_t count() const { return (n1 - n0) * (p1 - p0); }
  };
  Piece piece(int64_t i) const {
    const int64_t n = i / tiles * images, p = i % tiles * tile;
    return {n, std::min(s.batch, n + images), p, std::min(plane, p + tile)};
  }

  // f(row of the image, from the first of its `channels` on; in the window; first and last number that are inside;
  // numbers of the row) for each row that the window at pixel p sees
  template <class F> void for_rows(int64_t p, int64_t channels, F&& f) const {
    const int64_t ow = p % s.out[2], oh = p / s.out[2] % s.out[1], od = p / s.out[2] / s.out[1];
    const int64_t start = ow * s.stride[2] - s.padding[2], width = s.kernel[2];
    const int64_t a = std::clamp<int64_t>(-start, 0, width), b = std::clamp(s.in[2] - start, a, width);
    int64_t at = 0;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
        for (int64_t kh = 0; kh < s.kernel[1]; ++kh, at += width) {
          const int64_t d = od * s.stride[0] - s.padding[0] + kd * s.dilation[0],
                        h = oh * s.stride[1] - s.padding[1] + kh * s.dilation[1];
          const bool seen = d >= 0 && d < s.in[0] && h >= 0 && h < s.in[1];
          f(c * in_plane + (d * s.in[1] + h) * s.in[2] + start, at, seen ? a : 0, seen ? b : 0);
        }
  }
  void take(const T* image, int64_t p, T* to) const {
    for_rows(p, cg, [&](int64_t from, int64_t at, int64_t a, int64_t b) {
      for (int64_t i = 0; i < a; ++i) to[at + i] = T(0);
      if (a < b) copy_row(image + from + a, b - a, to + at + a);
      for (int64_t i = b; i < s.kernel[2]; ++i) to[at + i] = T(0);
    });
  }
  // Windows that are one run of the image each need not be moved.
  bool lie_there() const {
    return cg * s.kernel[0] * s.kernel[1] == 1 && s.padding[0] + s.padding[1] + s.padding[2] == 0 && s.out[0] == 1 &&
           s.out[1] == 1 && (rl::cpu::gemm_available() || s.stride[2] >= s.kernel[2]);
  }
  const T* image_of(const T* x, int64_t n, int64_t g) const { return x + (n * s.in_channels + g * cg) * in_plane; }
  const T* side_of(const T* dy, int64_t n, int64_t g) const { return dy + (n * s.out_channels + g * og) * plane; }

  // (og, count) of a piece of several images
  void gather_side(const T* dy, const Piece& q, int64_t g, T* to) const {
    for (int64_t o = 0; o < og; ++o)
      for (int64_t n = q.n0; n < q.n1; ++n, to += plane) {
        const T* from = side_of(dy, n, g) + o * plane;
        std::copy(from, from + plane, to);
      }
  }

  void forward(T* y, const T* x, const T* w, const T* bias) {
    cut(rows, s.groups);
    const bool there = lie_there();
    parallel_for(0, blocks * tiles * s.groups, 1, [&](int64_t first, int64_t last) {
      Scratch<T> seen(there && images == 1 ? 1 : rows * images * tile), results(images > 1 ? og * images * tile : 1);
      for (int64_t i = first; i < last; ++i) {
        const int64_t g = i % s.groups;
        const Piece q = piece(i / s.groups);
        const T *filters = w + g * og * rows, *shift = bias ? bias + g * og : nullptr;
        T* to = y + (q.n0 * s.out_channels + g * og) * plane + q.p0;
        const T* windows = seen.get();
        int64_t step = rows;
        if (there && images == 1) windows = image_of(x, q.n0, g) + q.p0 * s.stride[2], step = s.stride[2];
        else
          for (int64_t n = q.n0, at = 0; n < q.n1; ++n)
            for (int64_t p = q.p0; p < q.p1; ++p, at += rows) take(image_of(x, n, g), p, seen.get() + at);
        T* c = images > 1 ? results.get() : to;
        const int64_t ldc = images > 1 ? q.count() : plane;
        conv_gemm(false, true, og, q.count(), rows, filters, rows, windows, step, T(0), c, ldc);
        for (int64_t o = 0; o < og; ++o)
          for (int64_t n = q.n0, at = 0; n < q.n1 && (shift || images > 1); ++n)
            for (int64_t p = q.p0; p < q.p1; ++p, ++at)
              to[((n - q.n0) * s.out_channels + o) * plane + p - q.p0] = c[o * ldc + at] + (shift ? shift[o] : T(0));
      }
    });
  }

  // Images, groups and slices of channels are independent.
  void input(T* dx, const T* dy, const T* w) {
    const int64_t slices = std::min<int64_t>(cg, 8), slice = (cg + slices - 1) / slices, width = slice * taps;
    cut(width, s.groups * slices);
    parallel_for(0, blocks * s.groups * slices, 1, [&](int64_t first, int64_t last) {
      Scratch<T> given(width * images * tile), sides(images > 1 ? og * images * plane : 1);
      for (int64_t i = first; i < last; ++i) {
        const int64_t c0 = i % slices * slice, c1 = std::min(cg, c0 + slice), g = i / slices % s.groups,
                      block = i / slices / s.groups, k = (c1 - c0) * taps;
        if (c0 >= c1) continue;
        for (int64_t t = 0; t < tiles; ++t) {
          const Piece q = piece(block * tiles + t);
          const T* side = side_of(dy, q.n0, g) + q.p0;
          if (images > 1) {
            gather_side(dy, q, g, sides.get());
            side = sides.get();
          }
          conv_gemm(true, false, q.count(), k, og, side, images > 1 ? q.count() : plane, w + g * og * rows + c0 * taps,
                    rows, T(0), given.get(), k);
          for (int64_t n = q.n0, at = 0; n < q.n1; ++n) {
            T* image = dx + (n * s.in_channels + g * cg + c0) * in_plane;
            if (t == 0) std::fill(image, image + (c1 - c0) * in_plane, T(0));
            for (int64_t p = q.p0; p < q.p1; ++p, at += k)
              for_rows(p, c1 - c0, [&](int64_t to, int64_t row, int64_t a, int64_t b) {
                add_row(given.get() + at + row + a, b - a, image + to + a);
              });
          }
        }
      }
    });
  }

  void weight(T* dw, const T* dy, const T* x) {
    cut(rows, 8);
    parallel_for(0, s.groups, 1, [&](int64_t first, int64_t last) {
      Scratch<T> seen(rows * images * tile), sides(images > 1 ? og * images * plane : 1);
      for (int64_t g = first; g < last; ++g)
        for (int64_t i = 0; i < blocks * tiles; ++i) {
          const Piece q = piece(i);
          const int64_t pixels = q.p1 - q.p0;
          parallel_for(0, q.count(), std::max<int64_t>(1, 32768 / rows), [&](int64_t from, int64_t to) {
            for (int64_t j = from; j < to; ++j)
              take(image_of(x, q.n0 + j / pixels, g), q.p0 + j % pixels, seen.get() + j * rows);
          });
          const T* side = side_of(dy, q.n0, g) + q.p0;
          if (images > 1) {
            gather_side(dy, q, g, sides.get());
            side = sides.get();
          }
          conv_gemm(false, false, og, rows, q.count(), side, images > 1 ? q.count() : plane, seen.get(), rows,
                    i ? T(1) : T(0), dw + g * og * rows, rows);
        }
    });
  }
};

}  // namespace

bool im2row_applicable(const ConvShape& s) {
  if (s.batch == 0 || s.in_channels == 0 || s.out_channels == 0 || s.out_plane() == 0) return false;
  const ConvShape m = merged(s);
  return m.dilation[2] == 1 && m.in_channels / m.groups * m.taps() <= (int64_t{1} << 26);
}
bool im2row_long_rows(const ConvShape& s) {
  const ConvShape m = merged(s);
  return m.kernel[2] >= tuning::kIm2rowWidth && (m.stride[2] > 1 || m.kernel[2] >= m.out[2]);
}
template <class T> void im2row_forward(const ConvShape& s, T* y, const T* x, const T* w, const T* bias) {
  Windows<T>(s).forward(y, x, w, bias);
}
template <class T> void im2row_dgrad(const ConvShape& s, T* dx, const T* dy, const T* w) {
  Windows<T>(s).input(dx, dy, w);
}
template <class T> void im2row_wgrad(const ConvShape& s, T* dw, const T* dy, const T* x) {
  Windows<T>(s).weight(dw, dy, x);
}

#define WINDOWS(T)                                                                     \
  template void im2row_forward<T>(const ConvShape&, T*, const T*, const T*, const T*); \
  template void im2row_dgrad<T>(const ConvShape&, T*, const T*, const T*);             \
  template void im2row_wgrad<T>(const ConvShape&, T*, const T*, const T*);
WINDOWS(float)
WINDOWS(double)

}  // namespace rl::RL_ISA
