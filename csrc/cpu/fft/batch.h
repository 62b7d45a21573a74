// The signals of a pass along one dimension, several side by side in rows of their real and imaginary parts.
#pragma once
#include <algorithm>
#include <complex>

#include "backend/fft.h"
#include "base/check.h"
#include "base/parallel.h"
#include "cpu/features.h"
#include "cpu/fft/stages_avx512.h"
#include "cpu/isa.h"
#include "cpu/loops/scratch.h"
#include "cpu/simd/transpose.h"
#include "cpu/simd/vec.h"

namespace rl::RL_ISA {
namespace {

// The signals of a pass along one dimension: where each starts in the input and in the result.
struct Batch {
  int ndim = 0;
  int64_t sizes[kMaxDims], from[kMaxDims], to[kMaxDims];
  int64_t count = 1;

  Batch(const View& out, const View& in, int dim) {
    for (int d = 0; d < out.ndim; ++d) {
      if (d == dim || out.sizes[d] == 1) continue;
      sizes[ndim] = out.sizes[d], from[ndim] = in.strides[d], to[ndim] = out.strides[d];
      count *= out.sizes[d];
      ++ndim;
    }
    // Neighbouring signals should be neighbours in memory: the smallest stride runs fastest.
    for (int i = 1; i < ndim; ++i)
      for (int j = i; j > 0 && to[j] > to[j - 1]; --j)
        std::swap(to[j], to[j - 1]), std::swap(from[j], from[j - 1]), std::swap(sizes[j], sizes[j - 1]);
    // Dimensions that go on where the next one ends are one with it.
    int kept = 0;
    for (int i = 1; i < ndim; ++i) {
      if (from[kept] == from[i] * sizes[i] && to[kept] == to[i] * sizes[i]) sizes[kept] *= sizes[i];
      else sizes[++kept] = sizes[i];
      from[kept] = from[i], to[kept] = to[i];
    }
    if (ndim) ndim = kept + 1;
  }
  void start(int64_t signal, int64_t& in, int64_t& out) const {
    in = out = 0;
    for (int d = ndim - 1; d >= 0; --d) {
      int64_t i = d ? signal % sizes[d] : signal;
      signal /= sizes[d];
      in += i * from[d], out += i * to[d];
    }
  }
  // The same for `count` signals from `signal` on.
  void starts(int64_t signal, int64_t count, int64_t* in, int64_t* out) const {
    int64_t index[kMaxDims] = {}, rest = signal;
    for (int d = ndim - 1; d > 0; --d) {
      index[d] = rest % sizes[d];
      rest /= sizes[d];
    }
    index[0] = rest;
    start(signal, in[0], out[0]);
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

// A grain for `count` items of `size` elements each: pieces of about 4096 elements, that few threads have equal shares
// of.
inline int64_t short_grain(int64_t count, int64_t size) {
  int64_t pieces = count * size / 4096;
  if (pieces > 1) pieces = (pieces + 3) / 4 * 4;
  return pieces > 1 ? (count + pieces - 1) / pieces : std::max<int64_t>(count, 1);
}

// Rows that nearly fill vectors are filled up.
template <class T> int64_t whole_lanes(int64_t count) {
  return count > kLanes<T> / 2 ? (count + kLanes<T> - 1) / kLanes<T> * kLanes<T> : count;
}

// Runs body(lanes, count, from[], to[], x, y) over groups of `count` signals, each with two buffers of `rows` rows of
// `lanes`: what is beyond count, up to a whole vector, is computed with and never written.
// They go in groups, which makes vectors of every stage and full cache lines out of strided signals; fewer of the long
// ones, which must stay in the second cache.
template <class T, class F> void for_batch(const Batch& batch, int64_t rows, bool contiguous, F body) {
  if (batch.count == 0) return;
  int64_t most = sizeof(T) == 4 ? kMostLanes : kMostLanes / 2;
  // With AVX-512 registers a row is one of them, if that leaves a group for each of several threads.
  const bool wide = rows <= 32 || (cpu::has_avx512() && rows <= 2048 && batch.count >= 2 * most);
  int64_t lanes = contiguous ? std::clamp<int64_t>((wide ? 32768 : 16384) / rows, 1, wide ? most : most / 2)
                             : std::clamp<int64_t>(4096 / rows, most / 2, most);
  lanes = std::min(lanes, batch.count);
  // Strided signals that are neighbours in memory are read row by row: a group does not go beyond their dimension.
  const int64_t beside = !contiguous && batch.ndim > 0 ? batch.sizes[batch.ndim - 1] : 0;
  const int64_t width = beside >= lanes / 2 ? std::max<int64_t>(beside, 1) : batch.count;
  const int64_t per_width = (width + lanes - 1) / lanes;
  if (width < batch.count) lanes = (width + per_width - 1) / per_width;
  const int64_t groups = batch.count / width * per_width;
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
      batch.starts(begin, count, from, to);
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

// n vectors of n elements, n = 16 / sizeof(T), transposed.
template <class T> void transpose(Lanes<T>* a) {
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

// Contiguous signals of pairs (re, im) into rows of re and im, and back.
template <class T> void split(const T* p, const int64_t* from, int64_t pairs, int64_t lanes, T* re, T* im) {
  if (cpu::has_avx512() && avx512::fft_split(p, from, pairs, lanes, re, im)) return;
  constexpr int n = 16 / sizeof(T);
  int64_t even = lanes % n == 0 ? pairs / (n / 2) * (n / 2) : 0;
  for (int64_t k = 0; k < even; k += n / 2)
    for (int64_t l = 0; l < lanes; l += n) {
      Lanes<T> a[n];
      for (int i = 0; i < n; ++i) __builtin_memcpy(&a[i], p + from[l + i] + 2 * k, 16);
      transpose<T>(a);
      for (int i = 0; i < n; ++i) __builtin_memcpy((i % 2 ? im : re) + (k + i / 2) * lanes + l, &a[i], 16);
    }
  for (int64_t l = 0; l < lanes; ++l)
    for (int64_t k = even; k < pairs; ++k)
      re[k * lanes + l] = p[from[l] + 2 * k], im[k * lanes + l] = p[from[l] + 2 * k + 1];
}
template <class T>
void join(T* p, const int64_t* to, int64_t pairs, int64_t lanes, int64_t count, const T* re, const T* im, T scale) {
  if (cpu::has_avx512() && avx512::fft_join(p, to, pairs, lanes, count, re, im, scale)) return;
  constexpr int n = 16 / sizeof(T);
  int64_t even = lanes % n == 0 ? pairs / (n / 2) * (n / 2) : 0;
  for (int64_t k = 0; k < even; k += n / 2)
    for (int64_t l = 0; l < lanes; l += n) {
      Lanes<T> a[n];
      for (int i = 0; i < n; ++i) {
        __builtin_memcpy(&a[i], (i % 2 ? im : re) + (k + i / 2) * lanes + l, 16);
        a[i] *= scale;
      }
      transpose<T>(a);
      for (int i = 0; i < n && l + i < count; ++i) __builtin_memcpy(p + to[l + i] + 2 * k, &a[i], 16);
    }
  for (int64_t l = 0; l < count; ++l)
    for (int64_t k = even; k < pairs; ++k)
      p[to[l] + 2 * k] = re[k * lanes + l] * scale, p[to[l] + 2 * k + 1] = im[k * lanes + l] * scale;
}
// The offsets of complex numbers as those of their parts.
struct PartOffsets {
  int64_t at[kMostLanes];
  PartOffsets(const int64_t* offsets, int64_t lanes) {
    for (int64_t l = 0; l < lanes; ++l) at[l] = 2 * offsets[l];
  }
};

// n elements of each signal into rows of re and im. Lanes side by side in memory are read row by row.
template <class T> void gather(const std::complex<T>* src, const int64_t* from, int64_t stride, int64_t n,
                               int64_t lanes, int64_t count, T* re, T* im) {
  const T* p = reinterpret_cast<const T*>(src);
  if (stride == 1) return split(p, PartOffsets(from, lanes).at, n, lanes, re, im);
  bool side_by_side = count > 1;
  for (int64_t l = 1; l < count && side_by_side; ++l) side_by_side = from[l] == from[0] + l;
  if (side_by_side) {
    if (cpu::has_avx512() && avx512::fft_split_rows(p + 2 * from[0], 2 * stride, n, lanes, count, re, im)) return;
    for (int64_t k = 0; k < n; ++k) {
      const T* row = p + 2 * (from[0] + k * stride);
      for (int64_t l = 0; l < count; ++l) re[k * lanes + l] = row[2 * l], im[k * lanes + l] = row[2 * l + 1];
      for (int64_t l = count; l < lanes; ++l) re[k * lanes + l] = im[k * lanes + l] = T(0);
    }
    return;
  }
  for_blocks(n, lanes, [&](int64_t l, int64_t k, int64_t end) {
    const T* signal = p + 2 * from[l];
    for (; k < end; ++k) re[k * lanes + l] = signal[2 * k * stride], im[k * lanes + l] = signal[2 * k * stride + 1];
  });
}

template <class T> void scatter(std::complex<T>* dst, const int64_t* to, int64_t stride, int64_t n, int64_t lanes,
                                int64_t count, const T* re, const T* im, T scale) {
  T* p = reinterpret_cast<T*>(dst);
  if (stride == 1) return join(p, PartOffsets(to, count).at, n, lanes, count, re, im, scale);
  bool side_by_side = count > 1;
  for (int64_t l = 1; l < count && side_by_side; ++l) side_by_side = to[l] == to[0] + l;
  if (side_by_side) {
    if (cpu::has_avx512() && avx512::fft_join_rows(p + 2 * to[0], 2 * stride, n, lanes, count, re, im, scale)) return;
    for (int64_t k = 0; k < n; ++k) {
      T* row = p + 2 * (to[0] + k * stride);
      for (int64_t l = 0; l < count; ++l)
        row[2 * l] = re[k * lanes + l] * scale, row[2 * l + 1] = im[k * lanes + l] * scale;
    }
    return;
  }
  for_blocks(n, count, [&](int64_t l, int64_t k, int64_t end) {
    T* signal = p + 2 * to[l];
    for (; k < end; ++k)
      signal[2 * k * stride] = re[k * lanes + l] * scale, signal[2 * k * stride + 1] = im[k * lanes + l] * scale;
  });
}

}  // namespace
}  // namespace rl::RL_ISA
