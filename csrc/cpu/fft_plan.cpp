#include "cpu/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "base/check.h"
#include "cpu/pointwise.h"
#include "cpu/vec_exp.h"

namespace rl::RL_ISA {

Root unit_root(uint64_t k, uint64_t n) {
  // Reduce to the first octant, where sin and cos lose nothing.
  k %= n;
  bool lower = 2 * k > n, left = false, swap = false;
  if (lower) k = n - k;
  if (4 * k > n) left = true;
  // angle = 2 pi num / (4 n) with num in quarter turns' units
  uint64_t num = 4 * k;
  if (left) num = 2 * n - num;
  if (2 * num > n) swap = true, num = n - num;
  long double angle =
      1.57079632679489661923132169163975144L * static_cast<long double>(num) / static_cast<long double>(n);
  double c = static_cast<double>(cosl(angle)), s = static_cast<double>(sinl(angle));
  if (swap) std::swap(c, s);
  return {left ? -c : c, lower ? -s : s};
}

namespace {

constexpr int kLargestRadix = 31;

std::vector<int> factors(int64_t n) {
  std::vector<int> result;
  // Few long stages read and write less; the butterfly of 8 needs the 32 registers that wide processors have.
  while (has_wide() && n % 8 == 0 && n % 32 != 16) result.push_back(8), n /= 8;
  while (n % 4 == 0) result.push_back(4), n /= 4;
  if (n % 2 == 0) result.push_back(2), n /= 2;
  for (int r = 3; r <= kLargestRadix; r += 2)
    while (n % r == 0) result.push_back(r), n /= r;
  if (n != 1) result.clear();
  return result;
}

bool smooth(int64_t n) {
  for (int r : {2, 3, 5})
    while (n % r == 0) n /= r;
  return n == 1;
}

// T is a number or a vector of them, S the number's type.
template <class T> struct Cx {
  T re, im;
};
template <class T> inline Cx<T> operator+(Cx<T> a, Cx<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T> inline Cx<T> operator-(Cx<T> a, Cx<T> b) { return {a.re - b.re, a.im - b.im}; }
template <class S, class T> inline Cx<T> times(S s, Cx<T> a) { return {s * a.re, s * a.im}; }
// One number and a vector of them are rounded alike, so that a line's result does not depend on its place.
template <class T> inline T fused(T a, T b, T c) {
  if constexpr (std::is_floating_point_v<T>) return fma(a, b, c);
  else return mul_add(a, b, c);
}
template <class T> inline Cx<T> mul(Cx<T> a, T wr, T wi) {
  return {fused(a.re, wr, -(a.im * wi)), fused(a.re, wi, a.im * wr)};
}
template <class T> inline Cx<T> minus_i(Cx<T> a) { return {a.im, -a.re}; }

// The transforms of length R: v[u] = sum over t of v[t] exp(-2 pi i t u / R)
template <int R, class S, class T> [[gnu::always_inline]] inline void butterfly(Cx<T>* v) {
  if constexpr (R == 2) {
    Cx<T> a = v[0];
    v[0] = a + v[1];
    v[1] = a - v[1];
  } else if constexpr (R == 4) {
    Cx<T> a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = minus_i(v[1] - v[3]);
    v[0] = a + c, v[1] = b + d, v[2] = a - c, v[3] = b - d;
  } else if constexpr (R == 8) {
    Cx<T> a[] = {v[0], v[2], v[4], v[6]}, b[] = {v[1], v[3], v[5], v[7]};
    butterfly<4, S>(a);
    butterfly<4, S>(b);
    constexpr S kHalf = S(0.70710678118654752440);  // the eighth root is (1 - i) kHalf
    b[1] = times(kHalf, b[1] + minus_i(b[1]));
    b[2] = minus_i(b[2]);
    b[3] = times(kHalf, minus_i(b[3]) - b[3]);
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) v[u] = a[u] + b[u], v[u + 4] = a[u] - b[u];
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
    Cx<T> sum[H], diff[H], total = v[0];
    for (int t = 0; t < H; ++t) {
      sum[t] = v[t + 1] + v[R - 1 - t];
      diff[t] = minus_i(v[t + 1] - v[R - 1 - t]);
      total = total + sum[t];
    }
    Cx<T> first = v[0];
    for (int u = 1; u <= H; ++u) {
      Cx<T> even = first, odd = {};
      for (int t = 1; t <= H; ++t) {
        int k = t * u % R;
        bool back = k > H;
        S c = S(kCos[H][(back ? R - k : k) - 1]), s = S(kSin[H][(back ? R - k : k) - 1]);
        even = even + times(c, sum[t - 1]);
        odd = odd + times(back ? -s : s, diff[t - 1]);
      }
      v[u] = even + odd;
      v[R - u] = even - odd;
    }
    v[0] = total;
  }
}

// V::W numbers at once: a vector, or one number.
template <class T> struct One {
  using type = T;
  static constexpr int W = 1;
  static T load(const T* p) { return *p; }
  static void store(T* p, T x) { *p = x; }
};
template <class T> struct Many {
  using type = Vec<T>;
  static constexpr int W = kLanes<T>;
  static Vec<T> load(const T* p) { return load_vec(p); }
  static void store(T* p, Vec<T> x) { store_vec(p, x); }
};

// One stage of Stockham's self-sorting transform: lines of length n = R * m, s numbers side by side, of them those
// from q0 to q1. kTurns: the results are multiplied by roots of unity; the last stage has none.
template <int R, bool kTurns, class V, class T>
[[gnu::always_inline]] inline void stage_by(int64_t q0, int64_t q1, int64_t m, int64_t s, const T* __restrict xr,
                                            const T* __restrict xi, T* __restrict yr, T* __restrict yi, const T* w) {
  using X = typename V::type;
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
        Cx<X> z = kTurns ? mul(v[u], X{} + wp[2 * u - 2], X{} + wp[2 * u - 1]) : v[u];
        V::store(br + q + s * u, z.re), V::store(bi + q + s * u, z.im);
      }
    }
  }
}
template <int R, class T>
[[gnu::flatten]] void stage(int64_t m, int64_t s, const T* xr, const T* xi, T* yr, T* yi, const T* w) {
  const int64_t even = s / kLanes<T> * kLanes<T>;
  if (m == 1) stage_by<R, false, Many<T>>(0, even, m, s, xr, xi, yr, yi, w);
  else if (even) stage_by<R, true, Many<T>>(0, even, m, s, xr, xi, yr, yi, w);
  if (even < s) stage_by<R, true, One<T>>(even, s, m, s, xr, xi, yr, yi, w);
}
template <int R, class T>
RL_WIDE [[gnu::flatten]] void stage_wide(int64_t m, int64_t s, const T* xr, const T* xi, T* yr, T* yi, const T* w) {
  const int64_t even = s / kLanes<T> * kLanes<T>;
  if (m == 1) stage_by<R, false, Many<T>>(0, even, m, s, xr, xi, yr, yi, w);
  else if (even) stage_by<R, true, Many<T>>(0, even, m, s, xr, xi, yr, yi, w);
  if (even < s) stage_by<R, true, One<T>>(even, s, m, s, xr, xi, yr, yi, w);
}

// The same for any radix, by the definition.
template <class T>
void stage_any(int r, int64_t m, int64_t s, const T* xr, const T* xi, T* yr, T* yi, const T* w, const T* roots) {
  for (int64_t p = 0; p < m; ++p)
    for (int u = 0; u < r; ++u) {
      T* __restrict br = yr + s * (r * p + u);
      T* __restrict bi = yi + s * (r * p + u);
      T wr = u ? w[2 * (p * (r - 1) + u - 1)] : T(1), wi = u ? w[2 * (p * (r - 1) + u - 1) + 1] : T(0);
      for (int t = 0; t < r; ++t) {
        int k = t * u % r;
        T cr = roots[2 * k], ci = roots[2 * k + 1], er = cr * wr - ci * wi, ei = cr * wi + ci * wr;
        const T *ar = xr + s * (p + m * t), *ai = xi + s * (p + m * t);
        if (t == 0)
          for (int64_t q = 0; q < s; ++q) br[q] = ar[q] * er - ai[q] * ei, bi[q] = ar[q] * ei + ai[q] * er;
        else
          for (int64_t q = 0; q < s; ++q) br[q] += ar[q] * er - ai[q] * ei, bi[q] += ar[q] * ei + ai[q] * er;
      }
    }
}

template <class T> void push_root(std::vector<T>& v, uint64_t k, uint64_t n) {
  Root r = unit_root(k, n);
  v.push_back(static_cast<T>(r.re));
  v.push_back(static_cast<T>(-r.im));
}

template <class T> std::shared_ptr<FftPlan<T>> make_plan(int64_t n) {
  auto plan = std::make_shared<FftPlan<T>>();
  plan->n = n;
  plan->radices = factors(n);
  if (n == 1) plan->radices.clear();
  int64_t left = n;
  for (int r : plan->radices) {
    int64_t m = left / r;
    for (int64_t p = 0; p < m; ++p)
      for (int u = 1; u < r; ++u) push_root(plan->twiddles, static_cast<uint64_t>(p) * u, left);
    if (r > 7)
      for (int k = 0; k < r; ++k) push_root(plan->roots, k, r);
    left = m;
  }
  if (plan->radices.empty() && n > 1) {
    int64_t length = 2 * n - 1;
    while (!smooth(length)) ++length;
    auto inner = make_plan<T>(length);
    plan->chirp = inner;
    for (int64_t k = 0; k < n; ++k)
      push_root(plan->chirp_factor, static_cast<uint64_t>(static_cast<unsigned __int128>(k) * k % (2 * n)), 2 * n);
    // The spectrum of the conjugate chirp, wrapped around, transformed once in double.
    auto exact = make_plan<double>(length);
    std::vector<double> x(2 * length, 0.0), y(2 * length);
    for (int64_t k = 0; k < n; ++k) {
      Root r = unit_root(static_cast<uint64_t>(static_cast<unsigned __int128>(k) * k % (2 * n)), 2 * n);
      x[k] = r.re, x[length + k] = r.im;
      if (k) x[length - k] = r.re, x[2 * length - k] = r.im;
    }
    const double* z = exact->run(x.data(), y.data(), 1);
    plan->chirp_spectrum.resize(2 * length);
    for (int64_t k = 0; k < 2 * length; ++k)
      plan->chirp_spectrum[k] = static_cast<T>(z[k] / static_cast<double>(length));
  }
  for (int64_t k = 0; k <= n; ++k) push_root(plan->half_turns, k, 2 * static_cast<uint64_t>(n));
  return plan;
}

}  // namespace

template <class T> size_t FftPlan<T>::bytes() const {
  return sizeof(T) *
             (twiddles.size() + roots.size() + chirp_factor.size() + chirp_spectrum.size() + half_turns.size()) +
         (chirp ? chirp->bytes() : 0);
}

template <class T> T* FftPlan<T>::run(T* x, T* y, int64_t lanes) const {
  if (chirp) {
    int64_t length = chirp->n;
    T *re = x, *im = x + length * lanes;
    auto rotate = [&](T* xr, T* xi) {
      for (int64_t k = 0; k < n; ++k) {
        T wr = chirp_factor[2 * k], wi = chirp_factor[2 * k + 1];
#pragma GCC ivdep
        for (int64_t q = k * lanes; q < (k + 1) * lanes; ++q) {
          T a = xr[q], b = xi[q];
          xr[q] = a * wr - b * wi, xi[q] = a * wi + b * wr;
        }
      }
    };
    rotate(re, im);
    size_t tail = static_cast<size_t>((length - n) * lanes) * sizeof(T);
    std::memset(static_cast<void*>(re + n * lanes), 0, tail);
    std::memset(static_cast<void*>(im + n * lanes), 0, tail);
    T* z = chirp->run(x, y, lanes);
    T *zr = z, *zi = z + length * lanes;
    for (int64_t k = 0; k < length; ++k) {
      T wr = chirp_spectrum[k], wi = chirp_spectrum[length + k];
      // the inverse transform is the forward one with real and imaginary parts exchanged
#pragma GCC ivdep
      for (int64_t q = k * lanes; q < (k + 1) * lanes; ++q) {
        T a = zr[q], b = zi[q];
        zi[q] = a * wr - b * wi, zr[q] = a * wi + b * wr;
      }
    }
    T* back = chirp->run(z, z == x ? y : x, lanes);
    T *br = back, *bi = back + length * lanes;
#pragma GCC ivdep
    for (int64_t q = 0; q < n * lanes; ++q) std::swap(br[q], bi[q]);
    rotate(br, bi);
    return back;
  }
  int64_t left = n, s = lanes, half = n * lanes;
  const T *w = twiddles.data(), *root = roots.data();
  for (int r : radices) {
    int64_t m = left / r;
    switch (r) {
      case 2: stage<2>(m, s, x, x + half, y, y + half, w); break;
      case 3: stage<3>(m, s, x, x + half, y, y + half, w); break;
      case 4: (has_wide() ? stage_wide<4, T> : stage<4, T>)(m, s, x, x + half, y, y + half, w); break;
      case 5: stage<5>(m, s, x, x + half, y, y + half, w); break;
      case 7: stage<7>(m, s, x, x + half, y, y + half, w); break;
      case 8: stage_wide<8>(m, s, x, x + half, y, y + half, w); break;
      default: stage_any(r, m, s, x, x + half, y, y + half, w, root); root += 2 * r;
    }
    w += 2 * m * (r - 1);
    left = m;
    s *= r;
    std::swap(x, y);
  }
  return x;
}

namespace {

constexpr size_t kStoreBytes = size_t{32} << 20;
constexpr size_t kStoreCount = 64;

// The most recently used plans, newest first.
template <class T> struct Store {
  std::mutex lock;
  std::vector<std::shared_ptr<const FftPlan<T>>> plans;
};
template <class T> Store<T>& store() {
  static Store<T>* s = new Store<T>;  // never destroyed: threads may outlive the end of main
  return *s;
}

}  // namespace

template <class T> std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n) {
  CHECK(n <= (int64_t{1} << 40), Runtime, "fft: a line of ", n, " values is too long");
  Store<T>& kept = store<T>();
  {
    std::lock_guard guard(kept.lock);
    for (size_t i = 0; i < kept.plans.size(); ++i)
      if (kept.plans[i]->n == n) {
        std::rotate(kept.plans.begin(), kept.plans.begin() + i, kept.plans.begin() + i + 1);
        return kept.plans[0];
      }
  }
  std::shared_ptr<const FftPlan<T>> plan = make_plan<T>(n);
  if (plan->bytes() > kStoreBytes / 2) return plan;
  std::lock_guard guard(kept.lock);
  kept.plans.insert(kept.plans.begin(), plan);
  size_t total = 0, keep = 0;
  for (; keep < kept.plans.size() && keep < kStoreCount && total + kept.plans[keep]->bytes() <= kStoreBytes; ++keep)
    total += kept.plans[keep]->bytes();
  kept.plans.resize(std::max<size_t>(keep, 1));
  return plan;
}

template struct FftPlan<float>;
template struct FftPlan<double>;
template std::shared_ptr<const FftPlan<float>> fft_plan<float>(int64_t);
template std::shared_ptr<const FftPlan<double>> fft_plan<double>(int64_t);

}  // namespace rl::RL_ISA
