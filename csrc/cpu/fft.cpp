// Fourier transforms of any dimensions: one pass over lines per dimension.
#include "backend/fft.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "base/check.h"
#include "base/parallel.h"
#include "cpu/fft_plan.h"
#include "cpu/fft_wide.h"
#include "cpu/instructions.h"
#include "cpu/isa.h"
#include "cpu/scratch.h"
#include "cpu/transpose.h"
#include "cpu/vec.h"

namespace rl::RL_ISA {
namespace {

// The lines of a pass along one dimension: where each starts in the input and in the result.
struct Lines {
  int ndim = 0;
  int64_t sizes[kMaxDims], from[kMaxDims], to[kMaxDims];
  int64_t count = 1;

  Lines(const View& out, const View& in, int dim) {
    for (int d = 0; d < out.ndim; ++d) {
      if (d == dim || out.sizes[d] == 1) continue;
      sizes[ndim] = out.sizes[d], from[ndim] = in.strides[d], to[ndim] = out.strides[d];
      count *= out.sizes[d];
      ++ndim;
    }
    // Neighbouring lines should be neighbours in memory: the smallest stride runs fastest.
    for (int i = 1; i < ndim; ++i)
      for (int j = i; j > 0 && to[j] > to[j - 1]; --j)
        std::swap(to[j], to[j - 1]), std::swap(from[j], from[j - 1]), std::swap(sizes[j], sizes[j - 1]);
  }
  void start(int64_t line, int64_t& in, int64_t& out) const {
    in = out = 0;
    for (int d = ndim - 1; d >= 0; --d) {
      int64_t i = d ? line % sizes[d] : line;
      line /= sizes[d];
      in += i * from[d], out += i * to[d];
    }
  }
  // The same for `count` lines from `line` on.
  void starts(int64_t line, int64_t count, int64_t* in, int64_t* out) const {
    int64_t index[kMaxDims] = {}, rest = line;
    for (int d = ndim - 1; d > 0; --d) {
      index[d] = rest % sizes[d];
      rest /= sizes[d];
    }
    index[0] = rest;
    start(line, in[0], out[0]);
    for (int64_t l = 1; l < count; ++l) {
      in[l] = in[l - 1], out[l] = out[l - 1];
      for (int d = ndim - 1; d >= 0; --d) {
        in[l] += from[d], out[l] += to[d];
        if (++index[d] < sizes[d]) break;
        in[l] -= sizes[d] * from[d], out[l] -= sizes[d] * to[d];
        index[d] = 0;
      }
    }
  }
};

inline constexpr int64_t kMostLanes = 16;

// Rows that nearly fill vectors are filled up.
template <class T> int64_t whole_lanes(int64_t count) {
  return count > kLanes<T> / 2 ? (count + kLanes<T> - 1) / kLanes<T> * kLanes<T> : count;
}

// Runs body(lanes, count, from[], to[], x, y) over groups of `count` lines, each with two buffers of `rows` rows of
// `lanes`: what is beyond count, up to a whole vector, is computed with and never written.
// They go in groups, which makes vectors of every stage and full cache lines out of strided lines; fewer of the long
// ones, which must stay in the second cache.
template <class T, class F> void for_lines(const Lines& lines, int64_t rows, bool contiguous, F body) {
  if (lines.count == 0) return;
  int64_t most = sizeof(T) == 4 ? kMostLanes : kMostLanes / 2;
  // With wide registers a row is one of them, if that leaves a group for each of several threads.
  const bool wide = rows <= 32 || (cpu::has_avx512() && rows <= 2048 && lines.count >= 2 * most);
  int64_t lanes = contiguous ? std::clamp<int64_t>((wide ? 32768 : 16384) / rows, 1, wide ? most : most / 2)
                             : std::clamp<int64_t>(4096 / rows, most / 2, most);
  lanes = std::min(lanes, lines.count);
  // Strided lines that are neighbours in memory are read row by row: a group does not go beyond their dimension.
  const int64_t beside = !contiguous && lines.ndim > 0 ? lines.sizes[lines.ndim - 1] : 0;
  const int64_t width = beside >= lanes / 2 ? std::max<int64_t>(beside, 1) : lines.count;
  const int64_t per_width = (width + lanes - 1) / lanes;
  if (width < lines.count) lanes = (width + per_width - 1) / per_width;
  const int64_t groups = lines.count / width * per_width;
  double cost = static_cast<double>(rows) * lanes * (4 + std::log2(static_cast<double>(rows) + 1));
  int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(60000 / cost));
  parallel_for(0, groups, grain, [&](int64_t first, int64_t last) {
    int64_t buffer = checked_mul(2 * rows, whole_lanes<T>(lanes));
    Scratch<T> x(buffer), y(buffer);
    for (int64_t g = first; g < last; ++g) {
      const int64_t from_row = g % per_width * lanes, begin = g / per_width * width + from_row;
      const int64_t count = std::min(lanes, width - from_row);
      int64_t from[kMostLanes], to[kMostLanes];
      const int64_t padded = whole_lanes<T>(count);
      lines.starts(begin, count, from, to);
      for (int64_t l = count; l < padded; ++l) from[l] = from[0];
      body(padded, count, from, to, x.get(), y.get());
    }
  });
}

// f(lane, first, end) over short runs of all lanes in turn, so that what they share stays in the first cache.
template <class F> void for_blocks(int64_t n, int64_t lanes, F f) {
  for (int64_t k = 0; k < n; k += 64)
    for (int64_t l = 0; l < lanes; ++l) f(l, k, std::min(n, k + 64));
}

// f(lane, X{}) for vectors X of lanes, then for the rest one by one. Few lanes: a loop that the compiler makes vectors
// of would spend more on its beginning and end.
template <class T, class F> [[gnu::always_inline]] inline void for_lanes(int64_t lanes, F f) {
  int64_t l = 0;
  for (; l + kLanes<T> <= lanes; l += kLanes<T>) f(l, Vec<T>{});
  for (; l < lanes; ++l) f(l, T{});
}
template <class X, class T> [[gnu::always_inline]] inline X get(const T* p) {
  X x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
template <class X, class T> [[gnu::always_inline]] inline void put(T* p, const X& x) {
  __builtin_memcpy(p, &x, sizeof x);
}

// n vectors of n numbers, n = 16 / sizeof(T), turned round.
template <class T> void turn(Lanes<T>* a) {
  constexpr int n = 16 / sizeof(T);
  using Seq = std::make_index_sequence<n>;
  Lanes<T> b[n];
#pragma GCC unroll 4
  for (int round = 1; round < n; round *= 2) {
#pragma GCC unroll 4
    for (int i = 0; i < n / 2; ++i) {
      b[2 * i] = zip_low<T>(a[i], a[i + n / 2], Seq{});
      b[2 * i + 1] = zip_high<T>(a[i], a[i + n / 2], Seq{});
    }
#pragma GCC unroll 4
    for (int i = 0; i < n; ++i) a[i] = b[i];
  }
}

// Contiguous lines of pairs (re, im) into rows of re and im, and back.
template <class T> void split(const T* p, const int64_t* from, int64_t pairs, int64_t lanes, T* re, T* im) {
  if constexpr (sizeof(T) == 4)
    if (cpu::fft_split(p, from, pairs, lanes, re, im)) return;
  constexpr int n = 16 / sizeof(T);
  int64_t even = lanes % n == 0 ? pairs / (n / 2) * (n / 2) : 0;
  for (int64_t k = 0; k < even; k += n / 2)
    for (int64_t l = 0; l < lanes; l += n) {
      Lanes<T> a[n];
      for (int i = 0; i < n; ++i) __builtin_memcpy(&a[i], p + from[l + i] + 2 * k, 16);
      turn<T>(a);
      for (int i = 0; i < n; ++i) __builtin_memcpy((i % 2 ? im : re) + (k + i / 2) * lanes + l, &a[i], 16);
    }
  for (int64_t l = 0; l < lanes; ++l)
    for (int64_t k = even; k < pairs; ++k)
      re[k * lanes + l] = p[from[l] + 2 * k], im[k * lanes + l] = p[from[l] + 2 * k + 1];
}
template <class T>
void join(T* p, const int64_t* to, int64_t pairs, int64_t lanes, int64_t count, const T* re, const T* im, T scale) {
  if constexpr (sizeof(T) == 4)
    if (cpu::fft_join(p, to, pairs, lanes, count, re, im, scale)) return;
  constexpr int n = 16 / sizeof(T);
  int64_t even = lanes % n == 0 ? pairs / (n / 2) * (n / 2) : 0;
  for (int64_t k = 0; k < even; k += n / 2)
    for (int64_t l = 0; l < lanes; l += n) {
      Lanes<T> a[n];
      for (int i = 0; i < n; ++i) {
        __builtin_memcpy(&a[i], (i % 2 ? im : re) + (k + i / 2) * lanes + l, 16);
        a[i] *= scale;
      }
      turn<T>(a);
      for (int i = 0; i < n && l + i < count; ++i) __builtin_memcpy(p + to[l + i] + 2 * k, &a[i], 16);
    }
  for (int64_t l = 0; l < count; ++l)
    for (int64_t k = even; k < pairs; ++k)
      p[to[l] + 2 * k] = re[k * lanes + l] * scale, p[to[l] + 2 * k + 1] = im[k * lanes + l] * scale;
}
// The places of complex numbers as those of their parts.
struct PartPlaces {
  int64_t at[kMostLanes];
  PartPlaces(const int64_t* places, int64_t lanes) {
    for (int64_t l = 0; l < lanes; ++l) at[l] = 2 * places[l];
  }
};

// n elements of each line into rows of re and im. Lanes side by side in memory are read row by row.
template <class T> void gather(const std::complex<T>* src, const int64_t* from, int64_t stride, int64_t n,
                               int64_t lanes, int64_t count, T* re, T* im) {
  const T* p = reinterpret_cast<const T*>(src);
  if (stride == 1) return split(p, PartPlaces(from, lanes).at, n, lanes, re, im);
  bool side_by_side = count > 1;
  for (int64_t l = 1; l < count && side_by_side; ++l) side_by_side = from[l] == from[0] + l;
  if (side_by_side) {
    if constexpr (sizeof(T) == 4)
      if (cpu::fft_split_rows(p + 2 * from[0], 2 * stride, n, lanes, count, re, im)) return;
    for (int64_t k = 0; k < n; ++k) {
      const T* row = p + 2 * (from[0] + k * stride);
      for (int64_t l = 0; l < count; ++l) re[k * lanes + l] = row[2 * l], im[k * lanes + l] = row[2 * l + 1];
      for (int64_t l = count; l < lanes; ++l) re[k * lanes + l] = im[k * lanes + l] = T(0);
    }
    return;
  }
  for_blocks(n, lanes, [&](int64_t l, int64_t k, int64_t end) {
    const T* line = p + 2 * from[l];
    for (; k < end; ++k) re[k * lanes + l] = line[2 * k * stride], im[k * lanes + l] = line[2 * k * stride + 1];
  });
}

template <class T> void scatter(std::complex<T>* dst, const int64_t* to, int64_t stride, int64_t n, int64_t lanes,
                                int64_t count, const T* re, const T* im, T scale) {
  T* p = reinterpret_cast<T*>(dst);
  if (stride == 1) return join(p, PartPlaces(to, count).at, n, lanes, count, re, im, scale);
  bool side_by_side = count > 1;
  for (int64_t l = 1; l < count && side_by_side; ++l) side_by_side = to[l] == to[0] + l;
  if (side_by_side) {
    if constexpr (sizeof(T) == 4)
      if (cpu::fft_join_rows(p + 2 * to[0], 2 * stride, n, lanes, count, re, im, scale)) return;
    for (int64_t k = 0; k < n; ++k) {
      T* row = p + 2 * (to[0] + k * stride);
      for (int64_t l = 0; l < count; ++l)
        row[2 * l] = re[k * lanes + l] * scale, row[2 * l + 1] = im[k * lanes + l] * scale;
    }
    return;
  }
  for_blocks(n, count, [&](int64_t l, int64_t k, int64_t end) {
    T* line = p + 2 * to[l];
    for (; k < end; ++k)
      line[2 * k * stride] = re[k * lanes + l] * scale, line[2 * k * stride + 1] = im[k * lanes + l] * scale;
  });
}

// Note [Long lines]
// x[a C + b] of a line of R C numbers is a matrix of R rows. The transform at u + R v is the transform over b of: the
// transform over a, at u, times exp(-2 pi i u b / (R C)). So both are transforms of short lines, several side by side:
// columns of the line first, then rows of what they gave. The work is shared by threads, and stays in their caches.
template <class T> void long_line(const FftPlan<T>& plan, const std::complex<T>* src, int64_t is, std::complex<T>* dst,
                                  int64_t os, bool forward, T scale) {
  constexpr int64_t kSide = sizeof(T) == 4 ? kMostLanes : kMostLanes / 2;
  const int64_t rows = plan.first->n, columns = plan.second->n, n = plan.n;
  const int64_t most = std::max(plan.first->rows(), plan.second->rows());
  const int64_t grain = std::max<int64_t>(1, 4096 / (kSide * most));
  Scratch<std::complex<T>> middle(n);
  auto groups = [&](int64_t count, auto body) {
    parallel_for(0, (count + kSide - 1) / kSide, grain, [&](int64_t begin, int64_t end) {
      Scratch<T> x(2 * most * kSide), y(2 * most * kSide);
      for (int64_t g = begin; g < end; ++g) {
        const int64_t at = g * kSide, here = std::min(kSide, count - at);
        body(at, here, whole_lanes<T>(here), x.get(), y.get());
      }
    });
  };
  groups(columns, [&](int64_t at, int64_t count, int64_t lanes, T* x, T* y) {
    int64_t from[kMostLanes], to[kMostLanes];
    for (int64_t l = 0; l < lanes; ++l) from[l] = (l < count ? at + l : at) * is, to[l] = at + l;
    T *re = x, *im = x + plan.first->rows() * lanes;
    gather(src, from, columns * is, rows, lanes, count, forward ? re : im, forward ? im : re);
    T* z = plan.first->run(x, y, lanes);
    T *zr = z, *zi = z + plan.first->rows() * lanes;
    for (int64_t k = 1; k < rows; ++k) {
      const Root base = plan.turn(k * at % n);
      const T br = static_cast<T>(base.re), bi = static_cast<T>(base.im);
      const T *tr = plan.side_turns.data() + 2 * k * FftPlan<T>::kSide, *ti = tr + FftPlan<T>::kSide;
      T *a = zr + k * lanes, *b = zi + k * lanes;
#pragma GCC ivdep
      for (int64_t l = 0; l < lanes; ++l) {
        const T wr = br * tr[l] - bi * ti[l], wi = br * ti[l] + bi * tr[l], p = a[l], q = b[l];
        a[l] = p * wr - q * wi, b[l] = p * wi + q * wr;
      }
    }
    scatter(middle.get(), to, columns, rows, lanes, count, zr, zi, T(1));
  });
  groups(rows, [&](int64_t at, int64_t count, int64_t lanes, T* x, T* y) {
    int64_t from[kMostLanes], to[kMostLanes];
    for (int64_t l = 0; l < lanes; ++l) from[l] = (l < count ? at + l : at) * columns, to[l] = (at + l) * os;
    gather(middle.get(), from, 1, columns, lanes, count, x, x + plan.second->rows() * lanes);
    T* z = plan.second->run(x, y, lanes);
    T *zr = z, *zi = z + plan.second->rows() * lanes;
    scatter(dst, to, rows * os, columns, lanes, count, forward ? zr : zi, forward ? zi : zr, scale);
  });
}
// f(from, to) for each line, one after the other.
template <class F> void each_line(const Lines& lines, F f) {
  for (int64_t i = 0; i < lines.count; ++i) {
    int64_t from, to;
    lines.start(i, from, to);
    f(from, to);
  }
}

template <class T> void c2c_pass(const View& out, const View& in, int dim, bool forward, T scale) {
  int64_t n = out.sizes[dim], is = in.strides[dim], os = out.strides[dim];
  auto plan = fft_plan<T>(n);
  Lines lines(out, in, dim);
  auto *src = in.as<std::complex<T>>(), *dst = out.as<std::complex<T>>();
  if (plan->first)
    return each_line(
        lines, [&](int64_t from, int64_t to) { long_line<T>(*plan, src + from, is, dst + to, os, forward, scale); });
  int64_t rows = plan->rows();
  for_lines<T>(lines, rows, is == 1 && os == 1,
               [&](int64_t lanes, int64_t count, const int64_t* from, const int64_t* to, T* x, T* y) {
                 T *re = x, *im = x + rows * lanes;
                 // the inverse is the forward transform with real and imaginary parts exchanged
                 gather(src, from, is, n, lanes, count, forward ? re : im, forward ? im : re);
                 T* z = plan->run(x, y, lanes);
                 T *zr = z, *zi = z + rows * lanes;
                 scatter(dst, to, os, n, lanes, count, forward ? zr : zi, forward ? zi : zr, scale);
               });
}

inline constexpr int64_t kLongPiece = 8192;

// Real lines as complex ones of half the length, or with zeros where their length is odd.
template <class T> void long_r2c(const FftPlan<T>& plan, const T* src, int64_t is, int64_t n, std::complex<T>* dst,
                                 int64_t os, bool forward, T scale) {
  const int64_t h = n / 2;
  const bool even = n % 2 == 0;
  Scratch<std::complex<T>> z(plan.n);
  if (even && is == 1) {
    long_line<T>(plan, reinterpret_cast<const std::complex<T>*>(src), 1, z.get(), 1, true, T(1));
  } else {
    Scratch<std::complex<T>> x(plan.n);
    parallel_for(0, plan.n, kLongPiece, [&](int64_t k, int64_t end) {
      for (; k < end; ++k) x[k] = even ? std::complex<T>(src[2 * k * is], src[(2 * k + 1) * is]) : src[k * is];
    });
    long_line<T>(plan, x.get(), 1, z.get(), 1, true, T(1));
  }
  const T sign = forward ? scale : -scale;
  parallel_for(0, h + 1, kLongPiece, [&](int64_t k, int64_t end) {
    for (; k < end; ++k) {
      if (!even) {
        dst[k * os] = {z[k].real() * scale, z[k].imag() * sign};
        continue;
      }
      const std::complex<T> a = z[k == h ? 0 : k], b = z[k == 0 ? 0 : h - k];
      const T wr = plan.half_turns[2 * k], wi = plan.half_turns[2 * k + 1];
      const T sr = (a.real() + b.real()) * T(0.5), si = (a.imag() - b.imag()) * T(0.5);
      const T dr = (a.real() - b.real()) * T(0.5), di = (a.imag() + b.imag()) * T(0.5);
      dst[k * os] = {(sr + (wr * di + wi * dr)) * scale, (si - (wr * dr - wi * di)) * sign};
    }
  });
}
template <class T> void long_c2r(const FftPlan<T>& plan, const std::complex<T>* src, int64_t is, int64_t n, T* dst,
                                 int64_t os, bool forward, T scale) {
  const int64_t h = n / 2;
  const bool even = n % 2 == 0;
  Scratch<std::complex<T>> z(plan.n);
  // a real result leaves no room for imaginary parts of the first and, of even lengths, the middle value
  auto at = [&](int64_t k) {
    const std::complex<T> x = src[k * is];
    return std::complex<T>(x.real(), k == 0 || (even && k == h) ? T(0) : forward ? -x.imag() : x.imag());
  };
  parallel_for(0, plan.n, kLongPiece, [&](int64_t k, int64_t end) {
    for (; k < end; ++k) {
      if (!even) {
        z[k] = k <= h ? at(k) : std::conj(at(n - k));
        continue;
      }
      const std::complex<T> a = at(k), b = at(h - k);
      const T wr = plan.half_turns[2 * k], wi = -plan.half_turns[2 * k + 1];
      const T sr = a.real() + b.real(), si = a.imag() - b.imag(), dr = a.real() - b.real(), di = a.imag() + b.imag();
      z[k] = {sr - (wr * di + wi * dr), si + (wr * dr - wi * di)};
    }
  });
  if (even && os == 1) return long_line<T>(plan, z.get(), 1, reinterpret_cast<std::complex<T>*>(dst), 1, false, scale);
  Scratch<std::complex<T>> y(plan.n);
  long_line<T>(plan, z.get(), 1, y.get(), 1, false, scale);
  parallel_for(0, plan.n, kLongPiece, [&](int64_t k, int64_t end) {
    for (; k < end; ++k) {
      if (even) dst[2 * k * os] = y[k].real(), dst[(2 * k + 1) * os] = y[k].imag();
      else dst[k * os] = y[k].real();
    }
  });
}

template <class T> void r2c_pass(const View& out, const View& in, int dim, bool forward, T scale) {
  int64_t n = in.sizes[dim], h = n / 2, kept = h + 1, is = in.strides[dim], os = out.strides[dim];
  bool even = n % 2 == 0;
  auto plan = fft_plan<T>(even ? h : n);
  Lines lines(out, in, dim);
  const T* src = in.as<T>();
  auto* dst = out.as<std::complex<T>>();
  if (plan->first)
    return each_line(
        lines, [&](int64_t from, int64_t to) { long_r2c<T>(*plan, src + from, is, n, dst + to, os, forward, scale); });
  int64_t rows = std::max(plan->rows(), kept);
  for_lines<T>(lines, rows, is == 1 && os == 1,
               [&](int64_t lanes, int64_t count, const int64_t* from, const int64_t* to, T* x, T* y) {
                 int64_t imag = plan->rows() * lanes;
                 T *re = x, *im = x + imag;
                 if (even && is == 1) split(src, from, h, lanes, re, im);
                 else
                   for_blocks(even ? h : n, lanes, [&](int64_t l, int64_t k, int64_t end) {
                     const T* line = src + from[l];
                     if (even) {  // neighbours become one complex number
                       for (; k < end; ++k)
                         re[k * lanes + l] = line[2 * k * is], im[k * lanes + l] = line[(2 * k + 1) * is];
                     } else {
                       for (; k < end; ++k) re[k * lanes + l] = line[k * is], im[k * lanes + l] = T(0);
                     }
                   });
                 T* z = plan->run(x, y, lanes);
                 T *zr = z, *zi = z + imag;
                 if (even) {
                   // X_k = (Z_k + conj Z_{h-k}) / 2 - i w^k (Z_k - conj Z_{h-k}) / 2, w = exp(-2 pi i / n)
                   T* o = z == x ? y : x;
                   T *outr = o, *outi = o + rows * lanes;
                   bool done = false;
                   if constexpr (sizeof(T) == 4)
                     done = cpu::fft_to_half(zr, zi, outr, outi, h, lanes, plan->half_turns.data());
                   for (int64_t k = 0; k <= h && !done; ++k) {
                     int64_t a = k == h ? 0 : k, b = k == 0 ? 0 : h - k;
                     T wr = plan->half_turns[2 * k], wi = plan->half_turns[2 * k + 1];
                     for_lanes<T>(lanes, [&](int64_t l, auto lane) __attribute__((always_inline)) {
                       using X = decltype(lane);
                       X ar = get<X>(zr + a * lanes + l), ai = get<X>(zi + a * lanes + l);
                       X br = get<X>(zr + b * lanes + l), bi = -get<X>(zi + b * lanes + l);
                       X sr = (ar + br) * T(0.5), si = (ai + bi) * T(0.5), dr = (ar - br) * T(0.5),
                         di = (ai - bi) * T(0.5);
                       put(outr + k * lanes + l, sr + (wr * di + wi * dr));
                       put(outi + k * lanes + l, si - (wr * dr - wi * di));
                     });
                   }
                   zr = outr, zi = outi;
                 }
                 if (!forward)
                   for (int64_t q = 0; q < kept * lanes; ++q) zi[q] = -zi[q];
                 scatter(dst, to, os, kept, lanes, count, zr, zi, scale);
               });
}

template <class T> void c2r_pass(const View& out, const View& in, int dim, bool forward, T scale) {
  int64_t n = out.sizes[dim], h = n / 2, is = in.strides[dim], os = out.strides[dim];
  bool even = n % 2 == 0;
  auto plan = fft_plan<T>(even ? h : n);
  Lines lines(out, in, dim);
  auto* src = in.as<std::complex<T>>();
  T* dst = out.as<T>();
  if (plan->first)
    return each_line(
        lines, [&](int64_t from, int64_t to) { long_c2r<T>(*plan, src + from, is, n, dst + to, os, forward, scale); });
  int64_t rows = std::max(plan->rows(), h + 1);
  for_lines<T>(lines, rows, is == 1 && os == 1,
               [&](int64_t lanes, int64_t count, const int64_t* from, const int64_t* to, T* x, T* y) {
                 T *xr = y, *xi = y + rows * lanes;
                 gather(src, from, is, h + 1, lanes, count, xr, xi);
                 if (forward)
                   for (int64_t q = 0; q < (h + 1) * lanes; ++q) xi[q] = -xi[q];
                 // a real result leaves no room for imaginary parts of the first and, of even lengths, the middle value
                 for (int64_t l = 0; l < lanes; ++l) {
                   xi[l] = T(0);
                   if (even) xi[h * lanes + l] = T(0);
                 }
                 int64_t imag = plan->rows() * lanes;
                 // the inverse transform: real and imaginary parts are exchanged going in and coming out
                 T *zi = x, *zr = x + imag;
                 if (even) {
                   bool done = false;
                   if constexpr (sizeof(T) == 4)
                     done = cpu::fft_from_half(xr, xi, zr, zi, h, lanes, plan->half_turns.data());
                   for (int64_t k = 0; k < h && !done; ++k) {
                     int64_t b = h - k;
                     T wr = plan->half_turns[2 * k], wi = -plan->half_turns[2 * k + 1];
                     for_lanes<T>(lanes, [&](int64_t l, auto lane) __attribute__((always_inline)) {
                       using X = decltype(lane);
                       X ar = get<X>(xr + k * lanes + l), ai = get<X>(xi + k * lanes + l);
                       X br = get<X>(xr + b * lanes + l), bi = -get<X>(xi + b * lanes + l);
                       X sr = ar + br, si = ai + bi, dr = ar - br, di = ai - bi;
                       X er = wr * dr - wi * di, ei = wr * di + wi * dr;
                       put(zr + k * lanes + l, sr - ei);
                       put(zi + k * lanes + l, si + er);
                     });
                   }
                 } else {
                   for (int64_t k = 0; k < n; ++k)
                     for (int64_t l = 0; l < lanes; ++l) {
                       int64_t b = k <= h ? k : n - k;
                       zr[k * lanes + l] = xr[b * lanes + l],
                                      zi[k * lanes + l] = k <= h ? xi[b * lanes + l] : -xi[b * lanes + l];
                     }
                 }
                 T* z = plan->run(x, y, lanes);
                 T *ri = z, *rr = z + imag;
                 if (even && os == 1) join(dst, to, h, lanes, count, rr, ri, scale);
                 else
                   for_blocks(even ? h : n, count, [&](int64_t l, int64_t k, int64_t end) {
                     T* line = dst + to[l];
                     if (even) {
                       for (; k < end; ++k)
                         line[2 * k * os] = rr[k * lanes + l] * scale,
                                      line[(2 * k + 1) * os] = ri[k * lanes + l] * scale;
                     } else {
                       for (; k < end; ++k) line[k * os] = rr[k * lanes + l] * scale;
                     }
                   });
               });
}

// Passes over dims[first .. last), reading `in` once and then working on `out`.
template <class T>
void c2c_passes(const View& out, const View& in, const int* dims, int ndims, bool forward, double scale) {
  for (int i = 0; i < ndims; ++i)
    c2c_pass<T>(out, i ? out : in, dims[i], forward, i + 1 == ndims ? static_cast<T>(scale) : T(1));
}

template <class F> void visit_real(DType t, F f) {
  switch (to_real(t)) {
    case DType::Float32: return f(float{});
    case DType::Float64: return f(double{});
    default: fail(ErrorKind::Runtime, "fft: there is no transform for '", info(t).legacy, "'");
  }
}

// Of a real input's transform the half up to n / 2 along the last of dims is known; X[-k] = conj X[k] gives the rest.
template <class T> void fill_mirrored(const View& out, const int* dims, int ndims) {
  const int last = dims[ndims - 1];
  const int64_t n = out.sizes[last], step = out.strides[last];
  bool turned[kMaxDims] = {};
  for (int i = 0; i + 1 < ndims; ++i) turned[dims[i]] = true;
  auto* data = out.as<std::complex<T>>();
  parallel_for(0, out.numel() / n, std::max<int64_t>(1, 16384 / n), [&](int64_t first, int64_t end) {
    int64_t index[kMaxDims], rest = first;
    for (int d = out.ndim - 1; d >= 0; --d) {
      index[d] = d == last ? 0 : rest % out.sizes[d];
      if (d != last) rest /= out.sizes[d];
    }
    for (int64_t line = first; line < end; ++line) {
      int64_t to = 0, from = 0;
      for (int d = 0; d < out.ndim; ++d) {
        to += index[d] * out.strides[d];
        from += (turned[d] && index[d] ? out.sizes[d] - index[d] : index[d]) * out.strides[d];
      }
      for (int d = out.ndim - 1; d >= 0; --d) {
        if (d == last) continue;
        if (++index[d] < out.sizes[d]) break;
        index[d] = 0;
      }
      if constexpr (sizeof(T) == 4)
        if (step == 1 && cpu::fft_mirror(reinterpret_cast<T*>(data + to + n / 2 + 1),
                                         reinterpret_cast<const T*>(data + from + n - (n / 2 + 1)), n - n / 2 - 1))
          continue;
      if (step == 1 && sizeof(T) == 4) {  // both parts as one number, whose sign is that of the imaginary one
        typedef uint64_t Both __attribute__((may_alias));
        Both* row = reinterpret_cast<Both*>(data + to);
        const Both* half = reinterpret_cast<const Both*>(data + from);
#pragma GCC ivdep
        for (int64_t k = n / 2 + 1; k < n; ++k) row[k] = half[n - k] ^ (uint64_t{1} << 63);
        continue;
      }
      for (int64_t k = n / 2 + 1; k < n; ++k) data[to + k * step] = std::conj(data[from + (n - k) * step]);
    }
  });
}

void r2c(const View& out, const View& in, const int* dims, int ndims, bool forward, double scale);

void c2c(const View& out, const View& in, const int* dims, int ndims, bool forward, double scale) {
  if (out.numel() == 0) return;
  if (!is_complex(in.dtype)) {
    int64_t sizes[kMaxDims];
    for (int d = 0; d < out.ndim; ++d) sizes[d] = out.sizes[d];
    sizes[dims[ndims - 1]] = sizes[dims[ndims - 1]] / 2 + 1;
    r2c(View{out.data, sizes, out.strides, out.ndim, out.dtype}, in, dims, ndims, forward, scale);
    return visit_real(out.dtype, [&](auto x) { fill_mirrored<decltype(x)>(out, dims, ndims); });
  }
  visit_real(out.dtype, [&](auto x) { c2c_passes<decltype(x)>(out, in, dims, ndims, forward, scale); });
}

void r2c(const View& out, const View& in, const int* dims, int ndims, bool forward, double scale) {
  if (out.numel() == 0) return;
  visit_real(out.dtype, [&](auto x) {
    using T = decltype(x);
    r2c_pass<T>(out, in, dims[ndims - 1], forward, ndims == 1 ? static_cast<T>(scale) : T(1));
    if (ndims > 1) c2c_passes<T>(out, out, dims, ndims - 1, forward, scale);
  });
}

void c2r(const View& out, const View& in, const int* dims, int ndims, bool forward, double scale) {
  if (out.numel() == 0) return;
  visit_real(out.dtype, [&](auto x) {
    using T = decltype(x);
    if (ndims == 1) return c2r_pass<T>(out, in, dims[0], forward, static_cast<T>(scale));
    // the other dimensions first, in complex scratch memory
    int64_t strides[kMaxDims], total = 1;
    for (int d = in.ndim - 1; d >= 0; --d) strides[d] = total, total = checked_mul(total, in.sizes[d]);
    Scratch<std::complex<T>> scratch(total);
    View middle{scratch.get(), in.sizes, strides, in.ndim, in.dtype};
    c2c_passes<T>(middle, in, dims, ndims - 1, forward, 1.0);
    c2r_pass<T>(out, middle, dims[ndims - 1], forward, static_cast<T>(scale));
  });
}

}  // namespace

extern const FftKernels fft_kernels;
const FftKernels fft_kernels = {c2c, r2c, c2r};

}  // namespace rl::RL_ISA
