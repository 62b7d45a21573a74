#include "cpu/fft_short.h"

#include <algorithm>

#include "cpu/instructions.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
#pragma GCC optimize("O3")  // loops over registers must be unrolled
// GCC 12's own intrinsics start from undefined registers and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include "cpu/fft_pairs512.h"

namespace rl::cpu {
namespace {

using fft::First;
using fft::Pairs;

// The transform backwards is the conjugate of that of conjugates.
template <class T> struct Ends {
  bool conjugate, plain;
  Pairs<T> scale;
  Ends(bool forward, T s)
      : conjugate(!forward), plain(forward && s == T(1)), scale(fft::alternating(s, forward ? s : -s)) {}
  // the last of several steps, where the first one has these ends
  Ends last() const {
    Ends x = *this;
    x.conjugate = false;
    return x;
  }
  template <int N> [[gnu::always_inline]] void enter(Pairs<T>* v) const {
    if (!conjugate) return;
    const Pairs<T> sign = fft::alternating(T(0), T(-0.0));
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) v[i] = flipped(v[i], sign);
  }
  template <int N> [[gnu::always_inline]] void leave(Pairs<T>* v) const {
    if (plain) return;
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) v[i].v *= scale.v;
  }
};

constexpr int kMost = 16;
constexpr bool is_one(int n) { return n >= 2 && n <= kMost && n != 11 && n != 13; }

// `times` transforms of length N of registers that are `step` apart, the next ones `next` on; distances in numbers T.
template <class T> struct Work {
  const T* in;
  int64_t in_step, in_next;
  T* out;
  int64_t out_step, out_next;
  int64_t times, n;
  First part;
  Ends<T> ends;
  const T* turns;
};

// The first transforms of lines: their results, multiplied by turns, go to memory of our own.
template <int N, class T> [[gnu::flatten]] void columns(const Work<T>& w) {
  for (int64_t i = 0; i < w.times; ++i) {
    const T* in = w.in + i * w.in_next;
    T* out = w.out + i * w.out_next;
    const T *re = w.turns + 2 * i, *im = re + 2 * w.n;
    Pairs<T> v[N];
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) v[t] = fft::load(in + t * w.in_step, w.part);
    w.ends.template enter<N>(v);
    // Lines are often far apart, which no processor foresees: those of the next register.
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) __builtin_prefetch(in + t * w.in_step + 2 * Pairs<T>::W);
    fft::transform<N>(v);
    fft::store(out, v[0]);
#pragma GCC unroll 16
    for (int u = 1; u < N; ++u)
      fft::store(out + u * w.out_step, turned(v[u], fft::all(re[2 * w.times * u]), fft::all(im[2 * w.times * u])));
  }
}
// The last ones, or only ones.
template <int N, class T> [[gnu::flatten]] void rows(const Work<T>& w) {
  const bool whole = w.part.bits == ~0u;
  for (int64_t i = 0; i < w.times; ++i) {
    const T* in = w.in + i * w.in_next;
    T* out = w.out + i * w.out_next;
    Pairs<T> v[N];
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) v[t] = fft::load(in + t * w.in_step, w.part);
    w.ends.template enter<N>(v);
    fft::transform<N>(v);
    w.ends.template leave<N>(v);
    if (whole) {  // what is masked cannot be read again at once
#pragma GCC unroll 16
      for (int u = 0; u < N; ++u) fft::store(out + u * w.out_step, v[u]);
    } else {
#pragma GCC unroll 16
      for (int u = 0; u < N; ++u) fft::store(out + u * w.out_step, w.part, v[u]);
    }
  }
}

// Runs f with a constant N.
template <class F> [[gnu::always_inline]] inline void with_length(int n, F f) {
  switch (n) {
    case 2: return f.template operator()<2>();
    case 3: return f.template operator()<3>();
    case 4: return f.template operator()<4>();
    case 5: return f.template operator()<5>();
    case 6: return f.template operator()<6>();
    case 7: return f.template operator()<7>();
    case 8: return f.template operator()<8>();
    case 9: return f.template operator()<9>();
    case 10: return f.template operator()<10>();
    case 12: return f.template operator()<12>();
    case 14: return f.template operator()<14>();
    case 15: return f.template operator()<15>();
    default: return f.template operator()<16>();
  }
}

// Up to W lines side by side.
template <class T> void side_by_side(const FftShort<T>& plan, const T* in, int64_t in_step, T* out, int64_t out_step,
                                     First part, const Ends<T>& ends) {
  const int a = plan.first, b = plan.second;
  if (b == 1) {
    const Work<T> only{in, in_step, 0, out, out_step, 0, 1, plan.n, part, ends, nullptr};
    return with_length(a, [&]<int N> { rows<N>(only); });
  }
  constexpr int64_t kRow = 2 * Pairs<T>::W;
  alignas(64) T middle[kMost * kMost * kRow];
  const Work<T> first{in, b * in_step, in_step, middle, b * kRow, kRow, b, plan.n, part, ends, plan.turns.data()};
  with_length(a, [&]<int N> { columns<N>(first); });
  const Work<T> last{middle, kRow, b * kRow, out, a * out_step, out_step, a, plan.n, part, ends.last(), nullptr};
  with_length(b, [&]<int N> { rows<N>(last); });
}

// W lines of up to kMost numbers, or as many as there are: turned, they lie side by side in registers.
template <int N, class T> [[gnu::flatten]] void tiny_lines(const T* in, int64_t in_step, T* out, int64_t out_step,
                                                           int64_t count, const Ends<T>& ends) {
  constexpr int W = Pairs<T>::W, R = (N + W - 1) / W * W;
  for (int64_t i = 0; i < count; i += W) {
    Pairs<T> v[R];
#pragma GCC unroll 4
    for (int g = 0; g < R; g += W) {
      const First part(2 * (N - g));
#pragma GCC unroll 8
      for (int l = 0; l < W; ++l) v[g + l] = fft::load(in + (i + l) * in_step + 2 * g, i + l < count ? part : First(0));
      turn(v + g);
    }
    ends.template enter<N>(v);
    fft::transform<N>(v);
    ends.template leave<N>(v);
#pragma GCC unroll 4
    for (int g = 0; g < R; g += W) {
      const First part(2 * (N - g));
      turn(v + g);
#pragma GCC unroll 8
      for (int l = 0; l < W; ++l)
        fft::store(out + (i + l) * out_step + 2 * g, i + l < count ? part : First(0), v[g + l]);
    }
  }
}

// Lines of A W numbers, each the rows of a matrix of A registers. Of small A, W / A lines at once.
template <int A, class T> [[gnu::flatten]] void whole_lines(const FftShort<T>& plan, const T* in, int64_t in_step,
                                                            T* out, int64_t out_step, int64_t count,
                                                            const Ends<T>& ends) {
  constexpr int W = Pairs<T>::W, L = A < W ? W / A : 1, R = A < W ? W : A;
  const T *re = plan.turns.data(), *im = re + 2 * plan.n;
  for (int64_t i = 0; i < count; i += L) {
    Pairs<T> v[R];
#pragma GCC unroll 16
    for (int l = 0; l < L; ++l) {
      // past the end: the last line once more, which is not written
      const T* line = in + std::min(i + l, count - 1) * in_step;
#pragma GCC unroll 16
      for (int u = 0; u < A; ++u) v[l * A + u] = fft::load(line + 2 * W * u);
      ends.template enter<A>(v + l * A);
      fft::transform<A>(v + l * A);
#pragma GCC unroll 16
      for (int u = 1; u < A; ++u)
        v[l * A + u] = turned(v[l * A + u], fft::load(re + 2 * W * u), fft::load(im + 2 * W * u));
    }
#pragma GCC unroll 4
    for (int g = 0; g < R; g += W) {
      turn(v + g);
      fft::transform<W>(v + g);
    }
    ends.template leave<R>(v);
    if constexpr (L == 1) {
#pragma GCC unroll 16
      for (int k = 0; k < R; ++k) fft::store(out + i * out_step + 2 * (k / W * W + k % W * A), v[k]);
    } else {
      // Register k has numbers A k .. A k + A - 1 of each line.
#pragma GCC unroll 8
      for (int j = 0; j < A; ++j) {
        if constexpr (L == 2) turn_halves(v + L * j);
        else turn_quarters(v + L * j);
#pragma GCC unroll 4
        for (int l = 0; l < L; ++l)
          if (i + l < count) fft::store(out + (i + l) * out_step + 2 * W * j, v[L * j + l]);
      }
    }
  }
}

// Lines of A x B numbers, both multiples of W, through memory of our own.
template <int A, int B, class T> [[gnu::flatten]] void matrix_lines(const FftShort<T>& plan, const T* in,
                                                                    int64_t in_step, T* out, int64_t out_step,
                                                                    int64_t count, const Ends<T>& ends) {
  constexpr int W = Pairs<T>::W;
  alignas(64) T middle[2 * A * B];  // (B, A)
  const T *re = plan.turns.data(), *im = re + 2 * plan.n;
  for (int64_t i = 0; i < count; ++i) {
    for (int p = 0; p < 2 * B; p += 2 * W) {
      Pairs<T> v[A];
#pragma GCC unroll 16
      for (int u = 0; u < A; ++u) v[u] = fft::load(in + i * in_step + 2 * B * u + p);
      ends.template enter<A>(v);
      fft::transform<A>(v);
#pragma GCC unroll 16
      for (int u = 1; u < A; ++u) v[u] = turned(v[u], fft::load(re + 2 * B * u + p), fft::load(im + 2 * B * u + p));
#pragma GCC unroll 4
      for (int g = 0; g < A; g += W) {
        turn(v + g);
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

// Any others: turned, W at a time, into memory of our own, where they lie side by side, and back.
template <class T> void turned_lines(const FftShort<T>& plan, const T* in, int64_t in_step, T* out, int64_t out_step,
                                     int64_t count, const Ends<T>& ends) {
  constexpr int64_t W = Pairs<T>::W, kRow = 2 * W;
  alignas(64) T buffer[kMost * kMost * kRow];
  const int64_t n = plan.n;
  for (int64_t i = 0; i < count; i += W) {
    for (int64_t k = 0; k < n; k += W) {
      const First part(2 * (n - k));
      Pairs<T> v[W];
#pragma GCC unroll 8
      for (int l = 0; l < W; ++l) v[l] = fft::load(in + (i + l) * in_step + 2 * k, i + l < count ? part : First(0));
      turn(v);
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
      turn(v);
#pragma GCC unroll 8
      for (int l = 0; l < W; ++l) fft::store(out + (i + l) * out_step + 2 * k, i + l < count ? part : First(0), v[l]);
    }
  }
}

}  // namespace

template <class T> bool FftShort<T>::shape(int64_t length) {
  constexpr int W = Pairs<T>::W;
  if (!has_avx512() || length < 2 || length > kMost * kMost * kMost) return false;
  auto inner = [&](int64_t m) {
    n = m;
    for (int a : {16, 8, 4, 2})
      if (m == a * W) return first = a, second = W, true;
    if (m <= kMost && is_one(static_cast<int>(m))) return first = static_cast<int>(m), second = 1, true;
    for (int a = 4; a <= kMost; ++a)  // the flattest matrix
      if (m % a == 0 && m / a <= a && is_one(a) && is_one(static_cast<int>(m / a)))
        return first = a, second = static_cast<int>(m / a), true;
    return n = 0, false;
  };
  if (inner(length)) return true;
  // Rows that fill registers, and are short, are best.
  for (int a : {8, 16})
    if (length % (a * W) == 0 && length / a <= 16 * W && inner(length / a)) return outer = a, true;
  for (int a : {8, 16})
    if (length % (a * W) == 0 && inner(length / a)) return outer = a, true;
  return false;
}

namespace {

template <class T> void inner_lines(const FftShort<T>& plan, const T* in, int64_t in_step, T* out, int64_t out_step,
                                    int64_t count, const Ends<T>& ends) {
  constexpr int W = Pairs<T>::W;
  if (plan.second == W) switch (plan.first) {
      case 2: return whole_lines<2>(plan, in, in_step, out, out_step, count, ends);
      case 4: return whole_lines<4>(plan, in, in_step, out, out_step, count, ends);
      case 8: return whole_lines<8>(plan, in, in_step, out, out_step, count, ends);
      case 16: return whole_lines<16>(plan, in, in_step, out, out_step, count, ends);
      default: break;
    }
  if (plan.first == 16 && plan.second == 16) return matrix_lines<16, 16>(plan, in, in_step, out, out_step, count, ends);
  if (plan.first == 16 && plan.second == 8) return matrix_lines<16, 8>(plan, in, in_step, out, out_step, count, ends);
  if (plan.second == 1)
    return with_length(plan.first, [&]<int N> { tiny_lines<N>(in, in_step, out, out_step, count, ends); });
  turned_lines(plan, in, in_step, out, out_step, count, ends);
}

// A line of A n numbers: of its columns' transforms, turned, the rows lie side by side, and so do their results.
template <int A, class T> void outer_line(const FftShort<T>& plan, const T* in, T* out, const Ends<T>& ends) {
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
      const Pairs<T> w = fft::load(plan.outer_turns.data() + 2 * (n * u + p), part);
      v[u] = turned(v[u], real_parts(w), imag_parts(w));
    }
#pragma GCC unroll 4
    for (int g = 0; g < A; g += W) {
      turn(v + g);
#pragma GCC unroll 8
      for (int l = 0; l < W; ++l)
        if (p + l < n) fft::store(middle + 2 * (A * (p + l) + g), v[g + l]);
    }
  }
  for (int g = 0; g < A; g += W) side_by_side(plan, middle + 2 * g, 2 * A, out + 2 * g, 2 * A, First(32), ends.last());
}

}  // namespace

template <class T> void fft_short_lines(const FftShort<T>& plan, const T* in, int64_t in_step, T* out, int64_t out_step,
                                        int64_t count, bool forward, T scale) {
  const Ends<T> ends(forward, scale);
  if (plan.outer == 1) return inner_lines(plan, in, in_step, out, out_step, count, ends);
  for (int64_t i = 0; i < count; ++i) {
    if (plan.outer == 8) outer_line<8>(plan, in + i * in_step, out + i * out_step, ends);
    else outer_line<16>(plan, in + i * in_step, out + i * out_step, ends);
  }
}

template <class T> void fft_short_rows(const FftShort<T>& plan, const T* in, int64_t in_step, T* out, int64_t out_step,
                                       int64_t count, bool forward, T scale) {
  constexpr int64_t W = Pairs<T>::W;
  const Ends<T> ends(forward, scale);
  for (int64_t i = 0; i < count; i += W)
    side_by_side(plan, in + 2 * i, in_step, out + 2 * i, out_step, count - i >= W ? First(32) : First(2 * (count - i)),
                 ends);
}

// X_k = (Z_k + conj Z_{n-k}) / 2 - i w^k (Z_k - conj Z_{n-k}) / 2
template <class T> void fft_half_from(T* z, int64_t pitch, int64_t count, int64_t n, const T* half_turns, T* out,
                                      const int64_t* at, bool forward, T scale) {
  constexpr int W = Pairs<T>::W;
  const Pairs<T> by = fft::alternating(scale / 2, forward ? scale / 2 : -scale / 2);
  const Pairs<T> conjugate = fft::alternating(T(0), T(-0.0));
  for (int64_t l = 0; l < count; ++l) __builtin_memcpy(z + l * pitch + 2 * n, z + l * pitch, 2 * sizeof(T));
  for (int64_t l = 0; l < count; ++l, z += pitch) {
    T* line = out + at[l];
    for (int64_t k = 0; k < n; k += W) {
      const First part(2 * (n - k));
      const Pairs<T> a = fft::load(z + 2 * k, part), w = fft::load(half_turns + 2 * k, part);
      const Pairs<T> b = flipped(fft::load_back(z + 2 * (n - k), n - k + 1), conjugate);
      const Pairs<T> x = (a + b) + minus_i(turned(a - b, real_parts(w), imag_parts(w)));
      fft::store(line + 2 * k, part, {x.v * by.v});
    }
    line[2 * n] = (z[0] - z[1]) * scale, line[2 * n + 1] = T(0);
  }
}
// Z_k = X_k + conj X_{n-k} + i w^-k (X_k - conj X_{n-k}). A real result leaves no room for the imaginary parts of the
// first and the last number.
template <class T> void fft_half_into(const T* in, const int64_t* at, int64_t count, int64_t n, const T* half_turns,
                                      T* z, int64_t pitch, bool forward) {
  constexpr int W = Pairs<T>::W;
  const Pairs<T> conjugate = fft::alternating(T(0), T(-0.0));
  const Pairs<T> here = forward ? conjugate : Pairs<T>{}, there = forward ? Pairs<T>{} : conjugate;
  for (int64_t l = 0; l < count; ++l, z += pitch) {
    const T* line = in + at[l];
    for (int64_t k = 0; k < n; k += W) {
      const First part(2 * (n - k));
      const Pairs<T> a = flipped(fft::load(line + 2 * k, part), here);
      const Pairs<T> b = flipped(fft::load_back(line + 2 * (n - k), n - k), there);
      const Pairs<T> w = flipped(fft::load(half_turns + 2 * k, part), conjugate);
      const Pairs<T> x = (a + b) - minus_i(turned(a - b, real_parts(w), imag_parts(w)));
      fft::store(z + 2 * k, x);
    }
    z[0] = line[0] + line[2 * n], z[1] = line[0] - line[2 * n];
  }
}

template void fft_half_from(float*, int64_t, int64_t, int64_t, const float*, float*, const int64_t*, bool, float);
template void fft_half_into(const float*, const int64_t*, int64_t, int64_t, const float*, float*, int64_t, bool);
template void fft_half_from(double*, int64_t, int64_t, int64_t, const double*, double*, const int64_t*, bool, double);
template void fft_half_into(const double*, const int64_t*, int64_t, int64_t, const double*, double*, int64_t, bool);
template struct FftShort<float>;
template struct FftShort<double>;
template void fft_short_lines(const FftShort<float>&, const float*, int64_t, float*, int64_t, int64_t, bool, float);
template void fft_short_lines(const FftShort<double>&, const double*, int64_t, double*, int64_t, int64_t, bool, double);
template void fft_short_rows(const FftShort<float>&, const float*, int64_t, float*, int64_t, int64_t, bool, float);
template void fft_short_rows(const FftShort<double>&, const double*, int64_t, double*, int64_t, int64_t, bool, double);

}  // namespace rl::cpu
#pragma GCC pop_options
#else
namespace rl::cpu {
template <class T> bool FftShort<T>::shape(int64_t) { return false; }
template <class T> void fft_short_lines(const FftShort<T>&, const T*, int64_t, T*, int64_t, int64_t, bool, T) {}
template <class T> void fft_short_rows(const FftShort<T>&, const T*, int64_t, T*, int64_t, int64_t, bool, T) {}
template <class T> void fft_half_from(T*, int64_t, int64_t, int64_t, const T*, T*, const int64_t*, bool, T) {}
template <class T> void fft_half_into(const T*, const int64_t*, int64_t, int64_t, const T*, T*, int64_t, bool) {}
template void fft_half_from(float*, int64_t, int64_t, int64_t, const float*, float*, const int64_t*, bool, float);
template void fft_half_into(const float*, const int64_t*, int64_t, int64_t, const float*, float*, int64_t, bool);
template void fft_half_from(double*, int64_t, int64_t, int64_t, const double*, double*, const int64_t*, bool, double);
template void fft_half_into(const double*, const int64_t*, int64_t, int64_t, const double*, double*, int64_t, bool);
template struct FftShort<float>;
template struct FftShort<double>;
template void fft_short_lines(const FftShort<float>&, const float*, int64_t, float*, int64_t, int64_t, bool, float);
template void fft_short_lines(const FftShort<double>&, const double*, int64_t, double*, int64_t, int64_t, bool, double);
template void fft_short_rows(const FftShort<float>&, const float*, int64_t, float*, int64_t, int64_t, bool, float);
template void fft_short_rows(const FftShort<double>&, const double*, int64_t, double*, int64_t, int64_t, bool, double);
}  // namespace rl::cpu
#endif
