#include "cpu/fft/stages_avx512.h"

#include <immintrin.h>

#include "cpu/fft/stages.h"
#include "cpu/simd/transpose_avx512.h"

namespace rl::RL_ISA {
namespace {

template <class T, int kBytes> struct Several {
  typedef T type __attribute__((vector_size(kBytes)));
  static constexpr int W = kBytes / sizeof(T);
  static type load(const T* p) {
    type x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  static void store(T* p, const type& x) { __builtin_memcpy(p, &x, sizeof x); }
  static type mul_add(type a, type b, type c) {
    if constexpr (kBytes == 64 && sizeof(T) == 4) return _mm512_fmadd_ps(a, b, c);
    else if constexpr (kBytes == 64) return _mm512_fmadd_pd(a, b, c);
    else if constexpr (sizeof(T) == 4) return _mm256_fmadd_ps(a, b, c);
    else return _mm256_fmadd_pd(a, b, c);
  }
};
template <class T> struct Single {
  using type = T;
  static constexpr int W = 1;
  static T load(const T* p) { return *p; }
  static void store(T* p, T x) { *p = x; }
  static T mul_add(T a, T b, T c) {
    if constexpr (sizeof(T) == 4) return __builtin_fmaf(a, b, c);
    else return __builtin_fma(a, b, c);
  }
};

template <int R, class T>
[[gnu::flatten]] void stage(int64_t m, int64_t s, const T* x, T* y, int64_t half, const T* w) {
  if (s % Several<T, 64>::W == 0) fft::stage_with<R, Several<T, 64>, Several<T, 64>>(m, s, x, x + half, y, y + half, w);
  else fft::stage_with<R, Several<T, 32>, Single<T>>(m, s, x, x + half, y, y + half, w);
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
  using V = Several<T, 64>;
  const int64_t even = s / V::W * V::W;
  fft::stage_odd<V>(r, 0, even, m, s, x, x + half, y, y + half, w, roots);
  fft::stage_odd<Single<T>>(r, even, s, m, s, x, x + half, y, y + half, w, roots);
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

constexpr int64_t kSide = 16;

// The register's even and odd numbers of a and b.
inline __m512i evens() { return _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30); }
inline __m512i odds() { return _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31); }
inline __m512i firsts() { return _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23); }
inline __m512i lasts() { return _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31); }
inline __mmask16 first_of(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1u << count) - 1);
}

}  // namespace

bool fft_split(const float* p, const int64_t* from, int64_t pairs, int64_t lanes, float* re, float* im) {
  if (lanes != kSide) return false;
  for (int64_t k = 0; k < pairs; k += 8) {
    const int64_t count = pairs - k < 8 ? pairs - k : 8;
    const __mmask16 mask = first_of(2 * count);
    __m512 r[kSide];
#pragma GCC unroll 16
    for (int l = 0; l < kSide; ++l) r[l] = _mm512_maskz_loadu_ps(mask, p + from[l] + 2 * k);
    transpose(r);
    float *a = re + k * kSide, *b = im + k * kSide;
    if (count == 8) {
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i)
        _mm512_storeu_ps(a + i * kSide, r[2 * i]), _mm512_storeu_ps(b + i * kSide, r[2 * i + 1]);
    } else {
      for (int64_t i = 0; i < count; ++i)
        _mm512_storeu_ps(a + i * kSide, r[2 * i]), _mm512_storeu_ps(b + i * kSide, r[2 * i + 1]);
    }
  }
  return true;
}
bool fft_join(float* p, const int64_t* to, int64_t pairs, int64_t lanes, int64_t count, const float* re,
              const float* im, float scale) {
  if (lanes != kSide) return false;
  // Signals often have a power of two as stride, and then share few sets of the first cache: each is written in long
  // runs.
  constexpr int64_t kRun = 64, kPitch = 2 * kRun + 16;
  alignas(64) float runs[kSide * kPitch];
  const __m512 by = _mm512_set1_ps(scale);
  for (int64_t k0 = 0; k0 < pairs; k0 += kRun) {
    const int64_t end = pairs - k0 < kRun ? pairs - k0 : kRun;
    for (int64_t k = 0; k < end; k += 8) {
      const float *a = re + (k0 + k) * kSide, *b = im + (k0 + k) * kSide;
      __m512 r[kSide];
      if (end - k >= 8) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) {
          r[2 * i] = _mm512_mul_ps(_mm512_loadu_ps(a + i * kSide), by);
          r[2 * i + 1] = _mm512_mul_ps(_mm512_loadu_ps(b + i * kSide), by);
        }
      } else {
        for (int64_t i = 0; i < 8; ++i) {
          r[2 * i] = i < end - k ? _mm512_mul_ps(_mm512_loadu_ps(a + i * kSide), by) : by;
          r[2 * i + 1] = i < end - k ? _mm512_mul_ps(_mm512_loadu_ps(b + i * kSide), by) : by;
        }
      }
      transpose(r);
#pragma GCC unroll 16
      for (int l = 0; l < kSide; ++l) _mm512_store_ps(runs + l * kPitch + 2 * k, r[l]);
    }
    for (int64_t l = 0; l < count; ++l) {
      float* signal = p + to[l] + 2 * k0;
      for (int64_t i = 0; i < 2 * end; i += 16)
        _mm512_mask_storeu_ps(signal + i, first_of(2 * end - i), _mm512_load_ps(runs + l * kPitch + i));
    }
  }
  return true;
}

bool fft_split_rows(const float* p, int64_t stride, int64_t n, int64_t lanes, int64_t count, float* re, float* im) {
  if (lanes > kSide) return false;
  const __mmask16 low = first_of(2 * count), high = first_of(2 * count - 16), mask = first_of(lanes);
  const __m512i even = evens(), odd = odds();
  for (int64_t k = 0; k < n; ++k) {
    const __m512 a = _mm512_maskz_loadu_ps(low, p + k * stride), b = _mm512_maskz_loadu_ps(high, p + k * stride + 16);
    _mm512_mask_storeu_ps(re + k * lanes, mask, _mm512_permutex2var_ps(a, even, b));
    _mm512_mask_storeu_ps(im + k * lanes, mask, _mm512_permutex2var_ps(a, odd, b));
  }
  return true;
}
bool fft_join_rows(float* p, int64_t stride, int64_t n, int64_t lanes, int64_t count, const float* re, const float* im,
                   float scale) {
  if (lanes > kSide) return false;
  const __mmask16 low = first_of(2 * count), high = first_of(2 * count - 16), mask = first_of(lanes);
  const __m512i first = firsts(), last = lasts();
  const __m512 by = _mm512_set1_ps(scale);
  for (int64_t k = 0; k < n; ++k) {
    const __m512 a = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, re + k * lanes), by);
    const __m512 b = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, im + k * lanes), by);
    _mm512_mask_storeu_ps(p + k * stride, low, _mm512_permutex2var_ps(a, first, b));
    if (high) _mm512_mask_storeu_ps(p + k * stride + 16, high, _mm512_permutex2var_ps(a, last, b));
  }
  return true;
}

// The same for eight signals of doubles.
namespace {

constexpr int64_t kDoubles = 8;

inline __mmask8 first_doubles(int64_t count) {
  return static_cast<__mmask8>(count >= 8 ? 0xff : count <= 0 ? 0 : (1u << count) - 1);
}
// 8x8
inline void transpose(__m512d* r) {
  __m512d t[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm512_unpacklo_pd(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_pd(r[i], r[i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    const __m512d a = _mm512_shuffle_f64x2(t[i], t[2 + i], 0x88), b = _mm512_shuffle_f64x2(t[4 + i], t[6 + i], 0x88);
    const __m512d c = _mm512_shuffle_f64x2(t[i], t[2 + i], 0xdd), d = _mm512_shuffle_f64x2(t[4 + i], t[6 + i], 0xdd);
    r[i] = _mm512_shuffle_f64x2(a, b, 0x88);
    r[4 + i] = _mm512_shuffle_f64x2(a, b, 0xdd);
    r[2 + i] = _mm512_shuffle_f64x2(c, d, 0x88);
    r[6 + i] = _mm512_shuffle_f64x2(c, d, 0xdd);
  }
}

}  // namespace

bool fft_split(const double* p, const int64_t* from, int64_t pairs, int64_t lanes, double* re, double* im) {
  if (lanes != kDoubles) return false;
  for (int64_t k = 0; k < pairs; k += 4) {
    const int64_t count = pairs - k < 4 ? pairs - k : 4;
    const __mmask8 mask = first_doubles(2 * count);
    __m512d r[kDoubles];
#pragma GCC unroll 8
    for (int l = 0; l < kDoubles; ++l) r[l] = _mm512_maskz_loadu_pd(mask, p + from[l] + 2 * k);
    transpose(r);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      if (i >= count) break;
      _mm512_storeu_pd(re + (k + i) * kDoubles, r[2 * i]);
      _mm512_storeu_pd(im + (k + i) * kDoubles, r[2 * i + 1]);
    }
  }
  return true;
}
bool fft_join(double* p, const int64_t* to, int64_t pairs, int64_t lanes, int64_t count, const double* re,
              const double* im, double scale) {
  if (lanes != kDoubles) return false;
  constexpr int64_t kRun = 32, kPitch = 2 * kRun + 8;
  alignas(64) double runs[kDoubles * kPitch];
  const __m512d by = _mm512_set1_pd(scale);
  for (int64_t k0 = 0; k0 < pairs; k0 += kRun) {
    const int64_t end = pairs - k0 < kRun ? pairs - k0 : kRun;
    for (int64_t k = 0; k < end; k += 4) {
      const double *a = re + (k0 + k) * kDoubles, *b = im + (k0 + k) * kDoubles;
      __m512d r[kDoubles];
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i) {
        r[2 * i] = i < end - k ? _mm512_mul_pd(_mm512_loadu_pd(a + i * kDoubles), by) : by;
        r[2 * i + 1] = i < end - k ? _mm512_mul_pd(_mm512_loadu_pd(b + i * kDoubles), by) : by;
      }
      transpose(r);
#pragma GCC unroll 8
      for (int l = 0; l < kDoubles; ++l) _mm512_store_pd(runs + l * kPitch + 2 * k, r[l]);
    }
    for (int64_t l = 0; l < count; ++l) {
      double* signal = p + to[l] + 2 * k0;
      for (int64_t i = 0; i < 2 * end; i += 8)
        _mm512_mask_storeu_pd(signal + i, first_doubles(2 * end - i), _mm512_load_pd(runs + l * kPitch + i));
    }
  }
  return true;
}
bool fft_split_rows(const double* p, int64_t stride, int64_t n, int64_t lanes, int64_t count, double* re, double* im) {
  if (lanes > kDoubles) return false;
  const __mmask8 low = first_doubles(2 * count), high = first_doubles(2 * count - 8), mask = first_doubles(lanes);
  const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
  for (int64_t k = 0; k < n; ++k) {
    const __m512d a = _mm512_maskz_loadu_pd(low, p + k * stride), b = _mm512_maskz_loadu_pd(high, p + k * stride + 8);
    _mm512_mask_storeu_pd(re + k * lanes, mask, _mm512_permutex2var_pd(a, even, b));
    _mm512_mask_storeu_pd(im + k * lanes, mask, _mm512_permutex2var_pd(a, odd, b));
  }
  return true;
}
bool fft_join_rows(double* p, int64_t stride, int64_t n, int64_t lanes, int64_t count, const double* re,
                   const double* im, double scale) {
  if (lanes > kDoubles) return false;
  const __mmask8 low = first_doubles(2 * count), high = first_doubles(2 * count - 8), mask = first_doubles(lanes);
  const __m512i first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11),
                last = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  const __m512d by = _mm512_set1_pd(scale);
  for (int64_t k = 0; k < n; ++k) {
    const __m512d a = _mm512_mul_pd(_mm512_maskz_loadu_pd(mask, re + k * lanes), by);
    const __m512d b = _mm512_mul_pd(_mm512_maskz_loadu_pd(mask, im + k * lanes), by);
    _mm512_mask_storeu_pd(p + k * stride, low, _mm512_permutex2var_pd(a, first, b));
    if (high) _mm512_mask_storeu_pd(p + k * stride + 8, high, _mm512_permutex2var_pd(a, last, b));
  }
  return true;
}

// The formulas are those of fft.cpp, rounded alike.
bool fft_to_half(const float* zr, const float* zi, float* xr, float* xi, int64_t h, int64_t lanes,
                 const float* twiddles) {
  if (lanes != kSide) return false;
  const __m512 half = _mm512_set1_ps(0.5f);
  for (int64_t k = 0; k <= h; ++k) {
    const int64_t a = (k == h ? 0 : k) * kSide, b = (k == 0 ? 0 : h - k) * kSide;
    const __m512 wr = _mm512_set1_ps(twiddles[2 * k]), wi = _mm512_set1_ps(twiddles[2 * k + 1]);
    const __m512 ar = _mm512_loadu_ps(zr + a), ai = _mm512_loadu_ps(zi + a);
    const __m512 br = _mm512_loadu_ps(zr + b), bi = _mm512_loadu_ps(zi + b);
    const __m512 sr = (ar + br) * half, si = (ai - bi) * half, dr = (ar - br) * half, di = (ai + bi) * half;
    _mm512_storeu_ps(xr + k * kSide, sr + (wr * di + wi * dr));
    _mm512_storeu_ps(xi + k * kSide, si - (wr * dr - wi * di));
  }
  return true;
}
bool fft_from_half(const float* xr, const float* xi, float* zr, float* zi, int64_t h, int64_t lanes,
                   const float* twiddles) {
  if (lanes != kSide) return false;
  for (int64_t k = 0; k < h; ++k) {
    const int64_t a = k * kSide, b = (h - k) * kSide;
    const __m512 wr = _mm512_set1_ps(twiddles[2 * k]), wi = _mm512_set1_ps(-twiddles[2 * k + 1]);
    const __m512 ar = _mm512_loadu_ps(xr + a), ai = _mm512_loadu_ps(xi + a);
    const __m512 br = _mm512_loadu_ps(xr + b), bi = _mm512_loadu_ps(xi + b);
    const __m512 sr = ar + br, si = ai - bi, dr = ar - br, di = ai + bi;
    _mm512_storeu_ps(zr + a, sr - (wr * di + wi * dr));
    _mm512_storeu_ps(zi + a, si + (wr * dr - wi * di));
  }
  return true;
}

bool fft_mirror(float* to, const float* from, int64_t count) {
  const __m512i back = _mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0), sign = _mm512_set1_epi64(INT64_MIN);
  int64_t k = 0;
  for (; k + 8 <= count; k += 8) {
    const __m512i x = _mm512_permutexvar_epi64(back, _mm512_loadu_si512(from - 2 * (k + 7)));
    _mm512_storeu_si512(to + 2 * k, _mm512_xor_si512(x, sign));
  }
  if (k < count) {
    const int rest = static_cast<int>(count - k);
    const __m512i x = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(0xff << (8 - rest)), from - 2 * (k + 7));
    const __m512i y = _mm512_xor_si512(_mm512_permutexvar_epi64(back, x), sign);
    _mm512_mask_storeu_epi64(to + 2 * k, static_cast<__mmask8>((1 << rest) - 1), y);
  }
  return true;
}

}  // namespace rl::RL_ISA
