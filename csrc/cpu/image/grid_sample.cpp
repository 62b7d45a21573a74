#include <algorithm>

#include "backend/resample.h"
#include "base/check.h"
#include "base/parallel.h"
#include "cpu/features.h"
#include "cpu/image/grid_corners.h"
#include "cpu/image/grid_pixels.h"
#include "cpu/isa.h"
#include "cpu/loops/scratch.h"
#include "cpu/simd/math.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

constexpr int64_t kPoints = kCornerPoints;

template <class T> void fill(Corners<T>& at, const GridShape& s, const T* grid, int64_t n) {
  has_avx512() ? avx512::fill_corners(at, s, grid, n) : fill_corners(at, s, grid, n);
}
template <class T> void sample(const Corners<T>& at, const T* from, T* to, int64_t n, bool nearest) {
  has_avx512() ? avx512::sample_corners(at, from, to, n, nearest) : sample_corners(at, from, to, n, nearest);
}

template <class T> void sample_of(const GridShape& s, const View& out, const View& x, const View& grid) {
  int64_t plane = s.height * s.width, blocks = (s.points + kPoints - 1) / kPoints;
  int64_t grain = std::max<int64_t>(1, 16384 / (std::clamp<int64_t>(s.points, 1, kPoints) * (4 + s.channels)));
  parallel_for(0, s.batch * blocks, grain, [&](int64_t first, int64_t last) {
    Corners<T> at;
    for (int64_t b = first; b < last; ++b) {
      int64_t n = b / blocks, q0 = b % blocks * kPoints, count = std::min(kPoints, s.points - q0);
      fill(at, s, grid.as<T>() + (n * s.points + q0) * 2, count);
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* __restrict from = x.as<T>() + (n * s.channels + c) * plane;
        T* __restrict to = out.as<T>() + (n * s.channels + c) * s.points + q0;
        sample(at, from, to, count, s.nearest);
      }
    }
  });
}

template <class T> void sample_grad_of(const GridShape& s, const View* dx, const View* dgrid, const View& dy,
                                       const View& x, const View& grid) {
  int64_t plane = s.height * s.width, blocks = (s.points + kPoints - 1) / kPoints;
  if (dx && s.channels > 0) {
    // A piece owns whole planes: what falls on one pixel is added in the points' order.
    int64_t together = std::clamp<int64_t>(32768 / std::max<int64_t>(1, s.points), 1, s.channels);
    int64_t groups = (s.channels + together - 1) / together;
    parallel_for(0, s.batch * groups, 1, [&](int64_t first, int64_t last) {
      Corners<T> at;
      for (int64_t g = first; g < last; ++g) {
        int64_t n = g / groups, c0 = g % groups * together, c1 = std::min(s.channels, c0 + together);
        T* to = dx->as<T>() + n * s.channels * plane;
        std::fill(to + c0 * plane, to + c1 * plane, T(0));
        for (int64_t q0 = 0; q0 < s.points; q0 += kPoints) {
          int64_t count = std::min(kPoints, s.points - q0);
          fill(at, s, grid.as<T>() + (n * s.points + q0) * 2, count);
          for (int64_t c = c0; c < c1; ++c) {
            const T* from = dy.as<T>() + (n * s.channels + c) * s.points + q0;
            T* image = to + c * plane;
            for (int64_t q = 0; q < count; ++q)
              for (int k = 0; k < (s.nearest ? 1 : 4); ++k)
                if (at.inside[k][q] != 0) image[at.offset[k][q]] += at.weight[k][q] * from[q];
          }
        }
      }
    });
  }
  if (!dgrid) return;
  int64_t grain = std::max<int64_t>(1, 16384 / (std::clamp<int64_t>(s.points, 1, kPoints) * (4 + s.channels)));
  parallel_for(0, s.batch * blocks, grain, [&](int64_t first, int64_t last) {
    Corners<T> at;
    T gx[kPoints], gy[kPoints];
    for (int64_t b = first; b < last; ++b) {
      int64_t n = b / blocks, q0 = b % blocks * kPoints, count = std::min(kPoints, s.points - q0);
      fill(at, s, grid.as<T>() + (n * s.points + q0) * 2, count);
      std::fill(gx, gx + count, T(0));
      std::fill(gy, gy + count, T(0));
      for (int64_t c = 0; c < s.channels && !s.nearest; ++c) {
        const T* __restrict from = x.as<T>() + (n * s.channels + c) * plane;
        const T* __restrict g = dy.as<T>() + (n * s.channels + c) * s.points + q0;
#pragma GCC ivdep
        for (int64_t q = 0; q < count; ++q) {
          T v0 = at.inside[0][q] * from[at.offset[0][q]], v1 = at.inside[1][q] * from[at.offset[1][q]];
          T v2 = at.inside[2][q] * from[at.offset[2][q]], v3 = at.inside[3][q] * from[at.offset[3][q]];
          gx[q] += g[q] * ((v1 - v0) * (1 - at.ty[q]) + (v3 - v2) * at.ty[q]);
          gy[q] += g[q] * ((v2 - v0) * (1 - at.tx[q]) + (v3 - v1) * at.tx[q]);
        }
      }
      T* to = dgrid->as<T>() + (n * s.points + q0) * 2;
      for (int64_t q = 0; q < count; ++q) to[2 * q] = gx[q] * at.sx[q], to[2 * q + 1] = gy[q] * at.sy[q];
    }
  });
}

void grid_sample(const GridShape& s, const View& out, const View& x, const View& grid) {
  if (s.cubic || s.dims == 3) return taps_sample(s, out, x, grid);
  if (out.dtype == DType::Float64) sample_of<double>(s, out, x, grid);
  else sample_of<float>(s, out, x, grid);
}
void grid_sample_grad(const GridShape& s, const View* dx, const View* dgrid, const View& dy, const View& x,
                      const View& grid) {
  if (s.cubic || s.dims == 3) return taps_sample_grad(s, dx, dgrid, dy, x, grid);
  if (dy.dtype == DType::Float64) sample_grad_of<double>(s, dx, dgrid, dy, x, grid);
  else sample_grad_of<float>(s, dx, dgrid, dy, x, grid);
}

// V registers of columns of a bag, whose sums stay in them while its rows go by. `known` indices may be looked at: rows
// are asked for some time before they are added, those of the next bag too.
template <bool kFactors, int V, class T> void sum_rows(T* out, const T* table, int64_t width, const int64_t* at,
                                                       const T* f, int64_t first, int64_t last, int64_t known) {
  Vec<T> sum[V] = {};
  for (int64_t i = first; i < last; ++i) {
    const T* row = table + at[i] * width;
    if (i + 4 < known) {
      const char* next = reinterpret_cast<const char*>(table + at[i + 4] * width);
      for (int64_t line = 0; line < V * kVecBytes; line += 64) __builtin_prefetch(next + line);
    }
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const Vec<T> x = load_vec(row + v * kLanes<T>);
      sum[v] += kFactors ? x * f[i] : x;
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) store_vec(out + v * kLanes<T>, sum[v]);
}
template <bool kFactors, class T> void sum_bag(T* out, const T* table, int64_t width, const int64_t* at, const T* f,
                                               int64_t first, int64_t last, int64_t known) {
  int64_t j = 0;
  for (; j + 8 * kLanes<T> <= width; j += 8 * kLanes<T>)
    sum_rows<kFactors, 8>(out + j, table + j, width, at, f, first, last, known);
  for (; j + 2 * kLanes<T> <= width; j += 2 * kLanes<T>)
    sum_rows<kFactors, 2>(out + j, table + j, width, at, f, first, last, known);
  for (; j < width; ++j) {
    auto term = [&](int64_t i) { return kFactors ? f[i] * table[at[i] * width + j] : table[at[i] * width + j]; };
    T sums[4] = {};  // four chains of additions that do not wait for each other
    int64_t i = first;
    for (; i + 4 <= last; i += 4)
      for (int k = 0; k < 4; ++k) sums[k] += term(i + k);
    for (; i < last; ++i) sums[0] += term(i);
    out[j] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}

// Bags [first, last) of one number each: a few terms, whose count cannot be foreseen, are one plain loop.
constexpr int64_t kShortBag = 24;
template <class T> void sum_short_bags(T* out, const T* table, const int64_t* at, const T* f, const int64_t* begin,
                                       int64_t first, int64_t last) {
  int64_t i = begin[first];
  for (int64_t b = first; b < last; ++b) {
    T sum = 0;
    for (const int64_t end = begin[b + 1]; i < end; ++i) sum += f[i] * table[at[i]];
    out[b] = sum;
  }
}

template <class T>
void bag_sum_of(const View& out, const View& table, const View& indices, const View& starts, const View* factors) {
  int64_t bags = out.sizes[0], width = out.sizes[1], rows = table.sizes[0], count = indices.sizes[0];
  const int64_t *at = indices.as<int64_t>(), *begin = starts.as<int64_t>();
  // First all at once, as vectors; which one it is, is asked only where one is wrong.
  auto sign_of_difference = [](int64_t x, int64_t y) {  // which may pass the ends where one of them is wrong itself
    return static_cast<int64_t>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
  };
  int64_t wrong = 0;
  for (int64_t b = 0; b <= bags; ++b) wrong |= begin[b] | sign_of_difference(count, begin[b]);
  for (int64_t b = 0; b < bags; ++b) wrong |= sign_of_difference(begin[b + 1], begin[b]);
  for (int64_t b = 0; wrong < 0 && b < bags; ++b)
    CHECK(begin[b] >= 0 && begin[b] <= begin[b + 1] && begin[b + 1] <= count, Runtime,
          "embedding_bag: offsets must not decrease nor pass the number of indices, ", count, "; bag ", b, " has ",
          begin[b], " to ", begin[b + 1]);
  int64_t per_bag = std::max<int64_t>(1, count / std::max<int64_t>(1, bags) * width);
  parallel_for(0, bags, std::max<int64_t>(1, 32768 / per_bag), [&](int64_t first, int64_t last) {
    int64_t outside = 0;
    for (int64_t i = begin[first]; i < begin[last]; ++i) outside |= at[i] | sign_of_difference(rows - 1, at[i]);
    for (int64_t i = begin[first]; outside < 0 && i < begin[last]; ++i)
      CHECK(at[i] >= 0 && at[i] < rows, Runtime,
            "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be ", at[i]);
    const T* f = factors ? factors->as<T>() : nullptr;
    if (width == 1 && f && begin[last] - begin[first] < kShortBag * (last - first))
      return sum_short_bags(out.as<T>(), table.as<T>(), at, f, begin, first, last);
    for (int64_t b = first; b < last; ++b) {
      T* sum = out.as<T>() + b * width;
      (f ? sum_bag<true, T> : sum_bag<false, T>)(sum, table.as<T>(), width, at, f, begin[b], begin[b + 1], begin[last]);
    }
  });
}
void bag_sum(const View& out, const View& table, const View& indices, const View& starts, const View* factors) {
  if (out.dtype == DType::Float64) bag_sum_of<double>(out, table, indices, starts, factors);
  else bag_sum_of<float>(out, table, indices, starts, factors);
}

// dw[indices[i]] += factor[i] dy[bag of i]. A piece owns some columns, and adds in the order of the indices.
template <class T>
void bag_put_of(const View& dw, const View& dy, const View& indices, const View& starts, const View* factors) {
  const int64_t bags = dy.sizes[0], width = dw.sizes[1];
  const int64_t *at = indices.as<int64_t>(), *begin = starts.as<int64_t>();
  const T* f = factors ? factors->as<T>() : nullptr;
  constexpr int64_t kLine = 64 / sizeof(T);
  const int64_t lines = (width + kLine - 1) / kLine, each = std::max<int64_t>(1, lines / 8) * kLine;
  parallel_for(0, (width + each - 1) / each, 1, [&](int64_t first, int64_t last) {
    const int64_t j0 = first * each, j1 = std::min(width, last * each);
    for (int64_t b = 0; b < bags; ++b)
      for (int64_t i = begin[b]; i < begin[b + 1]; ++i) {
        T* __restrict to = dw.as<T>() + at[i] * width;
        const T* __restrict from = dy.as<T>() + b * width;
        const T by = f ? f[i] : T(1);
        for (int64_t j = j0; j < j1; ++j) to[j] += by * from[j];
      }
  });
}
void bag_put(const View& dw, const View& dy, const View& indices, const View& starts, const View* factors) {
  if (dw.dtype == DType::Float64) bag_put_of<double>(dw, dy, indices, starts, factors);
  else bag_put_of<float>(dw, dy, indices, starts, factors);
}

}  // namespace

void resize(const ResizeTable& s, const View& out, const View& in);
void resize_grad(const ResizeTable& s, const View& dx, const View& dy);

extern const ResampleKernels resample_kernels;
const ResampleKernels resample_kernels = {grid_sample, grid_sample_grad, bag_sum, bag_put, resize, resize_grad};

}  // namespace rl::RL_ISA
