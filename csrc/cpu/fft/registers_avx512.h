// Transforms of registers that hold one number of each of several signals.
#pragma once
#include "cpu/fft/complex_avx512.h"
#include "cpu/fft/short.h"

namespace rl::RL_ISA {
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

// `times` transforms of length N of registers with stride `step`, the next ones `next` on; distances in scalars T.
template <class T> struct Work {
  const T* in;
  int64_t in_step, in_next;
  T* out;
  int64_t out_step, out_next;
  int64_t times, n;
  First part;
  Ends<T> ends;
  const T* twiddles;
};

// The first transforms of signals: their results, multiplied by twiddle factors, go to memory of our own.
template <int N, class T> [[gnu::flatten]] void columns(const Work<T>& w) {
  for (int64_t i = 0; i < w.times; ++i) {
    const T* in = w.in + i * w.in_next;
    T* out = w.out + i * w.out_next;
    const T *re = w.twiddles + 2 * i, *im = re + 2 * w.n;
    Pairs<T> v[N];
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) v[t] = fft::load(in + t * w.in_step, w.part);
    w.ends.template enter<N>(v);
    // Signals are often far from each other in memory, which no processor foresees: those of the next register.
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) __builtin_prefetch(in + t * w.in_step + 2 * Pairs<T>::W);
    fft::transform<N>(v);
    fft::store(out, v[0]);
#pragma GCC unroll 16
    for (int u = 1; u < N; ++u)
      fft::store(out + u * w.out_step, multiplied(v[u], fft::all(re[2 * w.times * u]), fft::all(im[2 * w.times * u])));
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

// Up to W signals side by side.
template <class T> void side_by_side(const FftShort<T>& plan, const T* in, int64_t in_step, T* out, int64_t out_step,
                                     First part, const Ends<T>& ends) {
  const int a = plan.first, b = plan.second;
  if (b == 1) {
    const Work<T> only{in, in_step, 0, out, out_step, 0, 1, plan.n, part, ends, nullptr};
    return with_length(a, [&]<int N> { rows<N>(only); });
  }
  constexpr int64_t kRow = 2 * Pairs<T>::W;
  alignas(64) T middle[kMost * kMost * kRow];
  const Work<T> first{in, b * in_step, in_step, middle, b * kRow, kRow, b, plan.n, part, ends, plan.twiddles.data()};
  with_length(a, [&]<int N> { columns<N>(first); });
  const Work<T> last{middle, kRow, b * kRow, out, a * out_step, out_step, a, plan.n, part, ends.last(), nullptr};
  with_length(b, [&]<int N> { rows<N>(last); });
}

}  // namespace
}  // namespace rl::RL_ISA
