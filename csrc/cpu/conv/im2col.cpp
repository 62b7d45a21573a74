// Convolutions as GEMMs with an im2col matrix, some pixels and channels at a time. For every type and shape.
#include "cpu/conv/algorithms.h"
#include "cpu/conv/reorder.h"
#include "cpu/conv/tuning.h"

namespace rl::RL_ISA {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Rows of a matrix of n columns start in different sets of the cache.
int64_t row_stride(int64_t n) { return (ceil_div(n, 16) | 1) * 16; }

template <class T> struct Im2colGemm {
  const ConvShape s;
  int64_t cg = s.in_channels / s.groups, og = s.out_channels / s.groups;  // channels of one group
  int64_t taps = s.taps(), rows = cg * taps, in_plane = s.in_plane(), plane = s.out_plane();
  bool pointwise = is_pointwise(s);
  int64_t images = 1, blocks = 1, tile = 1, tiles = 1;  // a piece has some pixels of one image, or several images
  int64_t slice = 1, slices = 1;                        // channels

  explicit Im2colGemm(const ConvShape& shape) : s(shape) {}

  // Some pixels of one image, or several small images.
  struct Piece {
    int64_t n0, n1, p0, p1;
    int64_t count() const { return (n1 - n0) * (p1 - p0); }
  };
  Piece piece(int64_t i) const {
    const int64_t n = i / tiles * images, p = i % tiles * tile;
    return {.n0 = n, .n1 = std::min(s.batch, n + images), .p0 = p, .p1 = std::min(plane, p + tile)};
  }
  int64_t most_pixels() const { return images * tile; }
  void cut_channels(int64_t least_slices) {
    slices = std::clamp(std::max(ceil_div(rows, tuning::kIm2colRows), least_slices), int64_t{1}, cg);
    slice = ceil_div(cg, slices);
    slices = ceil_div(cg, slice);
  }
  void one_slice() {
    slice = cg;
    slices = 1;
  }
  void cut_pixels(int64_t most) {
    const bool joins = plane <= (pointwise ? tuning::kIm2colPointwisePlane : most / 2);
    images = joins ? std::clamp<int64_t>(most / plane, 1, s.batch) : 1;
    blocks = ceil_div(s.batch, images);
    images = ceil_div(s.batch, blocks);
    tiles = images > 1 ? 1 : std::max<int64_t>(1, (plane + most * 3 / 4) / most);
    tile = tiles == 1 ? plane : ceil_div(ceil_div(plane, tiles), 32) * 32;
    tiles = ceil_div(plane, tile);
  }
  // So many pixels that their part of the matrix stays in the second-level cache.
  int64_t pixels_in_cache() const {
    const auto fit = static_cast<int64_t>(tuning::kIm2colBytes / sizeof(T)) / (slice * taps);
    return std::clamp<int64_t>(fit / 32 * 32, 64, tuning::kIm2colPixels);
  }

  // Whether the image itself is the matrix.
  bool is_matrix(const Piece& q) const { return pointwise && q.n1 - q.n0 == 1; }
  const T* image_of(const T* x, int64_t n, int64_t g) const { return x + (n * s.in_channels + g * cg) * in_plane; }
  const T* side_of(const T* dy, int64_t n, int64_t g) const { return dy + (n * s.out_channels + g * og) * plane; }
  void fill_matrix(const T* x, const Piece& q, int64_t g, int64_t c0, int64_t c1, T* to, int64_t ld) const {
    const int64_t grain = std::max<int64_t>(1, 65536 / (taps * q.count()));
    parallel_for(c0, c1, grain, [&](int64_t first, int64_t last) {
      for (int64_t n = q.n0; n < q.n1; ++n)
        im2col(s, image_of(x, n, g) + first * in_plane, last - first, q.p0, q.p1,
               to + (first - c0) * taps * ld + (n - q.n0) * plane, ld);
    });
  }
  // dy (og, count) of several images
  void join_sides(const T* dy, const Piece& q, int64_t g, T* to, int64_t ld) const {
    for (int64_t n = q.n0; n < q.n1; ++n)
      for (int64_t o = 0; o < og; ++o) {
        const T* from = side_of(dy, n, g) + o * plane;
        std::copy(from, from + plane, to + o * ld + (n - q.n0) * plane);
      }
  }

  // c = a @ b + beta c; by BLAS, which has no threads, some rows at a time
  static void multiply(bool ta, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
                       T beta, T* c, int64_t ldc) {
    if (std::is_floating_point_v<T> && rl::cpu::gemm_available())
      return conv_gemm(ta, false, m, n, k, a, lda, b, ldb, beta, c, ldc);
    const int64_t grain = std::max<int64_t>(8, ceil_div(2000000 / std::max<int64_t>(1, n * k), 8) * 8);
    parallel_for(0, m, grain, [&](int64_t first, int64_t last) {
      conv_gemm(ta, false, last - first, n, k, ta ? a + first : a + first * lda, lda, b, ldb, beta, c + first * ldc,
                ldc);
    });
  }

  void forward_piece(T* y, const T* x, const T* w, const T* bias, int64_t g, const Piece& q) const {
    const int64_t count = q.count(), ld = row_stride(count);
    const bool single = q.n1 - q.n0 == 1;
    Scratch<T> matrix(is_matrix(q) ? 1 : slice * taps * ld), result(single ? 1 : og * count);
    T* c = single ? y + (q.n0 * s.out_channels + g * og) * plane + q.p0 : result.get();
    const int64_t ldc = single ? plane : count;
    for (int64_t o = 0; single && bias && o < og; ++o) std::fill_n(c + o * ldc, count, bias[g * og + o]);
    T beta = single && bias ? T(1) : T(0);
    for (int64_t c0 = 0; c0 < cg; c0 += slice, beta = T(1)) {
      const int64_t c1 = std::min(cg, c0 + slice);
      if (!is_matrix(q)) fill_matrix(x, q, g, c0, c1, matrix.get(), ld);
      const T* seen = is_matrix(q) ? image_of(x, q.n0, g) + c0 * in_plane + q.p0 : matrix.get();
      multiply(false, og, count, (c1 - c0) * taps, w + g * og * rows + c0 * taps, rows, seen,
               is_matrix(q) ? in_plane : ld, beta, c, ldc);
    }
    if (single) return;
    parallel_for(0, og, std::max<int64_t>(1, 32768 / count), [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o)
        for (int64_t n = q.n0; n < q.n1; ++n) {
          const T *from = c + o * ldc + (n - q.n0) * plane, shift = bias ? bias[g * og + o] : T(0);
          T* to = y + (n * s.out_channels + g * og + o) * plane;
          for (int64_t p = 0; p < plane; ++p) to[p] = from[p] + shift;
        }
    });
  }
  void forward(T* y, const T* x, const T* w, const T* bias) {
    cut_channels(1);
    if (pointwise) one_slice();
    cut_pixels(pixels_in_cache());
    if (blocks * tiles * s.groups < tuning::kIm2colPieces) {  // one after another, each by all threads
      one_slice();
      cut_pixels(std::max(most_pixels(), tuning::kIm2colWhole / rows));
      for (int64_t i = 0; i < blocks * tiles * s.groups; ++i)
        forward_piece(y, x, w, bias, i % s.groups, piece(i / s.groups));
      return;
    }
    const double work = static_cast<double>(og * rows) * static_cast<double>(most_pixels());
    const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(1e6 / (work + 1)));
    parallel_for(0, blocks * tiles * s.groups, grain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) forward_piece(y, x, w, bias, i % s.groups, piece(i / s.groups));
    });
  }

  // dx of some images: the columns w' dy, added where they were seen. Images, groups and slices of channels need
  // nothing of each other.
  void input_piece(T* dx, const T* dy, const T* w, int64_t block, int64_t g, int64_t c0, int64_t c1) const {
    const int64_t k = (c1 - c0) * taps, ld = row_stride(most_pixels());
    Scratch<T> matrix(k * ld), sides(images > 1 ? og * ld : 1);
    for (int64_t t = 0; t < tiles; ++t) {
      const Piece q = piece(block * tiles + t);
      const T* side = side_of(dy, q.n0, g) + q.p0;
      if (images > 1) {
        join_sides(dy, q, g, sides.get(), ld);
        side = sides.get();
      }
      T* image = dx + (q.n0 * s.in_channels + g * cg + c0) * in_plane;
      multiply(true, k, q.count(), og, w + g * og * rows + c0 * taps, rows, side, images > 1 ? ld : plane, T(0),
               is_matrix(q) ? image + q.p0 : matrix.get(), is_matrix(q) ? in_plane : ld);
      for (int64_t n = q.n0; n < q.n1 && !is_matrix(q); ++n, image += s.in_channels * in_plane) {
        if (t == 0) std::fill_n(image, (c1 - c0) * in_plane, T(0));
        col2im(s, image, c1 - c0, q.p0, q.p1, matrix.get() + (n - q.n0) * plane, ld);
      }
    }
  }
  void input(T* dx, const T* dy, const T* w) {
    if (og == 0 || plane == 0) {
      std::fill_n(dx, s.batch * s.in_channels * in_plane, T(0));
      return;
    }
    cut_channels(1);
    cut_pixels(pixels_in_cache());
    cut_channels(ceil_div(tuning::kIm2colPieces, blocks * s.groups));
    const double work = static_cast<double>(og * slice * taps) * static_cast<double>(images * plane);
    const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(1e6 / (work + 1)));
    parallel_for(0, blocks * s.groups * slices, grain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t c0 = i % slices * slice, g = i / slices % s.groups;
        input_piece(dx, dy, w, i / slices / s.groups, g, c0, std::min(cg, c0 + slice));
      }
    });
  }

  // Sums for some channels over the pieces [first, last): to (og, k) or, transposed, (k, og).
  void weight_sums(T* to, int64_t ld_to, bool transposed, const T* dy, const T* x, int64_t g, int64_t c0, int64_t c1,
                   int64_t first, int64_t last) const {
    const int64_t k = (c1 - c0) * taps, most = row_stride(most_pixels());
    const bool copies = !pointwise || images > 1;
    Scratch<T> matrix(copies ? k * most : 1), sides(images > 1 ? og * most : 1);
    for (int64_t i = first; i < last; ++i) {
      const Piece q = piece(i);
      const int64_t count = q.count(), ld = copies ? most : in_plane, ld_side = images > 1 ? most : plane;
      if (copies) fill_matrix(x, q, g, c0, c1, matrix.get(), most);
      if (images > 1) join_sides(dy, q, g, sides.get(), most);
      const T* seen = copies ? matrix.get() : image_of(x, q.n0, g) + c0 * in_plane + q.p0;
      const T* side = images > 1 ? sides.get() : side_of(dy, q.n0, g) + q.p0;
      const T beta = i > first ? T(1) : T(0);
      if (transposed) conv_gemm(false, true, k, og, count, seen, ld, side, ld_side, beta, to, ld_to);
      else conv_gemm(false, true, og, k, count, side, ld_side, seen, ld, beta, to, ld_to);
    }
  }
  // Slices of channels need nothing of each other. Where they are few, runs of pixels have sums of their own, which are
  // added in order.
  void weight(T* dw, const T* dy, const T* x) {
    const int64_t size = s.out_channels * rows, pixels = s.batch * plane;
    if (pixels == 0) {
      std::fill_n(dw, size, T(0));
      return;
    }
    if (s.groups == 1 && pixels <= tuning::kIm2colPixels && rows * pixels <= tuning::kIm2colSmall &&
        rl::cpu::gemm_available()) {  // one GEMM by all threads
      one_slice();
      images = s.batch;
      tile = plane;
      weight_sums(dw, rows, false, dy, x, 0, 0, cg, 0, 1);
      return;
    }
    cut_channels(1);
    cut_pixels(pixels_in_cache());
    const int64_t pieces = blocks * tiles, most = std::clamp<int64_t>(tuning::kIm2colSums / size, 1, pieces);
    int64_t runs = std::clamp<int64_t>(ceil_div(tuning::kIm2colPieces, slices * s.groups), 1, most);
    cut_channels(ceil_div(tuning::kIm2colPieces, runs * s.groups));
    // The GEMM transposes either what is seen, for each piece, or dy, and then its result.
    const bool transposed = sizeof(T) <= 8 && rows * pixels > og * (rows + pixels);
    Scratch<T> sums((transposed ? runs : runs - 1) * size);
    auto sums_of = [&](int64_t run) {
      return transposed ? sums.get() + run * size : run ? sums.get() + (run - 1) * size : dw;
    };
    parallel_for(0, runs * s.groups * slices, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t c0 = i % slices * slice, g = i / slices % s.groups, run = i / slices / s.groups;
        T* to = sums_of(run) + g * og * rows + c0 * taps * (transposed ? og : 1);
        weight_sums(to, transposed ? og : rows, transposed, dy, x, g, c0, std::min(cg, c0 + slice), pieces * run / runs,
                    pieces * (run + 1) / runs);
      }
    });
    T* total = sums_of(0);
    parallel_for(0, runs > 1 ? size : 0, 8192, [&](int64_t first, int64_t last) {
      for (int64_t run = 1; run < runs; ++run)
        for (int64_t i = first; i < last; ++i) total[i] += sums_of(run)[i];
    });
    if constexpr (sizeof(T) <= 8)
      if (transposed) transpose_planes(total, s.groups, rows, og, dw);
  }
};

}  // namespace

template <class T> void im2col_forward(const ConvShape& s, T* y, const T* x, const T* w, const T* bias) {
  Im2colGemm<T>(s).forward(y, x, w, bias);
}
template <class T> void im2col_dgrad(const ConvShape& s, T* dx, const T* dy, const T* w) {
  Im2colGemm<T>(s).input(dx, dy, w);
}
template <class T> void im2col_wgrad(const ConvShape& s, T* dw, const T* dy, const T* x) {
  Im2colGemm<T>(s).weight(dw, dy, x);
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
