// Passes over real signals: half a transform gives, or takes, the half of the spectrum that is not the mirror of the
// other.
#pragma once
#include <cmath>

#include "cpu/fft/complex.h"

namespace rl::RL_ISA {
namespace {

inline constexpr int64_t kLongPiece = 8192;

// Real signals as complex ones of half the length, or with zeros where their length is odd.
template <class T> void long_r2c(const FftPlan<T>& plan, const T* src, int64_t is, int64_t n, std::complex<T>* dst,
                                 int64_t os, bool forward, T scale) {
  const int64_t h = n / 2;
  const bool even = n % 2 == 0;
  Scratch<std::complex<T>> z(plan.n + 1);
  if (even && is == 1) {
    long_transform<T>(plan, reinterpret_cast<const std::complex<T>*>(src), 1, z.get(), 1, true, T(1));
  } else {
    Scratch<std::complex<T>> x(plan.n);
    parallel_for(0, plan.n, kLongPiece, [&](int64_t k, int64_t end) {
      for (; k < end; ++k) x[k] = even ? std::complex<T>(src[2 * k * is], src[(2 * k + 1) * is]) : src[k * is];
    });
    long_transform<T>(plan, x.get(), 1, z.get(), 1, true, T(1));
  }
  const T sign = forward ? scale : -scale;
  const bool wide = even && os == 1 && cpu::has_avx512();
  if (even) z[h] = z[0];
  parallel_for(0, h + 1, kLongPiece, [&](int64_t k, int64_t end) {
    if (wide && k < h) {
      const int64_t most = std::min(end, h);
      avx512::fft_half_part(reinterpret_cast<const T*>(z.get()), h, plan.half_twiddles.data(),
                            reinterpret_cast<T*>(dst), k, most, forward, scale);
      k = most;
    }
    for (; k < end; ++k) {
      if (!even) {
        dst[k * os] = {z[k].real() * scale, z[k].imag() * sign};
        continue;
      }
      const std::complex<T> a = z[k == h ? 0 : k], b = z[k == 0 ? 0 : h - k];
      const T wr = plan.half_twiddles[2 * k], wi = plan.half_twiddles[2 * k + 1];
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
  const bool wide = even && is == 1 && cpu::has_avx512();
  Scratch<std::complex<T>> z(plan.n + 8);
  // a real result leaves no room for imaginary parts of the first and, of even lengths, the middle value
  auto at = [&](int64_t k) {
    const std::complex<T> x = src[k * is];
    return std::complex<T>(x.real(), k == 0 || (even && k == h) ? T(0) : forward ? -x.imag() : x.imag());
  };
  parallel_for(0, plan.n, kLongPiece, [&](int64_t k, int64_t end) {
    if (wide)
      return avx512::fft_half_into_part(reinterpret_cast<const T*>(src), h, plan.half_twiddles.data(),
                                        reinterpret_cast<T*>(z.get()), k, end, forward);
    for (; k < end; ++k) {
      if (!even) {
        z[k] = k <= h ? at(k) : std::conj(at(n - k));
        continue;
      }
      const std::complex<T> a = at(k), b = at(h - k);
      const T wr = plan.half_twiddles[2 * k], wi = -plan.half_twiddles[2 * k + 1];
      const T sr = a.real() + b.real(), si = a.imag() - b.imag(), dr = a.real() - b.real(), di = a.imag() + b.imag();
      z[k] = {sr - (wr * di + wi * dr), si + (wr * dr - wi * di)};
    }
  });
  if (even && os == 1)
    return long_transform<T>(plan, z.get(), 1, reinterpret_cast<std::complex<T>*>(dst), 1, false, scale);
  Scratch<std::complex<T>> y(plan.n);
  long_transform<T>(plan, z.get(), 1, y.get(), 1, false, scale);
  parallel_for(0, plan.n, kLongPiece, [&](int64_t k, int64_t end) {
    for (; k < end; ++k) {
      if (even) dst[2 * k * os] = y[k].real(), dst[(2 * k + 1) * os] = y[k].imag();
      else dst[k * os] = y[k].real();
    }
  });
}

// Short real signals, each contiguous: as complex ones, some at a time, in memory of our own on the way. What is
// written there has left the processor's buffers when it is read again. body(from, to, count, z, pitch)
template <class T, class F> void short_real_pass(const FftPlan<T>& plan, const Batch& batch, F body) {
  constexpr int64_t kMost = 32;
  const int64_t n = plan.n, pitch = 2 * ((n + 16) / 8 * 8), together = std::clamp<int64_t>(1024 / n, 1, kMost);
  const int64_t groups = (batch.count + together - 1) / together;
  parallel_for(0, groups, short_grain(groups, n * together), [&](int64_t g, int64_t end) {
    Scratch<T> z(pitch * together);
    for (; g < end; ++g) {
      int64_t from[kMost], to[kMost];
      const int64_t count = std::min(together, batch.count - g * together);
      batch.starts(g * together, count, from, to);
      body(from, to, count, z.get(), pitch);
    }
  });
}
// f(first, count, step) for runs of offsets that are evenly spaced.
template <class F> void for_runs(const int64_t* at, int64_t count, F f) {
  for (int64_t l = 0; l < count;) {
    int64_t end = std::min(l + 2, count);
    while (end < count && at[end] - at[end - 1] == at[l + 1] - at[l]) ++end;
    f(l, end - l, end - l > 1 ? at[l + 1] - at[l] : 0);
    l = end;
  }
}
template <class T>
void short_r2c(const FftPlan<T>& plan, const Batch& batch, const T* src, T* dst, bool forward, T scale) {
  short_real_pass(plan, batch, [&](const int64_t* from, int64_t* to, int64_t count, T* z, int64_t pitch) {
    for_runs(from, count, [&](int64_t l, int64_t some, int64_t step) {
      avx512::fft_short_signals(plan.short_plan, src + from[l], step, z + l * pitch, pitch, some, true, T(1));
    });
    for (int64_t l = 0; l < count; ++l) to[l] *= 2;
    avx512::fft_half_from(z, pitch, count, plan.n, plan.half_twiddles.data(), dst, to, forward, scale);
  });
}
template <class T>
void short_c2r(const FftPlan<T>& plan, const Batch& batch, const T* src, T* dst, bool forward, T scale) {
  short_real_pass(plan, batch, [&](int64_t* from, const int64_t* to, int64_t count, T* z, int64_t pitch) {
    for (int64_t l = 0; l < count; ++l) from[l] *= 2;
    avx512::fft_half_into(src, from, count, plan.n, plan.half_twiddles.data(), z, pitch, forward);
    for_runs(to, count, [&](int64_t l, int64_t some, int64_t step) {
      avx512::fft_short_signals(plan.short_plan, z + l * pitch, pitch, dst + to[l], step, some, false, scale);
    });
  });
}

template <class T> void r2c_pass(const View& out, const View& in, int dim, bool forward, T scale) {
  int64_t n = in.sizes[dim], h = n / 2, kept = h + 1, is = in.strides[dim], os = out.strides[dim];
  bool even = n % 2 == 0;
  auto plan = fft_plan<T>(even ? h : n);
  Batch batch(out, in, dim);
  const T* src = in.as<T>();
  auto* dst = out.as<std::complex<T>>();
  if (plan->is_long())
    return each_signal(
        batch, [&](int64_t from, int64_t to) { long_r2c<T>(*plan, src + from, is, n, dst + to, os, forward, scale); });
  if (even && plan->short_plan.n && is == 1 && os == 1)
    return short_r2c(*plan, batch, src, reinterpret_cast<T*>(dst), forward, scale);
  int64_t rows = std::max(plan->rows(), kept);
  for_batch<T>(
      batch, rows, is == 1 && os == 1,
      [&](int64_t lanes, int64_t count, const int64_t* from, const int64_t* to, T* x, T* y) {
        int64_t imag = plan->rows() * lanes;
        T *re = x, *im = x + imag;
        if (even && is == 1) split(src, from, h, lanes, re, im);
        else
          for_blocks(even ? h : n, lanes, [&](int64_t l, int64_t k, int64_t end) {
            const T* signal = src + from[l];
            if (even) {  // neighbours become one complex number
              for (; k < end; ++k) re[k * lanes + l] = signal[2 * k * is], im[k * lanes + l] = signal[(2 * k + 1) * is];
            } else {
              for (; k < end; ++k) re[k * lanes + l] = signal[k * is], im[k * lanes + l] = T(0);
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
            done = cpu::has_avx512() && avx512::fft_to_half(zr, zi, outr, outi, h, lanes, plan->half_twiddles.data());
          for (int64_t k = 0; k <= h && !done; ++k) {
            int64_t a = k == h ? 0 : k, b = k == 0 ? 0 : h - k;
            T wr = plan->half_twiddles[2 * k], wi = plan->half_twiddles[2 * k + 1];
            for_lanes<T>(lanes, [&](int64_t l, auto lane) __attribute__((always_inline)) {
              using X = decltype(lane);
              X ar = get<X>(zr + a * lanes + l), ai = get<X>(zi + a * lanes + l);
              X br = get<X>(zr + b * lanes + l), bi = -get<X>(zi + b * lanes + l);
              X sr = (ar + br) * T(0.5), si = (ai + bi) * T(0.5), dr = (ar - br) * T(0.5), di = (ai - bi) * T(0.5);
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
  Batch batch(out, in, dim);
  auto* src = in.as<std::complex<T>>();
  T* dst = out.as<T>();
  if (plan->is_long())
    return each_signal(
        batch, [&](int64_t from, int64_t to) { long_c2r<T>(*plan, src + from, is, n, dst + to, os, forward, scale); });
  if (even && plan->short_plan.n && is == 1 && os == 1)
    return short_c2r(*plan, batch, reinterpret_cast<const T*>(src), dst, forward, scale);
  int64_t rows = std::max(plan->rows(), h + 1);
  for_batch<T>(
      batch, rows, is == 1 && os == 1,
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
            done = cpu::has_avx512() && avx512::fft_from_half(xr, xi, zr, zi, h, lanes, plan->half_twiddles.data());
          for (int64_t k = 0; k < h && !done; ++k) {
            int64_t b = h - k;
            T wr = plan->half_twiddles[2 * k], wi = -plan->half_twiddles[2 * k + 1];
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
            T* signal = dst + to[l];
            if (even) {
              for (; k < end; ++k)
                signal[2 * k * os] = rr[k * lanes + l] * scale, signal[(2 * k + 1) * os] = ri[k * lanes + l] * scale;
            } else {
              for (; k < end; ++k) signal[k * os] = rr[k * lanes + l] * scale;
            }
          });
      });
}

}  // namespace
}  // namespace rl::RL_ISA
