// A pass over complex lines.
#pragma once
#include "cpu/fft/batch.h"
#include "cpu/fft/plan.h"

namespace rl::RL_ISA {
namespace {

// Note [Long lines]
// x[a C + b] of a line of R C numbers is a matrix of R rows. The transform at u + R v is the transform over b of: the
// transform over a, at u, times exp(-2 pi i u b / (R C)). So both are transforms of short lines, several side by side:
// columns of the line first, then rows of what they gave. The work is shared by threads, and stays in their caches.
template <class T> void long_chirp(const FftPlan<T>& plan, const std::complex<T>* src, int64_t is, std::complex<T>* dst,
                                   int64_t os, bool forward, T scale);
template <class T> void long_line(const FftPlan<T>& plan, const std::complex<T>* src, int64_t is, std::complex<T>* dst,
                                  int64_t os, bool forward, T scale) {
  if (plan.chirp) return long_chirp(plan, src, is, dst, os, forward, scale);
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

// The chirp transform of a long line: what FftPlan::run does, its two transforms as long lines.
template <class T> void long_chirp(const FftPlan<T>& plan, const std::complex<T>* src, int64_t is, std::complex<T>* dst,
                                   int64_t os, bool forward, T scale) {
  const int64_t n = plan.n, length = plan.chirp->n;
  const T *turn = plan.chirp_factor.data(), *re = plan.chirp_spectrum.data(), *im = re + length;
  Scratch<std::complex<T>> x(length), y(length);
  constexpr int64_t kPiece = 8192;
  parallel_for(0, length, kPiece, [&](int64_t k, int64_t end) {
    for (; k < std::min(end, n); ++k) {
      // the inverse is the forward transform with real and imaginary parts exchanged
      const std::complex<T> v = src[k * is];
      const T a = forward ? v.real() : v.imag(), b = forward ? v.imag() : v.real();
      x[k] = {a * turn[2 * k] - b * turn[2 * k + 1], a * turn[2 * k + 1] + b * turn[2 * k]};
    }
    for (; k < end; ++k) x[k] = {};
  });
  long_line<T>(*plan.chirp, x.get(), 1, y.get(), 1, true, T(1));
  parallel_for(0, length, kPiece, [&](int64_t k, int64_t end) {
    for (; k < end; ++k) {
      const T a = y[k].real(), b = y[k].imag();
      y[k] = {a * re[k] - b * im[k], a * im[k] + b * re[k]};
    }
  });
  long_line<T>(*plan.chirp, y.get(), 1, x.get(), 1, false, T(1));
  parallel_for(0, n, kPiece, [&](int64_t k, int64_t end) {
    for (; k < end; ++k) {
      const T a = x[k].real(), b = x[k].imag();
      const T p = (a * turn[2 * k] - b * turn[2 * k + 1]) * scale, q = (a * turn[2 * k + 1] + b * turn[2 * k]) * scale;
      dst[k * os] = {forward ? p : q, forward ? q : p};
    }
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

// Short lines next to each other in memory, number by number or line by line. False where they are neither.
template <class T> bool short_pass(const cpu::FftShort<T>& plan, const Lines& lines, const T* src, int64_t is, T* dst,
                                   int64_t os, bool forward, T scale) {
  if (plan.n == 0) return false;
  const int last = lines.ndim - 1;
  const int64_t width = last < 0 ? 1 : lines.sizes[last];
  const int64_t from = last < 0 ? 0 : 2 * lines.from[last], to = last < 0 ? 0 : 2 * lines.to[last];
  const bool beside = from == 2 && to == 2 && width > 1 && plan.outer == 1;
  if (!(is == 1 && os == 1) && !beside) return false;
  // In pieces of the lines of the last dimension, some multiples of a register's.
  const int64_t piece = std::max<int64_t>(plan.outer == 1 ? 8 : 1, 4096 / plan.length() / 8 * 8);
  const int64_t per_width = (width + piece - 1) / piece, pieces = lines.count / width * per_width;
  parallel_for(0, pieces, short_grain(pieces, std::min(piece, width) * plan.length()), [&](int64_t g, int64_t end) {
    for (; g < end; ++g) {
      const int64_t first = g % per_width * piece, count = std::min(piece, width - first);
      int64_t in, out;
      lines.start(g / per_width * width + first, in, out);
      if (beside) cpu::fft_short_rows(plan, src + 2 * in, 2 * is, dst + 2 * out, 2 * os, count, forward, scale);
      else cpu::fft_short_lines(plan, src + 2 * in, from, dst + 2 * out, to, count, forward, scale);
    }
  });
  return true;
}

template <class T> void c2c_pass(const View& out, const View& in, int dim, bool forward, T scale) {
  int64_t n = out.sizes[dim], is = in.strides[dim], os = out.strides[dim];
  auto plan = fft_plan<T>(n);
  Lines lines(out, in, dim);
  auto *src = in.as<std::complex<T>>(), *dst = out.as<std::complex<T>>();
  if (plan->is_long())
    return each_line(
        lines, [&](int64_t from, int64_t to) { long_line<T>(*plan, src + from, is, dst + to, os, forward, scale); });
  if (short_pass(plan->few, lines, reinterpret_cast<const T*>(src), is, reinterpret_cast<T*>(dst), os, forward, scale))
    return;
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

}  // namespace
}  // namespace rl::RL_ISA
