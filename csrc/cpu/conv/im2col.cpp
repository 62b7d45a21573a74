// Convolutions as products of matrices: tiles of output places become columns, which are multiplied. For every type and
// shape; what there is a quicker way for goes that way (select.cpp).
#include "cpu/conv/algorithms.h"

namespace rl::RL_ISA {
namespace {

// Output places in one tile: the columns should stay in the second-level cache.
int64_t tile_places(int64_t rows, int64_t plane, size_t item) {
  int64_t fit = static_cast<int64_t>((768 << 10) / item) / std::max<int64_t>(rows, 1);
  return std::min(plane, std::max<int64_t>(64, fit / 16 * 16));
}

template <class T> struct Conv {
  const ConvShape& s;
  int64_t cg = s.in_channels / s.groups, og = s.out_channels / s.groups;  // channels of one group
  int64_t rows = cg * s.taps(), in_plane = s.in_plane(), plane = s.out_plane();
  bool direct = is_pointwise(s);

  void add_bias(T* y, int64_t ld, const T* bias, int64_t channels, int64_t places) const {
    for (int64_t o = 0; o < channels; ++o)
      for (int64_t p = 0; p < places; ++p) y[o * ld + p] += bias[o];
  }

  // Small pictures: several images side by side in one tile of columns.
  void forward_images(T* y, const T* x, const T* w, const T* bias, int64_t g, int64_t n0, int64_t n1) const {
    int64_t places = (n1 - n0) * plane;
    Scratch<T> columns(rows * places), result(og * places);
    for (int64_t n = n0; n < n1; ++n)
      im2col(s, x + (n * s.in_channels + g * cg) * in_plane, cg, 0, plane, columns.get() + (n - n0) * plane, places);
    conv_gemm(false, false, og, places, rows, w + g * og * rows, rows, columns.get(), places, T(0), result.get(),
              places);
    for (int64_t n = n0; n < n1; ++n)
      for (int64_t o = 0; o < og; ++o) {
        const T* from = result.get() + o * places + (n - n0) * plane;
        T* to = y + (n * s.out_channels + g * og + o) * plane;
        T shift = bias ? bias[g * og + o] : T(0);
        for (int64_t p = 0; p < plane; ++p) to[p] = from[p] + shift;
      }
  }

  void forward(T* y, const T* x, const T* w, const T* bias) const {
    int64_t tile = tile_places(rows, plane, sizeof(T));
    int64_t tiles = (plane + tile - 1) / tile;
    if (!direct && plane < 96 && s.batch > 1) {
      int64_t images = std::max<int64_t>(1, std::min<int64_t>(s.batch, 192 / plane)),
              blocks = (s.batch + images - 1) / images;
      parallel_for(0, blocks * s.groups, 1, [&](int64_t first, int64_t last) {
        for (int64_t t = first; t < last; ++t)
          forward_images(y, x, w, bias, t % s.groups, t / s.groups * images,
                         std::min(s.batch, (t / s.groups + 1) * images));
      });
      return;
    }
    // Few tiles: all threads build the columns of an image, then share its output channels.
    if (s.batch * s.groups * tiles < 4) {
      Scratch<T> columns(direct ? 1 : rows * plane);
      for (int64_t n = 0; n < s.batch; ++n)
        for (int64_t g = 0; g < s.groups; ++g) {
          const T* image = x + (n * s.in_channels + g * cg) * in_plane;
          if (!direct)
            parallel_for(
                0, cg, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, s.taps() * plane)), [&](int64_t a, int64_t b) {
                  im2col(s, image + a * in_plane, b - a, 0, plane, columns.get() + a * s.taps() * plane, plane);
                });
          const T* col = direct ? image : columns.get();
          int64_t grain = std::max<int64_t>(8, (2000000 / std::max<int64_t>(1, rows * plane) + 7) / 8 * 8);
          parallel_for(0, og, grain, [&](int64_t a, int64_t b) {
            int64_t o = g * og + a;
            T* to = y + (n * s.out_channels + o) * plane;
            conv_gemm(false, false, b - a, plane, rows, w + o * rows, rows, col, plane, T(0), to, plane);
            if (bias) add_bias(to, plane, bias + o, b - a, plane);
          });
        }
      return;
    }
    int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(1e6 / (static_cast<double>(og) * rows * tile + 1)));
    parallel_for(0, s.batch * s.groups * tiles, grain, [&](int64_t first, int64_t last) {
      Scratch<T> columns(direct ? 1 : rows * tile);
      for (int64_t t = first; t < last; ++t) {
        int64_t p0 = t % tiles * tile, p1 = std::min(plane, p0 + tile), g = t / tiles % s.groups,
                n = t / tiles / s.groups;
        const T* image = x + (n * s.in_channels + g * cg) * in_plane;
        T* to = y + (n * s.out_channels + g * og) * plane + p0;
        const T* col = direct ? image + p0 : columns.get();
        if (!direct) im2col(s, image, cg, p0, p1, columns.get(), p1 - p0);
        conv_gemm(false, false, og, p1 - p0, rows, w + g * og * rows, rows, col, direct ? plane : p1 - p0, T(0), to,
                  plane);
        if (bias) add_bias(to, plane, bias + g * og, og, p1 - p0);
      }
    });
  }

  // dx: columns = w' dy, added back. Images, groups and slices of channels are independent.
  void input(T* dx, const T* dy, const T* w) const {
    if (og == 0 || plane == 0) {
      std::fill(dx, dx + s.batch * s.in_channels * in_plane, T(0));
      return;
    }
    int64_t slices = s.batch * s.groups >= 4 ? 1 : std::min<int64_t>(cg, 8),
            slice = (cg + slices - 1) / std::max<int64_t>(slices, 1);
    slices = slice ? (cg + slice - 1) / slice : 0;
    int64_t tile = tile_places(slice * s.taps(), plane, sizeof(T));
    int64_t grain =
        std::max<int64_t>(1, static_cast<int64_t>(1e6 / (static_cast<double>(og) * slice * s.taps() * plane + 1)));
    parallel_for(0, s.batch * s.groups * slices, grain, [&](int64_t first, int64_t last) {
      Scratch<T> columns(direct ? 1 : slice * s.taps() * tile);
      for (int64_t t = first; t < last; ++t) {
        int64_t c0 = t % slices * slice, c1 = std::min(cg, c0 + slice), g = t / slices % s.groups,
                n = t / slices / s.groups;
        T* image = dx + (n * s.in_channels + g * cg + c0) * in_plane;
        int64_t k = (c1 - c0) * s.taps();
        const T* from = dy + (n * s.out_channels + g * og) * plane;
        const T* weights = w + g * og * rows + c0 * s.taps();
        if (direct) {
          conv_gemm(true, false, k, plane, og, weights, rows, from, plane, T(0), image, plane);
          continue;
        }
        std::fill(image, image + (c1 - c0) * in_plane, T(0));
        for (int64_t p0 = 0; p0 < plane; p0 += tile) {
          int64_t p1 = std::min(plane, p0 + tile);
          conv_gemm(true, false, k, p1 - p0, og, weights, rows, from + p0, plane, T(0), columns.get(), p1 - p0);
          col2im(s, image, c1 - c0, p0, p1, columns.get(), p1 - p0);
        }
      }
    });
  }

  // dw = dy columns', summed over images in order. The work is cut into slices of channels, which need nothing of each
  // other, or, where the filters are few, into runs of images with sums of their own, added in order.
  void weight(T* dw, const T* dy, const T* x) const {
    if (s.batch == 0 || plane == 0) {
      std::fill(dw, dw + s.out_channels * rows, T(0));
      return;
    }
    constexpr int64_t kRuns = 8;
    int64_t whole = tile_places(rows, plane, sizeof(T)),
            tiles = plane < 96 ? 1 : (plane + whole - 1) / whole;  // of one image
    if (og * rows <= 65536 && s.batch * tiles >= kRuns) {
      int64_t pieces = s.batch * tiles, size = s.out_channels * rows;
      Scratch<T> sums((kRuns - 1) * size);
      parallel_for(0, kRuns * s.groups, 1, [&](int64_t first, int64_t last) {
        for (int64_t t = first; t < last; ++t) {
          int64_t run = t % kRuns, g = t / kRuns;
          T* to = run ? sums.get() + (run - 1) * size : dw;
          weight_part(to, dy, x, g, 0, cg, 0, og, pieces * run / kRuns, pieces * (run + 1) / kRuns, tiles);
        }
      });
      parallel_for(0, size, 8192, [&](int64_t first, int64_t last) {
        for (int64_t r = 0; r < kRuns - 1; ++r)
          for (int64_t i = first; i < last; ++i) dw[i] += sums[r * size + i];
      });
      return;
    }
    int64_t slice = std::min(cg, std::max((cg + 7) / 8, (127 + s.taps()) / s.taps())),
            slices = (cg + slice - 1) / slice;
    int64_t part = slices * s.groups >= 4 ? og : std::min(og, std::max<int64_t>((og + 3) / 4, 16)),
            parts = (og + part - 1) / part;
    parallel_for(0, s.groups * slices * parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t t = first; t < last; ++t) {
        int64_t o = t % parts * part, c = t / parts % slices * slice, g = t / parts / slices;
        weight_part(dw, dy, x, g, c, std::min(cg, c + slice), o, std::min(og, o + part), 0, s.batch, 1);
      }
    });
  }

  // dw of some channels of a group, from the pieces [n0, n1); an image has `tiles` of them
  void weight_part(T* dw, const T* dy, const T* x, int64_t g, int64_t c0, int64_t c1, int64_t o0, int64_t o1,
                   int64_t n0, int64_t n1, int64_t tiles) const {
    int64_t k = (c1 - c0) * s.taps(), m = o1 - o0, tile = tile_places(k, plane, sizeof(T));
    // Images of small pictures are put side by side, for longer sums in one product.
    int64_t images = plane < 96 ? std::min(n1 - n0, std::max<int64_t>(1, 256 / plane)) : 1;
    int64_t share = (plane + tiles - 1) / tiles;  // places of one piece
    bool gather = images > 1;
    Scratch<T> columns(direct && !gather ? 1 : k * (gather ? images * plane : tile)),
        sides(gather ? m * images * plane : 1);
    T* to = dw + (g * og + o0) * rows + c0 * s.taps();
    T beta = T(0);
    auto image = [&](int64_t n) { return x + (n * s.in_channels + g * cg + c0) * in_plane; };
    auto side = [&](int64_t n) { return dy + (n * s.out_channels + g * og + o0) * plane; };
    for (int64_t n = n0; n < n1 && gather; n += images) {
      int64_t count = std::min(images, n1 - n), places = count * plane;
      for (int64_t i = 0; i < count; ++i) {
        im2col(s, image(n + i), c1 - c0, 0, plane, columns.get() + i * plane, places);
        for (int64_t o = 0; o < m; ++o)
          std::copy(side(n + i) + o * plane, side(n + i) + (o + 1) * plane, sides.get() + o * places + i * plane);
      }
      conv_gemm(false, true, m, k, places, sides.get(), places, columns.get(), places, beta, to, rows);
      beta = T(1);
    }
    for (int64_t t = n0; t < n1 && !gather; ++t)
      for (int64_t n = t / tiles, p0 = t % tiles * share, end = std::min(plane, p0 + share); p0 < end; p0 += tile) {
        int64_t places = std::min(end - p0, tile);
        const T* col = direct ? image(n) + p0 : columns.get();
        if (!direct) im2col(s, image(n), c1 - c0, p0, p0 + places, columns.get(), places);
        conv_gemm(false, true, m, k, places, side(n) + p0, plane, col, direct ? plane : places, beta, to, rows);
        beta = T(1);
      }
  }
};

}  // namespace

template <class T> void im2col_forward(const ConvShape& s, T* y, const T* x, const T* w, const T* bias) {
  Conv<T>{s}.forward(y, x, w, bias);
}
template <class T> void im2col_dgrad(const ConvShape& s, T* dx, const T* dy, const T* w) {
  Conv<T>{s}.input(dx, dy, w);
}
template <class T> void im2col_wgrad(const ConvShape& s, T* dw, const T* dy, const T* x) {
  Conv<T>{s}.weight(dw, dy, x);
}

#define IM2COL(T)                                                                      \
  template void im2col_forward<T>(const ConvShape&, T*, const T*, const T*, const T*); \
  template void im2col_dgrad<T>(const ConvShape&, T*, const T*, const T*);             \
  template void im2col_wgrad<T>(const ConvShape&, T*, const T*, const T*);
IM2COL(float)
IM2COL(double)
IM2COL(std::complex<float>)
IM2COL(std::complex<double>)
IM2COL(int64_t)

}  // namespace rl::RL_ISA
