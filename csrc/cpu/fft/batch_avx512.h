// Transforms of short contiguous signals.
#pragma once
#include <algorithm>

#include "cpu/fft/registers_avx512.h"

namespace rl::RL_ISA {
namespace {

// W signals of up to kMost elements, or as many as there are: transposed, they lie side by side in registers.
template <int N, class T> [[gnu::flatten]] void tiny_signals(const T* in, int64_t in_step, T* out, int64_t out_step,
                                                             int64_t count, const Ends<T>& ends) {
  constexpr int W = Pairs<T>::W, R = (N + W - 1) / W * W;
  for (int64_t i = 0; i < count; i += W) {
    Pairs<T> v[R];
#pragma GCC unroll 4
    for (int g = 0; g < R; g += W) {
      const First part(2 * (N - g));
#pragma GCC unroll 8
      for (int l = 0; l < W; ++l) v[g + l] = fft::load(in + (i + l) * in_step + 2 * g, i + l < count ? part : First(0));
      transpose(v + g);
    }
    ends.template enter<N>(v);
    fft::transform<N>(v);
    ends.template leave<N>(v);
#pragma GCC unroll 4
    for (int g = 0; g < R; g += W) {
      const First part(2 * (N - g));
      transpose(v + g);
#pragma GCC unroll 8
      for (int l = 0; l < W; ++l)
        fft::store(out + (i + l) * out_step + 2 * g, i + l < count ? part : First(0), v[g + l]);
    }
  }
}

// Signals of A W elements, each the rows of a matrix of A registers. Of small A, W / A signals at once.
template <int A, class T> [[gnu::flatten]] void register_signals(const FftShort<T>& plan, const T* in, int64_t in_step,
                                                                 T* out, int64_t out_step, int64_t count,
                                                                 const Ends<T>& ends) {
  constexpr int W = Pairs<T>::W, L = A < W ? W / A : 1, R = A < W ? W : A;
  const T *re = plan.twiddles.data(), *im = re + 2 * plan.n;
  for (int64_t i = 0; i < count; i += L) {
    Pairs<T> v[R];
#pragma GCC unroll 16
    for (int l = 0; l < L; ++l) {
      // past the end: the last signal once more, which is not written
      const T* signal = in + std::min(i + l, count - 1) * in_step;
#pragma GCC unroll 16
      for (int u = 0; u < A; ++u) v[l * A + u] = fft::load(signal + 2 * W * u);
      ends.template enter<A>(v + l * A);
      fft::transform<A>(v + l * A);
#pragma GCC unroll 16
      for (int u = 1; u < A; ++u)
        v[l * A + u] = multiplied(v[l * A + u], fft::load(re + 2 * W * u), fft::load(im + 2 * W * u));
    }
#pragma GCC unroll 4
    for (int g = 0; g < R; g += W) {
      transpose(v + g);
      fft::transform<W>(v + g);
    }
    ends.template leave<R>(v);
    if constexpr (L == 1) {
#pragma GCC unroll 16
      for (int k = 0; k < R; ++k) fft::store(out + i * out_step + 2 * (k / W * W + k % W * A), v[k]);
    } else {
      // Register k has elements A k .. A k + A - 1 of each signal.
#pragma GCC unroll 8
      for (int j = 0; j < A; ++j) {
        if constexpr (L == 2) transpose_halves(v + L * j);
        else transpose_quarters(v + L * j);
#pragma GCC unroll 4
        for (int l = 0; l < L; ++l)
          if (i + l < count) fft::store(out + (i + l) * out_step + 2 * W * j, v[L * j + l]);
      }
    }
  }
}

// Signals of A x B elements, both multiples of W, through memory of our own.
template <int A, int B, class T> [[gnu::flatten]] void matrix_signals(const FftShort<T>& plan, const T* in,
                                                                      int64_t in_step, T* out, int64_t out_step,
                                                                      int64_t count, const Ends<T>& ends) {
  constexpr int W = Pairs<T>::W;
  alignas(64) T middle[2 * A * B];  // (B, A)
  const T *re = plan.twiddles.data(), *im = re + 2 * plan.n;
  for (int64_t i = 0; i < count; ++i) {
    for (int p = 0; p < 2 * B; p += 2 * W) {
      Pairs<T> v[A];
#pragma GCC unroll 16
      for (int u = 0; u < A; ++u) v[u] = fft::load(in + i * in_step + 2 * B * u + p);
      ends.template enter<A>(v);
      fft::transform<A>(v);
#pragma GCC unroll 16
      for (int u = 1; u < A; ++u) v[u] = multiplied(v[u], fft::load(re + 2 * B * u + p), fft::load(im + 2 * B * u + p));
#pragma GCC unroll 4
      for (int g = 0; g < A; g += W) {
        transpose(v + g);
#pragma GCC unroll 8
        for (int l = 0; l < W; ++l) fft::store(middle + (p + 2 * l) * A + 2 * g, v[g + l]);
      }
    }
    for (int u = 0; u < 2 * A; u += 2 * W) {
      Pairs<T> v[B];
#pragma GCC unroll 16
      for (int p = 0; p < B; ++p) v[p] = fft::load(middle + 2 * A * p + u);
      fft::transform<B>(v);
      ends.template leave<B>(v);
#pragma GCC unroll 16
      for (int w = 0; w < B; ++w) fft::store(out + i * out_step + 2 * A * w + u, v[w]);
    }
  }
}

// Any others: transposed, W at a time, into memory of our own, where they lie side by side, and back.
template <class T> void transposed_signals(const FftShort<T>& plan, const T* in, int64_t in_step, T* out,
                                           int64_t out_step, int64_t count, const Ends<T>& ends) {
  constexpr int64_t W = Pairs<T>::W, kRow = 2 * W;
  alignas(64) T buffer[kMost * kMost * kRow];
  const int64_t n = plan.n;
  for (int64_t i = 0; i < count; i += W) {
    for (int64_t k = 0; k < n; k += W) {
      const First part(2 * (n - k));
      Pairs<T> v[W];
#pragma GCC unroll 8
      for (int l = 0; l < W; ++l) v[l] = fft::load(in + (i + l) * in_step + 2 * k, i + l < count ? part : First(0));
      transpose(v);
#pragma GCC unroll 8
      for (int l = 0; l < W; ++l)
        if (k + l < n) fft::store(buffer + (k + l) * kRow, v[l]);
    }
    side_by_side(plan, buffer, kRow, buffer, kRow, First(32), ends);
    for (int64_t k = 0; k < n; k += W) {
      const First part(2 * (n - k));
      Pairs<T> v[W];
#pragma GCC unroll 8
      for (int l = 0; l < W; ++l) v[l] = fft::load(buffer + std::min(k + l, n - 1) * kRow);
      transpose(v);
#pragma GCC unroll 8
      for (int l = 0; l < W; ++l) fft::store(out + (i + l) * out_step + 2 * k, i + l < count ? part : First(0), v[l]);
    }
  }
}

template <class T> void inner_signals(const FftShort<T>& plan, const T* in, int64_t in_step, T* out, int64_t out_step,
                                      int64_t count, const Ends<T>& ends) {
  constexpr int W = Pairs<T>::W;
  if (plan.second == W) switch (plan.first) {
      case 2: return register_signals<2>(plan, in, in_step, out, out_step, count, ends);
      case 4: return register_signals<4>(plan, in, in_step, out, out_step, count, ends);
      case 8: return register_signals<8>(plan, in, in_step, out, out_step, count, ends);
      case 16: return register_signals<16>(plan, in, in_step, out, out_step, count, ends);
      default: break;
    }
  if (plan.first == 16 && plan.second == 16)
    return matrix_signals<16, 16>(plan, in, in_step, out, out_step, count, ends);
  if (plan.first == 16 && plan.second == 8) return matrix_signals<16, 8>(plan, in, in_step, out, out_step, count, ends);
  if (plan.second == 1)
    return with_length(plan.first, [&]<int N> { tiny_signals<N>(in, in_step, out, out_step, count, ends); });
  transposed_signals(plan, in, in_step, out, out_step, count, ends);
}

// A signal of A n elements: of its columns' transforms, transposed, the rows lie side by side, and so do their results.
template <int A, class T> void outer_signal(const FftShort<T>& plan, const T* in, T* out, const Ends<T>& ends) {
  constexpr int W = Pairs<T>::W;
  alignas(64) T middle[2 * A * kMost * kMost];  // (n, A)
  const int64_t n = plan.n;
  for (int64_t p = 0; p < n; p += W) {
    const First part(2 * (n - p));
    Pairs<T> v[A];
#pragma GCC unroll 16
    for (int u = 0; u < A; ++u) v[u] = fft::load(in + 2 * (n * u + p), part);
    ends.template enter<A>(v);
    fft::transform<A>(v);
#pragma GCC unroll 16
    for (int u = 1; u < A; ++u) {
      const Pairs<T> w = fft::load(plan.outer_twiddles.data() + 2 * (n * u + p), part);
      v[u] = multiplied(v[u], real_parts(w), imag_parts(w));
    }
#pragma GCC unroll 4
    for (int g = 0; g < A; g += W) {
      transpose(v + g);
#pragma GCC unroll 8
      for (int l = 0; l < W; ++l)
        if (p + l < n) fft::store(middle + 2 * (A * (p + l) + g), v[g + l]);
    }
  }
  for (int g = 0; g < A; g += W) side_by_side(plan, middle + 2 * g, 2 * A, out + 2 * g, 2 * A, First(32), ends.last());
}

}  // namespace
}  // namespace rl::RL_ISA
