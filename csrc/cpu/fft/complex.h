// A pass over complex signals.
#pragma once
#include "cpu/fft/batch.h"
#include "cpu/fft/plan.h"

namespace rl::RL_ISA {
namespace {

// Note [Long transforms]
// x[a C + b] of a signal of R C elements is a matrix of R rows. The transform at u + R v is the transform over b of:
// the transform over a, at u, times exp(-2 pi i u b / (R C)). So both are transforms of short signals, several side by
// side: columns of the signal first, then rows of what they gave. The work is shared by threads, and stays in their
// caches.
template <class T> void long_chirp(const FftPlan<T>& plan, const std::complex<T>* src, int64_t is, std::complex<T>* dst,
                                   int64_t os, bool forward, T scale);
template <class T> void long_transform(const FftPlan<T>& plan, const std::complex<T>* src, int64_t is,
                                       std::complex<T>* dst, int64_t os, bool forward, T scale) {
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
      const Root base = plan.twiddle(k * at % n);
      const T br = static_cast<T>(base.re), bi = static_cast<T>(base.im);
      const T *tr = plan.side_twiddles.data() + 2 * k * FftPlan<T>::kSide, *ti = tr + FftPlan<T>::kSide;
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

// The chirp transform of a long signal: what FftPlan::run does, its two transforms as long signals.
template <class T> void long_chirp(const FftPlan<T>& plan, const std::complex<T>* src, int64_t is, std::complex<T>* dst,
                                   int64_t os, bool forward, T scale) {
  const int64_t n = plan.n, length = plan.chirp->n;
  const T *chirp = plan.chirp_factor.data(), *re = plan.chirp_spectrum.data(), *im = re + length;
  Scratch<std::complex<T>> x(length), y(length);
  constexpr int64_t kPiece = 8192;
  parallel_for(0, length, kPiece, [&](int64_t k, int64_t end) {
    for (; k < std::min(end, n); ++k) {
      // the inverse is the forward transform with real and imaginary parts exchanged
      const std::complex<T> v = src[k * is];
      const T a = forward ? v.real() : v.imag(), b = forward ? v.imag() : v.real();
      x[k] = {a * chirp[2 * k] - b * chirp[2 * k + 1], a * chirp[2 * k + 1] + b * chirp[2 * k]};
    }
    for (; k < end; ++k) x[k] = {};
  });
  long_transform<T>(*plan.chirp, x.get(), 1, y.get(), 1, true, T(1));
  parallel_for(0, length, kPiece, [&](int64_t k, int64_t end) {
    for (; k < end; ++k) {
      const T a = y[k].real(), b = y[k].imag();
      y[k] = {a * re[k] - b * im[k], a * im[k] + b * re[k]};
    }
  });
  long_transform<T>(*plan.chirp, y.get(), 1, x.get(), 1, false, T(1));
  parallel_for(0, n, kPiece, [&](int64_t k, int64_t end) {
    for (; k < end; ++k) {
      const T a = x[k].real(), b = x[k].imag();
      const T p = (a * chirp[2 * k] - b * chirp[2 * k + 1]) * scale,
              q = (a * chirp[2 * k + 1] + b * chirp[2 * k]) * scale;
      dst[k * os] = {forward ? p : q, forward ? q : p};
    }
  });
}

// f(from, to) for each signal, one after the other.
template <class F> void each_signal(const Batch& batch, F f) {
  for (int64_t i = 0; i < batch.count; ++i) {
    int64_t from, to;
    batch.start(i, from, to);
    f(from, to);
  }
}

// Short signals next to each other in memory, element by element or signal by signal. False where they are neither.
template <class T> bool short_pass(const cpu::FftShort<T>& plan, const Batch& batch, const T* src, int64_t is, T* dst,
                                   int64_t os, bool forward, T scale) {
  if (plan.n == 0) return false;
  const int last = batch.ndim - 1;
  const int64_t width = last < 0 ? 1 : batch.sizes[last];
  const int64_t from = last < 0 ? 0 : 2 * batch.from[last], to = last < 0 ? 0 : 2 * batch.to[last];
  const bool beside = from == 2 && to == 2 && width > 1 && plan.outer == 1;
  if (!(is == 1 && os == 1) && !beside) return false;
  // In pieces of the signals of the last dimension, some multiples of a register's.
  const int64_t piece = std::max<int64_t>(plan.outer == 1 ? 8 : 1, 4096 / plan.length() / 8 * 8);
  const int64_t per_width = (width + piece - 1) / piece, pieces = batch.count / width * per_width;
  parallel_for(0, pieces, short_grain(pieces, std::min(piece, width) * plan.length()), [&](int64_t g, int64_t end) {
    for (; g < end; ++g) {
      const int64_t first = g % per_width * piece, count = std::min(piece, width - first);
      int64_t in, out;
      batch.start(g / per_width * width + first, in, out);
      if (beside) avx512::fft_short_rows(plan, src + 2 * in, 2 * is, dst + 2 * out, 2 * os, count, forward, scale);
      else avx512::fft_short_signals(plan, src + 2 * in, from, dst + 2 * out, to, count, forward, scale);
    }
  });
  return true;
}

template <class T> void c2c_pass(const View& out, const View& in, int dim, bool forward, T scale) {
  int64_t n = out.sizes[dim], is = in.strides[dim], os = out.strides[dim];
  auto plan = fft_plan<T>(n);
  Batch batch(out, in, dim);
  auto *src = in.as<std::complex<T>>(), *dst = out.as<std::complex<T>>();
  if (plan->is_long())
    return each_signal(batch, [&](int64_t from, int64_t to) {
      long_transform<T>(*plan, src + from, is, dst + to, os, forward, scale);
    });
  if (short_pass(plan->short_plan, batch, reinterpret_cast<const T*>(src), is, reinterpret_cast<T*>(dst), os, forward,
                 scale))
    return;
  int64_t rows = plan->rows();
  for_batch<T>(batch, rows, is == 1 && os == 1,
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
