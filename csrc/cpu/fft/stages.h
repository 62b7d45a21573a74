// Butterflies and the stages made of them, for any vectors.
#pragma once
#include <cstdint>

namespace rl::fft {
namespace {

// T is a number or a vector of them, S the number's type.
template <class T> struct Cx {
  T re, im;
};
template <class T> inline Cx<T> operator+(Cx<T> a, Cx<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T> inline Cx<T> operator-(Cx<T> a, Cx<T> b) { return {a.re - b.re, a.im - b.im}; }
template <class S, class T> inline Cx<T> times(S s, Cx<T> a) { return {s * a.re, s * a.im}; }
// One number and a vector of them are rounded alike, so that a signal's result does not depend on its index.
template <class V, class T> inline Cx<T> mul(Cx<T> a, T wr, T wi) {
  return {V::fma(a.re, wr, -(a.im * wi)), V::fma(a.re, wi, a.im * wr)};
}
template <class T> inline Cx<T> minus_i(Cx<T> a) { return {a.im, -a.re}; }
// a - i b, a + i b and a + s b, which some registers have instructions for
template <class T> inline Cx<T> less_i(Cx<T> a, Cx<T> b) { return {a.re + b.im, a.im - b.re}; }
template <class T> inline Cx<T> plus_i(Cx<T> a, Cx<T> b) { return {a.re - b.im, a.im + b.re}; }
template <class S, class T> inline Cx<T> plus_times(Cx<T> a, S s, Cx<T> b) { return a + times(s, b); }

// The transforms of length R: v[u] = sum over t of v[t] exp(-2 pi i t u / R). C is Cx or has what it has.
template <int R, class S, class C> [[gnu::always_inline]] inline void butterfly(C* v) {
  if constexpr (R == 2) {
    C a = v[0];
    v[0] = a + v[1];
    v[1] = a - v[1];
  } else if constexpr (R == 4) {
    C a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = v[1] - v[3];
    v[0] = a + c, v[1] = less_i(b, d), v[2] = a - c, v[3] = plus_i(b, d);
  } else if constexpr (R == 8) {
    C a[] = {v[0], v[2], v[4], v[6]}, b[] = {v[1], v[3], v[5], v[7]};
    butterfly<4, S>(a);
    butterfly<4, S>(b);
    constexpr S kHalf = S(0.70710678118654752440);  // the eighth root is (1 - i) kHalf
    const C c = less_i(b[1], b[1]), d = plus_i(b[3], b[3]);
    v[0] = a[0] + b[0], v[4] = a[0] - b[0];
    v[1] = plus_times(a[1], kHalf, c), v[5] = plus_times(a[1], -kHalf, c);
    v[2] = less_i(a[2], b[2]), v[6] = plus_i(a[2], b[2]);
    v[3] = plus_times(a[3], -kHalf, d), v[7] = plus_times(a[3], kHalf, d);
  } else {
    // Odd lengths: pairs t and R - t share their products.
    constexpr int H = R / 2;
    constexpr double kCos[8][4] = {{},
                                   {-0.5},
                                   {0.30901699437494742410, -0.80901699437494742410},
                                   {0.62348980185873353053, -0.22252093395631440429, -0.90096886790241912624}};
    constexpr double kSin[8][4] = {{},
                                   {0.86602540378443864676},
                                   {0.95105651629515357212, 0.58778525229247312917},
                                   {0.78183148246802980871, 0.97492791218182360702, 0.43388373911755812048}};
    C sum[H], diff[H], total = v[0];
    for (int t = 0; t < H; ++t) {
      sum[t] = v[t + 1] + v[R - 1 - t];
      diff[t] = v[t + 1] - v[R - 1 - t];
      total = total + sum[t];
    }
    C first = v[0];
    for (int u = 1; u <= H; ++u) {
      C even = first, odd = {};
      for (int t = 1; t <= H; ++t) {
        int k = t * u % R;
        bool back = k > H;
        S c = S(kCos[H][(back ? R - k : k) - 1]), s = S(kSin[H][(back ? R - k : k) - 1]);
        even = plus_times(even, c, sum[t - 1]);
        odd = t == 1 ? times(s, diff[0]) : plus_times(odd, back ? -s : s, diff[t - 1]);
      }
      v[u] = less_i(even, odd);
      v[R - u] = plus_i(even, odd);
    }
    v[0] = total;
  }
}

// V says how several elements, or one, are loaded, stored and multiplied. One stage of Stockham's self-sorting
// transform: signals of length n = R * m, s elements side by side, of them those from q0 to q1. kTwiddles: the results
// are multiplied by roots of unity; the last stage has none.
template <int R, bool kTwiddles, class V, class T>
[[gnu::always_inline]] inline void stage_by(int64_t q0, int64_t q1, int64_t m, int64_t s, const T* __restrict xr,
                                            const T* __restrict xi, T* __restrict yr, T* __restrict yi, const T* w) {
  using X = typename V::Reg;
  for (int64_t p = 0; p < m; ++p) {
    const T *ar = xr + s * p, *ai = xi + s * p, *wp = w + 2 * p * (R - 1);
    T *br = yr + s * R * p, *bi = yi + s * R * p;
    for (int64_t q = q0; q < q1; q += V::W) {
      Cx<X> v[R];
#pragma GCC unroll 8
      for (int t = 0; t < R; ++t) v[t] = {V::load(ar + q + s * m * t), V::load(ai + q + s * m * t)};
      butterfly<R, T>(v);
      V::store(br + q, v[0].re), V::store(bi + q, v[0].im);
#pragma GCC unroll 8
      for (int u = 1; u < R; ++u) {
        Cx<X> z = kTwiddles ? mul<V>(v[u], X{} + wp[2 * u - 2], X{} + wp[2 * u - 1]) : v[u];
        V::store(br + q + s * u, z.re), V::store(bi + q + s * u, z.im);
      }
    }
  }
}
// A stage of any odd radix up to kMostOdd. roots: exp(-2 pi i k / r), re then im.
inline constexpr int kMostOdd = 127;
// U results u .. u + U - 1 of an odd radix and their mirrors: they share what they read.
template <int U, class V, class T, class X>
[[gnu::always_inline]] inline void odd_results(int r, int u, Cx<X> first, const Cx<X>* sum, const Cx<X>* diff,
                                               const T* roots, const T* wp, int64_t s, T* br, T* bi) {
  const int h = r / 2;
  Cx<X> even[U], odd[U];
  int k[U];
#pragma GCC unroll 4
  for (int j = 0; j < U; ++j) even[j] = first, odd[j] = Cx<X>{}, k[j] = u + j;
  for (int t = 0; t < h; ++t) {
    const Cx<X> a = sum[t], b = diff[t];
#pragma GCC unroll 4
    for (int j = 0; j < U; ++j) {
      const X c = X{} + roots[2 * k[j]], z = X{} - roots[2 * k[j] + 1];
      even[j] = {V::fma(c, a.re, even[j].re), V::fma(c, a.im, even[j].im)};
      odd[j] = {V::fma(z, b.re, odd[j].re), V::fma(z, b.im, odd[j].im)};
      k[j] += u + j;
      k[j] = k[j] >= r ? k[j] - r : k[j];
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < U; ++j) {
    const int f = u + j, v = r - f;
    const Cx<X> a = mul<V>(even[j] + odd[j], X{} + wp[2 * f - 2], X{} + wp[2 * f - 1]);
    const Cx<X> b = mul<V>(even[j] - odd[j], X{} + wp[2 * v - 2], X{} + wp[2 * v - 1]);
    V::store(br + s * f, a.re), V::store(bi + s * f, a.im);
    V::store(br + s * v, b.re), V::store(bi + s * v, b.im);
  }
}
template <class V, class T> [[gnu::always_inline]] inline void stage_odd(int r, int64_t q0, int64_t q1, int64_t m,
                                                                         int64_t s, const T* __restrict xr,
                                                                         const T* __restrict xi, T* __restrict yr,
                                                                         T* __restrict yi, const T* w, const T* roots) {
  using X = typename V::Reg;
  const int h = r / 2;
  for (int64_t p = 0; p < m; ++p) {
    const T *ar = xr + s * p, *ai = xi + s * p, *wp = w + 2 * p * (r - 1);
    T *br = yr + s * r * p, *bi = yi + s * r * p;
    for (int64_t q = q0; q < q1; q += V::W) {
      // Pairs t and r - t share their products.
      Cx<X> sum[kMostOdd / 2], diff[kMostOdd / 2], first = {V::load(ar + q), V::load(ai + q)}, total = first;
      for (int t = 0; t < h; ++t) {
        const int64_t low = q + s * m * (t + 1), high = q + s * m * (r - 1 - t);
        const Cx<X> a = {V::load(ar + low), V::load(ai + low)}, b = {V::load(ar + high), V::load(ai + high)};
        sum[t] = a + b;
        diff[t] = minus_i(a - b);
        total = total + sum[t];
      }
      V::store(br + q, total.re), V::store(bi + q, total.im);
      // As many at once as there are registers for.
      constexpr int U = sizeof(X) == 64 ? 4 : 2;
      int u = 1;
      for (; u + U - 1 <= h; u += U) odd_results<U, V>(r, u, first, sum, diff, roots, wp, s, br + q, bi + q);
      for (; u <= h; ++u) odd_results<1, V>(r, u, first, sum, diff, roots, wp, s, br + q, bi + q);
    }
  }
}

// A stage with vectors V of scalars T, and Rest for what is left of a row.
template <int R, class V, class Rest, class T> [[gnu::always_inline]] inline void stage_with(int64_t m, int64_t s,
                                                                                             const T* xr, const T* xi,
                                                                                             T* yr, T* yi, const T* w) {
  const int64_t even = s / V::W * V::W;
  if (even && m == 1) stage_by<R, false, V>(0, even, m, s, xr, xi, yr, yi, w);
  else if (even) stage_by<R, true, V>(0, even, m, s, xr, xi, yr, yi, w);
  if (even < s) stage_by<R, true, Rest>(even, s, m, s, xr, xi, yr, yi, w);
}

}  // namespace
}  // namespace rl::fft
