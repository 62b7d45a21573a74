#include "cpu/fft/stages_avx512.h"

#include "cpu/fft/stages.h"
#include "cpu/simd/transpose_avx512.h"
#include "cpu/simd/vector.h"

namespace rl::RL_ISA {
namespace {

using simd::One;
using simd::Vec;

template <int R, class T>
[[gnu::flatten]] void stage(int64_t m, int64_t s, const T* x, T* y, int64_t half, const T* w) {
  if (s % Vec<T, 64>::W == 0) fft::stage_with<R, Vec<T, 64>, Vec<T, 64>>(m, s, x, x + half, y, y + half, w);
  else fft::stage_with<R, Vec<T, 32>, One<T>>(m, s, x, x + half, y, y + half, w);
}
template <class T> void run(int r, int64_t m, int64_t s, const T* x, T* y, int64_t half, const T* w) {
  switch (r) {
    case 2: return stage<2>(m, s, x, y, half, w);
    case 3: return stage<3>(m, s, x, y, half, w);
    case 4: return stage<4>(m, s, x, y, half, w);
    case 5: return stage<5>(m, s, x, y, half, w);
    case 7: return stage<7>(m, s, x, y, half, w);
    default: return stage<8>(m, s, x, y, half, w);
  }
}

template <class T>
[[gnu::flatten]] void run_odd(int r, int64_t m, int64_t s, const T* x, T* y, int64_t half, const T* w, const T* roots) {
  using V = Vec<T, 64>;
  const int64_t even = s / V::W * V::W;
  fft::stage_odd<V>(r, 0, even, m, s, x, x + half, y, y + half, w, roots);
  fft::stage_odd<One<T>>(r, even, s, m, s, x, x + half, y, y + half, w, roots);
}

}  // namespace

void fft_stage_odd(int r, int64_t m, int64_t s, const float* x, float* y, int64_t half, const float* w,
                   const float* roots) {
  run_odd(r, m, s, x, y, half, w, roots);
}
void fft_stage_odd(int r, int64_t m, int64_t s, const double* x, double* y, int64_t half, const double* w,
                   const double* roots) {
  run_odd(r, m, s, x, y, half, w, roots);
}
void fft_stage(int r, int64_t m, int64_t s, const float* x, float* y, int64_t half, const float* w) {
  run(r, m, s, x, y, half, w);
}
void fft_stage(int r, int64_t m, int64_t s, const double* x, double* y, int64_t half, const double* w) {
  run(r, m, s, x, y, half, w);
}

namespace {

// Parts (re, im) of `lanes` contiguous signals, a register of pairs of each at a time.
template <class T> bool split(const T* p, const int64_t* from, int64_t pairs, int64_t lanes, T* re, T* im) {
  using V = Vec<T, 64>;
  constexpr int W = V::W, kPairs = W / 2;
  if (lanes != W) return false;
  for (int64_t k = 0; k < pairs; k += kPairs) {
    const int64_t count = pairs - k < kPairs ? pairs - k : kPairs;
    const auto mask = V::first(2 * count);
    typename V::Reg r[W];
#pragma GCC unroll 16
    for (int l = 0; l < W; ++l) r[l] = V::load(p + from[l] + 2 * k, mask);
    transpose(r);
    auto put = [&](int64_t i) __attribute__((always_inline)) {
      V::store(re + (k + i) * W, r[2 * i]);
      V::store(im + (k + i) * W, r[2 * i + 1]);
    };
    if (count == kPairs) {
#pragma GCC unroll 8
      for (int i = 0; i < kPairs; ++i) put(i);
    } else {
      for (int64_t i = 0; i < count; ++i) put(i);
    }
  }
  return true;
}
template <class T>
bool join(T* p, const int64_t* to, int64_t pairs, int64_t lanes, int64_t count, const T* re, const T* im, T scale) {
  using V = Vec<T, 64>;
  constexpr int W = V::W, kPairs = W / 2;
  if (lanes != W) return false;
  // Signals often have a power of two as stride, and then share few sets of the first cache: each is written in long
  // runs.
  constexpr int64_t kRun = 256 / sizeof(T), kPitch = 2 * kRun + W;
  alignas(64) T runs[W * kPitch];
  const auto by = V::all(scale);
  for (int64_t k0 = 0; k0 < pairs; k0 += kRun) {
    const int64_t end = pairs - k0 < kRun ? pairs - k0 : kRun;
    for (int64_t k = 0; k < end; k += kPairs) {
      const T *a = re + (k0 + k) * W, *b = im + (k0 + k) * W;
      typename V::Reg r[W];
      if (end - k >= kPairs) {
#pragma GCC unroll 8
        for (int i = 0; i < kPairs; ++i) {
          r[2 * i] = V::load(a + i * W) * by;
          r[2 * i + 1] = V::load(b + i * W) * by;
        }
      } else {
        for (int64_t i = 0; i < kPairs; ++i) {
          r[2 * i] = i < end - k ? V::load(a + i * W) * by : by;
          r[2 * i + 1] = i < end - k ? V::load(b + i * W) * by : by;
        }
      }
      transpose(r);
#pragma GCC unroll 16
      for (int l = 0; l < W; ++l) V::store(runs + l * kPitch + 2 * k, r[l]);
    }
    for (int64_t l = 0; l < count; ++l) {
      T* signal = p + to[l] + 2 * k0;
      for (int64_t i = 0; i < 2 * end; i += W)
        V::store(signal + i, V::load(runs + l * kPitch + i), V::first(2 * end - i));
    }
  }
  return true;
}

template <class T> bool split_rows(const T* p, int64_t stride, int64_t n, int64_t lanes, int64_t count, T* re, T* im) {
  using V = Vec<T, 64>;
  if (lanes > V::W) return false;
  const auto low = V::first(2 * count), high = V::first(2 * count - V::W), mask = V::first(lanes);
  for (int64_t k = 0; k < n; ++k) {
    const auto a = V::load(p + k * stride, low), b = V::load(p + k * stride + V::W, high);
    V::store(re + k * lanes, simd::permute<[](int lane) { return 2 * lane; }>(a, b), mask);
    V::store(im + k * lanes, simd::permute<[](int lane) { return 2 * lane + 1; }>(a, b), mask);
  }
  return true;
}
template <class T>
bool join_rows(T* p, int64_t stride, int64_t n, int64_t lanes, int64_t count, const T* re, const T* im, T scale) {
  using V = Vec<T, 64>;
  if (lanes > V::W) return false;
  const auto low = V::first(2 * count), high = V::first(2 * count - V::W), mask = V::first(lanes);
  const auto by = V::all(scale);
  for (int64_t k = 0; k < n; ++k) {
    const auto a = V::load(re + k * lanes, mask) * by, b = V::load(im + k * lanes, mask) * by;
    V::store(p + k * stride, simd::permute<[](int lane) { return lane / 2 + lane % 2 * V::W; }>(a, b), low);
    if (high)
      V::store(p + k * stride + V::W, simd::permute<[](int lane) { return (lane + V::W) / 2 + lane % 2 * V::W; }>(a, b),
               high);
  }
  return true;
}

}  // namespace

bool fft_split(const float* p, const int64_t* from, int64_t pairs, int64_t lanes, float* re, float* im) {
  return split(p, from, pairs, lanes, re, im);
}
bool fft_split(const double* p, const int64_t* from, int64_t pairs, int64_t lanes, double* re, double* im) {
  return split(p, from, pairs, lanes, re, im);
}
bool fft_join(float* p, const int64_t* to, int64_t pairs, int64_t lanes, int64_t count, const float* re,
              const float* im, float scale) {
  return join(p, to, pairs, lanes, count, re, im, scale);
}
bool fft_join(double* p, const int64_t* to, int64_t pairs, int64_t lanes, int64_t count, const double* re,
              const double* im, double scale) {
  return join(p, to, pairs, lanes, count, re, im, scale);
}
bool fft_split_rows(const float* p, int64_t stride, int64_t n, int64_t lanes, int64_t count, float* re, float* im) {
  return split_rows(p, stride, n, lanes, count, re, im);
}
bool fft_split_rows(const double* p, int64_t stride, int64_t n, int64_t lanes, int64_t count, double* re, double* im) {
  return split_rows(p, stride, n, lanes, count, re, im);
}
bool fft_join_rows(float* p, int64_t stride, int64_t n, int64_t lanes, int64_t count, const float* re, const float* im,
                   float scale) {
  return join_rows(p, stride, n, lanes, count, re, im, scale);
}
bool fft_join_rows(double* p, int64_t stride, int64_t n, int64_t lanes, int64_t count, const double* re,
                   const double* im, double scale) {
  return join_rows(p, stride, n, lanes, count, re, im, scale);
}

// The formulas are those of fft.cpp, rounded alike.
bool fft_to_half(const float* zr, const float* zi, float* xr, float* xi, int64_t h, int64_t lanes,
                 const float* twiddles) {
  using V = Vec<float, 64>;
  if (lanes != V::W) return false;
  const auto half = V::all(0.5f);
  for (int64_t k = 0; k <= h; ++k) {
    const int64_t a = (k == h ? 0 : k) * V::W, b = (k == 0 ? 0 : h - k) * V::W;
    const auto wr = V::all(twiddles[2 * k]), wi = V::all(twiddles[2 * k + 1]);
    const auto ar = V::load(zr + a), ai = V::load(zi + a);
    const auto br = V::load(zr + b), bi = V::load(zi + b);
    const auto sr = (ar + br) * half, si = (ai - bi) * half, dr = (ar - br) * half, di = (ai + bi) * half;
    V::store(xr + k * V::W, sr + (wr * di + wi * dr));
    V::store(xi + k * V::W, si - (wr * dr - wi * di));
  }
  return true;
}
bool fft_from_half(const float* xr, const float* xi, float* zr, float* zi, int64_t h, int64_t lanes,
                   const float* twiddles) {
  using V = Vec<float, 64>;
  if (lanes != V::W) return false;
  for (int64_t k = 0; k < h; ++k) {
    const int64_t a = k * V::W, b = (h - k) * V::W;
    const auto wr = V::all(twiddles[2 * k]), wi = V::all(-twiddles[2 * k + 1]);
    const auto ar = V::load(xr + a), ai = V::load(xi + a);
    const auto br = V::load(xr + b), bi = V::load(xi + b);
    const auto sr = ar + br, si = ai - bi, dr = ar - br, di = ai + bi;
    V::store(zr + a, sr - (wr * di + wi * dr));
    V::store(zi + a, si + (wr * dr - wi * di));
  }
  return true;
}

bool fft_mirror(float* to, const float* from, int64_t count) {
  // A pair is a double here, whose sign is that of the imaginary part.
  using V = Vec<double, 64>;
  auto in = [&](int64_t k) { return reinterpret_cast<const double*>(from - 2 * (k + V::W - 1)); };
  auto out = [&](int64_t k) { return reinterpret_cast<double*>(to + 2 * k); };
  auto mirrored = [](V::Reg x) { return -simd::permute<[](int lane) { return V::W - 1 - lane; }>(x); };
  int64_t k = 0;
  for (; k + V::W <= count; k += V::W) V::store(out(k), mirrored(V::load(in(k))));
  if (k < count) {
    const auto rest = V::first(count - k), last = static_cast<V::Mask>(0xff << (V::W - (count - k)));
    V::store(out(k), mirrored(V::load(in(k), last)), rest);
  }
  return true;
}

}  // namespace rl::RL_ISA
